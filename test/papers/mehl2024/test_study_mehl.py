"""The study of Mehl et al. in a short form: plant, identification, scores, table."""

import json

import numpy as np
import pytest
from kit.studies import rows_of
from scipy.integrate import solve_ivp

from softcr_papers.mehl2024.dynamics import ConstantCurvatureModel
from softcr_papers.mehl2024.identification import FITTED, identified
from softcr_papers.mehl2024.studies.base_sensor_filter import CC_UKF, IDENTIFIED, ROD_UKF, scores
from softcr_papers.mehl2024.studies.filters import FILTERS, PUBLISHED, corrected, see_as_rod
from softcr_papers.mehl2024.studies.plant import DT, sensed_run, table_one_robot
from softcr_studies.frame.catalogue import load_study
from softcr_studies.frame.study import Metric
from softcr_studies.frame.table import Row

NAME = "mehl2024/base-sensor-filter"
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
    numbers = {
        "radius": 0.021, "rest_length": 0.130, "mass": 0.16,
        "bending_stiffness": 505.0, "bending_damping": 0.15, "elongation_stiffness": 1128.0,
        "elongation_damping": 6.23,
    }  # fmt: skip
    assert {name: getattr(model, name) for name in numbers} == pytest.approx(numbers)
    assert model.tip_mass == 0.0


def test_a_run_starts_straight_and_moves_as_far_as_the_paper_says(run, model):
    np.testing.assert_allclose(run["coordinates"][0, :2], 0.0, atol=1e-9)
    deflection = np.linalg.norm(run["tips"] - [0.0, 0.0, model.rest_length], axis=1).max()
    assert deflection == pytest.approx(0.0574, rel=0.02)
    np.testing.assert_allclose(model.tip(run["coordinates"]), run["tips"], atol=1e-12)
    slopes = np.gradient(run["tips"], DT, axis=0)
    np.testing.assert_allclose(slopes[5:-5], run["velocities"][5:-5], atol=1e-3)


def test_a_seed_is_a_run(run, robot, model):
    again, other = (sensed_run(robot, model, 3.0, seed) for seed in (0, 1))
    np.testing.assert_array_equal(again["wrenches"], run["wrenches"])
    assert np.abs(other["pressures"] - run["pressures"]).max() > 100.0


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
    data = {"times": times, "pressures": pressures, "tips": tips, "velocities": velocities,
            "coordinates": q, "rates": rates, "wrenches": wrenches}  # fmt: skip
    arc = between(data, 100, 790)
    found = identified(model, arc, DT, HEIGHT, share_mass=True)
    for name in ("mass", "tip_mass", "bending_stiffness", "elongation_stiffness"):
        assert getattr(found, name) == pytest.approx(getattr(truth, name), rel=0.02), name
    assert found.bending_damping == pytest.approx(0.8, abs=0.1)
    known = identified(model.replace(tip_mass=0.03), arc, DT, HEIGHT, share_mass=False)
    assert known.tip_mass == 0.03
    assert known.mass == pytest.approx(0.12, rel=0.01)


def between(run, begin, end):
    return {name: values[begin:end] for name, values in run.items()}


def score(run, **changes):
    """Of a filter that says of one part what is true, but for the changes."""
    rest = {"ticks": np.full(len(run["times"]), 1e-4), "stiffness": np.zeros(len(run["times"]))}
    return scores([run], [{**run, **rest, **changes}])


def test_scores_are_those_of_known_errors(run):
    perfect = score(run)
    assert perfect["NRMSE mean, worst part"] == perfect["NRMSE mean"] == 0.0
    assert (perfect["tip error"], perfect["tip velocity error"]) == (0.0, 0.0)
    assert perfect["parts not converged"] == 0.0
    assert perfect["tick"] == pytest.approx(0.1)
    moved = score(run, tips=run["tips"] + np.array([0.0, 3e-3, 4e-3]))
    assert moved["tip error"] == pytest.approx(5.0)
    largest = np.abs(run["coordinates"][:, 0]).max()
    shift = np.array([0.1 * largest, 0.0, 0.0])
    wrong = score(run, coordinates=run["coordinates"] + shift)
    assert wrong["NRMSE Δx"] == pytest.approx(10.0)
    assert wrong["NRMSE mean"] == pytest.approx(10.0 / 6.0)
    assert wrong["NRMSE Δy"] == wrong["NRMSE δL'"] == 0.0
    assert score(run, tips=run["tips"] + 0.02)["parts not converged"] == 1.0


def test_the_worst_part_is_the_one_that_is_shown(run):
    half = len(run["times"]) // 2
    parts = [between(run, 0, half), between(run, half, 2 * half)]
    rest = {"ticks": np.zeros(half), "stiffness": np.zeros(half)}
    said = [{**part, **rest, "rates": share * part["rates"]}
            for part, share in zip(parts, (0.9, 0.5), strict=True)]  # fmt: skip
    found = scores(parts, said)
    assert found["worst"] == 1
    assert found["NRMSE mean, worst part"] > found["NRMSE mean"]
    np.testing.assert_array_equal(found["truth"][:, 3:], parts[1]["rates"])
    np.testing.assert_array_equal(found["found"][:, 3:], said[1]["rates"])
    assert found["tip_errors"].shape == (2, half)


def test_a_correction_takes_away_what_it_can_express_and_never_looks_at_the_truth(run, model):
    """Errors that are a polynomial of what was seen, learned on the first half."""
    half = len(run["times"]) // 2
    parts = [between(run, 0, half), between(run, half, 2 * half)]
    said = []
    for part in parts:
        q, rates = part["coordinates"], part["rates"]
        error = 0.1 * q[:, [1, 0, 2]] + 1e-3 + 2.0 * q[:, [0]] * q + 1e-3 * rates
        said.append({**part, "coordinates": q + error, "rates": rates - 0.05 * rates})
    better = corrected(model, parts, said)[1]
    before, after = (
        score(parts[1], **{name: each[name] for name in ("coordinates", "rates")})
        for each in (said[1], better)
    )
    worst = [max(each[f"NRMSE {name}"] for name in ("Δx", "Δy", "δL", "Δx'", "Δy'", "δL'"))
             for each in (before, after)]  # fmt: skip
    assert worst[1] < 0.15 * worst[0]
    np.testing.assert_allclose(better["tips"], model.tip(better["coordinates"]), atol=1e-15)
    blind = {**parts[1], "coordinates": np.zeros((half, 3)), "rates": np.ones((half, 3))}
    again = corrected(model, [parts[0], blind], said)[1]
    np.testing.assert_array_equal(again["coordinates"], better["coordinates"])


def test_a_filter_that_breaks_is_lost_and_its_rows_are_still_valid_json(run):
    broken = score(run, tips=np.nan * run["tips"], coordinates=np.nan * run["tips"])
    assert broken["parts not converged"] == 1.0
    assert broken["tip error"] == np.inf
    value = Metric("tip error", "mm", "tip error").of(broken)
    row = Row(IDENTIFIED, CC_UKF, "tip error", value, 0.0, "mm", 1, must=3.1).as_dict()
    assert json.loads(json.dumps(row, allow_nan=False))["mean"] is None
    assert row["mark"] == "MISS"


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
    part = between(run, 200, 280)
    seen = see_as_rod(robot, part, model)
    assert len(seen["ticks"]) == 80
    errors = np.linalg.norm(seen["tips"] - part["tips"], axis=1)
    assert errors[-20:].max() < 2e-3


def test_the_rod_takes_part_once_it_is_asked_for():
    study = load_study(NAME)

    class Found:
        def __init__(self, **given):
            self.settings = study.settings(**given)

    assert study.later(Found()) == []
    (cell,) = study.later(Found(rod=True))
    assert (cell.case_name, cell.method, cell.seed) == (IDENTIFIED, ROD_UKF, 0)


def test_the_study_in_short(tmp_path):
    rows, directory = rows_of(NAME, tmp_path, seeds=2, parts=2, seconds=2.5)
    assert {"worst_part.png", "tip_errors.png"} <= {path.name for path in directory.iterdir()}
    assert {method for case, method, _ in rows if case == IDENTIFIED} == set(FILTERS)
    assert rows["2 parts of 2.5 s", "plant", "max velocity"].mean == pytest.approx(275, rel=0.2)
    required = IDENTIFIED, CC_UKF
    for quantity, limit in (
        ("NRMSE mean", 12.0), ("tip error", 3.1), ("tip velocity error", 57.5),
        ("parts not converged", 0.0),
    ):  # fmt: skip
        row = rows[(*required, quantity)]
        assert row.mean <= limit
        assert row.mark in ("goal", "pass")
    assert rows[(*required, "tip error")].published == {"simulation": 3.1, "bench": 5.2}
    assert rows[(*required, "tick")].published == {"bench": pytest.approx(0.593, abs=1e-3)}
    model = {name: rows["identified model", "one mass", name] for name in FITTED}
    assert model["mass"].published == {"simulation": 0.16, "bench": 0.13}
    assert model["bending_stiffness"].mean == pytest.approx(505.0, rel=0.1)
    # with a wrong stiffness the sensor is worth most of the error
    seeing = rows["k_θ -15 %", "CC-UKF, mass shared", "tip error"].mean
    assert seeing < 0.5 * rows["k_θ -15 %", "model alone, mass shared", "tip error"].mean
