"""One time step of the rod: a linearly implicit Runge-Kutta method on the structure of the
equations.

ROS34PW2 (J. Rang, L. Angermann, BIT 45 (2005) 761-787): four stages, third order, stiffly
accurate, and a W-method: it keeps its order with ANY matrix in place of the Jacobian. That allows
two economies: one linearisation per step for all its sub-steps,
and a linearisation without gravity, which is the only term that couples all nodes.

Its embedded solution of second order, again for any matrix, tells how far off a sub-step may be.

Written in the increments U = h Gamma k, so that no product with the Jacobian is needed
(Hairer & Wanner, Solving ODEs II, IV.7): with alpha = 1/(gamma h),

    (alpha A - G) U_i = A (f(x + sum a_ij U_j) + sum c_ij / h U_j),    x_new = x + sum m_i U_i,

where A x' = b(x) is the implicit form and G = d/dx (b - A v) at frozen v = f(x), gravity left out.
The matrix is block tridiagonal; elimination runs from the tip to the base on 6x6 blocks without
pivoting. Same three ways of running as `kernel`.
"""

import numpy as np

from softcr_models.rod.backbone import largest_turn
from softcr_models.rod.contact import (
    add_stage,
    begin_stage,
    end_stage,
    look_ahead,
    pieces,
)
from softcr_models.rod.inner import inlined
from softcr_models.rod.kernel import derivative
from softcr_models.rod.linear_solver import Factors, linearise, solve
from softcr_models.rod.section import MAX_NODES
from softcr_models.rod.simd import local, nan_unless_positive, positive_part
from softcr_models.rod.tendon_coupling import couple, solve_coupled
from softcr_models.rod.tendons import base_actuation, pull_tendons
from softcr_models.rod.twists import LARGEST_TURN

CHECKS = 3
"""What says whether a step holds: the sum of the squares of its sub-steps' estimated errors, as
shares of the rod's length, as long as the two others allow the rod; its largest shortening, 1 where
it is pressed to nothing; the largest squared angle by which it turns in a sub-interval of
Algorithm 1 [rad^2]. The latter two are those after any sub-step."""

LASTING = 8.0
"""Sub-steps for which the error of a velocity is taken to last: those are of waves, faster ones of
which the sub-step damps."""

STAGES = 4
GAMMA = 0.43586652150845900
_ALPHA = np.array(
    [
        [0.0, 0.0, 0.0, 0.0],
        [0.87173304301691801, 0.0, 0.0, 0.0],
        [0.84457060015369423, -0.11299064236484185, 0.0, 0.0],
        [0.0, 0.0, 1.0, 0.0],
    ]
)
_GAMMA = np.array(
    [
        [GAMMA, 0.0, 0.0, 0.0],
        [-0.87173304301691801, GAMMA, 0.0, 0.0],
        [-0.90338057013044082, 0.054180672388095326, GAMMA, 0.0],
        [0.24212380706095346, -1.2232505839045147, 0.54526025533510214, GAMMA],
    ]
)
_WEIGHTS = np.array([0.24212380706095346, -1.2232505839045147, 1.5452602553351020, GAMMA])
_EMBEDDED = np.array([0.37810903145819369, -0.096042292212423178, 0.5, 0.5 * GAMMA])
STAGE_POINT = _ALPHA @ np.linalg.inv(_GAMMA)  # a_ij
STAGE_COUPLING = np.eye(STAGES) / GAMMA - np.linalg.inv(_GAMMA)  # c_ij
INCREMENT = np.linalg.solve(_GAMMA.T, _WEIGHTS)  # m_i
ERROR = INCREMENT - np.linalg.solve(_GAMMA.T, _EMBEDDED)


@inlined
def step(e, s, z, w_begin, w_end, dt, substeps, fresh, decay, section, grid, extras, check):
    """Advances (e, s, z) in place over dt in equal sub-steps, and tells what `check` holds.

    The pressure wrench goes linearly from w_begin to w_end; each sub-step holds its value in the
    middle.

    Args:
        e, s: (R, 6) state; z: (6,) base state x2(0-) - x2(0+).
        w_begin, w_end: (A, 6) actuation wrenches, see `kernel`.
        substeps: number of sub-steps; fresh: 1 to linearise in each of them, 0 only in the first.
            Near obstacles each of them is linearised, and divided where the rod touches.
        decay: (6,) exp(-dt / substeps / D) of the base state.
        extras: what is fitted to the rod, or None.
        check: (CHECKS,) for what says whether the step holds.
    """
    rows = grid.first_row[grid.segments]
    places = grid.segments
    if extras is not None:
        places = rows
    h = dt / substeps
    lasting = dt * min(1.0, LASTING / substeps)
    like = e[0, 0]
    factors = Factors(
        local(like, (MAX_NODES, 6)),
        local(like, (MAX_NODES, 6, 3)),
        local(like, (MAX_NODES, 6, 6)),
        local(like, (MAX_NODES, 6, 6)),
        local(like, (MAX_NODES, 6, 6)),
        local(like, (MAX_NODES, 6, 6)),
        local(like, (MAX_NODES, 6, 6)),
    )
    w = local(like, (MAX_NODES, 6))
    base = local(like, (6,))
    for n in range(CHECKS):
        check[n] = 0.0 * like
    for substep in range(substeps):
        error = check[0]
        fraction = (substep + 0.5) / substeps
        for place in range(places):
            for k in range(6):
                w[place, k] = w_begin[place, k] + fraction * (w_end[place, k] - w_begin[place, k])
        if extras is not None:
            pull_tendons(fraction, extras)
        base_actuation(base, s, w, section, grid, extras)
        for k in range(6):
            z[k] = (z[k] + base[k]) * decay[k] - base[k]
        anew = substep == 0 or fresh == 1
        if extras is None:
            _advance(e, s, w, h, anew, section, grid, extras, factors, lasting, check)
        else:
            _advance_beside(
                extras.obstacles, e, s, w, h, anew, section, grid, extras, factors, lasting, check
            )
        # NaN is no positive part: what follows a state that cannot be is not judged
        added = nan_unless_positive(check[0] - error, 1.0 - check[1])
        added = nan_unless_positive(added, LARGEST_TURN * LARGEST_TURN - check[2])
        check[0] = error + positive_part(added)
        check[1] += positive_part(_largest_shortening(s, section, grid) - check[1])
        check[2] += positive_part(largest_turn(s, section, grid) - check[2])


@inlined
def _advance_beside(obstacles, e, s, w, h, anew, section, grid, extras, factors, lasting, check):
    """`_advance`, near obstacles always after a linearisation, and in as many pieces as it takes to
    follow an impact: once more from the beginning, if it ends in one that it did not foresee."""
    if obstacles is None:
        _advance(e, s, w, h, anew, section, grid, extras, factors, lasting, check)
    else:
        contacts, fittings = extras.contacts, extras.fittings
        e_before = local(e[0, 0], (MAX_NODES, 6))
        s_before = local(e[0, 0], (MAX_NODES, 6))
        _copy(e_before, s_before, e, s, grid)
        error_before = check[0]
        count = pieces(contacts, e, s, section, grid, fittings, obstacles, h, h)
        for attempt in range(2):
            if attempt == 1:
                _copy(e, s, e_before, s_before, grid)
                check[0] = error_before
            for _ in range(count):
                _advance(e, s, w, h / count, True, section, grid, extras, factors, lasting, check)
            needed = pieces(contacts, e, s, section, grid, fittings, obstacles, h, 0.0)
            if needed <= count:
                break
            count = needed


@inlined
def _copy(to_e, to_s, e, s, grid):
    for i in range(grid.first_row[grid.segments]):
        for k in range(6):
            to_e[i, k] = e[i, k]
            to_s[i, k] = s[i, k]


@inlined
def _advance(e, s, w, h, anew, section, grid, extras, factors, lasting, check):
    """Advances (e, s) in place over h [s] under the wrenches w, `anew` after a linearisation, and
    adds the square of the estimated error to check[0]."""
    rows = grid.first_row[grid.segments]
    alpha = 1.0 / (GAMMA * h)
    like = e[0, 0]
    stage_e = local(like, (MAX_NODES, 6))
    stage_s = local(like, (MAX_NODES, 6))
    rate_e = local(like, (MAX_NODES, 6))
    rate_s = local(like, (MAX_NODES, 6))
    increments_e = local(like, (4, MAX_NODES, 6))
    increments_s = local(like, (4, MAX_NODES, 6))
    for stage in range(4):
        _copy(stage_e, stage_s, e, s, grid)
        for j in range(stage):
            weight = STAGE_POINT[stage, j]
            for i in range(rows):
                for k in range(6):
                    stage_e[i, k] += weight * increments_e[j, i, k]
                    stage_s[i, k] += weight * increments_s[j, i, k]
        derivative(stage_e, stage_s, w, section, grid, extras, rate_e, rate_s)
        if stage == 0 and anew:
            if extras is not None:
                look_ahead(
                    extras.obstacles, extras.contacts, stage_e, stage_s, section, grid,
                    extras.fittings, h,
                )  # fmt: skip
            linearise(stage_e, stage_s, rate_s, w, alpha, section, grid, extras, factors)
            if extras is not None:
                couple(
                    extras.fittings.springs, stage_s, alpha, section, grid, extras, factors,
                    increments_e[0], increments_s[0],
                )  # fmt: skip
        if extras is not None:
            begin_stage(extras.obstacles, extras.contacts, stage_e, grid)
        for j in range(stage):
            weight = STAGE_COUPLING[stage, j] / h
            if extras is not None:
                add_stage(extras.obstacles, extras.contacts, j, weight, grid)
            for i in range(rows):
                for k in range(6):
                    rate_e[i, k] += weight * increments_e[j, i, k]
                    rate_s[i, k] += weight * increments_s[j, i, k]
        solve(
            rate_e,
            rate_s,
            None,
            alpha,
            section,
            grid,
            extras,
            factors,
            increments_e[stage],
            increments_s[stage],
        )
        if extras is not None:
            solve_coupled(
                extras.fittings.springs, rate_e, rate_s, alpha, section, grid, extras, factors,
                increments_e[stage], increments_s[stage],
            )  # fmt: skip
            end_stage(extras.obstacles, extras.contacts, stage, increments_e[stage], alpha, grid)
    for j in range(4):
        for i in range(rows):
            for k in range(6):
                e[i, k] += INCREMENT[j] * increments_e[j, i, k]
                s[i, k] += INCREMENT[j] * increments_s[j, i, k]
    check[0] += _squared_error(increments_e, increments_s, lasting, section, grid)


@inlined
def _squared_error(increments_e, increments_s, lasting, section, grid):
    """The square of a sub-step's estimated error: how far the errors of the strains move the rod,
    were it straight, where they move it most, as a share of its length.

    A twist counts as if it acted at a lever of half of the length, and the error of a velocity as
    far as it moves a row in a time of `lasting` [s].
    """
    like = increments_s[0, 0, 0]
    off = local(like, (6,))
    moved = local(like, (6,))  # up to a row: position, then direction
    for k in range(6):
        moved[k] = 0.0 * like
    largest = 0.0 * like
    length = 0.0
    for a in range(grid.segments):
        first, end = grid.first_row[a], grid.first_row[a + 1] - 1
        half = 0.5 * grid.interval_length[a]
        length += 2.0 * half * (end - first)
        for i in range(first, end + 1):
            for k in range(6):
                off[k] = ERROR[0] * increments_s[0, i, k]
                for j in range(1, 4):
                    off[k] += ERROR[j] * increments_s[j, i, k]
                off[k] *= section.compliance[a, k]
            for _ in range(2 - (i == first) - (i == end)):  # the intervals that it is an end of
                moved[0] += half * (off[0] + moved[4])
                moved[1] += half * (off[1] - moved[3])
                moved[2] += half * off[2]
                for k in range(3, 6):
                    moved[k] += half * off[k]
            square = moved[0] * moved[0] + moved[1] * moved[1] + moved[2] * moved[2]
            for k in range(3):
                faster = ERROR[0] * increments_e[0, i, k]
                for j in range(1, 4):
                    faster += ERROR[j] * increments_e[j, i, k]
                square += lasting * lasting * faster * faster
            largest += positive_part(square - largest)
    return largest * (1.0 / (length * length)) + 0.25 * moved[5] * moved[5]


@inlined
def _largest_shortening(s, section, grid):
    """Of the rod along its centre line, 1 minus the stretch [-]."""
    largest = -section.compliance[0, 2] * s[0, 2]
    for a in range(grid.segments):
        for i in range(grid.first_row[a], grid.first_row[a + 1]):
            largest += positive_part(-section.compliance[a, 2] * s[i, 2] - largest)
    return largest
