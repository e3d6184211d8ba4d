"""Whether every valve exhausts where it must: the first thing to know once the air is on.

All valves are closed, and one after the other opens a little towards its exhaust. A vented chamber
stays where it is; one whose valve is wired in reverse fills.
"""

import numpy as np

from softcr_hardware.commissioning.drive import Drive
from softcr_hardware.commissioning.findings import Finding
from softcr_hardware.commissioning.pulse import pulse_of
from softcr_hardware.commissioning.record import StepRecord
from softcr_hardware.commissioning.session import Session, Step, found

DOSE = 4000.0
"""What would come in, by the station file, were the valve wired in reverse [Pa]."""
RISES = 1000.0
"""A reading that changes by more does so because of air [Pa]."""

_OPENING = 0.08
_LOOK = 0.3  # [s]
_RINGING = 0.1  # [s] of the look that is left out


def find_reversed(drive: Drive) -> tuple[np.ndarray, list[Finding]]:
    """Which outputs drive a valve that is wired in reverse; afterwards `drive` knows them.

    Returns:
        (m,) by channel, and what is wrong beside them.

    Raises:
        Interrupted: see Drive.
    """
    begin = drive.rest(_LOOK)
    before = np.nanmean(begin.pressures, axis=0)
    drive.rest(_LOOK)
    shut = drive.rest(_LOOK)
    away = np.abs(np.nanmean(shut.pressures, axis=0) - before)
    if away.max() > RISES:
        name = drive.names[int(np.argmax(away))]
        return np.zeros(drive.count, bool), [
            Finding(
                words=f"the sensor of {name} moves by {away.max() / 1e3:.1f} kPa with all valves "
                "closed and the air on: shut the air off; a valve is stuck open, or the file's "
                "valve.closed is not where the valves are closed"
            )
        ]
    time = pulse_of(DOSE, drive.bench.station.flow, _OPENING).fill
    for channel in range(drive.count):
        trace = drive.play(channel, [(_LOOK, 0.0), (time, -_OPENING), (_LOOK, 0.0)])
        first = np.nanmean(trace.pressures[trace.times < _LOOK], axis=0)
        last = np.nanmean(trace.pressures[trace.times > _LOOK + time + _RINGING], axis=0)
        if np.abs(last - first).max() > RISES:
            drive.found_reversed(channel)
    drive.trust_exhaust(drive.reversed)
    drive.exhaust()
    return drive.reversed.copy(), []


def reversed_words(name: str) -> Finding:
    """Of the valve of a chamber."""
    return Finding(
        words=f"the valve of {name} is wired in reverse (it fills when it must exhaust): a dead "
        "host would leave it filling; exchange its ports or its polarity"
    )


def _run(session: Session) -> StepRecord:
    drive = session.drive
    drive.distrust_exhaust()
    session.air(True)
    reversed_valves, findings = find_reversed(drive)
    if findings:
        return found(findings)
    lines = [
        f"output of {name}: {'fills when it should exhaust' if wrong else 'exhausts'}"
        for name, wrong in zip(session.names, reversed_valves, strict=True)
    ]
    return found([], lines, reversed=[bool(each) for each in reversed_valves])


STEP = Step("exhaust", "each valve exhausts when it should", _run)
