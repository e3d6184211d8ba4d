"""Compiled, batched time stepping of rods: states x pressures x parameters in one call.

`Body` holds what does not change between calls; parameters that filters estimate are inputs, one
row per candidate: `PARAMETERS`. A call packs candidates into SIMD lanes, advances every block of
lanes on one of the cores, and unpacks. Lanes share control flow, so the step is not controlled
there: a candidate with a step that is too inaccurate by the error estimate of `rosenbrock`, or not
finite, is done again (`_again`), that step in finer sub-steps with fresh linearisations, so that
the result depends on the batch by rounding alone. It is NaN if the finest sub-steps do not help, or
if it leaves the range in which the equations hold.

What computes believes what it is told. `rollout`, `rollout_tips` and `tip_poses` check their
arguments; `advance` and `poses` are the same for those whose own `Arguments` have checked them.
"""

import math
from dataclasses import dataclass
from typing import NamedTuple

import numba
import numpy as np

from softcr_models.arguments import FLOAT32, ArgumentError, Arguments
from softcr_models.rod import rosenbrock
from softcr_models.rod.borrowing import borrowed
from softcr_models.rod.compilation import COMPILE_OPTIONS, lane_counts, may_use_threads
from softcr_models.rod.contact import Contacts, Obstacles
from softcr_models.rod.inner import inner
from softcr_models.rod.kernel import effective_masses
from softcr_models.rod.packing import (
    Body,
    load_pulls,
    load_state,
    pack_inputs,
    pack_section,
    section_rows,
    store_state,
    tip_pose,
    unpack_section,
)
from softcr_models.rod.parameters import signs_of
from softcr_models.rod.rosenbrock import CHECKS
from softcr_models.rod.section import (
    MAX_NODES,
    MAX_SEGMENTS,
    MAX_TENDONS,
    Extras,
    Fittings,
    Grid,
    NodeLoads,
    Section,
)
from softcr_models.rod.simd import any_positive, as_lanes, flush_denormals, local, positive_part
from softcr_models.rod.state import state_size
from softcr_models.rod.tendon_coupling import Coupling, springs_of
from softcr_models.rod.twists import LARGEST_TURN

ERROR = 0.1
"""Estimated error that a step may have per second, as a share of the rod's length: what keeps the
tip of the shipped robots within 0.4 % of it in their fastest motions."""

STRICT = 0.3
"""Factor on it where errors of steps add up instead of dying out: of slender rods, whose bending
waves hardly are damped, and with tendons of the exact model, which linearisations leave out."""

SLENDER = 12.0
"""Length over diameter of a slender rod [-]."""

SERIAL = 0.1
"""Further factor on it for slender rods of three and more segments: what an inner segment's error
moves, swings far; of 500 random robots 11 of this kind were off by 1.1 to 19 % without it."""

DAMPED = 0.1
"""Damping ratio of a rod's first bending wave from which nothing swings far [-]."""

ROUGH = 2.0
"""Factor on it for filters and controllers, whose candidates are many and soon corrected: what
keeps the tip of the shipped robots within 0.9 % of the length in two sub-steps of a tick, and
within 1.1 % in one."""

LEAST_TIME = 5e-3
"""A shorter step may have the error of one of this length [s]: a jump of the inputs has its error
at once."""

LEAST_SUBSTEP = 2e-5
"""Candidates are not done again in shorter sub-steps than this [s]."""

BELIEVED = 0.1
"""Estimated error, as a share of the length, up to which a step that ends where the equations do
not hold is taken to go there, so that finer sub-steps are not tried."""

SERVED_SUBSTEPS = 4
"""Sub-steps that one linearisation serves at most: who asks for finer ones wants to be exact."""

FLOAT64_LANES, FLOAT32_LANES = lane_counts()


_NOT_FINITE = "what is given is not finite"
_RANGE = 1.0, LARGEST_TURN * LARGEST_TURN  # of the checks beside the error


class Run(NamedTuple):
    """What all candidates of a call share: rod, grid and time step.

    Attributes:
        dt: length of a step [s]; each is done in `substeps` sub-steps of ROS34PW2.
        fresh: 1 to linearise in every sub-step, 0 to do it once per step.
        held: 1 if a step's first row of pressures is held over it, 0 if they go linearly to the
            next row.
        fittings, loads, obstacles: what is fitted to the rod, loads its nodes, and what it may
            touch; None without.
        largest_error: that a step may have, see `largest_errors` [1/s].
    """

    body: Body
    grid: Grid
    dt: float
    substeps: int
    fresh: int = 0
    held: int = 0
    fittings: Fittings | None = None
    loads: NodeLoads | None = None
    obstacles: Obstacles | None = None
    largest_error: float = ERROR

    @classmethod
    def of(
        cls, body: Body, grid: Grid, dt: float, substeps: int, held: int, fittings: Fittings | None,
        loads: NodeLoads | None, obstacles: Obstacles | None, largest_error: float,
    ) -> "Run":  # fmt: skip
        """With as many linearisations as so many sub-steps need."""
        fresh = int(substeps > SERVED_SUBSTEPS)
        return cls(body, grid, dt, substeps, fresh, held, fittings, loads, obstacles, largest_error)

    @property
    def limits(self) -> tuple[float, float, float]:
        """What each of `rosenbrock.CHECKS` must stay below."""
        error = self.largest_error * max(self.dt, LEAST_TIME)
        return error * error, *_RANGE


def largest_errors(
    grid: Grid,
    fittings: Fittings | None,
    obstacles: Obstacles | None,
    body: Body,
    parameters: np.ndarray,
) -> tuple[float, float]:
    """Error that a step of a rod of nominal parameters (P,) may have, and of one of a filter's or
    controller's [1/s].

    Near obstacles the first is as rough: the estimate is for smooth forces, and impacts have steps
    of their own.
    """
    exact = fittings is not None and fittings.exact == 1
    length = float(grid.interval_length @ (np.diff(grid.first_row) - 1))
    diameter = 4.0 * math.sqrt(grid.bending_inertia.max())  # of a solid section: I/A is d^2 / 16
    slender = length > SLENDER * diameter
    swings = slender and len(grid.first_row) > 3 and _damping(grid, body, parameters) < DAMPED
    error = ERROR * (SERIAL if swings else 1.0)
    if exact and obstacles is None:
        return STRICT * error, STRICT * error
    error *= STRICT if slender else 1.0
    return error if obstacles is None else ROUGH * error, ROUGH * error


def _damping(grid, body, parameters):
    """Damping ratio of the first bending wave of a cantilever that is everywhere as the rod is on
    average: half of the relaxation time times its angular frequency, 3.516 / L^2 sqrt(EI / rho A)
    (Meirovitch, Fundamentals of Vibrations, 2001, 8.5) [-]."""
    lengths = grid.interval_length * (np.diff(grid.first_row) - 1)
    compliance = body.compliance + body.bending_share * parameters[: body.bendings, None]
    stiffness = lengths @ (1.0 / compliance[:, 3])
    frequency = 3.516 / lengths.sum() ** 2 * math.sqrt(stiffness / (lengths @ body.line_density))
    return 0.5 * frequency * (lengths @ body.relaxation[:, 3]) / lengths.sum()


@dataclass
class Retries:
    """What the retries of a model have cost: each is a serial computation.

    Attributes:
        candidates: that were done again at least once, since this was made or set to 0.
        attempts: retries of single steps, each in sub-steps half as long as before.
        lost: of the candidates, those that stayed NaN, or were never retried because something
            given for them is not finite.
        reason: why the last of those was lost, as a part of a sentence.
    """

    candidates: int = 0
    attempts: int = 0
    lost: int = 0
    reason: str = ""

    def lose(self, reason: str, count: int = 1) -> None:
        """Counts candidates that were lost for a reason."""
        self.lost += count
        self.reason = reason


@inner
def _row_of(rows, candidate):
    """The row of a candidate: one row alone serves them all."""
    return candidate if rows.shape[0] > 1 else 0


def _compiled_block(lanes, dtype):
    """The function that advances one block of candidates, for lanes and a float type."""

    @inner
    def block_rollout(
        block, states, inputs, parameters, body, grid, dt, substeps, fresh, held, fittings, springs,
        loads, obstacles, most, out, out_tips, out_checks,
    ):  # fmt: skip
        limits = (most, _RANGE[0], _RANGE[1])
        # names of their own: numba leaves out what hangs on arguments that are None
        body, grid = borrowed(body), borrowed(grid)
        fitted, loaded, near = borrowed(fittings), borrowed(loads), borrowed(obstacles)
        batch, levels, _ = inputs.shape
        size = states.shape[1]
        places = body.actuation.shape[0]
        tendons = 0
        if fittings is not None:
            tendons = fitted.tendon_inputs.shape[0]
        raw_state = np.empty((size, lanes), dtype)
        raw_wrench = np.empty((6 * places * levels, lanes), dtype)
        raw_pull = np.empty((tendons * levels, lanes), dtype)
        raw_section = np.empty((section_rows(grid), lanes), dtype)
        raw_pose = np.empty((12, lanes), dtype)
        raw_worst = np.zeros((CHECKS, lanes), dtype)
        for lane in range(lanes):
            candidate = min(block * lanes + lane, batch - 1)
            row = _row_of(states, candidate)
            for component in range(size):
                raw_state[component, lane] = states[row, component]
            for level in range(levels):
                pack_inputs(
                    raw_wrench, raw_pull, level, lane, inputs[candidate, level], body, fitted
                )
            row = _row_of(parameters, candidate)
            pack_section(raw_section, row, lane, parameters, body, grid, dt / substeps)

        state = as_lanes(raw_state, lanes)
        wrench = as_lanes(raw_wrench, lanes)
        pose = as_lanes(raw_pose, lanes)
        worst = as_lanes(raw_worst, lanes)
        like = state[0]
        check = local(like, (CHECKS,))
        section = Section(
            local(like, (MAX_SEGMENTS, 6)),
            local(like, (MAX_SEGMENTS, 6)),
            local(like, (MAX_SEGMENTS, 6)),
            local(like, (MAX_SEGMENTS, 6)),
            local(like, (MAX_NODES,)),
            local(like, (MAX_NODES,)),
            local(like, (1,)),
            local(like, (2,)),
        )
        decay = local(like, (6,))
        tip_force = local(like, (3,))
        e = local(like, (MAX_NODES, 6))
        s = local(like, (MAX_NODES, 6))
        z = local(like, (6,))
        w_begin = local(like, (MAX_NODES, 6))
        w_end = local(like, (MAX_NODES, 6))
        unpack_section(section, decay, tip_force, as_lanes(raw_section, lanes), grid)
        load_state(e, s, z, state, grid, fitted)
        used = min(lanes, batch - block * lanes)
        control_word = flush_denormals(-1)
        if springs is None:
            coupling = None
        else:
            coupling = Coupling(
                local(like, (MAX_TENDONS, MAX_NODES, 6)),
                local(like, (MAX_TENDONS,)),
                local(like, (MAX_TENDONS, MAX_TENDONS)),
                local(like, (MAX_TENDONS,)),
                local(like, (MAX_NODES, 6)),
                local(like, (MAX_NODES, 6)),
            )
        if obstacles is None:
            contacts = None
        else:
            contacts = Contacts(
                local(like, (MAX_NODES, 3)),
                local(like, (MAX_NODES, 3, 3)),
                local(like, (MAX_NODES, 3, 3)),
                local(like, (MAX_NODES, 3)),
                local(like, (4, MAX_NODES, 3)),
                local(like, (1,)),
            )
        if fittings is None:
            extras = None
        else:
            pull = as_lanes(raw_pull, lanes)
            extras = Extras(
                fitted,
                loaded,
                local(like, (MAX_NODES, 6, 6)),
                tip_force,
                local(like, (MAX_TENDONS,)),
                local(like, (MAX_TENDONS,)),
                local(like, (MAX_TENDONS,)),
                local(like, (MAX_TENDONS,)),
                coupling,
                near,
                contacts,
            )
            effective_masses(extras.effective_mass, section, grid, fitted)
        for time in range(levels - 1):
            for place in range(places):
                for k in range(6):
                    w_begin[place, k] = wrench[6 * (places * time + place) + k]
                    w_end[place, k] = wrench[6 * (places * (time + 1 - held) + place) + k]
            if fittings is not None:
                load_pulls(extras, pull, tendons * time, tendons * (time + 1 - held))
            rosenbrock.step(
                e, s, z, w_begin, w_end, dt, substeps, fresh, decay, section, grid, extras, check
            )
            margin = 1.0 + 0.0 * like
            for n in range(CHECKS):
                worst[n] += positive_part(check[n] - worst[n])
                margin -= positive_part(margin - 1.0 + check[n] / limits[n])
            if not any_positive(margin):  # of no candidate of the block
                for lane in range(used):
                    out[block * lanes + lane, time:] = np.nan
                    out_tips[block * lanes + lane, time:] = np.nan
                break
            if out.shape[1] > 0:
                store_state(state, e, s, z, grid)
                for lane in range(used):
                    for component in range(size):
                        out[block * lanes + lane, time, component] = raw_state[component, lane]
            if out_tips.shape[1] > 0:
                tip_pose(pose, s, section, body, grid, fitted)
                for lane in range(used):
                    for component in range(12):
                        out_tips[block * lanes + lane, time, component] = raw_pose[component, lane]
        flush_denormals(control_word)
        for lane in range(used):
            for n in range(CHECKS):
                out_checks[block * lanes + lane, n] = raw_worst[n, lane]

    return block_rollout


_block_scalar = _compiled_block(1, np.float64)
_block_float64 = _compiled_block(FLOAT64_LANES, np.float64)
_block_float32 = _compiled_block(FLOAT32_LANES, np.float32)

# One definition each: numba's cache does not tell decorator options apart. Flat arguments: parallel
# loops do not take tuples of tuples. Of the two outputs either may have no rows.


@numba.njit(**COMPILE_OPTIONS)
def _rollout_scalar(
    states, inputs, parameters,
    compliance, bending_share, bendings, forces, payloads, stiffenings, relaxation, line_density,
    tip_share, actuation, pulls, base_height, tip_cap_length,
    segments, first_row, interval_length, gravity, gravity_subintervals, strain_point,
    bending_inertia, torsion_inertia, payload_row, payload_lever, stiffens,
    dt, substeps, fresh, held, fittings, loads, obstacles, most, out, out_tips, out_checks,
):  # fmt: skip
    # body and grid one by one: to find the types of the two tuples took numba 2 us of a call's 13
    body = Body(
        compliance, bending_share, bendings, forces, payloads, stiffenings, relaxation,
        line_density, tip_share, actuation, pulls, base_height, tip_cap_length,
    )  # fmt: skip
    grid = Grid(
        segments, first_row, interval_length, gravity, gravity_subintervals, strain_point,
        bending_inertia, torsion_inertia, payload_row, payload_lever, stiffens,
    )  # fmt: skip
    for block in range(inputs.shape[0]):
        _block_scalar(
            block, states, inputs, parameters, body, grid, dt, substeps, fresh, held,
            fittings, springs_of(fittings), loads, obstacles, most, out, out_tips, out_checks,
        )  # fmt: skip
    limits = (most, _RANGE[0], _RANGE[1])
    # whether all hold; NumPy would take as long to see that as a step takes
    for block in range(inputs.shape[0]):
        for n in range(CHECKS):
            if not out_checks[block, n] < limits[n]:
                return False
    for results in (out, out_tips):
        if results.shape[1] > 0:
            for block in range(results.shape[0]):
                for k in range(results.shape[2]):
                    if not np.isfinite(results[block, -1, k]):
                        return False
    return True


@numba.njit(parallel=True, **COMPILE_OPTIONS)
def _rollout_float64(
    states, inputs, parameters, body, grid, dt, substeps, fresh, held, fittings, loads,
    obstacles, most, out, out_tips, out_checks,
):  # fmt: skip
    for block in numba.prange((inputs.shape[0] + FLOAT64_LANES - 1) // FLOAT64_LANES):
        _block_float64(
            block, states, inputs, parameters, body, grid, dt, substeps, fresh, held,
            fittings, springs_of(fittings), loads, obstacles, most, out, out_tips, out_checks,
        )  # fmt: skip


@numba.njit(parallel=True, **COMPILE_OPTIONS)
def _rollout_float32(
    states, inputs, parameters, body, grid, dt, substeps, fresh, held, fittings, loads,
    obstacles, most, out, out_tips, out_checks,
):  # fmt: skip
    for block in numba.prange((inputs.shape[0] + FLOAT32_LANES - 1) // FLOAT32_LANES):
        _block_float32(
            block, states, inputs, parameters, body, grid, dt, substeps, fresh, held,
            fittings, springs_of(fittings), loads, obstacles, most, out, out_tips, out_checks,
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
        states: (B, nx), or (1, nx) for all.
        inputs: (B, T + 1, m) [Pa, N] at begin and end of the steps, T >= 1.
        parameters: (B, P), or (1, P) for all.
        run: what they share.
        single_precision: compute and return float32 (twice the lanes).
        retries: counted up.

    Returns:
        (B, T, nx) states after each step; rows of NaN where even the finest retry failed,
        and where a candidate's state, inputs or parameters are not finite.

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
    serial = (batch == 1 and not single) or not may_use_threads()
    given = states, levels, parameters
    out, _, failed = _attempt(given, run, tips, single, serial)
    if len(failed):
        parts = [np.broadcast_to(each, (batch, *each.shape[1:]))[failed] for each in given]
        many = len(failed) >= FLOAT64_LANES and not serial
        found = (_together if many else _one_by_one)(parts, run, single, retries or Retries())
        if tips:
            rows = np.repeat(parts[2], steps, axis=0)
            found = poses(found.reshape(len(rows), -1), rows, run.body, run.grid, run.fittings)
        out[failed] = found.reshape(len(failed), steps, -1)
    rolled = out.reshape(batch, steps, 3, 4) if tips else out
    return rolled.astype(np.float32, copy=False) if single else rolled


def _one_by_one(given, run, _, retries):
    """(F, T, nx) states of F candidates, see `_again`."""
    return np.stack([_again(*each, run, retries) for each in zip(*given, strict=True)])


def _together(parts, run, single, retries):
    """(F, T, nx) states as `_one_by_one` finds them but for rounding: all candidates step by step,
    in lanes."""
    states, levels, parameters = parts
    count, steps = levels.shape[0], levels.shape[1] - 1
    out = np.full((count, steps, states.shape[1]), np.nan)
    finite = [np.isfinite(each).reshape(count, -1).all(axis=1) for each in parts]
    at = np.flatnonzero(np.all(finite, axis=0))
    retries.candidates += count
    if len(at) < count:
        retries.lose(_NOT_FINITE, count - len(at))
    here = states[at]
    for time in range(steps):
        given = here, levels[at, time : time + 2], parameters[at]
        here, left = _step_in_lanes(given, run, single, retries)
        for each, tried in left:
            here[each] = _step_alone(*(one[each] for one in given), tried, retries)
        held = np.isfinite(here).all(axis=1)
        out[at[~held]] = np.nan
        at, here = at[held], here[held]
        out[at, time] = here
    return out


def _step_in_lanes(given, run, single, retries):
    """(N, nx) states after a step, as fine as each candidate needs as long as those that need it
    fill lanes, and which of them do not hold then, each with the run that it was last tried in."""
    out, checks, left = _attempt(given, run, False, single, False)
    out, alone = out[:, 0].astype(float), []
    while len(left):
        leaves = _leaves(checks[left], run)
        few = len(left) - leaves.sum() < FLOAT64_LANES
        ends = leaves | (few or _finest(run))
        alone += [(each, run) for each in left[ends].tolist()]
        left = left[~ends]
        if not len(left):
            break
        run = _finer(run)
        retries.attempts += len(left)
        part = [each[left] for each in given]
        found, checks[left], still = _attempt(part, run, False, single, False)
        out[left] = found[:, 0]
        left = left[still]
    return out, alone


def _attempt(given, run, tips, single, serial):
    """(B, T, nx) states or (B, T, 12) poses, (B, CHECKS), and which candidates do not hold."""
    states, levels, _ = given
    batch, steps = levels.shape[0], levels.shape[1] - 1
    dtype = np.float32 if single and not serial else np.float64
    out = np.empty((batch, 0 if tips else steps, states.shape[1]), dtype)
    out_tips = np.empty((batch, steps if tips else 0, 12), dtype)
    checks = np.empty((batch, CHECKS), dtype)
    results = out_tips if tips else out
    if serial:
        if _rollout_scalar(*given, *_flat(run), out, out_tips, checks):
            return results, checks, np.empty(0, int)
    elif single:
        _rollout_float32(*given, *_shared(run), out, out_tips, checks)
    else:
        _rollout_float64(*given, *_shared(run), out, out_tips, checks)
    holds = (checks < run.limits).all(axis=1) & np.isfinite(results[:, -1]).all(axis=1)
    return results, checks, np.flatnonzero(~holds)


def substeps_of(
    state: np.ndarray, levels: np.ndarray, parameters: np.ndarray, run: Run
) -> tuple[int, int]:
    """How a step is done: in how many sub-steps, and whether each is linearised, 1 or 0.

    Args:
        state: (nx,); levels: (2, m); parameters: (P,).
        run: what is asked for first.
    """
    _, _, done = _one_step(state, levels, parameters, run)
    return done.substeps, done.fresh


def _again(state, levels, parameters, run, retries):
    """(T, nx) states of one candidate, its steps as fine as each of them needs; NaN if it cannot
    be done."""
    steps = len(levels) - 1
    out = np.full((steps, len(state)), np.nan)
    retries.candidates += 1
    if not all(np.isfinite(each).all() for each in (state, levels, parameters)):
        retries.lose(_NOT_FINITE)
        return out  # no finer step helps
    at = 0
    while at < steps:
        here = out[at - 1] if at else state
        _rolled(here, levels[at:], parameters, run, out[at:])
        at = int(np.count_nonzero(np.isfinite(out).all(axis=1)))
        if at < steps:
            here = out[at - 1] if at else state
            out[at] = _step_alone(here, levels[at : at + 2], parameters, run, retries)
            if not np.isfinite(out[at]).all():
                out[:] = np.nan
                break
            at += 1
    return out


def _step_alone(state, levels, parameters, run, retries):
    """(nx,) after a step of one candidate, as fine as it needs; NaN if it cannot be done."""
    out, checks, done = _one_step(state, levels, parameters, run)
    retries.attempts += (done.substeps // run.substeps).bit_length() - 1
    if not np.isfinite(out).all():
        retries.lose(_reason(checks, done))
    return out


def _one_step(state, levels, parameters, run):
    """(nx,) after a step, its checks, and the run that says how fine it was; NaN if it fails."""
    out = np.empty((1, len(state)))
    while True:
        checks = _rolled(state, levels, parameters, run, out)
        if _leaves(checks, run) or _finest(run) or np.isfinite(out).all():
            return out[0], checks, run
        run = _finer(run)


def _finest(run):
    """Whether its sub-steps may not be halved."""
    return run.dt / (2 * run.substeps) < LEAST_SUBSTEP


def _finer(run):
    """With sub-steps half as long, each linearised."""
    return run._replace(substeps=2 * run.substeps, fresh=1)


def _leaves(checks, run):
    """Whether a step goes where the equations do not hold, for (..., CHECKS) of it."""
    return (checks[..., 0] < BELIEVED**2) & (checks[..., 1:] >= run.limits[1:]).any(axis=-1)


def _rolled(state, levels, parameters, run, out):
    """Writes (T, nx) states of one candidate, NaN from its first step on that does not hold.

    Returns:
        (CHECKS,) the largest up to there.
    """
    checks, no_tips = np.empty((1, CHECKS)), np.empty((1, 0, 12))
    given = state[None], levels[None], parameters[None]
    _rollout_scalar(*given, *_flat(run), out[None], no_tips, checks)
    return checks[0]


def _checked(method, states, inputs, parameters, run):
    """The arrays as kernels take them, and the run with its step as a float."""
    arguments = _arguments(run.body, run.grid)
    run = run._replace(dt=arguments.step_length(method, run.dt))
    return *arguments.batch(method, states, inputs, parameters), run


def _arguments(body: Body, grid: Grid) -> Arguments:
    size = state_size(int(grid.first_row[-1]) - grid.segments, grid.segments)
    signs = signs_of(body.bendings, body.forces, body.payloads, body.stiffenings)
    return Arguments("stepper", size, body.actuation.shape[2], signs)


def _shared(run):
    """What candidates share as kernels take it."""
    return *run[:-1], run.limits[0]


def _flat(run):
    """The same as `_rollout_scalar` takes it."""
    body, grid, *others = _shared(run)
    return *body, *grid, *others


def _reason(checks, run):
    """Why a step does not hold, as a part of a sentence."""
    error, shortening, turn = checks
    if error < BELIEVED**2 and shortening >= run.limits[1]:
        return f"the rod is pressed to nothing: its stretch is {1.0 - shortening:.2g}, not above 0"
    if error < BELIEVED**2 and turn >= run.limits[2]:
        return (
            f"the rod turns by {np.sqrt(turn):.2g} rad in a sub-interval, must be below "
            f"{LARGEST_TURN:.2g} rad: more intervals, or gravity_subintervals, resolve it"
        )
    return f"the motion is too fast for sub-steps of {run.dt / run.substeps:.2g} s"


def _compiled_tip_block(lanes, dtype):
    """The function that computes tip poses of one block of candidates."""

    @inner
    def block_tips(block, states, parameters, body, grid, fittings, out):
        rows = grid.first_row[grid.segments]
        intervals = rows - grid.segments
        batch = states.shape[0]
        raw_state = np.empty((6 * rows, lanes), dtype)
        raw_section = np.empty((section_rows(grid), lanes), dtype)
        raw_pose = np.empty((12, lanes), dtype)
        for lane in range(lanes):
            candidate = min(block * lanes + lane, batch - 1)
            for component in range(6 * rows):
                raw_state[component, lane] = states[candidate, 6 * intervals + component]
            row = _row_of(parameters, candidate)
            pack_section(raw_section, row, lane, parameters, body, grid, 0.0)
        state = as_lanes(raw_state, lanes)
        packed = as_lanes(raw_section, lanes)
        pose = as_lanes(raw_pose, lanes)
        compliance = local(state[0], (MAX_SEGMENTS, 6))
        density = local(state[0], (MAX_NODES,))
        s = local(state[0], (MAX_NODES, 6))
        for k in range(6):
            for a in range(grid.segments):
                compliance[a, k] = packed[30 * a + k]
            for i in range(rows):
                s[i, k] = state[6 * i + k]
        # a pose needs the compliance alone
        section = Section(
            compliance, compliance, compliance, compliance, density, density, density, density
        )
        tip_pose(pose, s, section, body, grid, fittings)
        for lane in range(min(lanes, batch - block * lanes)):
            for component in range(12):
                out[block * lanes + lane, component] = raw_pose[component, lane]

    return block_tips


_tips_float64_block = _compiled_tip_block(FLOAT64_LANES, np.float64)
_tips_float32_block = _compiled_tip_block(FLOAT32_LANES, np.float32)


@numba.njit(**COMPILE_OPTIONS)
def _tips_float64(states, parameters, body, grid, fittings, out):
    for block in range((states.shape[0] + FLOAT64_LANES - 1) // FLOAT64_LANES):
        _tips_float64_block(block, states, parameters, body, grid, fittings, out)


@numba.njit(parallel=True, **COMPILE_OPTIONS)
def _tips_float32(states, parameters, body, grid, fittings, out):
    for block in numba.prange((states.shape[0] + FLOAT32_LANES - 1) // FLOAT32_LANES):
        _tips_float32_block(block, states, parameters, body, grid, fittings, out)


def tip_poses(
    states: np.ndarray,
    parameters: np.ndarray,
    body: Body,
    grid: Grid,
    fittings: Fittings | None = None,
) -> np.ndarray:
    """Poses of the tips in the robot's base frame, rigid parts included, eq. (29).

    Args:
        states: (B, nx); float32 is computed in float32, all else in float64.
        parameters: (B, P), or (1, P) for all.
        body, grid, fittings: of the rod.

    Returns:
        (B, 3, 4) rotation beside position [m], of the float type it was computed in.

    Raises:
        ArgumentError: a wrong shape, type or sign; see `softcr_models.arguments`.
    """
    checked = _arguments(body, grid).observe("tip_poses", states, parameters)
    return poses(*checked, body, grid, fittings)


def poses(
    states: np.ndarray,
    parameters: np.ndarray,
    body: Body,
    grid: Grid,
    fittings: Fittings | None = None,
) -> np.ndarray:
    """`tip_poses` of what `Arguments.observe` has checked."""
    single = states.dtype == FLOAT32
    threaded = single and may_use_threads()
    out = np.empty((states.shape[0], 12), np.float32 if threaded else np.float64)
    if threaded:
        _tips_float32(states, parameters, body, grid, fittings, out)
    else:
        _tips_float64(states.astype(float, copy=False), parameters, body, grid, fittings, out)
    return out.reshape(-1, 3, 4).astype(states.dtype, copy=False)
