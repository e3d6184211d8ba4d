"""The slope of each pressure sensor against a second gauge."""

from collections.abc import Sequence

import numpy as np

from softcr_hardware.commissioning.bench import Question
from softcr_hardware.commissioning.doses import filled
from softcr_hardware.commissioning.findings import Finding
from softcr_hardware.commissioning.record import StepRecord
from softcr_hardware.commissioning.session import Session, Step, found

_STEADY = 1.0  # [s] after filling
_LOOK = 0.3  # [s] before and after the gauge is read

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


def _run(session: Session) -> StepRecord:
    session.air(True)
    drive, names = session.drive, session.names
    sensors = [chamber.sensor for chamber in session.bench.station.chambers]
    ratios: list[float | None] = [None] * len(names)
    findings: list[Finding] = []
    unchecked: list[str] = []
    for channel, sensor in enumerate(session.answers()):
        name = session.valve_name(channel)
        base = np.nanmean(drive.rest(_LOOK).pressures[:, sensor])
        filled(session, channel)
        drive.hold(channel, _STEADY)
        first = drive.hold(channel, _LOOK).pressures[:, sensor]
        words = f"read the second gauge on the hose of {name}'s valve [kPa]; empty: there is none"
        answer = drive.wait(Question("gauge", words, channel), channel)
        last = drive.hold(channel, _LOOK).pressures[:, sensor]
        drive.exhaust()
        gauge = gauge_reading(answer)
        if gauge is None:
            unchecked.append(names[sensor])
            continue
        reading = float(np.nanmean(np.concatenate([first, last])) - base)
        slope = sensors[sensor].pascal_per_volt
        ratios[sensor], wrong = slope_ratio(reading, gauge, slope, names[sensor])
        findings += wrong
    if unchecked:
        findings += unchecked_words(unchecked)
    lines = [
        f"{name}: {ratio * sensor.pascal_per_volt / 1e3:.2f} kPa/V"
        for name, ratio, sensor in zip(names, ratios, sensors, strict=True)
        if ratio is not None
    ]
    return found(findings, lines, ratios=ratios)


STEP = Step("slope", "slope of the sensors against a second gauge", _run, daily=False)
