"""Compiled evaluation of one rod's equations: rates, exact Jacobians, poses along the backbone."""

import numba
import numpy as np

from softcr_models.rod.compilation import COMPILE_OPTIONS
from softcr_models.rod.kernel import (
    MAX_INTERVALS,
    MAX_NODES,
    Grid,
    Section,
    SectionChange,
    advance_pose,
    derivative,
    derivative_tangent,
)
from softcr_models.rod.simd import as_lanes, local
from softcr_models.rod.stepper import FLOAT64_LANES


@numba.njit(**COMPILE_OPTIONS)
def rates(
    e: np.ndarray, s: np.ndarray, w: np.ndarray, section: Section, grid: Grid
) -> tuple[np.ndarray, np.ndarray]:
    """Time derivatives (de, ds), both (n + 1, 6), of velocities e and elastic wrenches s."""
    de = np.empty_like(e)
    ds = np.empty_like(s)
    derivative(e, s, w, section, grid, de, ds)
    return de, ds


@numba.njit(**COMPILE_OPTIONS)
def _rates_tangent_block(block, e, s, w, section, grid, directions, out):
    n = grid.intervals
    count, rows = directions.shape
    raw = np.empty((rows, FLOAT64_LANES))
    raw_out = np.empty((12 * (n + 1), FLOAT64_LANES))
    for lane in range(FLOAT64_LANES):
        direction = min(block * FLOAT64_LANES + lane, count - 1)
        for row in range(rows):
            raw[row, lane] = directions[direction, row]
    tangent = as_lanes(raw, FLOAT64_LANES)
    result = as_lanes(raw_out, FLOAT64_LANES)
    zero = 0.0 * tangent[0]
    e_lanes = local(zero, (MAX_NODES, 6))
    s_lanes = local(zero, (MAX_NODES, 6))
    e_t = local(zero, (MAX_NODES, 6))
    s_t = local(zero, (MAX_NODES, 6))
    de = local(zero, (MAX_NODES, 6))
    ds = local(zero, (MAX_NODES, 6))
    de_t = local(zero, (MAX_NODES, 6))
    ds_t = local(zero, (MAX_NODES, 6))
    compliance = local(zero, (6,))
    stiffness = local(zero, (6,))
    relaxation = local(zero, (6,))
    relaxation_rate = local(zero, (6,))
    density = local(zero, (MAX_INTERVALS,))
    length_per_mass = local(zero, (MAX_INTERVALS,))
    compliance_t = local(zero, (6,))
    relaxation_t = local(zero, (6,))
    density_t = local(zero, (MAX_INTERVALS,))
    w_lanes = local(zero, (6,))
    w_t = local(zero, (6,))
    first_parameter = 12 * (n + 1)
    for k in range(6):
        w_lanes[k] = w[k] + zero
        w_t[k] = tangent[first_parameter + k]
        compliance[k] = section.compliance[k] + zero
        stiffness[k] = section.stiffness[k] + zero
        relaxation[k] = section.relaxation[k] + zero
        relaxation_rate[k] = section.relaxation_rate[k] + zero
        compliance_t[k] = tangent[first_parameter + 6 + k]
        relaxation_t[k] = tangent[first_parameter + 12 + k]
        for i in range(n + 1):
            e_lanes[i, k] = e[i, k] + zero
            s_lanes[i, k] = s[i, k] + zero
            e_t[i, k] = tangent[6 * i + k]
            s_t[i, k] = tangent[6 * (n + 1 + i) + k]
    for i in range(n):
        density[i] = section.line_density[i] + zero
        length_per_mass[i] = section.length_per_mass[i] + zero
        density_t[i] = tangent[first_parameter + 18 + i]
    lanes = Section(compliance, stiffness, relaxation, relaxation_rate, density, length_per_mass)
    change = SectionChange(compliance_t, relaxation_t, density_t)
    derivative(e_lanes, s_lanes, w_lanes, lanes, grid, de, ds)
    derivative_tangent(
        e_lanes, s_lanes, w_lanes, lanes, grid, de, ds, e_t, s_t, w_t, change, de_t, ds_t
    )
    for i in range(n + 1):
        for k in range(6):
            result[6 * i + k] = de_t[i, k]
            result[6 * (n + 1 + i) + k] = ds_t[i, k]
    for lane in range(min(FLOAT64_LANES, count - block * FLOAT64_LANES)):
        for row in range(12 * (n + 1)):
            out[block * FLOAT64_LANES + lane, row] = raw_out[row, lane]


@numba.njit(**COMPILE_OPTIONS)
def rates_tangents(
    e: np.ndarray,
    s: np.ndarray,
    w: np.ndarray,
    section: Section,
    grid: Grid,
    directions: np.ndarray,
) -> np.ndarray:
    """Changes of the rates along directions.

    Args:
        e, s: (n + 1, 6) state; w: (6,) pressure wrench.
        directions: (K, 12 (n + 1) + 18 + n): changes of e, s, w, compliance, relaxation, line
        density.

    Returns:
        (K, 12 (n + 1)) changes of de, then of ds.
    """
    out = np.empty((directions.shape[0], 12 * (grid.intervals + 1)))
    for block in range((directions.shape[0] + FLOAT64_LANES - 1) // FLOAT64_LANES):
        _rates_tangent_block(block, e, s, w, section, grid, directions, out)
    return out


@numba.njit(**COMPILE_OPTIONS)
def poses_along(
    s: np.ndarray, compliance: np.ndarray, grid: Grid, arc_lengths: np.ndarray
) -> np.ndarray:
    """Poses of the backbone, strains constant in each sub-interval of Algorithm 1.

    Args:
        s: (n + 1, 6) elastic wrenches of the nodes.
        arc_lengths: (K,) ascending, from 0 to the length [m].

    Returns:
        (K, 4, 4) in the frame of the rod's base.
    """
    rotation = np.eye(3)
    position = np.zeros(3)
    here_rotation = np.empty((3, 3))
    here_position = np.empty(3)
    strain = np.empty(6)
    out = np.zeros((arc_lengths.size, 4, 4))
    pieces = grid.gravity_subintervals
    step = grid.interval_length / pieces
    total = grid.intervals * pieces
    current = 0
    for point in range(arc_lengths.size):
        target = min(int(arc_lengths[point] / step + 1e-9), total)
        while True:
            piece = min(current, total - 1)
            i = piece // pieces
            fraction = (piece % pieces + grid.strain_point) / pieces
            for k in range(6):
                strain[k] = compliance[k] * (s[i, k] + fraction * (s[i + 1, k] - s[i, k]))
            strain[2] += 1.0
            if current >= target:
                break
            advance_pose(rotation, position, strain, step)
            current += 1
        here_rotation[:] = rotation
        here_position[:] = position
        advance_pose(here_rotation, here_position, strain, arc_lengths[point] - current * step)
        out[point, :3, :3] = here_rotation
        out[point, :3, 3] = here_position
        out[point, 3, 3] = 1.0
    return out
