"""The implicit state equation of the rod, in plain numpy: an oracle, any dtype."""

import numpy as np

from softcr_models.rod.backbone import gravity_over_interval, midpoint, part_of
from softcr_models.rod.contact import Obstacles, add_force
from softcr_models.rod.contact import forces as contact_forces
from softcr_models.rod.evaluation import point_of
from softcr_models.rod.kernel import balance, compatibility, loaded_balance, multiply_inertia
from softcr_models.rod.loads import add_body_force, survey
from softcr_models.rod.packing import Body, load_state
from softcr_models.rod.section import MAX_NODES, MAX_SEGMENTS, Fittings, Grid, NodeLoads
from softcr_models.rod.simd import local
from softcr_models.rod.stiffening import add_unresisted
from softcr_models.rod.twists import add_transposed_product


def residual(
    state: np.ndarray,
    state_rate: np.ndarray,
    inputs: np.ndarray,
    parameters: np.ndarray,
    body: Body,
    grid: Grid,
    fittings: Fittings | None,
    loads: NodeLoads | None,
    obstacles: Obstacles | None,
) -> np.ndarray:
    """(nx,) right minus left sides of the implicit state equation (19).

    Args:
        state, state_rate: (nx,), inputs: (m,), of one dtype; parameters: (P,).
        body, grid, fittings, loads, obstacles: of the rod.

    Returns:
        Compatibility then balance of each interval, the ends of the segments from base to tip, the
        transmission condition at the base.
    """
    point = point_of(state, inputs, parameters, body, grid, fittings, loads, obstacles)
    e, s, z, w, section, extras = point
    de, ds, base_rate = np.empty_like(e), np.empty_like(s), np.empty_like(z)
    load_state(de, ds, base_rate, state_rate, grid, fittings)
    intervals = np.zeros((len(s), 2, 6), s.dtype)
    ends = np.zeros((grid.segments, 6), s.dtype)
    actuation = implicit_residual(e, s, de, ds, w, section, grid, extras, intervals, ends)
    at_base = -actuation - z - section.relaxation[0] * base_rate
    inner = np.delete(intervals, grid.first_row[1:] - 1, axis=0)
    return np.concatenate((inner.ravel(), ends.ravel(), at_base))


def implicit_residual(e, s, de, ds, w, section, grid, extras, intervals, ends):
    """Implicit state equation (19) as in `kernel`'s heading, right minus left sides.

    Writes intervals (R, 2, 6), compatibility and balance, and ends (K, 6).

    Returns:
        (6,) what acts at the base as in `base_actuation`.
    """
    like = s[0, 0]
    tip = grid.segments - 1
    strain = local(like, (6,))
    velocity = local(like, (6,))
    acceleration = local(like, (6,))
    stress = local(like, (6,))
    momentum = local(like, (6,))
    row = local(like, (6,))
    acting = local(like, (MAX_NODES, 6))
    mean_up = local(like, (MAX_NODES, 3))
    end_up = local(like, (MAX_SEGMENTS, 3))
    forces = local(like, (MAX_NODES, 6))
    stream = local(like, (MAX_NODES, 3))
    up = local(like, (3,))
    room = (local(like, (6,)), local(like, (6,)), local(like, (6,)), local(like, (6,)))
    if extras is not None:
        survey(acting, mean_up, end_up, forces, stream, s, w, section, grid, extras)
        touched = extras.obstacles, extras.contacts
        contact_forces(*touched, e, s, section, grid, extras.fittings)
    for k in range(3):
        up[k] = grid.gravity[k] + 0.0 * like
    for a in range(grid.segments):
        first, end = grid.first_row[a], grid.first_row[a + 1] - 1
        part = part_of(room, a, section, grid)
        for i in range(first, end):
            compatibility(row, strain, stress, velocity, e, s, i, part)
            for k in range(6):
                row[k] -= 0.5 * part.compliance[k] * (ds[i, k] + ds[i + 1, k])
                intervals[i, 0, k] = row[k]
            if extras is None:
                gravity_over_interval(mean_up[i], up, s, i, part, grid)
                balance(row, strain, stress, velocity, s, ds, w[a], mean_up[i], i, part, section)
            else:
                loaded_balance(
                    row, strain, stress, velocity, s, ds, acting, mean_up, forces, stream, i, a,
                    part, section, grid, extras,
                )  # fmt: skip
                add_force(row, i, *touched)
            midpoint(acceleration, de, i)
            multiply_inertia(momentum, acceleration, i, part, section)
            for k in range(6):
                intervals[i, 1, k] = row[k] - momentum[k]
        _residual_of_end(
            ends[a], e, s, de, ds, w, section, grid, extras, acting, end_up, forces, a, tip
        )
    base = (w[0] if extras is None else acting[0]) + 0.0 * like
    if grid.stiffens > 0:
        add_unresisted(base, s, 0, section.compliance[0], section)
    return base


def _residual_of_end(ends, e, s, de, ds, w, section, grid, extras, acting, end_up, forces, a, tip):
    """Of the row "end" of segment a; plain numpy alone calls it."""
    end = grid.first_row[a + 1] - 1
    actuation = w if extras is None else acting
    here, there = (a, a + 1) if extras is None else (end, end + 1)
    row = actuation[here] - s[end] - section.relaxation[a] * ds[end]
    beyond = 0.0 * row
    if a < tip:
        beyond = s[end + 1] + section.relaxation[a + 1] * ds[end + 1] - actuation[there]
    if grid.stiffens > 0:
        add_unresisted(row, s, end, section.compliance[a], section)
        if a < tip:
            rest = np.zeros_like(row)
            add_unresisted(rest, s, end + 1, section.compliance[a + 1], section)
            beyond = beyond - rest
    if extras is None:
        ends[:] = row + beyond
        return
    if extras.loads.acting == 1:
        row = row + forces[end]
    add_body_force(row, e[end], end_up[a], extras.fittings.mass[a])
    if a == tip:
        add_force(row, end, extras.obstacles, extras.contacts)
    add_transposed_product(row, extras.fittings.adjoint[a], beyond)
    ends[:] = row - extras.fittings.mass[a] @ de[end]
