"""How tight each line is."""

from softcr_hardware.commissioning.doses import filled
from softcr_hardware.commissioning.findings import Finding
from softcr_hardware.commissioning.leak import leak_findings, leak_rate
from softcr_hardware.commissioning.record import StepRecord
from softcr_hardware.commissioning.session import Session, Step, found

_LOOK = 6.0  # [s]


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
