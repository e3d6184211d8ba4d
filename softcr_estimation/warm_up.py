"""The kernels of filters, see `softcr_models.warm_up`."""

from pathlib import Path

import numpy as np

from softcr_estimation.context import EstimationContext
from softcr_estimation.filters.square_root import downdated
from softcr_estimation.model_filter import ModelFilter
from softcr_estimation.sensors.pressure_filter import PressureFilter
from softcr_models.model import TIP
from softcr_models.models import make_model
from softcr_models.robots.robot import load_robot
from softcr_models.warm_up import CHAIN, Part

_PERIOD = 0.01


def _filter() -> None:
    robot = load_robot("licher2025_chain")
    model = make_model("rod", robot)
    finds = ModelFilter(
        EstimationContext(robot, model, _PERIOD), ModelFilter.Settings.model_validate({})
    )
    still = np.zeros(model.inputs.size)
    tip = np.eye(4)
    tip[2, 3] = robot.length
    for tick in range(3):
        finds.update(still, {TIP: tip}, tick * _PERIOD)
    if (lag := model.inputs.lag) is not None:
        believes = PressureFilter(lag, _PERIOD)
        for tick in range(3):
            believes.hear(tick * _PERIOD, still)
            believes.filtered(still, tick * _PERIOD)
    downdated(np.eye(2), np.full((1, 2), 0.1))


FILTER = (Part("filter", _filter, 4.5, CHAIN, last=True, sources=(Path(__file__).parent,)),)
"""What a Kalman filter calls beside its model, whose pressure chain is compiled as well."""
