"""What happens to a filled chamber when frames stop, and when the deadman's switch is released."""

import math

from softcr_hardware.commissioning.findings import Finding

EMPTY = 1000.0
"""A chamber below has vented [Pa]."""
SOON = 1.0
"""Within so much after the watchdog's time it must have [s]."""


def silence_findings(before: float, after: float, watchdog: float, name: str) -> list[Finding]:
    """What the terminals' watchdog did.

    Args:
        before: pressure when frames stopped [Pa].
        after: pressure when they came again [Pa].
        watchdog: of the station file [s].
        name: of the chamber.
    """
    if before < 2.0 * EMPTY:
        return [Finding(words=f"{name}: {before / 1e3:.1f} kPa are too little to see it vent")]
    if abs(after) <= EMPTY:
        return []
    return [
        Finding(
            words=f"without frames {name} keeps {after / 1e3:.1f} of {before / 1e3:.1f} kPa: after "
            f"the watchdog's {1e3 * watchdog:.0f} ms the terminal does not open the exhaust (its "
            "safe value, or the setting that keeps the last one)"
        )
    ]


def release_findings(seconds: float, name: str) -> list[Finding]:
    """What the deadman's switch did: `seconds` from the question to vented; infinite for never."""
    if math.isfinite(seconds):
        return []
    return [
        Finding(
            words=f"{name} stayed filled: the deadman's switch was not released or not received"
        )
    ]
