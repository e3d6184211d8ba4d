"""Air in the hose between a valve, where pressure is measured, and its chamber."""

from softcr_hardware.compilation import compiled


@compiled
def through_hose(chamber, begin, end, decay):
    """Pressure in the chamber after a sub-step [Pa].

    Args:
        chamber: pressure before [Pa].
        begin, end: at the valve, at begin and end of the sub-step [Pa].
        decay: exp(-pole * sub-step); 0 for a hose without volume.
    """
    if decay == 0.0:
        return end
    # exact for the mean held over the sub-step: second order
    mean = 0.5 * (begin + end)
    return mean + (chamber - mean) * decay
