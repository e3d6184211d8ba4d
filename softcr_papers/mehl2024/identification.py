"""The constant-curvature model's numbers from a known motion and its base wrench.

Mehl et al. (2024), Sec. III-A: (4) and (5) are linear in masses, stiffnesses and dampings, so least
squares give them.
"""

from collections.abc import Mapping

import numpy as np
from scipy.optimize import lsq_linear

from softcr_papers.constant_curvature.kernel import CENTRE_OF_GRAVITY, TIP, point_motion
from softcr_papers.mehl2024.dynamics import ConstantCurvatureModel

FITTED = ("mass", "tip_mass", "bending_stiffness", "bending_damping", "elongation_stiffness",
          "elongation_damping")  # fmt: skip
"""Numbers of the model that are identified."""


def identified(
    nominal: ConstantCurvatureModel,
    run: Mapping[str, np.ndarray],
    period: float,
    base_height: float,
    share_mass: bool,
) -> ConstantCurvatureModel:
    """The nominal model with the numbers that fit best to actuation, base force and base moment.

    Args:
        nominal: gives geometry, actuation, gravity and, unless the mass is shared, the tip's mass.
        run: what to learn from, with its true motion, at T times: pressures (T, chambers) [Pa];
            coordinates, rates (T, 3) of the arc [m], [m/s]; wrenches (T, 6) force [N], then moment
            [N m] on the sensor.
        period: between them [s].
        base_height: from the sensor to the arc's base [m].
        share_mass: whether the tip's mass is fitted, too. A rod bends unlike an arc, so its mass
            acts at another place than the arc's centre of gravity; two points on the arc can stand
            for that.
    """
    motion = run["coordinates"], run["rates"], np.gradient(run["rates"], period, axis=0)
    columns = np.zeros((len(run["rates"]), 9, 6))
    columns[:, :, 0] = _inertial_forces(nominal, CENTRE_OF_GRAVITY, *motion)
    columns[:, :, 1] = _inertial_forces(nominal, TIP, *motion)
    for column, values in ((2, run["coordinates"]), (3, run["rates"])):
        columns[:, :2, column] = values[:, :2]
        columns[:, 2, column + 2] = values[:, 2]
    reaction = -run["wrenches"]
    reaction[:, 3:] -= np.cross([0.0, 0.0, base_height], reaction[:, :3])
    known = np.concatenate([nominal.actuation_force(run["pressures"]), reaction], axis=1)
    if not share_mass:
        known = known - nominal.tip_mass * columns[:, :, 1]
        columns = np.delete(columns, 1, axis=2)
    weights = _weights(known)
    solution = lsq_linear(
        (columns * weights[:, None]).reshape(-1, columns.shape[2]),
        (known * weights).ravel(),
        bounds=(1e-9, np.inf),
    ).x
    if not share_mass:
        solution = np.insert(solution, 1, nominal.tip_mass)
    return nominal.replace(**dict(zip(FITTED, solution.tolist(), strict=True)))


def _weights(known: np.ndarray) -> np.ndarray:
    """(9,) so that bending and stretching force, base force and base moment count alike."""
    groups = np.array([0, 0, 1, 2, 2, 2, 3, 3, 3])
    largest = np.array([np.abs(known[:, groups == group]).max() for group in range(4)])
    return 1.0 / largest[groups]


def _inertial_forces(
    model: ConstantCurvatureModel,
    order: int,
    coordinates: np.ndarray,
    rates: np.ndarray,
    accelerations: np.ndarray,
) -> np.ndarray:
    """(T, 9) generalised force, base force, base moment of one kilogram at a point of the arc."""
    position, jacobian, jacobian_rate = point_motion(
        coordinates, rates, model.rest_length, model.radius, order
    )
    felt = np.einsum("tij,tj->ti", jacobian, accelerations) - model.gravity
    felt += np.einsum("tij,tj->ti", jacobian_rate, rates)
    generalised = np.einsum("tji,tj->ti", jacobian, felt)
    return np.concatenate([generalised, felt, np.cross(position, felt)], axis=1)
