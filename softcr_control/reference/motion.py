"""References from outside: any class that tells where the robot should be at a time."""

from typing import Any, Protocol

import numpy as np

from softcr_control.reference.references import Reference


class Motion(Protocol):
    """A reference from outside; made as `Class(context, settings)` with a `ControlContext`.

    A class may have `Settings`, a pydantic model: its fields become options and ROS parameters.
    """

    def window(self, time: float, rows: int) -> Reference:
        """The next `rows` rows from `time` on, one every `context.period`.

        Args:
            time: since the motion began, never negative and never beyond its duration [s].
            rows: how many, at least 1.

        Returns:
            With `tip_positions` (rows, 3) [m] in the base frame; and, where they are known,
            `states` (rows, nx) of `context.model` and the `inputs` (rows, m) that it feels, with
            which controllers plan beyond their horizon. The reference's stamp has no meaning here.
        """
        ...


class BoundedMotion:
    """A motion that stands still before its begin and from its duration on."""

    def __init__(self, motion: Any, duration: float, state_size: int) -> None:
        """
        Args:
            motion: as `Motion`.
            duration: after which it stands still [s].
            state_size: nx of its states.
        """
        self._motion, self._duration, self._size = motion, duration, state_size

    def window(self, time: float, rows: int) -> Reference:
        """The next rows from a time on, which may lie outside the motion [s].

        Raises:
            ValueError: one line about rows of a wrong shape, or tips that are not finite.
        """
        if 0.0 <= time < self._duration:
            return self._checked(time, rows)
        still = self._checked(min(max(time, 0.0), self._duration), 1)
        states, inputs = (
            None if each is None else np.repeat(each, rows, axis=0)
            for each in (still.states, still.inputs)
        )
        tips = np.repeat(still.tip_positions, rows, axis=0)
        return Reference(time, still.period, states, tips, inputs=inputs)

    def _checked(self, time: float, rows: int) -> Reference:
        made = self._motion.window(time, rows)
        if not isinstance(made, Reference):
            raise TypeError(f"window is {type(made).__name__}, must be a Reference")
        tips = np.shape(made.tip_positions)
        states = () if made.states is None else np.shape(made.states)
        if tips != (rows, 3) or not np.isfinite(made.tip_positions).all():
            raise ValueError(f"tip_positions of shape {tips} must be {rows} x 3 finite numbers [m]")
        if made.states is not None and states != (rows, self._size):
            raise ValueError(f"states of shape {states} must be ({rows}, {self._size}) or None")
        if made.inputs is not None and np.shape(made.inputs)[:1] != (rows,):
            raise ValueError(
                f"inputs of shape {np.shape(made.inputs)} must have {rows} rows or None"
            )
        return made
