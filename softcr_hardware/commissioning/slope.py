"""Slope of the pressure sensors against a second gauge."""

from collections.abc import Sequence

from softcr_hardware.commissioning.findings import Finding

MOST_ERROR = 0.03
"""A slope that is off by less is as the file has it, or as the second gauge can tell [-]."""
RANGE = (0.2, 5.0)
"""Of slopes over the file's that a file may have; beyond, another sensor is meant [-]."""
LEAST_GAUGE = 2000.0
"""The second gauge must show so much for a comparison [Pa]."""


def slope_ratio(
    reading: float, gauge: float, slope: float, name: str
) -> tuple[float | None, list[Finding]]:
    """True slope over the file's.

    Args:
        reading: of the sensor, less its own at rest [Pa].
        gauge: of the second gauge at the same time [Pa].
        slope: of the file [Pa/V].
        name: of the chamber whose sensor it is.

    Returns:
        The ratio, below 0 for a wrong sign, None where there is none; and what is wrong.
    """
    here = f"the sensor of {name}"
    if gauge < LEAST_GAUGE:
        return None, [
            Finding(
                words=f"{here}: the second gauge shows {gauge / 1e3:.1f} kPa, must be above "
                f"{LEAST_GAUGE / 1e3:.0f}: is it on this hose?"
            )
        ]
    if abs(reading) < gauge / RANGE[1]:
        return None, [Finding(words=f"{here} shows {reading / 1e3:.1f} of {gauge / 1e3:.1f} kPa")]
    ratio = gauge / reading
    if ratio < 0.0:
        return ratio, []  # the wrong sign is told where it is seen first
    if abs(ratio - 1.0) <= MOST_ERROR:
        return ratio, []
    words = (
        f"the slope of the sensor of {name} is {ratio * slope / 1e3:.1f} kPa/V, the file has "
        f"{slope / 1e3:.1f}"
    )
    if not RANGE[0] <= ratio <= RANGE[1]:
        return None, [Finding(words=f"{words}: another sensor?")]
    return ratio, [Finding(words=words, mend="file")]


def gauge_reading(answer: str) -> float | None:
    """What a person typed [kPa] as pressure [Pa]; None for nothing that is one."""
    try:
        kilopascal = float(answer.replace(",", "."))
    except ValueError:
        return None
    return 1e3 * kilopascal if -100.0 < kilopascal < 1000.0 else None


def unchecked_words(names: Sequence[str]) -> list[Finding]:
    """When no second gauge was read."""
    listed = ", ".join(names)
    return [Finding(words=f"the slope of the sensors of {listed} was compared with no gauge")]
