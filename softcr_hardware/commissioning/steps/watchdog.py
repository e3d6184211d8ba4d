"""A dead host: frames stop while a chamber is filled; and a deadman's switch that is released."""

import math

import numpy as np

from softcr_hardware.commissioning.doses import filled
from softcr_hardware.commissioning.findings import Finding
from softcr_hardware.commissioning.record import StepRecord
from softcr_hardware.commissioning.session import Session, Step, found

_LOOK = 0.1  # [s]

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


def _run(session: Session) -> StepRecord:
    drive, bench = session.drive, session.bench
    if drive.reversed.any():
        words = "a dead host was not tried: a valve that is wired in reverse would fill its chamber"
        return found([Finding(words=words)])
    session.air(True)
    findings, lines = [], []
    for channel, sensor in enumerate(session.answers()):
        name = session.valve_name(channel)
        drive.rest(0.3)
        filled(session, channel)
        scale = session.scale(channel)
        before = scale * float(np.nanmean(drive.hold(channel, _LOOK).pressures[:, sensor]))
        sample = bench.silence(bench.station.watchdog + SOON)
        if sample is None:
            lines.append(f"{name}: the terminals say nothing without frames")
            drive.exhaust()
            continue
        after = scale * float(bench.data.pressures(sample.volts)[sensor])
        drive.exhaust()
        findings += silence_findings(before, after, bench.station.watchdog, name)
        lines.append(f"{name}: {before / 1e3:.1f} kPa, without frames {after / 1e3:.1f} kPa")
    return found(findings, lines)


STEP = Step("watchdog", "a dead host leaves no chamber filled", _run)
