"""One chamber after the other is filled, and everything looks at it."""

from softcr_hardware.commissioning.findings import Finding
from softcr_hardware.commissioning.record import StepRecord
from softcr_hardware.commissioning.session import Session, Step, found
from softcr_hardware.commissioning.survey import take_survey


def _run(session: Session) -> StepRecord:
    session.air(True)
    survey = take_survey(session.drive, session.operator.tell)
    findings = []
    if not survey.rest.position:
        findings.append(Finding(words="no cameras: directions of the chambers were not seen"))
    lines = []
    for name, rises in zip(session.names, survey.rises, strict=True):
        told = ", ".join(f"{each / 1e3:.1f}" for each in rises)
        lines.append(f"output of {name}: sensors rise by {told} kPa")
    return found(findings, lines, survey=survey.model_dump(mode="json"))


STEP = Step("survey", "a pulse into each chamber", _run)
