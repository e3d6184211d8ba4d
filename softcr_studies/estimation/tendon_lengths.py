"""How well a filter knows a tendon-driven rod from the lengths of its tendons, its tip, or both.

Encoders on the spools need no cameras. The filter is that of the stack; the plant is stiffer than
the model, so the filter has to find the bending compliance, too.
"""

from collections.abc import Mapping
from functools import cache

import numpy as np
from pydantic import Field

from softcr_estimation import ModelEstimatorSettings
from softcr_estimation.context import EstimationContext
from softcr_estimation.model_filter import ModelFilter
from softcr_models import CosseratRod, load_robot
from softcr_models.model import TIP
from softcr_models.prediction import RodPrediction
from softcr_models.rod.description import TENDON_LENGTHS
from softcr_studies.frame.study import Cell, Metric, Result, Seeds, Study, StudySettings

ROBOT, PERIOD = "tendon_arm", 1 / 70
INTERVALS, PLANT_INTERVALS = 5, 10
SOFTER = 0.95  # bending compliance of the plant over the model's
TIP_NOISE, TENSION_NOISE = 2e-4, 0.005  # [m], [N]
DURATION, SETTLED = 12.0, 4.0  # [s]
MEAN, SWING, RATES = 0.25, 0.2, (0.3, 0.4)  # tensions [N], [N], [Hz]

METHODS: Mapping[str, tuple[str, ...]] = {
    "prediction alone": (),
    "tendon lengths": (TENDON_LENGTHS,),
    "tip": (TIP,),
    "tip and tendon lengths": (TIP, TENDON_LENGTHS),
}
CASES: Mapping[str, float] = {"lengths to 0.1 mm": 1e-4, "lengths to 1 mm": 1e-3}
TIP_ERROR, SOFTNESS = "tip error, mean", "bending compliance, error at the end"


class Settings(StudySettings):
    """See StudySettings."""

    seeds: Seeds = 10
    duration: float = Field(DURATION, gt=SETTLED, le=600.0, description="duration of a run [s]")


@cache
def _model(intervals: int) -> RodPrediction:
    return RodPrediction(CosseratRod(load_robot(ROBOT), intervals), single_precision=False)


def tensions(duration: float) -> np.ndarray:
    """(T + 1, 4) of the tendons [N]: antagonists pull against each other, about both axes."""
    times = PERIOD * np.arange(round(duration / PERIOD) + 1)
    turns = [np.sin(2 * np.pi * rate * times) for rate in RATES]
    return MEAN + SWING * np.stack([turns[0], turns[1], -turns[0], -turns[1]], axis=1)


def run(cell: Cell) -> Result:
    """A motion of all tendons, estimated from what the method hears."""
    noise, length_noise = cell.random("sensors"), CASES[cell.case]
    levels = tensions(cell.settings.duration)
    plant, model = _model(PLANT_INTERVALS), _model(INTERVALS)
    parameters = plant.nominal_parameters.copy()
    parameters[0] *= SOFTER
    start = plant.equilibrium(levels[0], parameters)
    states = plant.rollout(start, levels[None], parameters, PERIOD)[0]
    rows = np.repeat(parameters[None], len(states), axis=0)
    true = plant.observe((TIP, TENDON_LENGTHS), states, levels[1:], rows)
    tips, lengths = true[TIP][:, :, 3], true[TENDON_LENGTHS]
    seen = {
        TIP: tips + TIP_NOISE * noise.standard_normal(tips.shape),
        TENDON_LENGTHS: lengths + length_noise * noise.standard_normal(lengths.shape),
    }
    read = levels + TENSION_NOISE * noise.standard_normal(levels.shape)
    told = ModelEstimatorSettings.model_validate(
        {"position_noise": TIP_NOISE, "tendon_length_noise": length_noise}
    )
    follower = ModelFilter(EstimationContext(load_robot(ROBOT), model, PERIOD), told)
    follower.update(read[0], {}, 0.0)
    errors, factor = np.empty(len(states)), np.nan
    for k in range(len(states)):
        heard = {name: seen[name][k] for name in METHODS[cell.method]}
        estimate = follower.update(read[k + 1], heard, (k + 1) * PERIOD)
        found = np.array([estimate.parameters[name] for name in model.parameter_names])
        errors[k] = np.linalg.norm(model.rod.tip_pose(estimate.state, found)[:3, 3] - tips[k])
        factor = found[0] / parameters[0]
    settled = errors[round(SETTLED / PERIOD) :]
    return {
        TIP_ERROR: 1e3 * float(settled.mean()),
        SOFTNESS: 100.0 * abs(float(factor) - 1.0),
    }


STUDY = Study(
    name="estimation/tendon-lengths",
    source="",
    summary="how well a rod is known from the lengths of its tendons, its tip, or both",
    run=run,
    cases=tuple(CASES),
    methods=tuple(METHODS),
    settings=Settings,
    metrics=(Metric(TIP_ERROR, "mm", TIP_ERROR), Metric(SOFTNESS, "%", SOFTNESS)),
    exact="Plant and model share their equations; the plant has 10 intervals, the model 5, and the "
    "plant's bending compliance is 5 % below the model's, which the filter estimates with the "
    "other parameters. Tensions swing by 0.2 N about 0.25 N at 0.3 and 0.4 Hz and are read with "
    "5 mN of noise, the tip with 0.2 mm in each coordinate. Errors are those after 4 s, of the "
    "true tip. Encoders have no offset here.",
    about={"robot": ROBOT},
)
