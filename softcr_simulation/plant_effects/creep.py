"""Creep: a part of what acts comes late."""

from softcr_models.room_kernels import compiled


@compiled
def late_share(pressure, late, shares, decays):
    """The pressure that acts after a sub-step [Pa]: p + sum_k share_k (late_k - p).

    Each `late` (C,) is moved: it goes to the pressure exponentially. At rest all of p acts.
    """
    acting = pressure
    for k in range(late.shape[0]):
        late[k] = pressure + (late[k] - pressure) * decays[k]
        acting += shares[k] * (late[k] - pressure)
    return acting
