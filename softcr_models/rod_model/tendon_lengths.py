"""How long the tendons of a rod are in a state."""

import numpy as np

from softcr_models.arguments import ArgumentError
from softcr_models.rod.cosserat_rod import CosseratRod
from softcr_models.rod.state import RodState
from softcr_models.rod_model.rows import interval_counts


def tendon_lengths(
    rod: CosseratRod, states: np.ndarray, parameters: np.ndarray | None = None
) -> np.ndarray:
    """Length of each tendon from the rod's base to its anchor, straight through connectors.

    What a displacement sensor on a spool measures, but for its zero. The integral of |q| along the
    rod, q = nu + u x r + r_s, by the trapezoidal rule over the intervals: of second order, and the
    length to which the tension of the exact model is conjugate (Rucker and Webster, IEEE T-RO 27
    (2011) 1033).

    Args:
        rod: any with tendons, of the constant model or the exact one.
        states: (..., nx).
        parameters: (P,), or (..., P) one for each state; None: the robot's.

    Returns:
        (..., tendons) [m], in the order of the robot's tendons; none for a robot without.

    Raises:
        ArgumentError: states or parameters of a wrong length.
    """
    states = np.asarray(states, float)
    numbers = rod.nominal_parameters if parameters is None else np.asarray(parameters, float)
    count = len(rod.parameters)
    shared = numbers.shape == (count,)
    each = numbers.shape == (*states.shape[:-1], count)
    if states.shape[-1:] != (rod.state_size,) or not (shared or each):
        raise ArgumentError(
            f"tendon_lengths: states of shape {states.shape} and parameters of shape "
            f"{numbers.shape}: allowed are (..., {rod.state_size}) and ({count},) or (..., {count})"
        )
    if not rod.robot.tendons:
        return np.empty((*states.shape[:-1], 0))
    robot, reaches = rod.robot, rod.robot.tendon_reaches
    wrenches = RodState(states, rod.segments).wrenches
    bendings = numbers[..., : rod.body.bendings, None]
    compliance = rod.body.compliance + rod.body.bending_share * bendings
    total = np.zeros((*states.shape[:-1], len(reaches)))
    row = 0
    for a, count in enumerate(interval_counts(rod)):
        steps = rod.grid.interval_length[a] * np.arange(count + 1)
        offsets = robot.tendon_offsets(a, robot.segment_ends[a] + steps)
        place, slope = offsets[:, :, 0], offsets[:, :, 1]
        strain = (
            compliance[..., a, None, :] * wrenches[..., row : row + count + 1, :] + np.eye(6)[2]
        )
        turned = np.cross(strain[..., None, 3:], place)
        stretch = np.linalg.norm(strain[..., None, :3] + turned + slope, axis=-1)
        stretch = np.where(a <= reaches, stretch, 0.0)
        total += np.trapezoid(stretch, dx=rod.grid.interval_length[a], axis=-2)
        connector = robot.segments[a].connector
        if connector is not None:
            beyond = robot.tendon_offsets(a + 1, robot.segment_ends[a + 1 : a + 2])[0, :, 0]
            through = connector.offset + beyond @ connector.rotation_matrix.T - place[-1]
            total += np.where(a < reaches, np.linalg.norm(through, axis=-1), 0.0)
        row += count + 1
    return total
