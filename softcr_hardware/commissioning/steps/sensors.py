"""Which input each sensor's cable leads to: one after the other is pulled."""

from softcr_hardware.commissioning.bench import Question
from softcr_hardware.commissioning.findings import Finding
from softcr_hardware.commissioning.record import StepRecord
from softcr_hardware.commissioning.session import Session, Step, found


def _run(session: Session) -> StepRecord:
    session.air(False)
    drive, names = session.drive, session.names
    on_hose: list[int | None] = [None] * len(names)
    findings = []
    for hose, name in enumerate(names):
        words = f"pull the cable of the sensor that sits on the hose of {name}'s valve"
        if drive.ask_beside(Question("unplug", words, hose)) != "yes":
            line = "left out: what is swapped is guessed from the pulses"
            return found([], [line], sensors=None)
        silent = drive.silent_inputs()
        back = f"put it back: the sensor on the hose of {name}'s valve"
        drive.ask_beside(Question("plug", back, hose))
        if len(silent) == 1:
            on_hose[silent[0]] = hose
        else:
            heard = ", ".join(names[each] for each in silent) or "none"
            findings.append(
                Finding(
                    words=f"the cable of the sensor on the hose of {name}'s valve was pulled, and "
                    f"silent inputs are those of: {heard}; must be one"
                )
            )
    drive.rest(0.2)
    known = None if None in on_hose or findings else on_hose
    lines = [f"{name}: one input falls silent" for name in names] if known else []
    return found(findings, lines, sensors=known)


STEP = Step("sensors", "which input each sensor's cable leads to", _run, daily=False)
