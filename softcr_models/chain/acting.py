"""From readings and what is remembered of them to the pressures that act on a rod, compiled.

All that is compiled of a chain stands here: numba's cache does not notice edits of another module.
The equations are written for numbers and for lanes of candidates alike, see `rod.kernel`.
"""

import math

import numba
import numpy as np
from numba.extending import register_jitable

from softcr_models.rod.compilation import lane_counts
from softcr_models.rod.simd import as_lanes, positive_part

_LANES, _ = lane_counts()  # of float64

LARGEST_WEIGHTS = 0.95
"""Of one chamber's stops, their sum: at 1 the pressure would not act at all inside the smallest
loop, and beyond it would push the other way [-]."""

HYSTERESIS, DEVIATIONS, HOSE, CREEP, ANGLES, STIFFNESS, MARKER, PARTS = range(8)
"""Places in `parts`, where the columns of each element's parameters begin; -1 without it."""


@register_jitable
def _follow(remembered, before, after, radii, behind, left):
    """What is remembered (m (J + K),), in place, a tick later, of readings (m,) at its ends.

    A stop follows the reading inside its radius. On a ramp of rate v the lag x' = (p - x) / tau is
    x+ = p+ - tau v + (x - p + tau v) exp(-dt / tau).

    Args:
        behind: (K,) tau / dt; left: (K,) exp(-dt / tau).
    """
    count, stops = after.shape[0], radii.shape[0]
    for i in range(count):
        change = after[i] - before[i]
        for j in range(stops):
            stop = remembered[i * stops + j] + change
            above, below = positive_part(stop - radii[j]), positive_part(-stop - radii[j])
            remembered[i * stops + j] = stop - above + below
        for k in range(behind.shape[0]):
            place = count * (stops + k) + i
            lag = behind[k] * change
            remembered[place] = (remembered[place] + lag) * left[k] - lag


@register_jitable
def tick_of(times, dt):
    """(K,) tau / dt and (K,) exp(-dt / tau) of lags in a tick, see `_follow`."""
    behind, left = np.empty(times.shape[0]), np.empty(times.shape[0])
    for k in range(times.shape[0]):
        behind[k], left[k] = times[k] / dt, math.exp(-dt / times[k])
    return behind, left


@numba.njit(cache=True, error_model="numpy")
def along(remembered, readings, dt, radii, times, found):
    """Fills `found` (B, T + 1, m (J + K)) with what is remembered along readings (B, T + 1, m); see
    `ChainMemory.along`."""
    behind, left = tick_of(times, dt)
    for b in range(readings.shape[0]):
        found[b, 0] = remembered
        for t in range(1, readings.shape[1]):
            found[b, t] = found[b, t - 1]
            _follow(found[b, t], readings[b, t - 1], readings[b, t], radii, behind, left)


@register_jitable
def _pack_weights(raw, lane, own, parts, stops, lags, turned):
    """Of parameters (P,) into column `lane`: weights of the stops (m J,) and of the lags (m K,),
    then the matrix (m, m) that turns chambers."""
    count = turned.shape[0]
    for i in range(count):
        total = 0.0
        for j in range(stops):
            weight = own[parts[HYSTERESIS] + j] + own[parts[DEVIATIONS] + i * stops + j]
            raw[i * stops + j, lane] = weight
            total += weight
        if total > LARGEST_WEIGHTS:
            for j in range(stops):
                raw[i * stops + j, lane] *= LARGEST_WEIGHTS / total
        for k in range(lags):
            is_hose = k == 0 and parts[HOSE] >= 0
            weight = own[parts[HOSE] + i] if is_hose else own[parts[CREEP]]
            raw[count * (stops + k) + i, lane] = weight
    for k in range(count):
        for i in range(count):
            turn = 1.0 if i == k else 0.0
            if parts[ANGLES] >= 0:
                turn += turned[k, i] * own[parts[ANGLES] + i]
            raw[count * (stops + lags + k) + i, lane] = turn


@register_jitable
def _act(acts, straight, felt, remembered, weights, stops, lags):
    """Pressures (m,) that act of what is felt (m,) and remembered; `straight` (m,) is room."""
    count = felt.shape[0]
    for i in range(count):
        pressure = felt[i]
        for j in range(stops):
            pressure -= weights[i * stops + j] * remembered[i * stops + j]
        for k in range(lags):
            place = count * (stops + k) + i
            pressure += weights[place] * remembered[place]
        straight[i] = pressure
    for k in range(count):
        first = count * (stops + lags + k)
        total = weights[first] * straight[0]
        for i in range(1, count):
            total += weights[first + i] * straight[i]
        acts[k] = total


@numba.njit(cache=True, error_model="numpy", nogil=True)
def acting_pressures(
    levels, remembered, gain, offset, dt, parameters, parts, turned, radii, times, found
):  # fmt: skip
    """Fills `found` (B, L, m) with the pressures that act, of a rod without a chain [Pa].

    With what a chamber's sensor reads, corrected by its gain and offset, p_i, stops s_ij, and how
    far it lags in hose, e_i, and creep, f_i,

        q_i = p_i - sum_j (h_j + d_ij) s_ij + b_i e_i + c f_i,

    where weights of hysteresis and creep are those of one material, and chambers turned by phi_i
    about the rod add the moments T (q phi), brought back to pressures that make the same wrench.

    Args:
        levels: (B, L, m) readings, `dt` apart, which are followed from the first one on; or
            (B, L, m (1 + J + K)): p_i, s_ij, then e_i and f_i as far as they are on [Pa].
        remembered: (m (J + K),) at the first of the readings.
        gain, offset: (m,) on what is read [-], [Pa].
        dt: [s].
        parameters: (B, P) or (1, P).
        parts: (7,) see `PARTS`.
        turned: (m, m) pressures that make the moment of a turned chamber, by 1 rad and 1 Pa [-].
        radii, times: (J,) of the stops [Pa], (K,) of the lags [s].
        found: (B, L, m).
    """
    lanes = _LANES
    batch, rows, count = found.shape
    stops, lags, size = radii.shape[0], times.shape[0], remembered.shape[0]
    follows = levels.shape[2] == count and size > 0
    behind, left = tick_of(times, dt)
    raw_weights = np.empty((size + count * count, lanes))
    raw_readings = np.empty((2, count, lanes))
    raw_felt, raw_straight = np.empty((count, lanes)), np.empty((count, lanes))
    raw_remembered, raw_acts = np.empty((size, lanes)), np.empty((count, lanes))
    readings, felt, straight, past, acts, weights = (
        as_lanes(raw_readings, _LANES), as_lanes(raw_felt, _LANES),
        as_lanes(raw_straight, _LANES), as_lanes(raw_remembered, _LANES),
        as_lanes(raw_acts, _LANES), as_lanes(raw_weights, _LANES),
    )  # fmt: skip
    for block in range((batch + lanes - 1) // lanes):
        first = block * lanes
        used = min(lanes, batch - first)
        if block == 0 or parameters.shape[0] > 1:
            for lane in range(lanes):
                row = min(first + lane, parameters.shape[0] - 1)
                _pack_weights(raw_weights, lane, parameters[row], parts, stops, lags, turned)
        for t in range(rows):
            now = t % 2
            for lane in range(lanes):
                level = levels[first + min(lane, used - 1), t]
                for i in range(count):
                    raw_readings[now, i, lane] = level[i]
                if not follows:
                    for i in range(size):
                        raw_remembered[i, lane] = level[count + i]
                elif t == 0:
                    for i in range(size):
                        raw_remembered[i, lane] = remembered[i]
            if follows and t > 0:
                _follow(past, readings[1 - now], readings[now], radii, behind, left)
            for i in range(count):
                felt[i] = gain[i] * readings[now, i] + offset[i]
            _act(acts, straight, felt, past, weights, stops, lags)
            for lane in range(used):
                for i in range(count):
                    found[first + lane, t, i] = raw_acts[i, lane]


@numba.njit(cache=True, error_model="numpy", nogil=True)
def to_marker(poses, offsets):
    """Poses (B, T, 12) of tips, rows of (3, 4), moved in place to a marker at offsets (B, 3) or
    (1, 3) in the frame of the tip [m]."""
    for b in range(poses.shape[0]):
        offset = offsets[b if offsets.shape[0] > 1 else 0]
        for t in range(poses.shape[1]):
            pose = poses[b, t]
            for r in range(0, 12, 4):
                moved = pose[r] * offset[0] + pose[r + 1] * offset[1] + pose[r + 2] * offset[2]
                pose[r + 3] += moved
