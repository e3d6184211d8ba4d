"""The slope of each sensor against a second gauge."""

import numpy as np

from softcr_hardware.commissioning.bench import Question
from softcr_hardware.commissioning.doses import filled
from softcr_hardware.commissioning.findings import Finding
from softcr_hardware.commissioning.record import StepRecord
from softcr_hardware.commissioning.session import Session, Step, found
from softcr_hardware.commissioning.slope import gauge_reading, slope_ratio, unchecked_words

_STEADY = 1.0  # [s] after filling
_LOOK = 0.3  # [s] before and after the gauge is read


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
