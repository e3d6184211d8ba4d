"""Exact derivatives of what the kernels compute, by running their texts on `dual` lanes.

Each lane carries one direction in state, inputs and parameters.
"""

import numba
import numpy as np

from softcr_models.rod.borrowing import borrowed
from softcr_models.rod.compilation import COMPILE_OPTIONS
from softcr_models.rod.contact import Contacts, Obstacles
from softcr_models.rod.dual import tangent_of, value_of, with_tangent
from softcr_models.rod.inner import inlined
from softcr_models.rod.kernel import derivative, effective_masses
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
from softcr_models.rod.rosenbrock import CHECKS, step
from softcr_models.rod.section import (
    MAX_INPUTS,
    MAX_NODES,
    MAX_PACKED,
    MAX_SEGMENTS,
    MAX_TENDONS,
    Extras,
    Fittings,
    Grid,
    NodeLoads,
    Section,
)
from softcr_models.rod.simd import as_lanes, local
from softcr_models.rod.stepper import FLOAT64_LANES
from softcr_models.rod.tendon_coupling import Coupling, springs_of
from softcr_models.rod.tendons import base_actuation

MAX_STATES = 12 * MAX_NODES + 6
MAX_RESULTS = MAX_STATES + 12
MAX_PARAMETERS = MAX_SEGMENTS + 7
MAX_WRENCHES = 12 * MAX_NODES
MAX_PULLS = 2 * MAX_TENDONS


@inlined
def _fill(out, values, changes, first):
    """out[k] = values[k], with the lanes changes[first + k] as its change."""
    for k in range(values.shape[0]):
        change = changes[first + k]
        out[k] = with_tangent(values[k] + 0.0 * change, change)


@inlined
def _rates(result, e, s, z, w, section, decay, body, grid, fittings, extras, dt, substeps, fresh):
    """result: the state's derivative, then the wrench (6,) that the rod's base transmits."""
    like = s[0, 0]
    de = local(like, (MAX_NODES, 6))
    ds = local(like, (MAX_NODES, 6))
    base = local(like, (6,))
    rate = local(like, (6,))
    derivative(e, s, w[0], section, grid, extras, de, ds)
    base_actuation(base, s, w[0], section, grid, extras)
    size = 12 * grid.first_row[grid.segments] - 6 * grid.segments + 6
    for k in range(6):
        rate[k] = -(base[k] + z[k]) * section.relaxation_rate[0, k]
        result[size + k] = s[0, k] + section.relaxation[0, k] * ds[0, k] - base[k]
    store_state(result, de, ds, rate, grid)


@inlined
def _step(result, e, s, z, w, section, decay, body, grid, fittings, extras, dt, substeps, fresh):
    """result: the state after a step, then the tip's pose (12,) there."""
    check = local(s[0, 0], (CHECKS,))
    step(
        e, s, z, w[0], w[1], dt, substeps, fresh, decay, section, grid, extras, check
    )  # fmt: skip
    size = 12 * grid.first_row[grid.segments] - 6 * grid.segments + 6
    store_state(result, e, s, z, grid)
    tip_pose(result[size:], s, section, body, grid, fittings)


def _compiled_tangents(evaluate, extra_rows):
    """The function that writes values and changes of `evaluate` along all directions."""

    @numba.njit(**COMPILE_OPTIONS)
    def tangents(
        state, levels, parameters, body, grid, fittings, springs, loads, obstacles, dt, substeps,
        fresh, directions, values, out,
    ):  # fmt: skip
        body, grid = borrowed(body), borrowed(grid)
        fitted, loaded, near = borrowed(fittings), borrowed(loads), borrowed(obstacles)
        count, columns = directions.shape
        size, inputs = state.shape[0], levels.shape[1]
        places = body.actuation.shape[0]
        for block in range((count + FLOAT64_LANES - 1) // FLOAT64_LANES):
            raw = np.empty((columns, FLOAT64_LANES))
            for lane in range(FLOAT64_LANES):
                direction = min(block * FLOAT64_LANES + lane, count - 1)
                for column in range(columns):
                    raw[column, lane] = directions[direction, column]
            changes = as_lanes(raw, FLOAT64_LANES)
            like = with_tangent(0.0 * changes[0], 0.0 * changes[0])
            x = local(like, (MAX_STATES,))
            u = local(like, (2, MAX_INPUTS))
            p = local(like, (1, MAX_PARAMETERS))
            packed_wrench = local(like, (MAX_WRENCHES, 1))
            packed_pull = local(like, (MAX_PULLS, 1))
            packed = local(like, (MAX_PACKED, 1))
            flat = local(like, (MAX_PACKED,))
            w = local(like, (2, MAX_NODES, 6))
            result = local(like, (MAX_RESULTS,))
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
            _fill(x, state, changes, 0)
            _fill(u[0], levels[0], changes, size)
            _fill(u[1], levels[1], changes, size + inputs)
            _fill(p[0], parameters, changes, size + 2 * inputs)
            for level in range(2):
                pack_inputs(packed_wrench, packed_pull, level, 0, u[level], body, fitted)
                for place in range(places):
                    for k in range(6):
                        w[level, place, k] = packed_wrench[6 * (places * level + place) + k, 0]
            pack_section(packed, 0, 0, p, body, grid, dt / substeps)
            for row in range(section_rows(grid)):
                flat[row] = packed[row, 0]
            unpack_section(section, decay, tip_force, flat, grid)
            load_state(e, s, z, x, grid, fitted)
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
                tendons = fitted.tendon_inputs.shape[0]
                load_pulls(extras, packed_pull[:, 0], 0, tendons)
                effective_masses(extras.effective_mass, section, grid, fitted)
            evaluate(
                result, e, s, z, w, section, decay, body, grid, fitted, extras, dt, substeps, fresh
            )
            raw_out = np.empty((size + extra_rows, FLOAT64_LANES))
            lanes_out = as_lanes(raw_out, FLOAT64_LANES)
            for part in range(2):
                for row in range(size + extra_rows):
                    lanes_out[row] = value_of(result[row]) if part == 0 else tangent_of(result[row])
                for lane in range(min(FLOAT64_LANES, count - block * FLOAT64_LANES)):
                    for row in range(size + extra_rows):
                        if part == 0:
                            values[row] = raw_out[row, 0]
                        else:
                            out[block * FLOAT64_LANES + lane, row] = raw_out[row, lane]

    return tangents


_all_rates = _compiled_tangents(_rates, 6)
_all_steps = _compiled_tangents(_step, 12)


def rates_tangents(
    state: np.ndarray,
    inputs: np.ndarray,
    parameters: np.ndarray,
    body: Body,
    grid: Grid,
    fittings: Fittings | None,
    loads: NodeLoads | None,
    obstacles: Obstacles | None,
    directions: np.ndarray,
) -> tuple[np.ndarray, np.ndarray]:
    """The state's derivative and the transmitted wrench at the base, and their changes.

    Args:
        state: (nx,); inputs: (m,); parameters: (P,).
        directions: (J, nx + m + P) changes of state, inputs and parameters.

    Returns:
        (nx + 6,) values and (J, nx + 6) changes.
    """
    m = len(inputs)
    split = np.cumsum([len(state), m])
    x, u, p = np.split(directions, split, axis=1)
    ways = np.ascontiguousarray(np.concatenate((x, u, np.zeros_like(u), p), axis=1))
    levels = np.ascontiguousarray(np.broadcast_to(inputs, (2, m)))
    values = np.empty(len(state) + 6)
    out = np.empty((len(directions), len(state) + 6))
    _all_rates(
        state, levels, parameters, body, grid, fittings, springs_of(fittings), loads, obstacles,
        1.0, 1, 0, ways, values, out,
    )  # fmt: skip
    return values, out


def step_tangents(
    state: np.ndarray,
    levels: np.ndarray,
    parameters: np.ndarray,
    body: Body,
    grid: Grid,
    fittings: Fittings | None,
    loads: NodeLoads | None,
    obstacles: Obstacles | None,
    dt: float,
    substeps: int,
    fresh: int,
    directions: np.ndarray,
) -> tuple[np.ndarray, np.ndarray]:
    """The state after a step and the tip's pose there, and their changes.

    Args:
        state: (nx,); levels: (2, m) inputs at begin and end; parameters: (P,).
        dt, substeps: of the step [s, -].
        fresh: 1 to linearise in every sub-step, 0 to do it once.
        directions: (J, nx + 2 m + P) changes of state, inputs at begin and end, parameters.

    Returns:
        (nx + 12,) values and (J, nx + 12) changes.
    """
    values = np.empty(len(state) + 12)
    out = np.empty((len(directions), len(state) + 12))
    _all_steps(
        state, levels, parameters, body, grid, fittings, springs_of(fittings), loads, obstacles, dt,
        substeps, fresh, directions, values, out,
    )  # fmt: skip
    return values, out
