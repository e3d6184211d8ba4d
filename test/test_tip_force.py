"""A force at the tip: when it is looked for, when it is known, and that the filter finds it."""

import numpy as np
import pytest
from scipy.stats import chi2

from softcr_estimation import ModelEstimator, ModelEstimatorSettings
from softcr_estimation.context import EstimationContext
from softcr_estimation.model_estimator import Numbers
from softcr_estimation.model_filter import ModelFilter
from softcr_estimation.tip_force import QUIET, SETTLING, ShiftTest
from softcr_models import CosseratRod, UserError, load_robot
from softcr_models.model import TIP
from softcr_models.prediction import RodPrediction
from softcr_models.rod.description import BASE_WRENCH
from softcr_models.rod_model.tip_force import TIP_FORCE, known_tip_force

DT = 1 / 70
BENT = np.array([4e4, 0.0, 0.0])
PULL = np.array([0.0, 0.15, -0.1])


# --- what is known ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("force", "deviations", "known"),
    [
        ((0.3, 0.0, 0.0), (0.09, 5.0, 5.0), True),
        ((0.3, 0.0, 0.0), (0.11, 0.0, 0.0), False),
        ((0.3, 0.4, 0.0), (0.1, 0.1, 5.0), True),
        ((0.0, 0.0, 0.0), (0.0, 0.0, 0.0), False),
        ((0.0, 0.0, -1.0), (0.0, 0.0, 0.0), True),
    ],
)
def test_a_force_is_known_beyond_three_deviations_along_it(force, deviations, known):
    told = [dict(zip(TIP_FORCE, each, strict=True)) for each in (force, deviations)]
    found = known_tip_force(*told)
    assert (found is not None) is known
    if known:
        assert found == pytest.approx(force)
    told[0].pop("tip_force_y")
    assert known_tip_force(*told) is None


# --- the test of the innovations ----------------------------------------------------------------


def alarm_after(test, shift, ticks, seed, outputs=("tip",)):
    """Samples until a test says "shifted"; None: not within `ticks`."""
    random = np.random.default_rng(seed)
    for tick in range(ticks):
        test.add({name: shift + random.standard_normal(3) for name in outputs})
        if test.shifted:
            return tick + 1
    return None


def test_innovations_without_a_shift_are_no_force_and_shifted_ones_are():
    """Five minutes of white noise; a shift of two deviations for a second."""
    for outputs in (("tip",), ("tip", "middle")):
        assert alarm_after(ShiftTest(12.0), np.zeros(3), 21_000, 1, outputs) is None
        shift = np.array([2.0, 0.0, 0.0])
        assert None not in [alarm_after(ShiftTest(12.0), shift, 70, k, outputs) for k in range(10)]


def test_the_sum_is_crosiers():
    """With numbers by hand: |v| = 3, allowance 1.5."""
    test = ShiftTest(4.0)
    test.add({"tip": np.array([3.0, 0.0, 0.0])})
    assert test.magnitude == pytest.approx(1.5)
    test.add({"tip": np.array([0.0, 2.0, 0.0])})  # (1.5, 2, 0) is 2.5 long
    assert test.magnitude == pytest.approx(1.0)
    test.add({"tip": np.array([-0.6, -0.8, 0.0])})
    assert test.magnitude == 0.0
    assert not test.shifted


def test_an_outlier_is_no_shift():
    test = ShiftTest(12.0)
    test.add({"tip": np.array([0.0, 0.0, 1e6])})
    assert test.magnitude == pytest.approx(np.sqrt(chi2.ppf(0.9999, 3)) - 1.5)
    for _ in range(3):
        test.add({"tip": np.zeros(3)})
    assert test.magnitude == 0.0


# --- parameters that stand still ----------------------------------------------------------------


@pytest.fixture(scope="module")
def models():
    """The model that a filter has, and the plant's of twice the intervals."""
    return models_of(3, 6)


def models_of(*intervals):
    robot = load_robot("licher2025")
    rods = (CosseratRod(robot, count, tip_force=True) for count in intervals)
    return tuple(RodPrediction(rod, single_precision=False) for rod in rods)


def test_held_parameters_stand_still_and_the_others_keep_what_is_known(models):
    model, _ = models
    settings = ModelEstimatorSettings(parameters=("bending_compliance", *TIP_FORCE))
    estimator = ModelEstimator(model, settings)
    estimator.start(BENT, 0.0)
    seen = model.rod.tip_pose(model.equilibrium(BENT, model.nominal_parameters))[:3, 3]
    first = estimator.update(BENT, {TIP: seen}, DT)
    kept = estimator.numbers(["bending_compliance"])
    estimator.hold(["bending_compliance"], kept.mean)
    second = estimator.update(BENT, {}, 2 * DT)
    found = first.parameters["bending_compliance"]
    assert second.parameters["bending_compliance"] == found
    stds = [each.parameters_std["bending_compliance"] for each in (second, first)]
    assert stds[0] < 1e-3 < stds[1]
    third = estimator.update(BENT, {TIP: seen + 2e-3}, 3 * DT)
    assert third.parameters["bending_compliance"] == pytest.approx(found, rel=1e-6)
    assert np.linalg.norm([third.parameters[name] for name in TIP_FORCE]) > 1e-3
    estimator.free(["bending_compliance"], kept)
    freed = estimator.numbers(["bending_compliance"])
    assert freed.rows.T @ freed.rows == pytest.approx(kept.rows.T @ kept.rows)
    estimator.free(TIP_FORCE, Numbers(np.array([0.1, 0.2, 0.3]), 0.5 * np.eye(3)))
    freed = estimator.numbers(TIP_FORCE)
    assert freed.mean == pytest.approx([0.1, 0.2, 0.3])
    assert freed.rows.T @ freed.rows == pytest.approx(0.25 * np.eye(3))
    # what is independent is not told by the state
    state = estimator.numbers(["bending_compliance"])
    assert state.rows.T @ freed.rows == pytest.approx(np.zeros((1, 3)), abs=1e-12)


# --- the filter ---------------------------------------------------------------------------------


def samples(plant, ticks, force, state, noise):
    """What is measured of a plant under `BENT` with a force at its tip, and its last state."""
    parameters = plant.nominal_parameters.copy()
    parameters[-3:] = force
    levels = np.tile(BENT, (1, ticks + 1, 1))
    states = plant.rollout(state, levels, parameters, DT)[0]
    seen = plant.observe((TIP, BASE_WRENCH), states, BENT[None], parameters[None])
    tips = seen[TIP][:, :, 3] + 2e-4 * noise.standard_normal((ticks, 3))
    deviations = np.repeat([0.02, 1e-3], 3)
    wrenches = seen[BASE_WRENCH] + deviations * noise.standard_normal((ticks, 6))
    return states[-1], [{TIP: t, BASE_WRENCH: w} for t, w in zip(tips, wrenches, strict=True)]


def test_a_pull_is_found_followed_and_let_go():
    """Nothing while the arm rests, the pull within half a second, nothing once it is gone, and the
    parameters are those of before."""
    model, plant = models_of(5, 20)  # as shipped: coarser rods need more noise of the states
    context = EstimationContext(load_robot("licher2025"), model, DT)
    estimator = ModelFilter(context, ModelEstimatorSettings())
    noise = np.random.default_rng(2)
    state = plant.equilibrium(BENT, plant.nominal_parameters)
    told, stamp = [], 0.0
    for duration, force in ((SETTLING + 1.0, 0.0 * PULL), (2.0, PULL), (3.0 + QUIET, 0.0 * PULL)):
        state, measured = samples(plant, round(duration / DT), force, state, noise)
        estimates = []
        for each in measured:
            stamp += DT
            estimates.append(estimator.update(BENT, each, stamp))
        told.append(estimates)
    known = [[known_tip_force(e.parameters, e.parameters_std) for e in part] for part in told]
    assert all(force is None for force in known[0])
    assert known[1][round(0.5 / DT)] is not None
    cosine = known[1][-1] @ PULL / np.linalg.norm(known[1][-1]) / np.linalg.norm(PULL)
    assert np.degrees(np.arccos(cosine)) < 15.0
    assert np.linalg.norm(known[1][-1]) == pytest.approx(np.linalg.norm(PULL), rel=0.2)
    before, pulled, after = (part[-1].parameters["bending_compliance"] for part in told)
    assert pulled == pytest.approx(before, rel=0.01)
    assert after == pytest.approx(before, rel=0.02)
    assert known[2][-1] is None
    last = told[2][-1]
    assert max(abs(last.parameters[name]) for name in TIP_FORCE) < 1e-6
    assert max(last.parameters_std[name] for name in TIP_FORCE) < 1e-5
    assert estimator.describe()["tip_forces"] == 1


def test_a_model_without_a_force_at_its_tip_is_refused():
    robot = load_robot("licher2025")
    context = EstimationContext(robot, RodPrediction(CosseratRod(robot, 3)), DT)
    with pytest.raises(UserError, match="tip_force: RodPrediction has no force at its tip"):
        ModelFilter(context, ModelEstimatorSettings(tip_force=True))


def test_names_of_parameters_do_not_leave_the_force_out(models):
    model, _ = models
    context = EstimationContext(load_robot("licher2025"), model, DT)
    estimator = ModelFilter(context, ModelEstimatorSettings(parameters=("tip_mass",)))
    estimate = estimator.update(BENT, {}, 0.0)
    estimated = [name for name, std in estimate.parameters_std.items() if std > 0.0]
    assert estimated == ["tip_mass", *TIP_FORCE]
