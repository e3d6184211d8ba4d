"""`softcr experiment apcc-...` in short forms."""

import dataclasses
import json

import numpy as np
import pytest

from softcr_models.constant_curvature.shape_error import shape_error
from softcr_tools import cli
from softcr_tools.experiments.apcc.feedback import WEAK
from softcr_tools.experiments.apcc.kinematic import READINGS, REQUIRED
from softcr_tools.experiments.apcc.kinematic_run import (
    CENTRE,
    CHAIN,
    FIRST_LENGTHS,
    TRUE_LENGTHS,
    bent_start,
    law,
    simulate,
    straight_start,
)
from softcr_tools.experiments.apcc.published import PUBLISHED, change_label
from softcr_tools.experiments.apcc.robot_run import RobotTrace, run_robot
from softcr_tools.experiments.apcc.robots import FIXED, PAYLOADS, STUDIES, laws, settings_of
from softcr_tools.experiments.apcc.sensors_table import sensor_rows


def rows_of(directory, name):
    """(case, method, quantity) -> row of what a run has written."""
    path = directory / "experiments" / name / "latest" / "table.json"
    rows = json.loads(path.read_text())["rows"]
    return {(row["case"], row["method"], row["quantity"]): row for row in rows}


def test_shape_error_is_the_mean_distance():
    straight, longer = np.zeros(9), np.array([0, 0, 0.1, 0, 0, 0.1, 0, 0, 0.1])
    found = shape_error(CHAIN, straight, TRUE_LENGTHS, CHAIN, longer, TRUE_LENGTHS)
    # point k of N is k / (N - 1) of the whole up; sections are stretched by different parts
    places = np.linspace(0.0, 0.6, 500)
    ends = np.array([0.0, 0.105, 0.36, 0.60])
    expected = np.interp(places, ends, [0.0, 0.1, 0.2, 0.3]).mean()
    assert found == pytest.approx(expected, rel=1e-9)


def test_by_arc_only_the_curves_count():
    """A model with other rest lengths that lies on the arm's curve is the arm."""
    bends, true, guessed = 0.4 * np.array([1.0, -0.5, 0.8]), TRUE_LENGTHS, 0.8 * TRUE_LENGTHS
    q = np.stack([bends, 0.5 * bends, [0.01, -0.02, 0.03]], axis=-1)
    model = q + np.stack([0 * bends, 0 * bends, true - guessed], axis=-1)
    pair = CHAIN, q.ravel(), true, CHAIN, model.ravel(), guessed
    assert shape_error(*pair, "arc") == pytest.approx(0.0, abs=1e-12)
    longer = CHAIN, q.ravel(), true, CHAIN, 2.0 * q.ravel(), true
    assert shape_error(*longer, "arc") > 0.01
    # without elongation both are the same, by the polyline's own length
    straight = np.where(np.arange(9) % 3 == 2, 0.0, q.ravel())
    points = CHAIN.backbone(straight, true, 2001)[:, :3, 3]
    along = np.r_[0.0, np.cumsum(np.linalg.norm(np.diff(points, axis=0), axis=1))]
    spread = np.linspace(0.0, along[-1], 500)
    expected = np.stack([np.interp(spread, along, column) for column in points.T], axis=-1)
    other = CHAIN.backbone(model.ravel(), guessed, 2001)[:, :3, 3]
    along = np.r_[0.0, np.cumsum(np.linalg.norm(np.diff(other, axis=0), axis=1))]
    spread = np.linspace(0.0, along[-1], 500)
    found = np.stack([np.interp(spread, along, column) for column in other.T], axis=-1)
    mean = np.linalg.norm(expected - found, axis=1).mean()
    both = CHAIN, straight, true, CHAIN, model.ravel(), guessed
    assert shape_error(*both, "arc") == pytest.approx(mean, rel=1e-4)


def test_sensors_are_set_beside_the_rivals():
    def trace(linear, angular):
        zeros = np.zeros(1)
        return RobotTrace(*[zeros] * 5, np.array(linear), np.array(angular), *[zeros] * 2, 0, False)

    own = trace([[0.01, 0.02], [0.03, 0.02]], [[0.01, 0.02]])
    rival = trace([[0.05, 0.01]], [[0.01, 0.04]])
    numbers = {"distance": "R32", "distance tip": "R32 tip"}
    rows = sensor_rows(lambda *each: each, own, rival, numbers)
    assert [row[0] for row in rows] == [
        "sensor 1's distance (R32)", "... difference (-0.5 to -0.3)",
        "sensor 2's distance (R32)", "... difference (+0.15)",
        "sensor 1's angle", "... difference", "sensor 2's angle", "... difference",
    ]  # fmt: skip
    assert [row[1] for row in rows] == pytest.approx([2.0, -3.0, 2.0, 1.0, 1.0, 0.0, 2.0, -2.0])
    worse = sensor_rows(lambda *each: each, rival, own, numbers)
    assert worse[1][0] == "... difference (-0.5 to -0.3), OTHER SIGN"
    assert len(sensor_rows(lambda *each: each, own, None, numbers)) == 4


def test_runs_start_where_the_trajectory_does():
    for start in (straight_start(), bent_start(0), bent_start(1)):
        tip = CHAIN.position(start, TRUE_LENGTHS)
        np.testing.assert_allclose(tip, CENTRE, atol=1e-9)
    assert np.abs(bent_start(0) - bent_start(1)).max() > 0.1


def test_a_run_begins_with_what_is_told():
    trace = simulate(law(), straight_start(), 0.01, 0.2)
    np.testing.assert_allclose(trace.lengths[0], FIRST_LENGTHS)
    assert trace.errors[0] == pytest.approx(0.0, abs=1e-12)
    assert len(trace.times) == 21


def test_the_kinematic_experiment_shows_every_reading(tmp_path, capsys):
    arguments = ["--seeds", "1", "--seconds", "8", "--step-ms", "10", "--results", str(tmp_path)]
    assert cli.main(["experiment", "apcc-kinematic", *arguments]) == 0
    rows = rows_of(tmp_path, "apcc-kinematic")
    required = READINGS[REQUIRED]
    share = rows[required.case, required.method, "... of the fixed one's"]
    assert share["limit"] == 5.0
    assert share["mean"] < 25.0  # in 8 coarse seconds instead of 20 fine ones
    for reading in READINGS:
        ends = (reading.case, reading.method, "diverges after")
        assert (ends in rows) == (reading.method == "inferred q")
    drifting = "straight, 10 ms, 3 T", "inferred q, Γ / 50"
    assert all((*drifting, f"length error, {end} s") in rows for end in (8, 16, 24))
    latest = tmp_path / "experiments" / "apcc-kinematic" / "latest"
    figures = {"convergence.png", "readings.png"}
    assert {path.name for path in latest.iterdir()} == {"table.json"} | figures
    assert "commanded q" in capsys.readouterr().out


def test_setpoints_are_named_or_reached_without_elongation():
    study = STUDIES["apcc-robot2"][0]
    settings = settings_of(study, 4, 2, 1.0)
    assert len(settings) == 4 * 2 * len(PAYLOADS)
    assert settings[0].payload == 0.5
    np.testing.assert_array_equal(settings[0].target, study.named)
    for setting in settings:
        assert setting.target[2] < 0.0
        assert np.linalg.norm(setting.target) < 0.45
    again = settings_of(study, 4, 2, 1.0)
    np.testing.assert_array_equal(again[5].target, settings[5].target)


def test_a_run_goes_to_its_setpoint_and_says_when_it_is_lost():
    study = STUDIES["apcc-robot2"][0]
    calm = dataclasses.replace(settings_of(study, 1, 1, 3.0)[2], target=np.array([0.05, 0, -0.43]))
    fixed = laws(study)[FIXED]
    ticks = []
    trace = run_robot(calm, fixed, lambda: ticks.append(1))
    assert len(ticks) == len(trace.times) == 150
    assert trace.errors[-1] < 0.3 * trace.errors[0]
    assert 0.0 < trace.shapes[-1] < 0.01
    np.testing.assert_allclose(trace.lengths, 0.15, atol=1e-15)
    arrived = run_robot(dataclasses.replace(calm, within=0.04), fixed)
    assert arrived.errors[-1] < 0.04 <= arrived.errors[-2]
    far = dataclasses.replace(calm, target=np.array([2.0, 0.0, 0.0]))
    ticks.clear()
    assert run_robot(far, fixed, lambda: ticks.append(1)).lost
    assert len(ticks) == 150


def test_the_robot_experiment_sets_changes_beside_the_published_ones(tmp_path):
    arguments = ["--setpoints", "1", "--seconds", "1.5", "--results", str(tmp_path)]
    assert cli.main(["experiment", "apcc-robot2", *arguments]) == 0
    rows = rows_of(tmp_path, "apcc-robot2")
    assert rows["poses", FIXED, "E_shape least (R17)"]["paper"] == 0.55
    table = json.loads(
        (tmp_path / "experiments" / "apcc-robot2" / "latest" / "table.json").read_text()
    )["rows"]
    adaptive = [row for row in table if row["method"] == "A-PCC, Γ / 1000"]
    by_name = {row["quantity"]: row["mean"] for row in adaptive}
    mean = rows["poses", FIXED, "E_shape mean (R16)"]["mean"]
    change = next(row for row in adaptive if row["quantity"].startswith("... change"))
    assert change["paper"] == -28.6
    expected = 100.0 * (by_name["E_shape mean (R16)"] / mean - 1.0)
    assert change["mean"] == pytest.approx(expected)


def test_published_changes_agree_with_the_figures_unless_noted():
    for number, each in PUBLISHED.items():
        if each.fixed and each.change is not None and not each.note:
            change = 100.0 * (each.adaptive / each.fixed - 1.0)
            assert change == pytest.approx(each.change, abs=0.6), number


def test_a_change_of_the_other_sign_is_called_so():
    assert change_label(-3.0, -28.6) == change_label(5.0, None) == "... change"
    assert change_label(3.0, -28.6) == "... change, OTHER SIGN"


def test_the_feedback_experiment_in_short(tmp_path):
    arguments = ["--runs", "1", "--seconds", "1", "--results", str(tmp_path)]
    assert cli.main(["experiment", "apcc-feedback", *arguments]) == 0
    rows = rows_of(tmp_path, "apcc-feedback")
    met = rows["Experiment I", "position, true π", "sensors' distance"]["mean"]
    both = rows["Experiment I", "pose, true π", "sensors' distance"]["mean"]
    assert met < 0.05 < both  # positions alone can be met, poses not
    turned = (rows["Experiment I", f"{mode}, true π", "sensors' angle"]["mean"]
              for mode in ("position", "pose"))  # fmt: skip
    assert next(turned) > next(turned)
    assert rows["II, run II: pose", FIXED, "E_mapping mean (R25)"]["mean"] > 0.0
    run = "II, run III: 0.21 kg"
    assert (run, WEAK, "time to 1 mm (R28)") in rows
    assert (run, FIXED, "sensor 3's distance (R32)") in rows


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (["apcc-kinematic", "--seeds", "0"], "'0' is not allowed: a whole number from 1 on"),
        (["apcc-kinematic", "--step-ms", "nan"], "'nan' is not allowed: 0.1 to 10"),
    ],
)
def test_mistakes_get_one_line_and_code_2(arguments, complaint, capsys):
    with pytest.raises(SystemExit) as end:
        cli.main(["experiment", *arguments])
    assert end.value.code == 2
    assert complaint in capsys.readouterr().err
