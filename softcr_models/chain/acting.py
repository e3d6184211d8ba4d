"""From readings and what is remembered of them to the pressures that act on a rod, compiled."""

import numba

LARGEST_WEIGHTS = 0.95
"""Of one chamber's stops, their sum: at 1 the pressure would not act at all inside the smallest
loop, and beyond it would push the other way [-]."""

USUAL_CURVATURE = 15.0
"""At which the relative change of the bending compliance is the parameter [1/m]."""

SOFTEST, STIFFEST = 4.0, 0.25
"""Of the bending compliance, at most: a candidate that is far away stays sound [-]."""

HYSTERESIS, DEVIATIONS, LAGS, ANGLES, STIFFNESS, MARKER, PARTS = range(7)
"""Places in `parts`, where the columns of each element's parameters begin; -1 without it."""


@numba.njit(cache=True, error_model="numpy")
def acting_pressures(levels, parameters, parts, stops, turned, found):
    """Fills `found` (B, L, m) with the pressures that act, of a rod without a chain [Pa].

    With what a chamber's sensor reads, corrected by its gain and offset, p_i, stops s_ij and lags
    e_ki beside it,

        q_i = p_i - sum_j (h_j + d_ij) s_ij + sum_k c_ki e_ki,

    and chambers turned by phi_i about the rod add the moments T (q phi), brought back to pressures
    that make the same wrench.

    Args:
        levels: (B, L, m (1 + J + K)) p_i, s_ij, e_ki [Pa].
        parameters: (B, P) or (1, P).
        parts: (6,) see `PARTS`.
        stops: J.
        turned: (m, m) pressures that make the moment of a turned chamber, by 1 rad and 1 Pa [-].
        found: (B, L, m).
    """
    batch, rows, count = found.shape
    lags = levels.shape[2] // count - 1 - stops
    for b in range(batch):
        own = parameters[b if parameters.shape[0] > 1 else 0]
        for t in range(rows):
            level, acts = levels[b, t], found[b, t]
            for i in range(count):
                acts[i] = level[i]
                if stops > 0:
                    total, lost = 0.0, 0.0
                    for j in range(stops):
                        weight = own[parts[HYSTERESIS] + j] + own[parts[DEVIATIONS] + i * stops + j]
                        total += weight
                        lost += weight * level[count + i * stops + j]
                    if total > LARGEST_WEIGHTS:
                        lost *= LARGEST_WEIGHTS / total
                    acts[i] -= lost
                for k in range(lags):
                    weight = own[parts[LAGS] + k * count + i]
                    acts[i] += weight * level[count * (1 + stops + k) + i]
            if parts[ANGLES] >= 0:
                _turn(acts, own, parts[ANGLES], turned)


@numba.njit(cache=True, error_model="numpy")
def _turn(acts, own, first, turned):
    count = acts.shape[0]
    straight = acts.copy()
    for i in range(count):
        for k in range(count):
            acts[k] += turned[k, i] * own[first + i] * straight[i]


@numba.njit(cache=True, error_model="numpy")
def softened(states, parameters, change, moments, rows):
    """Fills `rows` (B, Q) with the rod's parameters at states of their own curvature.

    The first of them, the bending compliance c_b, is multiplied by
    1 + kappa mean((c_b m)^2) / (15/m)^2, of the bending moments m along the rod.

    Args:
        states: (B, nx) or (1, nx).
        parameters: (B, P) or (1, P), the rod's own first.
        change: column of kappa.
        moments: (2 R,) places of the R pairs of bending moments in a state.
        rows: (B, Q).
    """
    for b in range(rows.shape[0]):
        own = parameters[b if parameters.shape[0] > 1 else 0]
        state = states[b if states.shape[0] > 1 else 0]
        total = 0.0
        for place in moments:
            total += state[place] * state[place]
        square = 2.0 * total / moments.shape[0] * (own[0] / USUAL_CURVATURE) ** 2
        for k in range(rows.shape[1]):
            rows[b, k] = own[k]
        rows[b, 0] *= min(max(1.0 + own[change] * square, STIFFEST), SOFTEST)
