"""What cost terms look at: the predicted futures of all candidates beside the reference."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from softcr_control.reference.references import Reference
from softcr_models.chain.readings import Readings
from softcr_models.errors import UserError
from softcr_models.model import TIP, Model, nominal_parameters

_COMPUTED = "states", "tip_poses"  # by a Rollout, per candidate


@dataclass(frozen=True, eq=False)
class Rollout:
    """Predicted futures of B candidates over N ticks.

    States and outputs are computed when a term first asks for them. A term that looks at states
    should come before those that look at tips only: tips then follow from the states; without
    states, the model computes tips alone, which is faster.

    Attributes:
        initial_state: (nx,) where all of them begin.
        inputs: (B, N + 1, m) what the model feels at the grid points [unit of its inputs]; of a
            model with a memory `Readings`.
        commands: (B, N, m) [unit of the inputs]; command k is held over the tick that ends at state
            row k.
        previous_command: (m,) command active before the first of `commands`, or (B, m).
        reference: N rows at the times of the states.
        model: what predicts.
        parameters: (P,) the model's parameters.
        period: of a tick [s].
        delay: ticks from the estimate to the first of `commands`.
    """

    initial_state: np.ndarray
    inputs: np.ndarray | Readings
    commands: np.ndarray
    previous_command: np.ndarray
    reference: Reference
    model: Model
    parameters: np.ndarray
    period: float
    delay: int = 1

    @cached_property
    def states(self) -> np.ndarray:
        """(B, N, nx) predicted states, row k one tick after row k - 1."""
        return self.model.rollout(self.initial_state, self.inputs, self.parameters, self.period)

    @cached_property
    def tip_poses(self) -> np.ndarray:
        """(B, N, 3, 4) predicted tip poses, rotation beside position [m], base frame."""
        if "states" in vars(self):
            return self._observed(TIP)
        return self.model.rollout_tips(
            self.initial_state, self.inputs, self.parameters, self.period
        )

    def output(self, name: str) -> np.ndarray:
        """(B, N, ...) an output of the model at the predicted states.

        Raises:
            UserError: the model has no such output.
        """
        return self.tip_poses if name == TIP else self._observed(name)

    @property
    def reference_tip_positions(self) -> np.ndarray:
        """(N, 3) wanted tip positions [m], base frame."""
        return self.reference.tip_positions

    @cached_property
    def reference_known(self) -> np.ndarray:
        """(N,) whether the reference state of each row is known."""
        return known_rows(self.reference.states, len(self.reference.tip_positions))

    @cached_property
    def wanted_states(self) -> np.ndarray:
        """(N, nx) reference states, zeros where they are unknown."""
        return known_states(self.reference, self.model.state.size)

    @cached_property
    def orientation_known(self) -> np.ndarray:
        """(N,) whether the wanted tip orientation of each row is known."""
        known: np.ndarray = np.any(self.wanted_tip_rotations, axis=(1, 2))
        return known

    @cached_property
    def wanted_tip_rotations(self) -> np.ndarray:
        """(N, 3, 3) wanted tip orientations, see `tip_rotations`."""
        return tip_rotations(self.reference, self.model)

    @cached_property
    def direction_asked(self) -> np.ndarray:
        """(N,) whether the reference itself asks for an orientation in each row."""
        return known_rows(self.reference.tip_orientations, len(self.reference.tip_positions))

    @cached_property
    def wanted_tip_directions(self) -> np.ndarray:
        """(N, 3) third axes of the orientations that are asked for, zeros where none is."""
        return tip_directions(self.reference)

    def wanted_output(self, name: str) -> tuple[np.ndarray, np.ndarray]:
        """Reference rows (N, ...) of an output, zeros where unknown, and 1 where known, else 0.

        Raises:
            UserError: the reference has no such rows.
        """
        if name not in self.reference.outputs:
            told = ", ".join(self.reference.outputs) or "none"
            raise UserError(f"controller: the reference has no output {name!r}; it has {told}")
        rows = self.reference.outputs[name]
        known = np.isfinite(rows.reshape(len(rows), -1)).all(axis=1)
        known = known.reshape(-1, *(1,) * (rows.ndim - 1))
        return np.where(known, rows, 0.0), known.astype(float)

    @cached_property
    def command_path(self) -> np.ndarray:
        """(B, N + 1, m) the command active before, then `commands`."""
        batch, ticks, channels = self.commands.shape
        path = np.empty((batch, 1 + ticks, channels), self.commands.dtype)
        path[:, 0], path[:, 1:] = self.previous_command, self.commands
        return path

    def part(self, rows: np.ndarray | slice) -> "Rollout":
        """Of some candidates, with what is computed of them already."""
        chosen = replace(self, inputs=self.inputs[rows], commands=self.commands[rows])
        computed = {name: vars(self)[name][rows] for name in _COMPUTED if name in vars(self)}
        vars(chosen).update(computed)
        return chosen

    def joined(self, parts: Sequence["Rollout"]) -> "Rollout":
        """Of the first candidates, with what their parts have computed.

        Args:
            parts: consecutive parts of this rollout, from its first candidate on; at least one.
        """
        if len(parts) == 1:
            return parts[0]
        whole = self.part(slice(sum(len(part.commands) for part in parts)))
        for name in _COMPUTED:
            if name in vars(parts[0]):
                vars(whole)[name] = np.concatenate([vars(part)[name] for part in parts])
        return whole

    def tip_path(self, candidate: int) -> np.ndarray:
        """(N, 3) predicted tip positions of one candidate [m], without computing all of them."""
        if "tip_poses" in vars(self):
            return self.tip_poses[candidate, :, :, 3]
        return tips_of(self.model, self.states[candidate], self.parameters)[:, :, 3]

    @cached_property
    def felt(self) -> np.ndarray:
        """(B, N + 1, m) what the model feels, or (B, N + 1, m + k) where it has a memory."""
        if not isinstance(self.inputs, Readings):
            return self.inputs
        memory = self.model.inputs.memory
        assert memory is not None
        return self.inputs.felt(memory, self.period)

    def _observed(self, name: str) -> np.ndarray:
        batch, ticks, _ = self.states.shape
        rows = self.states.reshape(batch * ticks, -1)
        inputs = self.felt[:, 1:].reshape(batch * ticks, -1)
        values = self.model.observe((name,), rows, inputs, self.parameters[None])[name]
        return values.reshape(batch, ticks, *values.shape[1:])


def tips_of(model: Model, states: np.ndarray, parameters: np.ndarray) -> np.ndarray:
    """(B, 3, 4) tip poses [m] of states (B, nx) under parameters (P,) or (B, P)."""
    return model.observe((TIP,), states, None, np.atleast_2d(parameters))[TIP]


def known_rows(values: np.ndarray | None, rows: int) -> np.ndarray:
    """(rows,) whether each row of values (rows, ...) is known; None: no row is."""
    if values is None:
        return np.zeros(rows, bool)
    return np.isfinite(values.reshape(rows, -1)).all(axis=1)


def known_states(reference: Reference, size: int) -> np.ndarray:
    """(N, size) its states, zeros in rows that hold a NaN, or everywhere if it has none."""
    if reference.states is None:
        return np.zeros((len(reference.tip_positions), size))
    known = known_rows(reference.states, len(reference.states))
    return np.where(known[:, None], reference.states, 0.0)


def tip_directions(reference: Reference) -> np.ndarray:
    """(N, 3) third axes of the orientations that a reference asks for, zeros where it asks none."""
    count = len(reference.tip_positions)
    if reference.tip_orientations is None:
        return np.zeros((count, 3))
    asked = known_rows(reference.tip_orientations, count)
    return np.where(asked[:, None], reference.tip_orientations[:, :, 2], 0.0)


def tip_rotations(reference: Reference, model: Model) -> np.ndarray:
    """(N, 3, 3) wanted tip orientations, zeros where unknown.

    They are the reference's own where it has them; elsewhere those of its states, which are made
    with the nominal parameters, so that is how they are read.
    """
    count = len(reference.tip_positions)
    rotations = np.zeros((count, 3, 3))
    known = known_rows(reference.states, count)
    if reference.states is not None and known.any():
        nominal = nominal_parameters(model.parameters)
        rotations[known] = tips_of(model, reference.states[known], nominal)[:, :, :3]
    given = known_rows(reference.tip_orientations, count)
    if reference.tip_orientations is not None:
        rotations[given] = reference.tip_orientations[given]
    return rotations
