"""A dead host: frames stop while a chamber is filled."""

import numpy as np

from softcr_hardware.commissioning.dead_host import SOON, silence_findings
from softcr_hardware.commissioning.doses import filled
from softcr_hardware.commissioning.findings import Finding
from softcr_hardware.commissioning.record import StepRecord
from softcr_hardware.commissioning.session import Session, Step, found

_LOOK = 0.1  # [s]


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
