"""Gains and offsets that a recording has told, as options of commands that can begin with them."""

from contextlib import suppress

import numpy as np

from softcr_estimation.estimator_settings import in_words
from softcr_models.errors import UserError
from softcr_models.identification.unknowns import Recorded
from softcr_models.rod.description import rod_inputs
from softcr_simulation.errors.presets import errors_of

_DIGITS = 4


def options_of(recorded: Recorded) -> list[str]:
    """A line for the filter of such a robot, and one for the readings of its simulation; none where
    every reading acts as it is, and of motors, whose angles a filter takes as they are."""
    robot, gains, offsets = recorded.robot, recorded.gains, recorded.offsets
    inputs = rod_inputs(robot)
    names = (*inputs.gain_names, *inputs.offset_names)
    usual = (*np.ones(inputs.size), *np.zeros(inputs.size))
    # a filter has it that gain * reading + offset acts
    values = _rounded(np.concatenate((gains, -gains * offsets)))
    told = {
        name: value for name, value, none in zip(names, values, usual, strict=True) if value != none
    }
    if not told or "angle" in robot.quantities:
        return []
    lines = [f"a filter begins with this of its inputs: --estimator.begins-with {in_words(told)}"]
    errors = ",".join(
        f"{name}={_rounded(values)}".replace(" ", "")
        for name, values in (("pressure_gain", 1.0 / gains), ("pressure_bias", offsets))
    )
    with suppress(UserError):  # tendons, or readings that are off by more than a sensor's are
        errors_of(robot, "", errors)
        lines.append(f"a simulation's readings are off by as much: --plant.errors {errors}")
    return lines


def _rounded(values: np.ndarray) -> list[float]:
    return [float(f"{value:.{_DIGITS}g}") + 0.0 for value in values]
