"""Air in the hose between a valve, where pressure is measured, and its chamber."""

from softcr_models.room_kernels import compiled


@compiled
def through_hose(chamber, begin, end, decay, lag):
    """Pressure in the chamber after a sub-step [Pa], exact for a linear one at the valve.

    Args:
        chamber: pressure before [Pa].
        begin, end: at the valve, at begin and end of the sub-step [Pa].
        decay: exp(-pole * sub-step); 0 for a hose without volume.
        lag: 1 / (pole * sub-step).
    """
    if decay == 0.0:
        return end
    behind = lag * (end - begin)
    return end - behind + (chamber - begin + behind) * decay
