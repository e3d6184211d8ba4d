"""How tight each line is: how fast closed chambers lose their air."""

import numpy as np

from softcr_hardware.commissioning.doses import filled
from softcr_hardware.commissioning.drive import Trace
from softcr_hardware.commissioning.findings import Finding
from softcr_hardware.commissioning.record import StepRecord
from softcr_hardware.commissioning.session import Session, Step, found

_LOOK = 6.0  # [s]

MOST_LEAK = 0.012
"""Rate of a tight chamber, at most [1/s]: at 100 kPa it would lose 1.2 kPa/s."""

_HEAT = 1.0  # [s] in which air that was let in takes the temperature of its chamber


def leak_rate(trace: Trace, sensor: int) -> float:
    """Rate at which a closed chamber empties [1/s], by a straight line through the logarithm.

    Args:
        trace: of the chamber held closed behind a dose of air, some seconds.
        sensor: that answers it, from 0.
    """
    later = trace.times > _HEAT
    times, pressures = trace.times[later], np.abs(trace.pressures[later, sensor])
    good = pressures > 500.0
    if good.sum() < 10:
        return float("inf")
    return float(-np.polyfit(times[good], np.log(pressures[good]), 1)[0])


def leak_findings(rate: float, name: str) -> list[Finding]:
    """What is wrong with a chamber's rate [1/s]."""
    if rate <= MOST_LEAK:
        return []
    loss = "all at once" if not np.isfinite(rate) else f"{100 * rate:.1f} % in a second"
    most = f"{100 * MOST_LEAK:.1f} %"
    return [
        Finding(
            words=f"the line of {name} leaks: with its valve closed it loses {loss}, must be "
            f"below {most}"
        )
    ]


def _run(session: Session) -> StepRecord:
    session.air(True)
    drive, rates, lines = session.drive, [], []
    findings: list[Finding] = []
    for channel, sensor in enumerate(session.answers()):
        drive.rest(0.3)
        filled(session, channel)
        rate = leak_rate(drive.hold(channel, _LOOK), sensor)
        drive.exhaust()
        name = session.valve_name(channel)
        findings += leak_findings(rate, name)
        rates.append(rate)
        lines.append(f"line of {name}'s valve: {100 * rate:.2f} % in a second")
    return found(findings, lines, rates=rates)


STEP = Step("leak", "leaks of the closed lines", _run)
