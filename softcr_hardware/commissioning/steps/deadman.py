"""The deadman's switch: whoever lets go vents."""

import math

from softcr_hardware.commissioning.bench import Question
from softcr_hardware.commissioning.doses import filled
from softcr_hardware.commissioning.drive import Interrupted
from softcr_hardware.commissioning.record import StepRecord
from softcr_hardware.commissioning.session import Session, Step, found
from softcr_hardware.commissioning.steps.watchdog import release_findings

_PATIENCE = 20.0  # [s]


def _run(session: Session) -> StepRecord:
    session.air(True)
    drive, bench, name = session.drive, session.bench, session.valve_name(0)
    drive.rest(0.3)
    filled(session, 0)
    session.operator.ask(Question("release", "let go of the deadman's switch now"))
    begin, seconds = bench.now, math.inf
    try:
        drive.hold(0, _PATIENCE)
    except Interrupted:
        seconds = bench.now - begin
    drive.exhaust()
    session.must("hold", "hold the deadman's switch again")
    lines = [f"{name} vented when it was released, {seconds:.1f} s after the question"]
    findings = release_findings(seconds, name)
    return found(findings, [] if findings else lines)


STEP = Step("deadman", "the deadman's switch vents", _run)
