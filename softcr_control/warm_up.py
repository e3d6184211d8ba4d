"""The kernels of controllers, see `softcr_models.warm_up`."""

from pathlib import Path

import numpy as np

from softcr_control.predictive import bounded_minimum
from softcr_models.warm_up import Part


def _minimum() -> None:
    one = np.ones(1)
    bounded_minimum.bounded_minimum(np.eye(1), one, -one, one)


MINIMUM = (Part("bounded_minimum", _minimum, 3.5, sources=(Path(bounded_minimum.__file__),)),)
"""The minimum of a quadratic function in a box, for controllers that ask for gradients."""
