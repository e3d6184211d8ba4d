"""Estimated numbers by name, as controllers use them: of the model, of its inputs' sensors."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from softcr_models.errors import UserError
from softcr_models.model import Model, nominal_parameters
from softcr_models.rod_model.tip_force import TIP_FORCE


@dataclass(frozen=True, eq=False)
class Estimated:
    """What is known at a tick.

    Attributes:
        parameters: (P,) of the model.
        gain: (m,) what the model feels of each input, by its reading [-].
        offset: (m,) what is then added [unit of the inputs].
    """

    parameters: np.ndarray
    gain: np.ndarray
    offset: np.ndarray

    def felt(self, readings: np.ndarray, remembered: np.ndarray | None = None) -> np.ndarray:
        """(..., m) what the model feels at readings (..., m); behind it what it remembers of them,
        (..., k), where it does."""
        felt: np.ndarray = self.gain * readings + self.offset
        return felt if remembered is None else np.concatenate((felt, remembered), axis=-1)


class EstimatedParameters:
    """Reads names: of the model, and `Q_gain_I`, `Q_offset_I` of input I = 1..m of quantity Q.

    Args:
        model: says its parameters and the quantity of its inputs.
    """

    def __init__(self, model: Model) -> None:
        inputs = model.inputs
        of_model = (each.name for each in model.parameters)
        names = (*of_model, *inputs.gain_names, *inputs.offset_names)
        self._places = {name: place for place, name in enumerate(names)}
        known = (
            nominal_parameters(model.parameters), np.ones(inputs.size), np.zeros(inputs.size),
        )  # fmt: skip
        self._nominal = np.concatenate(known)
        count = len(model.parameters)
        self._parts = count, count + inputs.size

    def read(self, given: Mapping[str, float]) -> Estimated:
        """Values by name; what is not given is nominal. A force at the tip is passed over by a
        model that knows none: it comes and goes, and is no property of the robot.

        Raises:
            UserError: a name that neither the model nor its inputs have.
        """
        values = self._nominal.copy()
        for name, value in given.items():
            if name not in self._places:
                if name in TIP_FORCE:
                    continue
                allowed = ", ".join(self._places)
                raise UserError(f"controller: parameter {name}: unknown; allowed are {allowed}")
            values[self._places[name]] = value
        first, second = self._parts
        return Estimated(values[:first], values[first:second], values[second:])
