"""What a controller is told in a tick, and what it is made for."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np

from softcr_control.command import Command
from softcr_control.reference.references import Reference
from softcr_models.model import Model, parameter_values
from softcr_runtime.blocks.budget import Budget


@dataclass(frozen=True, eq=False)
class Observation:
    """All that is known at t_k. SI units, base frame.

    Attributes:
        stamp: t_k [s].
        state: (nx,) estimated state of `model`; None for a controller with `needs_state = False`.
        parameters: estimated parameters of the model and of its inputs' sensors, by name; those
            not named are nominal.
        reference: rows from t_k on.
        inputs: (m,) as measured at t_k [unit of the model's inputs].
        model: whose state this is.
        delay: ticks until the answer becomes active, at least 1.
        last_age: how old the answer to the observation before this one was when it was sent, by
            the stamp of that observation [s].
        held: (m,) what the actuators follow where that is not what was sent, because somebody holds
            or vents; None: what was sent.
        tip: (4, 4) estimated pose of the tip [m] for a controller with `needs_state = False`; None
            for the others, who ask for the output "tip" of the state.
        budget: whom a controller that can answer with less asks before it computes more.
    """

    stamp: float
    state: Any
    parameters: Mapping[str, float]
    reference: Reference
    inputs: np.ndarray
    model: Model
    delay: int = 1
    last_age: float = 0.0
    held: np.ndarray | None = None
    tip: np.ndarray | None = None
    budget: Budget = field(default_factory=Budget)

    def output(self, name: str) -> np.ndarray:
        """An output of the estimated state, for example "tip": (3, 4) pose [m].

        Raises:
            UserError: the model has no such output.
        """
        row = parameter_values(self.model.parameters, self.parameters)
        values = self.model.observe((name,), self.state[None], self.inputs[None], row[None])
        return values[name][0]


@dataclass(frozen=True, eq=False)
class ControlContext:
    """What a controller is made for.

    Attributes:
        robot: as its file describes it.
        model: to predict with; says the inputs' limits and their lag.
        period: of a tick [s].
        seed: of the controller's random numbers.
        ramped: whether the actuators approach a command along a ramp of one period; otherwise they
            follow it at once.
    """

    robot: Any
    model: Model
    period: float
    seed: int = 0
    ramped: bool = False


class Controller(Protocol):
    """Answers observations with commands; made as `Class(context, settings)`.

    A class may have `Settings`, a pydantic model: its fields become options and ROS parameters.
    With `needs_state = False` it is led by the estimated tip alone, and any estimator will do.
    With a method `take_over(packets)` one that is switched to in a running system is told, after
    `reset`, the last packets of the one before it, the newest last. Without it the limiter alone
    sees to it that the first command is no further from the last one than the rate allows.
    """

    def reset(self) -> None:
        """As if newly made."""
        ...

    def command(self, observation: Observation) -> Command | np.ndarray:
        """The inputs for the tick that begins `delay` ticks from now, (m,), or for this tick and
        those after it, (N, m): what is planned further ahead is followed where the next answer is
        late."""
        ...
