"""Whether every valve exhausts where it must."""

from softcr_hardware.commissioning.exhaust import find_reversed
from softcr_hardware.commissioning.record import StepRecord
from softcr_hardware.commissioning.session import Session, Step, found


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
