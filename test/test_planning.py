"""Plans: they stay inside lag and limits, say what they miss, and the file brings the tip along."""

from pathlib import Path

import numpy as np
import pytest

from softcr_control.reference.planning import holding_pressures, plan_along
from softcr_control.reference.references import from_file
from softcr_models import CosseratRod, UserError, load_robot
from softcr_models.prediction import RodPrediction
from softcr_tools import plan as command

ROBOT = load_robot("licher2025")
PERIOD = 1 / 70


@pytest.fixture(scope="module")
def prediction():
    return RodPrediction(CosseratRod(ROBOT, 5), single_precision=False)


@pytest.fixture(scope="module")
def ellipse():
    phase = 2 * np.pi * 0.5 * PERIOD * np.arange(140)
    height = np.full_like(phase, 0.16)
    return np.stack([0.04 * np.cos(phase), 0.03 * np.sin(phase), height], axis=1)


def test_holding_pressures_bring_the_tip_where_other_pressures_had_it(prediction):
    known = np.array([35e3, 12e3, 20e3])
    nominal = prediction.nominal_parameters
    state = prediction.equilibrium(known, nominal)
    tip = prediction.tip_poses(state[None], nominal[None])[0, :, 3]
    assert holding_pressures(ROBOT, prediction, tip) == pytest.approx(known, abs=5.0)


def test_the_plan_and_its_file_follow_the_path_inside_the_limits(prediction, ellipse, tmp_path):
    plan = plan_along(ROBOT, prediction, ellipse, PERIOD)
    assert plan.deviation[35:-12].max() < 5e-4  # at its end it already stops
    lag, limits = ROBOT.pressure_lag, ROBOT.pressure_limits
    assert plan.pressures.min() >= limits.minimum - 1e-6
    assert plan.pressures.max() <= limits.maximum + 1e-6
    assert np.array_equal(plan.wanted_tips, ellipse)
    # the lag inverted: what had to be commanded lies inside the box
    decay = np.exp(-lag.pole * PERIOD)
    before, after = plan.pressures[:-1], plan.pressures[1:]
    commands = (after - decay * before) / (1 - decay) * lag.pole / lag.gain
    assert limits.minimum - 1e-3 <= commands.min() <= commands.max() <= limits.maximum + 1e-3
    command.write_inputs(tmp_path / "plan.npz", plan.pressures, plan.period, "pressure")
    reference = from_file(prediction, tmp_path / "plan.npz", PERIOD)
    distance = np.linalg.norm(reference.tip_positions - ellipse, axis=1)
    assert distance[35:-12].max() < 5e-4


def test_a_path_out_of_reach_is_approached_and_the_rest_is_told(prediction):
    far = np.tile([0.0, 0.0, 0.30], (40, 1))
    plan = plan_along(ROBOT, prediction, far, PERIOD)
    assert plan.deviation.min() > 0.05
    assert np.isfinite(plan.states).all()


def test_the_command_writes_file_and_picture_and_says_how_good(tmp_path, ellipse, capsys):
    path = tmp_path / "path.csv"
    times = PERIOD * np.arange(70)
    table = np.column_stack([times, ellipse[:70]])
    np.savetxt(path, table, delimiter=",", header="time,tip_x,tip_y,tip_z", comments="")
    assert command.plan(path, output=tmp_path / "out.npz") == 0
    said = " ".join(capsys.readouterr().out.split())
    assert "deviation from the path: mean" in said
    assert "at a limit of an input 0.0 % of the time" in said
    assert (tmp_path / "out.png").stat().st_size > 10_000
    with np.load(tmp_path / "out.npz") as content:
        assert set(content.files) == {"time", "pressures"}
    with pytest.raises(UserError, match=r"out\.csv: the output must end in \.npz"):
        command.plan(path, output=Path("out.csv"))
    with pytest.raises(UserError, match="nowhere"):
        command.plan(Path("nowhere.csv"), output=tmp_path / "out.npz")
