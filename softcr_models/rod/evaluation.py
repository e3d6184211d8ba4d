"""Compiled evaluation of one rod's equations: rates, wrenches and poses along the backbone."""

from typing import NamedTuple

import numba
import numpy as np

from softcr_models.rod.backbone import start_pose
from softcr_models.rod.compilation import COMPILE_OPTIONS
from softcr_models.rod.contact import Contacts, Obstacles, touch
from softcr_models.rod.inner import inner
from softcr_models.rod.kernel import derivative, effective_masses
from softcr_models.rod.packing import (
    Body,
    load_state,
    pack_inputs,
    pack_section,
    section_rows,
    store_state,
    unpack_section,
)
from softcr_models.rod.section import Extras, Fittings, Grid, NodeLoads, Section
from softcr_models.rod.tendons import base_actuation
from softcr_models.rod.twists import LARGEST_TURN, advance_pose, cross_connector


class Point(NamedTuple):
    """One state, its inputs and parameters as the kernels take them, see `kernel`.

    Attributes:
        e, s: (R, 6); z: (6,) base state x2(0-) - x2(0+).
        w: (A, 6) actuation wrench.
        section, extras: of the parameters.
    """

    e: np.ndarray
    s: np.ndarray
    z: np.ndarray
    w: np.ndarray
    section: Section
    extras: Extras | None


@inner
def contacts_of(obstacles, rows, like):
    """Room for what touches, or None without obstacles."""
    if obstacles is None:
        return None
    return Contacts(
        np.zeros((rows, 3), like.dtype),
        np.zeros((rows, 3, 3), like.dtype),
        np.zeros((rows, 3, 3), like.dtype),
        np.zeros((rows, 3), like.dtype),
        np.zeros((4, rows, 3), like.dtype),
        np.zeros(1, like.dtype),
    )


@inner
def point_of(state, inputs, parameters, body, grid, fittings, loads, obstacles):
    """The point of a state (nx,), inputs (m,) and parameters (P,); in plain numpy of any dtype."""
    rows, count = grid.first_row[grid.segments], grid.segments
    like = state[:1]
    packed = np.empty((section_rows(grid), 1), like.dtype)
    pack_section(packed, 0, 0, parameters.reshape(1, -1), body, grid, 0.0)
    section = Section(
        np.empty((count, 6), like.dtype),
        np.empty((count, 6), like.dtype),
        np.empty((count, 6), like.dtype),
        np.empty((count, 6), like.dtype),
        np.empty(rows, like.dtype),
        np.empty(rows, like.dtype),
        np.empty(1, like.dtype),
        np.empty(2, like.dtype),
    )
    tip_force = np.empty(3, like.dtype)
    unpack_section(section, np.empty(6, like.dtype), tip_force, packed[:, 0], grid)
    places, tendons = body.actuation.shape[0], 0
    if fittings is not None:
        tendons = fittings.tendon_inputs.shape[0]
    raw_wrench = np.empty((6 * places, 1), like.dtype)
    pulls = np.empty((tendons, 1), like.dtype)
    pack_inputs(raw_wrench, pulls, 0, 0, inputs, body, fittings)
    e = np.empty((rows, 6), like.dtype)
    s = np.empty((rows, 6), like.dtype)
    z = np.empty(6, like.dtype)
    load_state(e, s, z, state, grid, fittings)
    if fittings is None:
        extras = None
    else:
        extras = Extras(
            fittings,
            loads,
            np.zeros((rows, 6, 6), like.dtype),
            tip_force,
            np.empty(tendons, like.dtype),
            pulls[:, 0],
            pulls[:, 0],
            pulls[:, 0],
            None,
            obstacles,
            contacts_of(obstacles, rows, like),
        )
        effective_masses(extras.effective_mass, section, grid, fittings)
    return Point(e, s, z, raw_wrench.reshape(places, 6), section, extras)


@inner
def rates_at(point, grid, size):
    """The state's derivative (size,) and the wrench (6,) that the rod's base transmits."""
    e, s, z, w, section, extras = point
    de = np.empty_like(e)
    ds = np.empty_like(s)
    derivative(e, s, w, section, grid, extras, de, ds)
    base = np.empty(6, s.dtype)
    base_actuation(base, s, w, section, grid, extras)
    out = np.empty(size, s.dtype)
    store_state(out, de, ds, -(base + z) * section.relaxation_rate[0], grid)
    return out, s[0] + section.relaxation[0] * ds[0] - base


@numba.njit(**COMPILE_OPTIONS)
def rates(
    state: np.ndarray,
    inputs: np.ndarray,
    parameters: np.ndarray,
    body: Body,
    grid: Grid,
    fittings: Fittings | None,
    loads: NodeLoads | None,
    obstacles: Obstacles | None,
) -> tuple[np.ndarray, np.ndarray]:
    """The state's derivative (nx,) and the wrench (6,) that the rod's base transmits.

    Args:
        state: (nx,); inputs: (m,); parameters: (P,).
        body, grid, fittings, loads, obstacles: of the rod.
    """
    point = point_of(state, inputs, parameters, body, grid, fittings, loads, obstacles)
    return rates_at(point, grid, state.size)


@numba.njit(**COMPILE_OPTIONS)
def poses_along(
    s: np.ndarray,
    compliance: np.ndarray,
    grid: Grid,
    fittings: Fittings | None,
    base_height: float,
    segments: np.ndarray,
    arc_lengths: np.ndarray,
) -> np.ndarray:
    """Poses of the backbone, strains constant in each sub-interval of Algorithm 1.

    Args:
        s: (R, 6) elastic wrenches of the rows; compliance: (K, 6).
        base_height: of the rod's base in the frame of the result [m].
        segments: (J,) segment of each point, ascending.
        arc_lengths: (J,) from that segment's beginning, ascending in each of them [m].

    Returns:
        (J, 4, 4); NaN where the rod turns by more than a quarter turn in a sub-interval.
    """
    rotation = np.empty((3, 3))
    position = np.empty(3)
    here_rotation = np.empty((3, 3))
    here_position = np.empty(3)
    strain = np.empty(6)
    out = np.zeros((arc_lengths.size, 4, 4))
    start_pose(rotation, position, 0.0)
    position[2] = base_height
    pieces = grid.gravity_subintervals
    point = 0
    for a in range(grid.segments):
        if fittings is not None:  # noqa: SIM102  (numba leaves out what hangs on None alone)
            if a > 0:
                cross_connector(
                    rotation, position, fittings.adjoint[a - 1], fittings.translation[a - 1]
                )
        first = grid.first_row[a]
        step = grid.interval_length[a] / pieces
        total = (grid.first_row[a + 1] - 1 - first) * pieces
        current = 0
        while current < total or (point < segments.size and segments[point] == a):
            piece = min(current, total - 1)
            i = first + piece // pieces
            fraction = (piece % pieces + grid.strain_point) / pieces
            for k in range(6):
                strain[k] = compliance[a, k] * (s[i, k] + fraction * (s[i + 1, k] - s[i, k]))
            strain[2] += 1.0
            turn = step * step * (strain[3] ** 2 + strain[4] ** 2 + strain[5] ** 2)
            if not turn < LARGEST_TURN * LARGEST_TURN:
                rotation[:] = np.nan
            while point < segments.size and segments[point] == a:
                target = min(int(arc_lengths[point] / step + 1e-9), total)
                if target > current:
                    break
                here_rotation[:] = rotation
                here_position[:] = position
                beyond = arc_lengths[point] - current * step
                advance_pose(here_rotation, here_position, strain, beyond)
                out[point, :3, :3] = here_rotation
                out[point, :3, 3] = here_position
                out[point, 3, 3] = 1.0
                point += 1
            if current < total:
                advance_pose(rotation, position, strain, step)
                current += 1
    return out


@numba.njit(**COMPILE_OPTIONS)
def contact_forces(state, parameters, body, grid, fittings, loads, obstacles):
    """(R, 3) forces of contact of intervals, at their lower row, and of the last node, body frame.

    Args:
        state: (nx,); parameters: (P,).
        body, grid, fittings, loads, obstacles: of the rod.
    """
    no_inputs = np.zeros(body.pulls.size)
    point = point_of(state, no_inputs, parameters, body, grid, fittings, loads, obstacles)
    contacts = contacts_of(obstacles, grid.first_row[grid.segments], state)
    touch(contacts, point.e, point.s, point.section, grid, fittings, obstacles, 0.0)
    return contacts.force
