"""What an estimator is made for, and what it must be able to do."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from softcr_models.model import Model


@dataclass(frozen=True, eq=False)
class EstimationContext:
    """What an estimator is made for.

    Attributes:
        robot: as its file describes it.
        model: to predict with; says what can be measured of a state.
        period: between samples [s].
    """

    robot: Any
    model: Model
    period: float


class Estimator(Protocol):
    """Finds a robot's state, or at least its tip; made as `Class(context, settings)`.

    A class may have `Settings`, a pydantic model whose fields become options and ROS parameters,
    `describe() -> dict` and `warnings() -> list[str]` for the diagnostics. One that finds the tip
    alone says so with `gives_state = False`; it serves controllers with `needs_state = False`.
    """

    def reset(self) -> None:
        """As if newly made."""
        ...

    def update(
        self, inputs: np.ndarray, measurements: Mapping[str, np.ndarray], stamp: float
    ) -> Any:
        """What is known at `stamp`.

        Args:
            inputs: (m,) measured inputs of the robot [unit of the model's inputs].
            measurements: outputs of the model that were measured, by name ("tip": (4, 4) pose in
                the base frame [m]); what was not measured is not there.
            stamp: of both, later than the last one [s].

        Returns:
            An object with `tip_position` (3,) [m] and `tip_position_covariance` (3, 3) [m^2]; and,
            without `gives_state = False`, `state` (nx,) of `context.model`, `parameters` and
            `parameters_std`, by name; it may have `tip_offset` (3,), how the tip lasts beside that
            of the state [m]. None where there is nothing to trust.
        """
        ...
