"""From arrays as callers have them to the rows and tuples of the kernels, and back.

Written for numbers, lanes and lanes that carry derivatives alike, see `kernel`.
"""

from typing import NamedTuple

import numpy as np

from softcr_models.rod.backbone import largest_turn, part_of, start_pose, walk_interval
from softcr_models.rod.inner import inlined, inner
from softcr_models.rod.simd import exponential, local, nan_unless_positive, positive_part
from softcr_models.rod.stiffening import USUAL_CURVATURE
from softcr_models.rod.tendons import pull_of
from softcr_models.rod.twists import LARGEST_TURN, add_product, cross_connector


class Body(NamedTuple):
    """Constants of a robot on a grid; arrays are float64 and C-contiguous.

    Attributes:
        compliance: (K, 6) diagonals of C without the bending compliance.
        bending_share: (K, 6) what is added to them per estimated bending compliance [-].
        bendings: number of estimated bending compliances: 1 for all segments together, or K.
        forces: number of estimated components of the force at the tip: 0 or 3.
        payloads: 1 if a payload is estimated, else 0.
        stiffenings: 1 if a stiffness that changes with the curvature is estimated, 2 if one that
            changes with the stretch as well, else 0.
        relaxation: (K, 6) nominal diagonals of D_tau [s]; multiplied by the damping factor.
        line_density: (K,) rho A of the body alone [kg/m].
        tip_share: (R,) of each interval, 1/m: line density added per kilogram of tip mass.
        actuation: (A, 6, m) wrench per input, eq. (7): of each segment, or of each row of a rod
            with fittings.
        pulls: (m,) 1 for inputs that act only where they are above zero: tensions.
        base_height, tip_cap_length: rigid parts below and above the rod, eq. (29) [m].
    """

    compliance: np.ndarray
    bending_share: np.ndarray
    bendings: int
    forces: int
    payloads: int
    stiffenings: int
    relaxation: np.ndarray
    line_density: np.ndarray
    tip_share: np.ndarray
    actuation: np.ndarray
    pulls: np.ndarray
    base_height: float
    tip_cap_length: float


@inner
def section_rows(grid):
    """Rows of `pack_section`."""
    return 30 * grid.segments + 2 * grid.first_row[grid.segments] + 6


@inner
def pack_section(raw, row, lane, parameters, body, grid, substep):
    """Section of one candidate into column `lane`: per segment C, 1/C, D, 1/D, decay; then mu and
    1/mu of each interval, the force at the tip, the payload per length, how the bending compliance
    changes with the squared curvature, and how much of a neo-Hookean material's stiffening it has.

    A payload below zero is taken off the tip mass: the robot has lost something, and no point of
    mass may be negative.
    """
    rows = grid.first_row[grid.segments]
    density_rows = 30 * grid.segments
    tip_mass = parameters[row, body.bendings]
    carried = 0.0 * tip_mass
    if body.payloads == 1:
        payload = parameters[row, body.bendings + 2 + body.forces]
        carried = positive_part(payload)
        tip_mass = tip_mass + payload - carried
    last = grid.interval_length[grid.segments - 1]
    raw[density_rows + 2 * rows + 3, lane] = carried / last
    change, hyperelastic = 0.0 * carried, 0.0 * carried
    column = body.bendings + 2 + body.forces + body.payloads
    if body.stiffenings > 0:
        change = parameters[row, column] / (USUAL_CURVATURE * USUAL_CURVATURE)
    if body.stiffenings == 2:
        hyperelastic = parameters[row, column + 1]
    raw[density_rows + 2 * rows + 4, lane] = change
    raw[density_rows + 2 * rows + 5, lane] = hyperelastic
    for a in range(grid.segments):
        bending = parameters[row, a if body.bendings > 1 else 0]
        for k in range(6):
            compliance = body.compliance[a, k] + body.bending_share[a, k] * bending
            relaxation = body.relaxation[a, k] * parameters[row, body.bendings + 1]
            raw[30 * a + k, lane] = compliance
            raw[30 * a + 6 + k, lane] = 1.0 / compliance
            raw[30 * a + 12 + k, lane] = relaxation
            raw[30 * a + 18 + k, lane] = 1.0 / relaxation
            raw[30 * a + 24 + k, lane] = exponential(-substep / relaxation)
        for i in range(grid.first_row[a], grid.first_row[a + 1]):
            density = body.line_density[a] + tip_mass * body.tip_share[i]
            raw[density_rows + i, lane] = density
            raw[density_rows + rows + i, lane] = 1.0 / density
    for k in range(3):
        if body.forces == 3:
            raw[density_rows + 2 * rows + k, lane] = parameters[row, body.bendings + 2 + k]
        else:
            raw[density_rows + 2 * rows + k, lane] = 0.0 * parameters[row, 0]


@inlined
def unpack_section(section, decay, tip_force, packed, grid):
    """Fills a section, the decay (6,) of the base state and the force (3,) at the tip."""
    rows = grid.first_row[grid.segments]
    density_rows = 30 * grid.segments
    for k in range(6):
        decay[k] = packed[24 + k]
        for a in range(grid.segments):
            section.compliance[a, k] = packed[30 * a + k]
            section.stiffness[a, k] = packed[30 * a + 6 + k]
            section.relaxation[a, k] = packed[30 * a + 12 + k]
            section.relaxation_rate[a, k] = packed[30 * a + 18 + k]
    for i in range(rows):
        section.line_density[i] = packed[density_rows + i]
        section.length_per_mass[i] = packed[density_rows + rows + i]
    for k in range(3):
        tip_force[k] = packed[density_rows + 2 * rows + k]
    section.payload[0] = packed[density_rows + 2 * rows + 3]
    section.stiffening[0] = packed[density_rows + 2 * rows + 4]
    section.stiffening[1] = packed[density_rows + 2 * rows + 5]


@inner
def pack_inputs(raw_wrench, raw_pull, level, lane, inputs, body, fittings):
    """Wrenches (A, 6) of inputs (m,) and what they ask of tendons (T,), row by row into column
    `lane`."""
    places, _, count = body.actuation.shape
    for place in range(places):
        for k in range(6):
            total = 0.0 * inputs[0]
            for number in range(count):
                pull = inputs[number]
                if body.pulls[number] == 1:
                    pull = positive_part(pull)
                total += body.actuation[place, k, number] * pull
            raw_wrench[6 * (places * level + place) + k, lane] = total
    if fittings is not None:
        tendons = fittings.tendon_inputs.shape[0]
        for tendon in range(tendons):
            value = inputs[fittings.tendon_inputs[tendon]]
            raw_pull[tendons * level + tendon, lane] = pull_of(fittings.springs, tendon, value)


@inlined
def load_pulls(extras, pull, begin, end):
    """What is asked of tendons in a step from row `begin` to row `end` of a packed column.

    A function of its own: numba drops what is written to a tuple's array where that is made.
    """
    for tendon in range(extras.fittings.tendon_inputs.shape[0]):
        extras.pulls[tendon] = pull[begin + tendon]
        extras.pulls_begin[tendon] = pull[begin + tendon]
        extras.pulls_end[tendon] = pull[end + tendon]


@inlined
def load_state(e, s, z, state, grid, fittings):
    """Rows from a state (12 N + 6 K + 6,) as `RodState` lays it out."""
    rows = grid.first_row[grid.segments]
    intervals = rows - grid.segments
    for k in range(6):
        e[0, k] = 0.0 * state[0]
        z[k] = state[6 * (intervals + rows) + k] - state[6 * intervals + k]
        for i in range(rows):
            s[i, k] = state[6 * (intervals + i) + k]
    for a in range(grid.segments):
        first = grid.first_row[a]
        if a > 0:
            cross_boundary(e, first, a, fittings)
        for i in range(first + 1, grid.first_row[a + 1]):
            for k in range(6):
                e[i, k] = state[6 * (i - a - 1) + k]


@inlined
def cross_boundary(e, first, a, fittings):
    """Velocity of the first row of segment a from the row before it: e+ = X e-."""
    for k in range(6):
        e[first, k] = e[first - 1, k]
    if fittings is not None:
        for k in range(6):
            e[first, k] *= 0.0
        add_product(e[first], fittings.adjoint[a - 1], e[first - 1])


@inlined
def store_state(state, e, s, z, grid):
    """The inverse of `load_state`."""
    rows = grid.first_row[grid.segments]
    intervals = rows - grid.segments
    for k in range(6):
        state[6 * (intervals + rows) + k] = z[k] + s[0, k]
        for i in range(rows):
            state[6 * (intervals + i) + k] = s[i, k]
        for a in range(grid.segments):
            for i in range(grid.first_row[a] + 1, grid.first_row[a + 1]):
                state[6 * (i - a - 1) + k] = e[i, k]


@inlined
def tip_pose(pose, s, section, body, grid, fittings):
    """Pose (12,) of the tip cap's outer face in the base frame, rows of (3, 4), eq. (29); NaN where
    the rod turns too far in a sub-interval."""
    like = s[0, 0]
    rotation = local(like, (3, 3))
    position = local(like, (3,))
    room = (local(like, (6,)), local(like, (6,)), local(like, (6,)), local(like, (6,)))
    start_pose(rotation, position, like)
    position[2] = body.base_height + 0.0 * like
    for a in range(grid.segments):
        if fittings is not None:  # noqa: SIM102  (numba leaves out what hangs on None alone)
            if a > 0:
                cross_connector(
                    rotation, position, fittings.adjoint[a - 1], fittings.translation[a - 1]
                )
        part = part_of(room, a, section, grid)
        for i in range(grid.first_row[a], grid.first_row[a + 1] - 1):
            walk_interval(rotation, position, s, i, part, grid)
    left = LARGEST_TURN * LARGEST_TURN - largest_turn(s, section, grid)
    for r in range(3):
        for c in range(3):
            pose[4 * r + c] = nan_unless_positive(rotation[r, c], left)
        along = position[r] + body.tip_cap_length * rotation[r, 2]
        pose[4 * r + 3] = nan_unless_positive(along, left)
