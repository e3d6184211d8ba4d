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
from softcr_models.rod import kernel, packing, rosenbrock, stepper
from softcr_models.rod.cosserat_rod import CosseratRod
from softcr_models.rod.section import Extras, Section


def rollout_text(rod: CosseratRod, dtype: type[np.floating]) -> Callable:
    """The kernel that advances candidates, not yet compiled; computes in `dtype`.

    Its arguments:
        states: (B, nx), or (1, nx) for all.
        inputs: (B, T + 1, m) [Pa, N] at begin and end of the steps, linear in between.
        parameters: (B, P), or (1, P) for all.
        pieces: equal parts of a step, each with a linearisation of its own.
        substeps: (attempts,) of a piece, see `rosenbrock.step`: the next number is tried where
            the last led out of the numbers.
        fresh: of `rosenbrock.step`.
        tips: 1 to write poses (3, 4), 0 to write states.
        again: 1 to do only candidates whose rows are NaN.
        dt: length of a step [s].
        out: (B, T, nx or 12), written; NaN where the last attempt led out of the numbers.
    """
    functions = _functions(rod, dtype)
    shared, fittings = functions.number(rod.grid), functions.number(rod.fittings)
    loads, body = functions.number(rod.loads), rod.body
    step = functions.of(rosenbrock.step)
    tip_pose = functions.of(packing.tip_pose)
    load_state = functions.of(packing.load_state)
    store_state = functions.of(packing.store_state)
    load_tensions = functions.of(packing.load_tensions)
    effective_masses = functions.of(kernel.effective_masses)
    positive_part = functions.of(packing.positive_part)
    row_of = functions.of(stepper._row_of)
    section_of = _section_of(rod)
    local, number = functions.local, dtype
    rows, segments = int(rod.grid.first_row[-1]), rod.segments
    places, tendons = body.actuation.shape[0], functions.tendons
    actuation, pulls = body.actuation, body.pulls
    pulled = fittings.tendon_inputs if tendons else None
    room = max(1, tendons)
    twice = 2 * room

    def rollout(states, inputs, parameters, pieces, substeps, fresh, tips, again, dt, out):
        candidate = cuda.grid(1)
        if candidate >= out.shape[0]:
            return
        steps, width = out.shape[1], out.shape[2]
        if again == 1 and math.isfinite(out[candidate, steps - 1, 0]):
            return
        like = number(0.0)
        e = local(like, (rows, 6))
        s = local(like, (rows, 6))
        z = local(like, (6,))
        w_begin = local(like, (rows, 6))
        w_end = local(like, (rows, 6))
        pose = local(like, (12,))
        section = Section(
            local(like, (segments, 6)),
            local(like, (segments, 6)),
            local(like, (segments, 6)),
            local(like, (segments, 6)),
            local(like, (rows,)),
            local(like, (rows,)),
            local(like, (1,)),
            local(like, (1,)),
        )
        decay = local(like, (6,))
        tip_force = local(like, (3,))
        tension = local(like, (twice,))
        if fittings is None:
            extras = None
        else:
            extras = Extras(
                fittings,
                loads,
                local(like, (rows, 6, 6)),
                tip_force,
                local(like, (room,)),
                local(like, (room,)),
                local(like, (room,)),
                None,
                None,
            )
        piece_length = dt / pieces
        for attempt in range(substeps.shape[0]):
            parts = np.int16(substeps[attempt])  # float32 / int16 is float32, / int64 float64
            row = row_of(parameters, candidate)
            section_of(section, decay, tip_force, parameters, row, piece_length / parts)
            load_state(e, s, z, states[row_of(states, candidate)], shared, fittings)
            if fittings is not None:
                effective_masses(extras.effective_mass, section, shared, fittings)
            for time in range(steps):
                now, later = inputs[candidate, time], inputs[candidate, time + 1]
                for piece in range(pieces):
                    begins, ends = piece / pieces, (piece + 1) / pieces
                    for place in range(places):
                        for k in range(6):
                            begin, change = 0.0, 0.0
                            for i in range(inputs.shape[2]):
                                first, last = now[i], later[i]
                                if pulls[i] == 1:
                                    first, last = positive_part(first), positive_part(last)
                                begin += actuation[place, k, i] * first
                                change += actuation[place, k, i] * (last - first)
                            w_begin[place, k] = begin + begins * change
                            w_end[place, k] = begin + ends * change
                    for tendon in range(tendons):
                        first = positive_part(now[pulled[tendon]])
                        change = positive_part(later[pulled[tendon]]) - first
                        tension[tendon] = first + begins * change
                        tension[room + tendon] = first + ends * change
                    if fittings is not None:
                        load_tensions(extras, tension, 0, room)
                    step(
                        e, s, z, w_begin, w_end, number(piece_length), parts, fresh, decay,
                        section, shared, extras,
                    )  # fmt: skip
                if tips == 1:
                    tip_pose(pose, s, section, body, shared, fittings)
                    for component in range(12):
                        out[candidate, time, component] = pose[component]
                else:
                    store_state(out[candidate, time], e, s, z, shared)
            finite = True
            for component in range(width):
                finite = finite and math.isfinite(out[candidate, steps - 1, component])
            if finite:
                return
        for time in range(steps):
            for component in range(width):
                out[candidate, time, component] = math.nan

    return rollout


def tip_text(rod: CosseratRod, dtype: type[np.floating]) -> Callable:
    """The kernel that computes tip poses, not yet compiled; computes in `dtype`.

    Its arguments: states (B, nx), parameters (B, P) or (1, P) for all, out (B, 12) written.
    """
    functions = _functions(rod, dtype)
    shared, fittings, body = functions.number(rod.grid), functions.number(rod.fittings), rod.body
    tip_pose = functions.of(packing.tip_pose)
    load_state = functions.of(packing.load_state)
    row_of = functions.of(stepper._row_of)
    section_of = _section_of(rod)
    local, number = functions.local, dtype
    rows, segments = int(rod.grid.first_row[-1]), rod.segments

    def tip_poses(states, parameters, out):
        candidate = cuda.grid(1)
        if candidate >= out.shape[0]:
            return
        like = number(0.0)
        e = local(like, (rows, 6))
        s = local(like, (rows, 6))
        six = local(like, (6,))
        density = local(like, (rows,))
        pose = local(like, (12,))
        section = Section(
            local(like, (segments, 6)),
            local(like, (segments, 6)),
            local(like, (segments, 6)),
            local(like, (segments, 6)),
            density,
            density,
            density,
            density,
        )
        section_of(section, six, six, parameters, row_of(parameters, candidate), 0.0)
        load_state(e, s, six, states[candidate], shared, fittings)
        tip_pose(pose, s, section, body, shared, fittings)
        for component in range(12):
            out[candidate, component] = pose[component]

    return tip_poses


def _functions(rod: CosseratRod, dtype: type[np.floating]) -> DeviceFunctions:
    tendons = 0 if rod.fittings is None else len(rod.fittings.tendon_inputs)
    return DeviceFunctions(rod.grid, tendons, dtype)


def _section_of(rod: CosseratRod) -> Callable:
    """Device function that fills a section, the decay of the base state and the force at the tip;
    in float64 first."""
    functions = _functions(rod, np.float64)
    pack = functions.of(packing.pack_section)
    unpack = functions.of(packing.unpack_section)
    local, grid, body = functions.local, rod.grid, rod.body
    packed = packing.section_rows(grid)

    @cuda.jit(device=True)
    def section_of(section, decay, tip_force, parameters, row, substep):
        raw = local(0.0, (packed, 1))
        pack(raw, row, 0, parameters, body, grid, substep)
        unpack(section, decay, tip_force, raw[:, 0], grid)

    return section_of
