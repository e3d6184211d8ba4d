"""One number per kind of state of a rod, as in Tables VI and VII of Licher et al. 2025."""

import numpy as np

from softcr_models.rod.state import RodState


def by_group(
    state_size: int,
    velocity: float,
    angular_velocity: float,
    force: float,
    force_z: float,
    torque: float,
) -> np.ndarray:
    """(state_size,) the number of each state's group, the same at all nodes.

    Args:
        state_size: of a rod.
        velocity, angular_velocity: in all directions.
        force, force_z: shear and axial force.
        torque: moments in all directions.

    Raises:
        UserError: no rod has so many states.
    """
    numbers = np.empty(state_size)
    view = RodState(numbers)
    view.velocities[:, :3] = velocity
    view.velocities[:, 3:] = angular_velocity
    wrench = [force, force, force_z, torque, torque, torque]
    view.wrenches[:] = wrench
    view.base_wrench[:] = wrench
    return numbers
