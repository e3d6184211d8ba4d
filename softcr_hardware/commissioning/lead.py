"""Leads through the steps: from the first one that is not done, and keeps what each one finds."""

from collections.abc import Callable, Sequence
from pathlib import Path

from softcr_hardware.commissioning.bench import Question
from softcr_hardware.commissioning.drive import Interrupted
from softcr_hardware.commissioning.findings import Finding
from softcr_hardware.commissioning.record import StepRecord, now_words
from softcr_hardware.commissioning.session import Session, Step
from softcr_models.errors import UserError

Say = Callable[[str, str], None]
"""Told a line and its style."""


def lead(session: Session, steps: Sequence[Step], begin: str, path: Path, say: Say) -> bool:
    """Do what is not done yet; the bench is open, and vented afterwards.

    Args:
        session: with the record so far.
        steps: in their order.
        begin: name of the step to begin at; empty for the first that is not done, or not good.
        path: of the record, kept after every step.
        say: told what happens.

    Returns:
        Whether all steps were done, good or not.

    Raises:
        UserError: there is no step of this name.
    """
    names = [step.name for step in steps]
    if begin and begin not in names:
        raise UserError(f"step {begin!r}: unknown; known are {', '.join(names)}")
    record = session.record
    done = [name for name in names if name in record.steps and record.steps[name].good]
    first = names.index(begin) if begin else _first_undone(names, done)
    for name in names[first:]:
        record.steps.pop(name, None)
    if first:
        say(f"steps done before: {', '.join(names[:first])}", "")
    session.forget_air()
    try:
        if first < len(steps):
            session.air(False)
        for number, step in enumerate(steps[first:], first + 1):
            say(f"{number}/{len(steps)} {step.title}", "bold")
            if not _do(session, step, path, say):
                return False
        return True
    finally:
        _leave(session, say)


def _first_undone(names: Sequence[str], done: Sequence[str]) -> int:
    """Place of the first step that is not done."""
    return next((place for place, name in enumerate(names) if name not in done), len(names))


def _do(session: Session, step: Step, path: Path, say: Say) -> bool:
    """One step; whether others may follow."""
    try:
        result = step.run(session)
    except Interrupted as interruption:
        say(f"  ended: {interruption}; all chambers exhaust", "bold red")
        say("  run the same command again: it continues with this step", "")
        return False
    except UserError as error:
        words = f"{step.name}: {error}"
        result = StepRecord(done=now_words(), findings=(Finding(words=words),))
    session.record.steps[step.name] = result
    session.drive.beside(lambda: session.record.save(path))
    for line in result.lines:
        say(f"  {line}", "")
    for finding in result.findings:
        say(f"  {told(finding)}", "yellow" if finding.mend == "file" else "bold red")
    return True


def told(finding: Finding) -> str:
    """A finding in a line."""
    end = "; the written files say it as it is" if finding.mend == "file" else ""
    could = f" (could also be: {finding.could_be})" if finding.could_be else ""
    return f"{finding.words}{could}{end}"


def _leave(session: Session, say: Say) -> None:
    """Vented, the air shut off, the bench closed: in this order, for a valve in reverse fills when
    nobody drives it."""
    drive = session.drive
    try:
        try:
            drive.exhaust()
        except Interrupted as interruption:
            say(f"{interruption}", "bold red")
        if drive.reversed.any():
            names = [session.valve_name(k) for k, wrong in enumerate(drive.reversed) if wrong]
            say(f"shut the air off NOW: {', '.join(names)} would fill", "bold red")
        drive.let_air(False)
        question = Question("air off", "shut the air off at its hand valve")
        drive.ask_beside(question)
    finally:
        session.bench.close()
