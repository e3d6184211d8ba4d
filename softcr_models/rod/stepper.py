"""Compiled, batched time stepping of rods: states x pressures x parameters in one call.

`Body` holds what does not change between calls; parameters that filters estimate are inputs, one
row per candidate: `PARAMETERS`. A call packs candidates into SIMD lanes, advances every block of
lanes on one of the cores, and unpacks. Lanes share control flow, so there is no step control: a
candidate whose result is not finite is done again in finer steps with fresh linearisations
(`_retry`).

What computes believes what it is told. `rollout`, `rollout_tips` and `tip_poses` check their
arguments; `advance` and `poses` are the same for those whose own `Arguments` have checked them.
"""

from dataclasses import dataclass
from typing import NamedTuple

import numba
import numpy as np
from numba.extending import register_jitable

from softcr_models.arguments import FLOAT32, ArgumentError, Arguments
from softcr_models.rod import rosenbrock
from softcr_models.rod.compilation import COMPILE_OPTIONS, lane_counts
from softcr_models.rod.kernel import MAX_INTERVALS, MAX_NODES, Grid, Section, walk_interval
from softcr_models.rod.parameters import SIGNS
from softcr_models.rod.simd import as_lanes, flush_denormals, local

RETRY_FACTORS = (2, 4, 8, 16)
FLOAT64_LANES, FLOAT32_LANES = lane_counts()


class Body(NamedTuple):
    """Constants of a robot on a grid; arrays are float64 and C-contiguous.

    Attributes:
        compliance: (6,) diagonal of C without the bending compliance.
        bending_share: (6,) what is added to it per bending compliance, see `robot.BENDING` [-].
        relaxation: (6,) nominal diagonal of D_tau [s]; multiplied by the damping factor.
        line_density: rho A of the body alone [kg/m].
        tip_share: (n,) of each interval, 1/m: line density added per kilogram of tip mass.
        actuation: (6, m) wrench per pressure, eq. (7).
        base_height, tip_cap_length: rigid parts below and above the rod, eq. (29) [m].
    """

    compliance: np.ndarray
    bending_share: np.ndarray
    relaxation: np.ndarray
    line_density: float
    tip_share: np.ndarray
    actuation: np.ndarray
    base_height: float
    tip_cap_length: float


class Run(NamedTuple):
    """What all candidates of a call share: rod, grid and time step.

    Attributes:
        dt: length of a step [s]; each is done in `substeps` sub-steps of ROS34PW2.
        fresh: 1 to linearise in every sub-step, 0 to do it once per step.
        held: 1 if a step's first row of pressures is held over it, 0 if they go linearly to the
            next row.
    """

    body: Body
    grid: Grid
    dt: float
    substeps: int
    fresh: int = 0
    held: int = 0


@dataclass
class Retries:
    """What the retries of a model have cost: each is a serial computation, up to 16 x finer.

    Attributes:
        candidates: that were done again at least once, since this was made or set to 0.
        attempts: retries of candidates, each in steps finer than before.
        lost: of the candidates, those that stayed NaN, or were never retried because something
            given for them is not finite.
    """

    candidates: int = 0
    attempts: int = 0
    lost: int = 0


@numba.njit(**COMPILE_OPTIONS)
def _row_of(rows, candidate):
    """The row of a candidate: one row alone serves them all."""
    return candidate if rows.shape[0] > 1 else 0


@numba.njit(**COMPILE_OPTIONS)
def _pack_section(raw, row, lane, parameters, body, substep):
    """Section of one candidate into column `lane`: C, 1/C, D, 1/D, decay, mu, 1/mu."""
    n = body.tip_share.shape[0]
    for k in range(6):
        compliance = body.compliance[k] + body.bending_share[k] * parameters[row, 0]
        relaxation = body.relaxation[k] * parameters[row, 2]
        raw[k, lane] = compliance
        raw[6 + k, lane] = 1.0 / compliance
        raw[12 + k, lane] = relaxation
        raw[18 + k, lane] = 1.0 / relaxation
        raw[24 + k, lane] = np.exp(-substep / relaxation)
    for i in range(n):
        density = body.line_density + parameters[row, 1] * body.tip_share[i]
        raw[30 + i, lane] = density
        raw[30 + n + i, lane] = 1.0 / density


@register_jitable(forceinline=True)
def _tip_pose(pose, s, section, body, grid):
    """Pose (12,) of the tip cap's outer face in the base frame, rows of (3, 4), eq. (29)."""
    like = s[0, 0]
    rotation = local(like, (3, 3))
    position = local(like, (3,))
    for r in range(3):
        position[r] = 0.0 * like
        for c in range(3):
            rotation[r, c] = 0.0 * like
        rotation[r, r] = 1.0 + 0.0 * like
    position[2] = body.base_height + 0.0 * like
    for i in range(grid.intervals):
        walk_interval(rotation, position, s, i, section, grid)
    for r in range(3):
        for c in range(3):
            pose[4 * r + c] = rotation[r, c]
        pose[4 * r + 3] = position[r] + body.tip_cap_length * rotation[r, 2]


def _compiled_block(lanes, dtype):
    """The function that advances one block of candidates, for lanes and a float type."""

    @numba.njit(**COMPILE_OPTIONS)
    def block_rollout(
        block, states, pressures, parameters, body, grid, dt, substeps, fresh, held, out, out_tips
    ):
        n = grid.intervals
        batch, levels, chambers = pressures.shape
        size = states.shape[1]
        raw_state = np.empty((size, lanes), dtype)
        raw_wrench = np.empty((6 * levels, lanes), dtype)
        raw_section = np.empty((30 + 2 * n, lanes), dtype)
        raw_pose = np.empty((12, lanes), dtype)
        for lane in range(lanes):
            candidate = min(block * lanes + lane, batch - 1)
            row = _row_of(states, candidate)
            for component in range(size):
                raw_state[component, lane] = states[row, component]
            for level in range(levels):
                for k in range(6):
                    total = 0.0
                    for chamber in range(chambers):
                        total += body.actuation[k, chamber] * pressures[candidate, level, chamber]
                    raw_wrench[6 * level + k, lane] = total
            row = _row_of(parameters, candidate)
            _pack_section(raw_section, row, lane, parameters, body, dt / substeps)

        state = as_lanes(raw_state, lanes)
        wrench = as_lanes(raw_wrench, lanes)
        packed = as_lanes(raw_section, lanes)
        pose = as_lanes(raw_pose, lanes)
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
        used = min(lanes, batch - block * lanes)
        control_word = flush_denormals(-1)
        for time in range(levels - 1):
            for k in range(6):
                w_begin[k] = wrench[6 * time + k]
                w_end[k] = wrench[6 * (time + 1 - held) + k]
            rosenbrock.step(e, s, z, w_begin, w_end, dt, substeps, fresh, decay, section, grid)
            if out.shape[1] > 0:
                for k in range(6):
                    for i in range(n):
                        state[6 * i + k] = e[i + 1, k]
                    for i in range(n + 1):
                        state[6 * (n + i) + k] = s[i, k]
                    state[6 * (2 * n + 1) + k] = z[k] + s[0, k]
                for lane in range(used):
                    for component in range(size):
                        out[block * lanes + lane, time, component] = raw_state[component, lane]
            if out_tips.shape[1] > 0:
                _tip_pose(pose, s, section, body, grid)
                for lane in range(used):
                    for component in range(12):
                        out_tips[block * lanes + lane, time, component] = raw_pose[component, lane]
        flush_denormals(control_word)

    return block_rollout


_block_scalar = _compiled_block(1, np.float64)
_block_float64 = _compiled_block(FLOAT64_LANES, np.float64)
_block_float32 = _compiled_block(FLOAT32_LANES, np.float32)

# One definition each: numba's cache does not tell decorator options apart. Flat arguments: parallel
# loops do not take tuples of tuples. Of the two outputs either may have no rows.


@numba.njit(**COMPILE_OPTIONS)
def _rollout_scalar(
    states, pressures, parameters, body, grid, dt, substeps, fresh, held, out, out_tips
):
    for block in range(pressures.shape[0]):
        _block_scalar(
            block, states, pressures, parameters,
            body, grid, dt, substeps, fresh, held, out, out_tips,
        )  # fmt: skip


@numba.njit(parallel=True, **COMPILE_OPTIONS)
def _rollout_float64(
    states, pressures, parameters, body, grid, dt, substeps, fresh, held, out, out_tips
):
    for block in numba.prange((pressures.shape[0] + FLOAT64_LANES - 1) // FLOAT64_LANES):
        _block_float64(
            block, states, pressures, parameters,
            body, grid, dt, substeps, fresh, held, out, out_tips,
        )  # fmt: skip


@numba.njit(parallel=True, **COMPILE_OPTIONS)
def _rollout_float32(
    states, pressures, parameters, body, grid, dt, substeps, fresh, held, out, out_tips
):
    for block in numba.prange((pressures.shape[0] + FLOAT32_LANES - 1) // FLOAT32_LANES):
        _block_float32(
            block, states, pressures, parameters,
            body, grid, dt, substeps, fresh, held, out, out_tips,
        )  # fmt: skip


def rollout(
    states: np.ndarray,
    inputs: np.ndarray,
    parameters: np.ndarray,
    run: Run,
    single_precision: bool = False,
    retries: Retries | None = None,
) -> np.ndarray:
    """Advances a batch of rods over T steps.

    Args:
        states: (B, 12 (n + 1)), or (1, ...) for all.
        inputs: (B, T + 1, m) pressures [Pa] at begin and end of the steps, T >= 1.
        parameters: (B, 3) in the order of PARAMETERS, or (1, 3) for all.
        run: what they share.
        single_precision: compute and return float32 (twice the lanes).
        retries: counted up.

    Returns:
        (B, T, 12 (n + 1)) states after each step; rows of NaN where even the finest retry failed,
        and where a candidate's state, pressures or parameters are not finite.

    Raises:
        ArgumentError: a wrong shape, type or sign; see `softcr_models.arguments`.
    """
    checked = _checked("rollout", states, inputs, parameters, run)
    return advance(*checked, single=single_precision, retries=retries)


def rollout_tips(
    states: np.ndarray,
    inputs: np.ndarray,
    parameters: np.ndarray,
    run: Run,
    single_precision: bool = False,
    retries: Retries | None = None,
) -> np.ndarray:
    """As `rollout`, but returns (B, T, 3, 4) tip poses as `tip_poses` does, and no states."""
    checked = _checked("rollout_tips", states, inputs, parameters, run)
    return advance(*checked, tips=True, single=single_precision, retries=retries)


def advance(
    states: np.ndarray,
    levels: np.ndarray,
    parameters: np.ndarray,
    run: Run,
    *,
    tips: bool = False,
    single: bool = False,
    retries: Retries | None = None,
) -> np.ndarray:
    """`rollout`, or `rollout_tips` if `tips`, of what an `Arguments` has checked.

    Args:
        states, levels, parameters: as of `Arguments.batch`.
        run: its dt is a float, finite and above 0.
        tips: whether tip poses are wanted in place of states.
        single: compute and return float32.
        retries: counted up.

    Raises:
        ArgumentError: the run has no sub-steps.
    """
    if run.substeps < 1:
        raise ArgumentError(f"substeps: {run.substeps} is not allowed: 1 or more")
    batch, steps = levels.shape[0], levels.shape[1] - 1
    dtype = np.float32 if single else np.float64
    out = np.empty((batch, 0 if tips else steps, states.shape[1]), dtype)
    out_tips = np.empty((batch, steps if tips else 0, 12), dtype)
    if single:
        _rollout_float32(states, levels, parameters, *run, out, out_tips)
    elif batch == 1:
        _rollout_scalar(states, levels, parameters, *run, out, out_tips)
    else:
        _rollout_float64(states, levels, parameters, *run, out, out_tips)
    finite = np.isfinite((out_tips if tips else out)[:, -1])
    if not np.logical_and.reduce(finite, axis=None):
        failed = ~finite.all(axis=1)
        _retry(failed, (states, levels, parameters), run, out, out_tips, retries or Retries())
    return out_tips.reshape(batch, steps, 3, 4) if tips else out


def _checked(method, states, inputs, parameters, run):
    """The arrays as kernels take them, and the run with its step as a float."""
    arguments = _arguments(run.body, run.grid)
    run = run._replace(dt=arguments.step_length(method, run.dt))
    return *arguments.batch(method, states, inputs, parameters), run


def _arguments(body: Body, grid: Grid) -> Arguments:
    return Arguments("stepper", 12 * (grid.intervals + 1), body.actuation.shape[1], SIGNS)


def _retry(failed, inputs, run, out, out_tips, retries):
    """Does failed candidates again, ever finer, in float64 with fresh linearisations."""
    # no finer step helps where the given numbers are not finite
    retries.candidates += int(np.count_nonzero(failed))
    hopeful = np.ones(len(failed), bool)
    for values in inputs:
        hopeful &= np.isfinite(values).reshape(len(values), -1).all(axis=1)
    for factor in RETRY_FACTORS:
        chosen = np.flatnonzero(failed & hopeful)
        if not chosen.size:
            break
        retries.attempts += len(chosen)
        rows = [values[chosen] if len(values) > 1 else values for values in inputs]
        again = np.empty((len(chosen), *out.shape[1:]))
        again_tips = np.empty((len(chosen), *out_tips.shape[1:]))
        finer = run._replace(substeps=factor * run.substeps, fresh=1)
        _rollout_scalar(*rows, *finer, again, again_tips)
        finite = np.isfinite(again).all(axis=(1, 2)) & np.isfinite(again_tips).all(axis=(1, 2))
        out[chosen[finite]] = again[finite]
        out_tips[chosen[finite]] = again_tips[finite]
        failed[chosen[finite]] = False
    out[failed] = np.nan
    out_tips[failed] = np.nan
    retries.lost += int(np.count_nonzero(failed))


def _compiled_tip_block(lanes, dtype):
    """The function that computes tip poses of one block of candidates."""

    @numba.njit(**COMPILE_OPTIONS)
    def block_tips(block, states, parameters, body, grid, out):
        n = grid.intervals
        batch = states.shape[0]
        raw_state = np.empty((6 * (n + 1), lanes), dtype)
        raw_section = np.empty((30 + 2 * n, lanes), dtype)
        raw_pose = np.empty((12, lanes), dtype)
        for lane in range(lanes):
            candidate = min(block * lanes + lane, batch - 1)
            for component in range(6 * (n + 1)):
                raw_state[component, lane] = states[candidate, 6 * n + component]
            row = _row_of(parameters, candidate)
            _pack_section(raw_section, row, lane, parameters, body, 0.0)
        state = as_lanes(raw_state, lanes)
        packed = as_lanes(raw_section, lanes)
        pose = as_lanes(raw_pose, lanes)
        compliance = local(state[0], (6,))
        s = local(state[0], (MAX_NODES, 6))
        for k in range(6):
            compliance[k] = packed[k]
            for i in range(n + 1):
                s[i, k] = state[6 * i + k]
        # a pose needs the compliance only
        section = Section(compliance, compliance, compliance, compliance, compliance, compliance)
        _tip_pose(pose, s, section, body, grid)
        for lane in range(min(lanes, batch - block * lanes)):
            for component in range(12):
                out[block * lanes + lane, component] = raw_pose[component, lane]

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


def tip_poses(states: np.ndarray, parameters: np.ndarray, body: Body, grid: Grid) -> np.ndarray:
    """Poses of the tips in the robot's base frame, rigid parts included, eq. (29).

    Args:
        states: (B, 12 (n + 1)); float32 is computed in float32, all else in float64.
        parameters: (B, 3) in the order of PARAMETERS, or (1, 3) for all.
        body, grid: of the rod.

    Returns:
        (B, 3, 4) rotation beside position [m], of the float type it was computed in.

    Raises:
        ArgumentError: a wrong shape, type or sign; see `softcr_models.arguments`.
    """
    checked = _arguments(body, grid).observe("tip_poses", states, parameters)
    return poses(*checked, body, grid)


def poses(states: np.ndarray, parameters: np.ndarray, body: Body, grid: Grid) -> np.ndarray:
    """`tip_poses` of what `Arguments.observe` has checked."""
    out = np.empty((states.shape[0], 12), states.dtype)
    compute = _tips_float32 if states.dtype == FLOAT32 else _tips_float64
    compute(states, parameters, body, grid, out)
    return out.reshape(-1, 3, 4)
