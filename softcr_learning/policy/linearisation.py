"""Exact linearisations of whole motions on lanes, in the leading directions of a rod's motion.

A rod has more than a hundred states, and moves in a few directions: those that hold nearly all of
the variance of its motions under random inputs (proper orthogonal decomposition). Each step of each
motion is computed again with its state moved a little along each direction, and with each input
moved a little, on lanes of one call.
"""

from dataclasses import dataclass

import numpy as np

from softcr_control.policy.observation import PolicyObservation
from softcr_learning.policy.motions import Motions, observe
from softcr_learning.policy.plant import Lanes, Plant
from softcr_models.rod.state import RodState

_PERTURBATION = 0.02  # of a direction's standard deviation: single precision sees 5 digits of it
_OF_INPUTS = 0.1  # of half an input's range
_AT_ONCE = 256  # steps that are linearised in one call, whose lanes stay in the cache


@dataclass(frozen=True, eq=False)
class Directions:
    """Directions of motion, each as long as the standard deviation along it.

    Attributes:
        states: (r, nx) by how much each moves the state.
        coordinates: (nx, r) deviation of a state @ coordinates: how much of each there is in it.
    """

    states: np.ndarray
    coordinates: np.ndarray

    @classmethod
    def of_motion(
        cls, states: np.ndarray, scale: np.ndarray, count: int, rods: int
    ) -> "Directions":
        """The leading ones.

        Args:
            states: (J, nx) of motions.
            scale: (nx,) typical magnitude of each entry.
            count: r.
            rods: number of the rod's segments.
        """
        told = np.array(scale, float)
        # the wrench below the base follows the others within a millisecond
        RodState(told, rods).base_wrench[:] = np.inf
        scaled = states / told
        _, sizes, rows = np.linalg.svd(scaled, full_matrices=False)
        deviation = sizes[:count, None] / np.sqrt(len(scaled))
        moved = rows[:count] * deviation * np.where(np.isinf(told), 0.0, told)
        return cls(moved, (rows[:count] / deviation / told).T)

    @property
    def count(self) -> int:
        """r."""
        return len(self.states)


@dataclass(frozen=True, eq=False)
class Linearisation:
    """Derivatives of every step of B motions, by r coordinates and m actions; 0 where none was.

    Attributes:
        transition: (B, T, r, r) coordinates after a step by those before it.
        control: (B, T, r, m) and by actions.
        tips: (B, T, 3, r) tip at the end of the step by coordinates there [m].
        seen: (B, T, n, r) observation at its begin by coordinates there.
        lanes: steps of rods that this took.
    """

    transition: np.ndarray
    control: np.ndarray
    tips: np.ndarray
    seen: np.ndarray
    lanes: int


def linearise(
    plant: Plant, observation: PolicyObservation, motions: Motions, directions: Directions
) -> Linearisation:
    """Derivatives of all steps of motions, by differences of perturbed steps."""
    done = motions.done
    run, step = np.nonzero(done)
    parts = [
        _of_steps(plant, observation, motions, directions, run[a:b], step[a:b])
        for a, b in ((a, a + _AT_ONCE) for a in range(0, len(run), _AT_ONCE))
    ]
    lanes = len(run) * (1 + directions.count + plant.model.inputs.size)
    transition, control, tips, seen = (
        _placed(done, np.concatenate(values)) for values in zip(*parts, strict=True)
    )
    return Linearisation(transition, control, tips, seen, lanes)


def _placed(done: np.ndarray, rows: np.ndarray) -> np.ndarray:
    """(B, T, ...) rows where a step was, else 0."""
    full = np.zeros((*done.shape, *rows.shape[1:]), np.float32)
    full[done] = rows
    return full


def _of_steps(
    plant: Plant,
    observation: PolicyObservation,
    motions: Motions,
    directions: Directions,
    run: np.ndarray,
    step: np.ndarray,
) -> tuple[np.ndarray, ...]:
    """Transition, control, tips and seen of some steps (k,) of motions `run` (k,)."""
    inputs, r, k = plant.model.inputs, directions.count, len(run)
    of_each = 1 + r + inputs.size
    moved = (_PERTURBATION * directions.states).astype(np.float32)
    states = np.repeat(motions.states[run, step][:, None], of_each, axis=1)
    states[:, 1 : r + 1] += moved
    actions = np.repeat(motions.actions[run, step][:, None], of_each, axis=1).astype(float)
    actions[:, r + 1 :] += _OF_INPUTS * np.eye(inputs.size)
    commands = inputs.low + 0.5 * (1.0 + actions) * inputs.range
    commands = commands.reshape(-1, inputs.size)
    parameters = np.repeat(motions.parameters[run], of_each, axis=0)
    lanes = Lanes(states.reshape(k * of_each, -1).copy(), commands, commands, parameters)
    plant.advance(lanes, commands)
    after = lanes.states.reshape(k, of_each, -1)
    changes = (after[:, 1:] - after[:, :1]) @ directions.coordinates.astype(np.float32)
    changes = changes.swapaxes(1, 2)
    before = states[:, : r + 1].reshape(k * (r + 1), -1)
    goals = np.repeat(motions.goals[run, step], r + 1, axis=0)
    velocities = np.repeat(motions.velocities[run, step], r + 1, axis=0)
    seen = observe(observation, before, goals, velocities).reshape(k, r + 1, -1)
    ends = np.repeat(motions.states[run, step + 1][:, None], r + 1, axis=1)
    ends[:, 1:] += moved
    own = np.repeat(motions.parameters[run], r + 1, axis=0)
    lanes = Lanes(ends.reshape(k * (r + 1), -1), goals, goals, own)
    tips = plant.tips(lanes)[:, :, 3].reshape(k, r + 1, 3)
    return (
        changes[:, :, :r] / _PERTURBATION,
        changes[:, :, r:] / _OF_INPUTS,
        (tips[:, 1:] - tips[:, :1]).swapaxes(1, 2) / _PERTURBATION,
        (seen[:, 1:] - seen[:, :1]).swapaxes(1, 2) / _PERTURBATION,
    )
