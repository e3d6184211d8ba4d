"""A filter over a fitted rod that is shown the tip of a recorded arm and estimates the rest."""

from collections.abc import Sequence

import numpy as np

from softcr_estimation.errors import EstimatorError
from softcr_estimation.estimator_settings import ModelEstimatorSettings
from softcr_estimation.model_estimator import ModelEstimator
from softcr_models.identification.actuation import Actuation
from softcr_models.identification.measured_groups import Group, seen
from softcr_models.identification.motion_fit import Motion, Simulation, loaded
from softcr_models.model import TIP
from softcr_models.prediction import RodPrediction
from softcr_models.rod.cosserat_rod import CosseratRod

INTERVALS = 2
"""Of each segment."""
SETTINGS = ModelEstimatorSettings(
    filter="ekf", parameters=(), state_noise=0.1, position_noise=1e-3, reopening=False
)
"""The state alone is estimated; it walks as far as a rod is off that was fitted to a recording."""


def filtered(
    actuation: Actuation, motion: Motion, groups: Sequence[Group], rows: int
) -> np.ndarray:
    """(rows, G, 3) positions as recorded [m] of a motion whose tip is shown from the second row on;
    NaN from where the filter is lost.

    Raises:
        UserError: no robot is like that.
    """
    recorded = actuation.recorded
    robot = loaded(recorded.robot, motion.payload)
    model = RodPrediction(CosseratRod(robot, INTERVALS))
    simulation = Simulation(recorded.robot, [motion], groups)
    simulation.remember(actuation)
    acts = simulation.acting(actuation, 0)[:rows]
    tip = next(each.name for each in groups if each.output == TIP)
    tips = recorded.in_base_frame(motion.outputs[tip])
    estimator = ModelEstimator(model, SETTINGS, motion.period)
    states = np.full((len(acts), model.state_size), np.nan)
    states[0] = estimator.start(acts[0], 0.0).state
    for row in range(1, len(acts)):
        shown = {TIP: tips[row]} if np.isfinite(tips[row]).all() else {}
        try:
            states[row] = estimator.update(acts[row], shown, row * motion.period).state
        except EstimatorError:
            break
    known = np.isfinite(states).all(axis=1)
    values = seen(model, groups, states[known], acts[known])
    found = np.full((len(acts), len(groups), 3), np.nan)
    for g, group in enumerate(groups):
        found[known, g] = recorded.as_recorded(group, values[group.name])
    return found
