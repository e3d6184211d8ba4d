"""What a recording has told of the inputs' readings, as filter and simulation understand it."""

import numpy as np
import pytest

from softcr_estimation.estimator_settings import ModelEstimatorSettings
from softcr_estimation.model_estimator import ModelEstimator
from softcr_models import load_robot
from softcr_models.identification.unknowns import Recorded
from softcr_models.prediction import RodPrediction
from softcr_models.rod.cosserat_rod import CosseratRod
from softcr_simulation.errors.presets import errors_of
from softcr_tools.recorded_options import options_of

READINGS = np.array([[2e4, 3e4, 5e3]])


def recorded(name, gains, offsets):
    nowhere = np.zeros(3)
    return Recorded(load_robot(name), np.array(gains), np.array(offsets), nowhere, nowhere)


def test_filter_and_simulation_have_the_readings_of_the_recording():
    made = recorded("licher2025", (1.1, 0.95, 1.0), (300.0, -200.0, 0.0))
    acts = made.acting(READINGS)
    of_filter, of_plant = (line.rpartition(" ")[2] for line in options_of(made))
    model = RodPrediction(CosseratRod(made.robot, 2))
    estimator = ModelEstimator(model, ModelEstimatorSettings(begins_with=of_filter), 1 / 70)
    found = estimator.start(READINGS[0], 0.0).parameters
    gains, offsets = (
        np.array([found[f"pressure_{word}_{k}"] for k in (1, 2, 3)]) for word in ("gain", "offset")
    )
    np.testing.assert_allclose(gains * READINGS[0] + offsets, acts[0], rtol=1e-3)
    errors = errors_of(made.robot, "", of_plant).errors
    gains, offsets = (
        errors.of_inputs(name, made.robot) for name in ("pressure_gain", "pressure_bias")
    )
    np.testing.assert_allclose(gains * acts[0] + offsets, READINGS[0], rtol=1e-3)


@pytest.mark.parametrize(
    ("made", "count"),
    [
        (recorded("licher2025", np.ones(3), np.zeros(3)), 0),
        (recorded("licher2025", (1.0, 1.0, 1.2), (0.0, 0.0, 9e4)), 1),
        (recorded("asl_trunk", np.ones(6), np.full(6, 0.1)), 0),
        (recorded("tendon_arm", (1.0, 1.0, 1.2, 1.0), np.zeros(4)), 1),
    ],
)
def test_only_what_can_be_begun_with_is_told(made, count):
    lines = options_of(made)
    assert len(lines) == count
    assert all("--estimator.begins-with" in line for line in lines)
