"""CUDA kernels of the rod: a thread advances one candidate over the whole horizon.

The counterpart of `rod.stepper`, which does the same on SIMD lanes; equations, method, parameters
and tip pose are its functions and those of `rod.rosenbrock`, see `device_functions`. What the
threads share (robot, grid) is frozen into a kernel, so one serves one rod.
"""

import math
from collections.abc import Callable

import numpy as np
from numba import cuda

from softcr_models.cuda.device_functions import DeviceFunctions
from softcr_models.rod import rosenbrock, stepper
from softcr_models.rod.kernel import Grid, Section
from softcr_models.rod.stepper import Body


def rollout_text(body: Body, grid: Grid, dtype: type[np.floating]) -> Callable:
    """The kernel that advances candidates, not yet compiled; computes in `dtype`.

    Its arguments:
        states: (B, 12 (n + 1)), or (1, ...) for all.
        pressures: (B, T + 1, m) [Pa] at begin and end of the steps, linear in between.
        parameters: (B, 3), or (1, 3) for all.
        pieces: equal parts of a step, each with a linearisation of its own.
        substeps: (attempts,) of a piece, see `rosenbrock.step`: the next number is tried where
            the last led out of the numbers.
        fresh: of `rosenbrock.step`.
        tips: 1 to write poses (3, 4), 0 to write states.
        again: 1 to do only candidates whose rows are NaN.
        dt: length of a step [s].
        out: (B, T, 12 (n + 1) or 12), written; NaN where the last attempt led out of the numbers.
    """
    n = grid.intervals
    functions = DeviceFunctions(n, dtype)
    shared = functions.number(grid)
    step = functions.of(rosenbrock.step)
    tip_pose = functions.of(stepper._tip_pose)
    load_state = functions.of(_load_state)
    store_state = functions.of(_store_state)
    row_of = functions.of(stepper._row_of)
    section_of = _section_of(body, n)
    local, number = functions.local, dtype
    nodes = n + 1
    actuation = body.actuation

    def rollout(states, pressures, parameters, pieces, substeps, fresh, tips, again, dt, out):
        candidate = cuda.grid(1)
        if candidate >= out.shape[0]:
            return
        steps, width = out.shape[1], out.shape[2]
        if again == 1 and math.isfinite(out[candidate, steps - 1, 0]):
            return
        like = number(0.0)
        e = local(like, (nodes, 6))
        s = local(like, (nodes, 6))
        z = local(like, (6,))
        w_begin = local(like, (6,))
        w_end = local(like, (6,))
        pose = local(like, (12,))
        compliance = local(like, (6,))
        stiffness = local(like, (6,))
        relaxation = local(like, (6,))
        rate = local(like, (6,))
        decay = local(like, (6,))
        density = local(like, (n,))
        length_per_mass = local(like, (n,))
        section = Section(compliance, stiffness, relaxation, rate, density, length_per_mass)
        piece_length = dt / pieces
        for attempt in range(substeps.shape[0]):
            parts = np.int16(substeps[attempt])  # float32 / int16 is float32, / int64 float64
            row = row_of(parameters, candidate)
            section_of(section, decay, parameters, row, piece_length / parts)
            load_state(e, s, z, states, row_of(states, candidate), n)
            for time in range(steps):
                for piece in range(pieces):
                    for k in range(6):
                        begin, change = 0.0, 0.0
                        for chamber in range(pressures.shape[2]):
                            pressure = pressures[candidate, time, chamber]
                            later = pressures[candidate, time + 1, chamber]
                            begin += actuation[k, chamber] * pressure
                            change += actuation[k, chamber] * (later - pressure)
                        w_begin[k] = begin + piece / pieces * change
                        w_end[k] = begin + (piece + 1) / pieces * change
                    step(
                        e, s, z, w_begin, w_end, number(piece_length), parts, fresh, decay,
                        section, shared,
                    )  # fmt: skip
                if tips == 1:
                    tip_pose(pose, s, section, body, shared)
                    for component in range(12):
                        out[candidate, time, component] = pose[component]
                else:
                    store_state(out, candidate, time, e, s, z, n)
            finite = True
            for component in range(width):
                finite = finite and math.isfinite(out[candidate, steps - 1, component])
            if finite:
                return
        for time in range(steps):
            for component in range(width):
                out[candidate, time, component] = math.nan

    return rollout


def tip_text(body: Body, grid: Grid, dtype: type[np.floating]) -> Callable:
    """The kernel that computes tip poses, not yet compiled; computes in `dtype`.

    Its arguments: states (B, 12 (n + 1)), parameters (B, 3) or (1, 3) for all, out (B, 12) written.
    """
    n = grid.intervals
    functions = DeviceFunctions(n, dtype)
    shared = functions.number(grid)
    tip_pose = functions.of(stepper._tip_pose)
    load_state = functions.of(_load_state)
    row_of = functions.of(stepper._row_of)
    section_of = _section_of(body, n)
    local, number = functions.local, dtype
    nodes = n + 1

    def tip_poses(states, parameters, out):
        candidate = cuda.grid(1)
        if candidate >= out.shape[0]:
            return
        like = number(0.0)
        e = local(like, (nodes, 6))
        s = local(like, (nodes, 6))
        six = local(like, (6,))
        compliance = local(like, (6,))
        density = local(like, (n,))
        pose = local(like, (12,))
        # a pose needs the compliance only
        section = Section(compliance, six, six, six, density, density)
        section_of(section, six, parameters, row_of(parameters, candidate), 0.0)
        load_state(e, s, six, states, candidate, n)
        tip_pose(pose, s, section, body, shared)
        for component in range(12):
            out[candidate, component] = pose[component]

    return tip_poses


def _section_of(body: Body, n: int) -> Callable:
    """Device function that fills a section and the decay of the base state, in float64 first."""
    functions = DeviceFunctions(n, np.float64)
    pack = functions.of(stepper._pack_section)
    local = functions.local
    packed = 30 + 2 * n

    @cuda.jit(device=True)
    def section_of(section, decay, parameters, row, substep):
        raw = local(0.0, (packed, 1))
        pack(raw, row, 0, parameters, body, substep)
        for k in range(6):
            section.compliance[k] = raw[k, 0]
            section.stiffness[k] = raw[6 + k, 0]
            section.relaxation[k] = raw[12 + k, 0]
            section.relaxation_rate[k] = raw[18 + k, 0]
            decay[k] = raw[24 + k, 0]
        for i in range(n):
            section.line_density[i] = raw[30 + i, 0]
            section.length_per_mass[i] = raw[30 + n + i, 0]

    return section_of


def _load_state(e, s, z, states, row, n):
    """Nodes from a state as `RodState` lays it out."""
    for k in range(6):
        e[0, k] = 0.0
        for i in range(n):
            e[i + 1, k] = states[row, 6 * i + k]
        for i in range(n + 1):
            s[i, k] = states[row, 6 * (n + i) + k]
        z[k] = states[row, 6 * (2 * n + 1) + k] - s[0, k]


def _store_state(out, candidate, time, e, s, z, n):
    """The inverse of `_load_state`."""
    for k in range(6):
        for i in range(n):
            out[candidate, time, 6 * i + k] = e[i + 1, k]
        for i in range(n + 1):
            out[candidate, time, 6 * (n + i) + k] = s[i, k]
        out[candidate, time, 6 * (2 * n + 1) + k] = z[k] + s[0, k]
