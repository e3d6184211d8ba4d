"""Compiled, batched time stepping of rods: states x pressures x parameters in one call.

`Body` holds what does not change between calls; parameters that filters estimate are inputs, one
row
per candidate: `PARAMETERS`. A call packs candidates into SIMD lanes, advances every block of lanes
on one of the cores, and unpacks. Lanes share control flow, so there is no step control: a
candidate that leaves the numbers is done again in finer steps with fresh linearisations (`_retry`).
"""

from typing import NamedTuple

import numba
import numpy as np

from softcr_models.rod import rosenbrock
from softcr_models.rod.compilation import COMPILE_OPTIONS, lane_counts
from softcr_models.rod.kernel import MAX_INTERVALS, MAX_NODES, Grid, Section, walk_interval
from softcr_models.rod.simd import as_lanes, flush_denormals, local

PARAMETERS = ("bending_compliance", "tip_mass", "damping_factor")
RETRY_FACTORS = (2, 4, 8, 16)
FLOAT64_LANES, FLOAT32_LANES = lane_counts()


class Body(NamedTuple):
    """Constants of a robot on a grid; arrays are float64 and C-contiguous.

    Attributes:
        compliance: (6,) nominal diagonal of C; entries 3 and 4 are replaced by the parameter.
        relaxation: (6,) nominal diagonal of D_tau [s]; multiplied by the damping factor.
        line_density: rho A of the body alone [kg/m].
        tip_share: (n,) of each interval, 1/m: line density added per kilogram of tip mass.
        actuation: (6, m) wrench per pressure, eq. (7).
    """

    compliance: np.ndarray
    relaxation: np.ndarray
    line_density: float
    tip_share: np.ndarray
    actuation: np.ndarray


@numba.njit(**COMPILE_OPTIONS)
def _pack_section(raw, candidate, lane, parameters, body, substep):
    """Section of one candidate into column `lane`: C, 1/C, D, 1/D, decay, mu, 1/mu."""
    n = body.tip_share.shape[0]
    for k in range(6):
        compliance = body.compliance[k]
        if k == 3 or k == 4:
            compliance = parameters[candidate, 0]
        relaxation = body.relaxation[k] * parameters[candidate, 2]
        raw[k, lane] = compliance
        raw[6 + k, lane] = 1.0 / compliance
        raw[12 + k, lane] = relaxation
        raw[18 + k, lane] = 1.0 / relaxation
        raw[24 + k, lane] = np.exp(-substep / relaxation)
    for i in range(n):
        density = body.line_density + parameters[candidate, 1] * body.tip_share[i]
        raw[30 + i, lane] = density
        raw[30 + n + i, lane] = 1.0 / density


def _compiled_block(lanes, dtype):
    """The function that advances one block of candidates, for lanes and a float type."""

    @numba.njit(**COMPILE_OPTIONS)
    def block_rollout(block, states, pressures, parameters, body, grid, dt, substeps, fresh, out):
        n = grid.intervals
        batch, size = states.shape
        steps = out.shape[1]
        chambers = pressures.shape[3]
        raw_state = np.empty((size, lanes), dtype)
        raw_wrench = np.empty((12 * steps, lanes), dtype)
        raw_section = np.empty((30 + 2 * n, lanes), dtype)
        for lane in range(lanes):
            candidate = min(block * lanes + lane, batch - 1)
            for row in range(size):
                raw_state[row, lane] = states[candidate, row]
            for time in range(steps):
                for end in range(2):
                    for k in range(6):
                        total = 0.0
                        for chamber in range(chambers):
                            pressure = pressures[candidate, time, end, chamber]
                            total += body.actuation[k, chamber] * pressure
                        raw_wrench[12 * time + 6 * end + k, lane] = total
            _pack_section(raw_section, candidate, lane, parameters, body, dt / substeps)

        state = as_lanes(raw_state, lanes)
        wrench = as_lanes(raw_wrench, lanes)
        packed = as_lanes(raw_section, lanes)
        like = state[0]
        compliance = local(like, (6,))
        stiffness = local(like, (6,))
        relaxation = local(like, (6,))
        rate = local(like, (6,))
        decay = local(like, (6,))
        density = local(like, (MAX_INTERVALS,))
        length_per_mass = local(like, (MAX_INTERVALS,))
        e = local(like, (MAX_NODES, 6))
        s = local(like, (MAX_NODES, 6))
        z = local(like, (6,))
        w_begin = local(like, (6,))
        w_end = local(like, (6,))
        for i in range(n):
            density[i] = packed[30 + i]
            length_per_mass[i] = packed[30 + n + i]
        for k in range(6):
            compliance[k] = packed[k]
            stiffness[k] = packed[6 + k]
            relaxation[k] = packed[12 + k]
            rate[k] = packed[18 + k]
            decay[k] = packed[24 + k]
            e[0, k] = 0.0 * like
            for i in range(n):
                e[i + 1, k] = state[6 * i + k]
            for i in range(n + 1):
                s[i, k] = state[6 * (n + i) + k]
            z[k] = state[6 * (2 * n + 1) + k] - s[0, k]
        section = Section(compliance, stiffness, relaxation, rate, density, length_per_mass)
        control_word = flush_denormals(-1)
        for time in range(steps):
            for k in range(6):
                w_begin[k] = wrench[12 * time + k]
                w_end[k] = wrench[12 * time + 6 + k]
            rosenbrock.step(e, s, z, w_begin, w_end, dt, substeps, fresh, decay, section, grid)
            for k in range(6):
                for i in range(n):
                    state[6 * i + k] = e[i + 1, k]
                for i in range(n + 1):
                    state[6 * (n + i) + k] = s[i, k]
                state[6 * (2 * n + 1) + k] = z[k] + s[0, k]
            for lane in range(min(lanes, batch - block * lanes)):
                for row in range(size):
                    out[block * lanes + lane, time, row] = raw_state[row, lane]
        flush_denormals(control_word)

    return block_rollout


_block_scalar = _compiled_block(1, np.float64)
_block_float64 = _compiled_block(FLOAT64_LANES, np.float64)
_block_float32 = _compiled_block(FLOAT32_LANES, np.float32)

# One definition each: numba's cache does not tell decorator options apart.


@numba.njit(**COMPILE_OPTIONS)
def _rollout_scalar(states, pressures, parameters, body, grid, dt, substeps, fresh, out):
    for candidate in range(states.shape[0]):
        _block_scalar(
            candidate, states, pressures, parameters, body, grid, dt, substeps, fresh, out
        )


@numba.njit(parallel=True, **COMPILE_OPTIONS)
def _rollout_float64(states, pressures, parameters, body, grid, dt, substeps, fresh, out):
    for block in numba.prange((states.shape[0] + FLOAT64_LANES - 1) // FLOAT64_LANES):
        _block_float64(block, states, pressures, parameters, body, grid, dt, substeps, fresh, out)


@numba.njit(parallel=True, **COMPILE_OPTIONS)
def _rollout_float32(states, pressures, parameters, body, grid, dt, substeps, fresh, out):
    for block in numba.prange((states.shape[0] + FLOAT32_LANES - 1) // FLOAT32_LANES):
        _block_float32(block, states, pressures, parameters, body, grid, dt, substeps, fresh, out)


def rollout(
    states: np.ndarray,
    pressures: np.ndarray,
    parameters: np.ndarray,
    body: Body,
    grid: Grid,
    dt: float,
    substeps: int,
    single_precision: bool = False,
    fresh: bool = False,
) -> np.ndarray:
    """Advances a batch of rods over several steps.

    Args:
        states: (B, 12 (n + 1)) float64.
        pressures: (B, T, 2, m) [Pa] at begin and end of each step, linear between; float64.
        parameters: (B, 3) in the order of PARAMETERS; float64.
        dt: length of a step [s]; each is done in `substeps` sub-steps of ROS34PW2.
        single_precision: compute and return float32 (twice the lanes).
        fresh: linearise in every sub-step instead of once per step.

    Returns:
        (B, T, 12 (n + 1)) states after each step; rows of NaN where even the finest retry failed.
    """
    batch, size = states.shape
    steps = pressures.shape[1]
    arguments = (body, grid, dt, substeps, int(fresh))
    out = np.empty((batch, steps, size), np.float32 if single_precision else np.float64)
    if single_precision:
        _rollout_float32(states, pressures, parameters, *arguments, out)
    elif batch == 1:
        _rollout_scalar(states, pressures, parameters, *arguments, out)
    else:
        _rollout_float64(states, pressures, parameters, *arguments, out)
    failed = ~np.isfinite(out[:, -1]).all(axis=1)
    if failed.any():
        _retry(failed, states, pressures, parameters, body, grid, dt, substeps, out)
    return out


def _retry(failed, states, pressures, parameters, body, grid, dt, substeps, out) -> None:
    """Does failed candidates again, ever finer, in float64 with fresh linearisations."""
    for factor in RETRY_FACTORS:
        again = np.empty((failed.sum(), *out.shape[1:]))
        _rollout_scalar(
            states[failed], pressures[failed], parameters[failed],
            body, grid, dt, factor * substeps, 1, again,
        )  # fmt: skip
        finite = np.isfinite(again).all(axis=(1, 2))
        chosen = np.flatnonzero(failed)
        out[chosen[finite]] = again[finite]
        failed[chosen[finite]] = False
        if not failed.any():
            return
    out[failed] = np.nan


def _compiled_tip_block(lanes, dtype):
    """The function that computes rod tips of one block of candidates."""

    @numba.njit(**COMPILE_OPTIONS)
    def block_tips(block, states, parameters, body, grid, out):
        n = grid.intervals
        batch = states.shape[0]
        raw_state = np.empty((6 * (n + 1), lanes), dtype)
        raw_section = np.empty((30 + 2 * n, lanes), dtype)
        raw_pose = np.empty((12, lanes), dtype)
        for lane in range(lanes):
            candidate = min(block * lanes + lane, batch - 1)
            for row in range(6 * (n + 1)):
                raw_state[row, lane] = states[candidate, 6 * n + row]
            _pack_section(raw_section, candidate, lane, parameters, body, 0.0)
        state = as_lanes(raw_state, lanes)
        packed = as_lanes(raw_section, lanes)
        pose = as_lanes(raw_pose, lanes)
        like = state[0]
        compliance = local(like, (6,))
        s = local(like, (MAX_NODES, 6))
        rotation = local(like, (3, 3))
        position = local(like, (3,))
        for k in range(6):
            compliance[k] = packed[k]
            for i in range(n + 1):
                s[i, k] = state[6 * i + k]
        # a pose needs the compliance only
        section = Section(compliance, compliance, compliance, compliance, compliance, compliance)
        for r in range(3):
            position[r] = 0.0 * like
            for c in range(3):
                rotation[r, c] = 0.0 * like
            rotation[r, r] = 1.0 + 0.0 * like
        for i in range(n):
            walk_interval(rotation, position, s, i, section, grid)
        for r in range(3):
            for c in range(3):
                pose[4 * r + c] = rotation[r, c]
            pose[4 * r + 3] = position[r]
        for lane in range(min(lanes, batch - block * lanes)):
            for row in range(12):
                out[block * lanes + lane, row] = raw_pose[row, lane]

    return block_tips


_tips_float64_block = _compiled_tip_block(FLOAT64_LANES, np.float64)
_tips_float32_block = _compiled_tip_block(FLOAT32_LANES, np.float32)


@numba.njit(**COMPILE_OPTIONS)
def _tips_float64(states, parameters, body, grid, out):
    for block in range((states.shape[0] + FLOAT64_LANES - 1) // FLOAT64_LANES):
        _tips_float64_block(block, states, parameters, body, grid, out)


@numba.njit(parallel=True, **COMPILE_OPTIONS)
def _tips_float32(states, parameters, body, grid, out):
    for block in numba.prange((states.shape[0] + FLOAT32_LANES - 1) // FLOAT32_LANES):
        _tips_float32_block(block, states, parameters, body, grid, out)


def rod_tips(states: np.ndarray, parameters: np.ndarray, body: Body, grid: Grid) -> np.ndarray:
    """Poses of the rods' tips in the frame of the rods' base.

    Args:
        states: (B, 12 (n + 1)); float32 is computed in float32.
        parameters: (B, 3) in the order of PARAMETERS; float64.

    Returns:
        (B, 3, 4) rotation beside position [m], of the states' float type.
    """
    out = np.empty((states.shape[0], 12), states.dtype)
    compute = _tips_float32 if states.dtype == np.float32 else _tips_float64
    compute(states, parameters, body, grid, out)
    return out.reshape(-1, 3, 4)
