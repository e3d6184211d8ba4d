"""From readings and what is remembered of them to the pressures that act on a rod, compiled."""

import numba

LARGEST_WEIGHTS = 0.95
"""Of one chamber's stops, their sum: at 1 the pressure would not act at all inside the smallest
loop, and beyond it would push the other way [-]."""

HYSTERESIS, DEVIATIONS, HOSE, CREEP, ANGLES, STIFFNESS, MARKER, PARTS = range(8)
"""Places in `parts`, where the columns of each element's parameters begin; -1 without it."""


@numba.njit(cache=True, error_model="numpy")
def acting_pressures(levels, parameters, parts, stops, turned, found):
    """Fills `found` (B, L, m) with the pressures that act, of a rod without a chain [Pa].

    With what a chamber's sensor reads, corrected by its gain and offset, p_i, stops s_ij, and how
    far it lags in hose, e_i, and creep, f_i,

        q_i = p_i - sum_j (h_j + d_ij) s_ij + b_i e_i + c f_i,

    where weights of hysteresis and creep are those of one material, and chambers turned by phi_i
    about the rod add the moments T (q phi), brought back to pressures that make the same wrench.

    Args:
        levels: (B, L, m (1 + J + K)) p_i, s_ij, then e_i and f_i as far as they are on [Pa].
        parameters: (B, P) or (1, P).
        parts: (7,) see `PARTS`.
        stops: J.
        turned: (m, m) pressures that make the moment of a turned chamber, by 1 rad and 1 Pa [-].
        found: (B, L, m).
    """
    batch, rows, count = found.shape
    hose, creep = parts[HOSE], parts[CREEP]
    in_hose = count * (1 + stops)
    crept = in_hose + count if hose >= 0 else in_hose
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
                if hose >= 0:
                    acts[i] += own[hose + i] * level[in_hose + i]
                if creep >= 0:
                    acts[i] += own[creep] * level[crept + i]
            if parts[ANGLES] >= 0:
                _turn(acts, own, parts[ANGLES], turned)


@numba.njit(cache=True, error_model="numpy")
def _turn(acts, own, first, turned):
    count = acts.shape[0]
    straight = acts.copy()
    for i in range(count):
        for k in range(count):
            acts[k] += turned[k, i] * own[first + i] * straight[i]
