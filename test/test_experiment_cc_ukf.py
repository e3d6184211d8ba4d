"""`softcr experiment cc-ukf` in a short form: plant, identification, scores, table."""

import dataclasses
import json

import numpy as np
import pytest
from scipy.integrate import solve_ivp

from softcr_models.constant_curvature.dynamics import ConstantCurvatureModel
from softcr_tools import cli
from softcr_tools.experiments.cc_ukf.contenders import CONTENDERS, PUBLISHED, REQUIRED
from softcr_tools.experiments.cc_ukf.correction import OutputCorrection
from softcr_tools.experiments.cc_ukf.identification import identified
from softcr_tools.experiments.cc_ukf.plant import DT, SensedRun, sensed_run, table_one_robot
from softcr_tools.experiments.cc_ukf.rod_contender import RodContender
from softcr_tools.experiments.cc_ukf.scores import Seen, score
from softcr_tools.experiments.cc_ukf.table import rows_of
from softcr_tools.experiments.results import Row, write_table

HEIGHT = 0.024


@pytest.fixture(scope="module")
def robot():
    return table_one_robot()


@pytest.fixture(scope="module")
def model(robot):
    return ConstantCurvatureModel.of_robot(robot)


@pytest.fixture(scope="module")
def run(robot, model):
    return sensed_run(robot, model, 3.0, seed=0)


def test_the_plant_has_the_numbers_of_table_one(model):
    assert model.radius == pytest.approx(0.021)
    assert model.rest_length == pytest.approx(0.130)
    assert model.mass == pytest.approx(0.16)
    assert model.tip_mass == 0.0
    assert model.bending_stiffness == pytest.approx(505.0)
    assert model.bending_damping == pytest.approx(0.15)
    assert model.elongation_stiffness == pytest.approx(1128.0)
    assert model.elongation_damping == pytest.approx(6.23)


def test_a_run_starts_straight_and_moves_as_far_as_the_paper_says(run, model):
    np.testing.assert_allclose(run.coordinates[0, :2], 0.0, atol=1e-9)
    deflection = np.linalg.norm(run.tips - [0.0, 0.0, model.rest_length], axis=1).max()
    assert deflection == pytest.approx(0.0574, rel=0.02)
    np.testing.assert_allclose(model.tip(run.coordinates), run.tips, atol=1e-12)
    slopes = np.gradient(run.tips, DT, axis=0)
    np.testing.assert_allclose(slopes[5:-5], run.velocities[5:-5], atol=1e-3)


def test_a_seed_is_a_run(run, robot, model):
    again, other = (sensed_run(robot, model, 3.0, seed) for seed in (0, 1))
    np.testing.assert_array_equal(again.wrenches, run.wrenches)
    assert np.abs(other.pressures - run.pressures).max() > 100.0


def test_identification_finds_the_numbers_of_a_true_arc(model):
    """Data of a constant-curvature section by a fine integration: the fit must be exact."""
    truth = model.replace(
        mass=0.12, tip_mass=0.03, bending_stiffness=450.0, bending_damping=0.8,
        elongation_stiffness=1000.0, elongation_damping=5.0,
    )  # fmt: skip
    times = DT * np.arange(800)
    pressures = 1.5e4 * (1.0 - np.cos(2 * np.pi * np.multiply.outer(times, [0.7, 1.1, 0.9])))

    def slope(t, state):
        held = 1.5e4 * (1.0 - np.cos(2 * np.pi * t * np.array([0.7, 1.1, 0.9])))
        return np.r_[state[3:], truth.motion(state[:3], state[3:], held)[0]]

    start = np.array([0.01, -0.01, 0.0, 0.0, 0.0, 0.0])
    states = solve_ivp(slope, (0.0, times[-1]), start, t_eval=times, rtol=1e-9, atol=1e-12).y.T
    q, rates = states[:, :3], states[:, 3:]
    wrenches = -truth.motion(q, rates, pressures)[1]
    wrenches[:, 3:] += np.cross([0.0, 0.0, HEIGHT], wrenches[:, :3])
    tips, velocities = truth.tip(q), truth.tip_velocity(q, rates)
    arc = SensedRun(times, pressures, tips, velocities, q, rates, wrenches).part(100, 790)
    found = identified(model, arc, HEIGHT, share_mass=True)
    for name in ("mass", "tip_mass", "bending_stiffness", "elongation_stiffness"):
        assert getattr(found, name) == pytest.approx(getattr(truth, name), rel=0.02), name
    assert found.bending_damping == pytest.approx(0.8, abs=0.1)
    known = identified(model.replace(tip_mass=0.03), arc, HEIGHT, share_mass=False)
    assert known.tip_mass == 0.03
    assert known.mass == pytest.approx(0.12, rel=0.01)


def seen_as(run, **changes):
    parts = {
        "coordinates": run.coordinates,
        "rates": run.rates,
        "tips": run.tips,
        "velocities": run.velocities,
        "tick_times": np.full(len(run.times), 1e-4),
        "stiffness": np.full(len(run.times), 505.0),
    }
    return Seen(**{**parts, **changes})


def test_scores_are_those_of_known_errors(run):
    perfect = score(run, seen_as(run))
    np.testing.assert_array_equal(perfect.nrmse, 0.0)
    assert (perfect.tip, perfect.velocity, perfect.converged) == (0.0, 0.0, True)
    assert perfect.tick == pytest.approx(0.1)
    moved = score(run, seen_as(run, tips=run.tips + np.array([0.0, 3e-3, 4e-3])))
    assert moved.tip == pytest.approx(5.0)
    largest = np.abs(run.coordinates[:, 0]).max()
    shift = np.array([0.1 * largest, 0.0, 0.0])
    wrong = score(run, seen_as(run, coordinates=run.coordinates + shift))
    np.testing.assert_allclose(wrong.nrmse, [10.0, 0, 0, 0, 0, 0], atol=1e-9)
    assert not score(run, seen_as(run, tips=run.tips + 0.02)).converged


def test_a_correction_takes_away_what_it_can_express_and_never_looks_at_the_truth(run, model):
    """Errors that are a polynomial of what was seen, learned on the first half."""
    half = len(run.times) // 2
    parts = run.part(0, half), run.part(half, 2 * half)
    said = []
    for part in parts:
        q, rates = part.coordinates, part.rates
        error = 0.1 * q[:, [1, 0, 2]] + 1e-3 + 2.0 * q[:, [0]] * q + 1e-3 * rates
        said.append(
            Seen(q + error, rates - 0.05 * rates, part.tips, part.velocities,
                 np.zeros(half), np.zeros(half))
        )  # fmt: skip
    correction = OutputCorrection.fitted(model, parts[0], said[0])
    corrected = correction.applied(parts[1], said[1])
    before, after = (score(parts[1], each) for each in (said[1], corrected))
    assert after.nrmse.max() < 0.15 * before.nrmse.max()
    np.testing.assert_allclose(corrected.tips, model.tip(corrected.coordinates), atol=1e-15)
    blind = dataclasses.replace(parts[1], coordinates=np.zeros((half, 3)), rates=np.ones((half, 3)))
    np.testing.assert_array_equal(
        correction.applied(blind, said[1]).coordinates, corrected.coordinates
    )


def test_a_filter_that_breaks_is_lost_and_the_table_still_valid_json(run, tmp_path):
    broken = score(run, seen_as(run, tips=np.nan * run.tips, coordinates=np.nan * run.tips))
    assert not broken.converged
    assert broken.tip == np.inf
    rows = rows_of("case", "filter", [[broken]], required=True)
    content = json.loads(write_table(tmp_path, {}, rows).read_text())
    by_name = {row["quantity"]: row for row in content["rows"]}
    assert by_name["tip error"]["mean"] is None
    assert by_name["tip error"]["mark"] == "MISS"
    assert by_name["parts not converged"]["mean"] == 1.0


def test_marks():
    def mark(value):
        return Row("", "", "", None, value, 0.0, "", 1, 12.0, 8.0).mark

    assert [mark(8.0), mark(10.0), mark(12.1), mark(np.nan)] == ["goal", "pass", "MISS", "MISS"]


def test_published_settings_are_those_of_the_paper():
    """Q and R of Mehl et al., Sec. IV, at 5 ms; P_0 = Q."""
    noises = [PUBLISHED.coordinate_noise, PUBLISHED.rate_noise, PUBLISHED.stiffness_noise]
    np.testing.assert_allclose(np.square(noises) * DT, [1e-10, 1e-11, 1e-1])
    starts = [PUBLISHED.coordinate_deviation, PUBLISHED.rate_deviation]
    np.testing.assert_allclose(np.square([*starts, PUBLISHED.stiffness_deviation]),
                               [1e-10, 1e-11, 1e-1])  # fmt: skip
    np.testing.assert_allclose(
        np.square([PUBLISHED.force_noise, PUBLISHED.moment_noise]), [1e-6, 1e-8]
    )


def test_the_rod_sees_itself_through_its_base(robot, model, run):
    part = run.part(200, 280)
    ticks = []
    seen = RodContender(robot).see(part, model, HEIGHT, lambda: ticks.append(1))
    assert len(ticks) == 80
    errors = np.linalg.norm(seen.tips - part.tips, axis=1)
    assert errors[-20:].max() < 2e-3


def test_the_command_runs_and_writes_its_table(tmp_path, capsys):
    arguments = ["--seeds", "2", "--parts", "2", "--seconds", "2.5", "--results", str(tmp_path)]
    assert cli.main(["experiment", "cc-ukf", *arguments]) == 0
    latest = tmp_path / "experiments" / "cc-ukf" / "latest"
    assert {path.name for path in latest.iterdir()} == {
        "table.json", "worst_part.png", "tip_errors.png",
    }  # fmt: skip
    content = json.loads((latest / "table.json").read_text())
    rows = {(row["case"], row["method"], row["quantity"]): row for row in content["rows"]}
    for row in rows.values():
        assert set(row) >= {"case", "method", "paper", "mean", "sd", "unit", "seeds"}
    found = {(case, method) for case, method, _ in rows}
    assert found >= {(contender.case, contender.name) for contender in CONTENDERS}
    assert rows["2 parts of 2.5 s", "plant", "max velocity"]["mean"] == pytest.approx(275, rel=0.2)
    required = CONTENDERS[REQUIRED]
    for quantity, limit in (
        ("NRMSE mean", 12.0), ("tip error", 3.1), ("tip velocity error", 57.5),
        ("parts not converged", 0.0),
    ):  # fmt: skip
        row = rows[required.case, required.name, quantity]
        assert row["mean"] <= limit
        assert row["mark"] in ("goal", "pass")
    # with a wrong stiffness the sensor is worth most of the error
    wrong = next(c.case for c in CONTENDERS if c.case != required.case)
    seeing = rows[wrong, "CC-UKF, mass shared", "tip error"]["mean"]
    assert seeing < 0.5 * rows[wrong, "model alone, mass shared", "tip error"]["mean"]
    assert "softcr experiment cc-ukf, mehl2023" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (["cc-ukf", "--seeds", "0"], "'0' is not allowed: a whole number from 1 on"),
        (["cc-ukf", "--seconds", "nan"], "'nan' is not allowed: 0.5 to 1000 seconds"),
        (["cc-ukf", "--robot", "nobody"], "robot 'nobody': unknown"),
        (["unheard-of"], "invalid choice: 'unheard-of'"),
    ],
)
def test_mistakes_get_one_line_and_code_2(arguments, complaint, capsys):
    try:
        code = cli.main(["experiment", *arguments])
    except SystemExit as end:
        code = end.code
    assert code == 2
    assert complaint in capsys.readouterr().err


def test_help_lists_the_experiments(capsys):
    with pytest.raises(SystemExit) as end:
        cli.main(["experiment", "--help"])
    assert end.value.code == 0
    assert "cc-ukf" in capsys.readouterr().out
