import itertools

import numpy as np
import pytest
from kit.models import PendulumPrediction

from softcr_estimation import ModelEstimator, ModelEstimatorSettings
from softcr_models import CosseratRod, load_robot
from softcr_models.model import TIP
from softcr_models.prediction import RodPrediction
from softcr_models.surrogate.prediction import SurrogatePrediction
from softcr_simulation.errors.plant_errors import PlantErrors
from softcr_simulation.plant import SimulatedPlant

DT = 1 / 70
SHIPPED = load_robot("licher2025")
FILTERS = pytest.mark.parametrize("kind", ["ukf", "ekf"])
pytestmark = pytest.mark.usefixtures("one_thread")


def test_a_long_gap_is_taken_in_steps_of_a_period():
    steps = []

    class Recorder(PendulumPrediction):
        def step(self, states, pressures_begin, pressures_end, parameters, dt):
            steps.append((pressures_begin[0].copy(), pressures_end[0].copy(), dt))
            return super().step(states, pressures_begin, pressures_end, parameters, dt)

    settings = ModelEstimatorSettings(parameters=("bending_compliance",))
    estimator = ModelEstimator(Recorder(), settings, 0.01)
    first, last = np.zeros(3), np.array([3000.0, 0.0, -3000.0])
    estimator.start(first, 1.0)
    estimator.update(last, {}, 1.035)
    durations = [dt for _, _, dt in steps]
    assert len(steps) == 4
    assert sum(durations) == pytest.approx(0.035)
    assert max(durations) < 0.0101
    np.testing.assert_allclose(steps[0][0], first)
    np.testing.assert_allclose(steps[-1][1], last)
    for before, after in itertools.pairwise(steps):
        np.testing.assert_allclose(before[1], after[0])
        np.testing.assert_allclose(after[1] - after[0], (last - first) / 4)
    # Jitter of a stamp does not cost a second step.
    steps.clear()
    estimator.update(last, {}, 1.0455)
    assert len(steps) == 1


def followed(intervals, frequency, ticks, prediction=None, blind=(), settings=None, **factors):
    """Errors of estimates of the tip of a rod in motion [m], and these; in blind ticks no tip is
    seen.

    Chambers are commanded 35 +- 20 kPa, a third of a turn apart; the rod has been moving for a
    second before. Its tip is measured with 0.2 mm noise.
    """
    plant_errors = PlantErrors.noiseless(tip_noise=2e-4, **factors)
    plant = SimulatedPlant(SHIPPED, plant_errors, 0, intervals)
    prediction = prediction or RodPrediction(CosseratRod(SHIPPED, 5))
    estimator = ModelEstimator(prediction, ModelEstimatorSettings(**settings or {}))
    errors, estimates = [], []
    for tick in range(-70, ticks):
        plant.follow(35e3 + 20e3 * np.sin(2 * np.pi * (frequency * tick * DT + np.arange(3) / 3)))
        plant.advance(DT)
        seen = plant.measure(0)
        if tick == -1:
            estimator.start(seen.pressures, tick * DT)
        if tick >= 0:
            tip = {} if tick in blind else {TIP: seen.tip_pose[:3, 3]}
            estimates.append(estimator.update(seen.pressures, tip, tick * DT))
            assert estimates[-1].predicted_only == (tick in blind)
            away = estimates[-1].tip_position - seen.true_tip_pose[:3, 3]
            errors.append(np.linalg.norm(away))
    return np.array(errors), estimates


SOFT = 45.0 / SHIPPED.bending_compliance


@FILTERS
def test_rod_cold_start_in_motion_and_a_dropout(kind):
    """Found within 0.2 s, though the rod was moving; kept through half a second without camera."""
    settings = {"filter": kind, "parameters": ("bending_compliance",)}
    dropout = range(250, 285)
    errors, found = followed(5, 1.0, 355, None, dropout, settings, bending_factor=SOFT)
    assert errors[14:].max() < 1.5e-3
    assert found[-1].parameters["bending_compliance"] == pytest.approx(45.0, rel=0.01)
    assert found[-1].repairs == 0


def test_filter_on_the_surrogate_converges_from_the_same_cold_start():
    surrogate = SurrogatePrediction.load(SHIPPED, device="cpu")
    settings = {"parameters": ("bending_compliance",)}
    errors, found = followed(5, 1.0, 280, surrogate, settings=settings, bending_factor=SOFT)
    assert np.mean(errors[70:]) < 3e-4
    assert found[-1].parameters["bending_compliance"] == pytest.approx(45.0, rel=0.01)


@FILTERS
def test_rod_that_differs_from_the_model_in_grid_softness_and_mass(kind):
    factors = {"bending_factor": 0.95, "tip_mass_factor": 1.1}
    errors, found = followed(10, 1.5, 400, settings={"filter": kind}, **factors)
    late = [each.parameters["bending_compliance"] for each in found[350:]]  # after 5 s
    assert late == pytest.approx([0.95 * SHIPPED.bending_compliance] * 50, rel=0.01)
    assert np.mean(errors[70:]) < 2.5e-4
    assert found[-1].repairs == 0


def test_a_payload_of_more_than_the_tips_own_mass_is_found():
    errors, found = followed(5, 1.0, 280, tip_mass_factor=2.25)  # its bound is 2.3
    assert found[-1].parameters["tip_mass"] == pytest.approx(2.25 * SHIPPED.tip_mass, rel=0.02)
    assert found[-1].at_bounds == ()
    assert errors[-1] < 5e-4
