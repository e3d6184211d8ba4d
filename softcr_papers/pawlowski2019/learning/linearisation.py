"""Exact linearisations of whole motions on lanes, in the leading directions of a rod's motion.

A rod has more than a hundred states, and moves in a few directions: those that hold nearly all of
the variance of its motions under random inputs (proper orthogonal decomposition). Each step of each
motion is computed again with its state moved a little along each direction, and with each input
moved a little, on lanes of one call.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

from softcr_models.rod.state import RodState
from softcr_papers.pawlowski2019.learning.motions import Motions, observe
from softcr_papers.pawlowski2019.learning.plant import Lanes, Plant
from softcr_papers.pawlowski2019.policy.observation import PolicyObservation

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
    transition, control = _at_all_steps(motions, lambda *of: _dynamics(plant, directions, *of))
    lanes = int(motions.ends.sum()) * (1 + directions.count + plant.model.inputs.size)
    return with_geometry(transition, control, lanes, plant, observation, motions, directions)


def with_geometry(
    transition: np.ndarray,
    control: np.ndarray,
    lanes: int,
    plant: Plant,
    observation: PolicyObservation,
    motions: Motions,
    directions: Directions,
) -> Linearisation:
    """A linearisation of given dynamics; how tips and observations follow from states is known."""
    tips, seen = _at_all_steps(motions, lambda *of: _geometry(plant, observation, directions, *of))
    return Linearisation(transition, control, tips, seen, lanes)


def _at_all_steps(
    motions: Motions,
    derive: Callable[[Motions, np.ndarray, np.ndarray], tuple[np.ndarray, ...]],
) -> Iterator[np.ndarray]:
    """(B, T, ...) what is derived of motions, rows (k,) and steps (k,); 0 where there is none."""
    run, step = np.nonzero(motions.done)
    ranges = ((a, a + _AT_ONCE) for a in range(0, len(run), _AT_ONCE))
    parts = [derive(motions, run[a:b], step[a:b]) for a, b in ranges]
    return (_placed(motions.done, np.concatenate(each)) for each in zip(*parts, strict=True))


def _placed(done: np.ndarray, rows: np.ndarray) -> np.ndarray:
    """(B, T, ...) rows where a step was, else 0."""
    full = np.zeros((*done.shape, *rows.shape[1:]), np.float32)
    full[done] = rows
    return full


def _dynamics(
    plant: Plant, directions: Directions, motions: Motions, run: np.ndarray, step: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """(k, r, r) and (k, r, m) coordinates after steps by those before, and by actions."""
    inputs, r, k = plant.model.inputs, directions.count, len(run)
    of_each = 1 + r + inputs.size
    states = np.repeat(motions.states[run, step][:, None], of_each, axis=1)
    states[:, 1 : r + 1] += _moved(directions)
    actions = np.repeat(motions.actions[run, step][:, None], of_each, axis=1).astype(float)
    actions[:, r + 1 :] += _OF_INPUTS * np.eye(inputs.size)
    commands = inputs.low + 0.5 * (1.0 + actions) * inputs.range
    commands = commands.reshape(-1, inputs.size)
    parameters = np.repeat(motions.parameters[run], of_each, axis=0)
    lanes = Lanes(states.reshape(k * of_each, -1), commands, commands, parameters)
    plant.advance(lanes, commands)
    after = lanes.states.reshape(k, of_each, -1)
    changes = (after[:, 1:] - after[:, :1]) @ directions.coordinates.astype(np.float32)
    changes = changes.swapaxes(1, 2)
    return changes[:, :, :r] / _PERTURBATION, changes[:, :, r:] / _OF_INPUTS


def _geometry(
    plant: Plant,
    observation: PolicyObservation,
    directions: Directions,
    motions: Motions,
    run: np.ndarray,
    step: np.ndarray,
) -> tuple[np.ndarray, np.ndarray]:
    """(k, 3, r) tips at the ends of steps, (k, n, r) observations at their begins, by coordinates
    there."""
    k, of_each = len(run), 1 + directions.count

    def around(at: np.ndarray) -> np.ndarray:
        states = np.repeat(motions.states[run, at][:, None], of_each, axis=1)
        states[:, 1:] += _moved(directions)
        return states.reshape(k * of_each, -1)

    goals = np.repeat(motions.goals[run, step], of_each, axis=0)
    velocities = np.repeat(motions.velocities[run, step], of_each, axis=0)
    seen = observe(observation, around(step), goals, velocities)
    parameters = np.repeat(motions.parameters[run], of_each, axis=0)
    tips = plant.tips(Lanes(around(step + 1), goals, goals, parameters))[:, :, 3]
    return _slopes(tips, k), _slopes(seen, k)


def _slopes(values: np.ndarray, count: int) -> np.ndarray:
    """(k, d, r) of values ((1 + r) k, d), unperturbed ones first."""
    of_each = values.reshape(count, -1, values.shape[1])
    slopes: np.ndarray = (of_each[:, 1:] - of_each[:, :1]).swapaxes(1, 2) / _PERTURBATION
    return slopes


def _moved(directions: Directions) -> np.ndarray:
    return (_PERTURBATION * directions.states).astype(np.float32)
