"""The result of a commissioning on one page."""

from collections.abc import Sequence

from rich.table import Table
from rich.text import Text

from softcr_hardware.commissioning.findings import Finding
from softcr_hardware.commissioning.record import Record
from softcr_hardware.commissioning.session import Step

_FEW = 2


def table(record: Record, steps: Sequence[Step], daily: bool) -> Table:
    """Steps, whether they are good, and what was found."""
    title = "daily check" if daily else "commissioning"
    page = Table(title=f"{title} of {record.robot}, {record.started}", title_justify="left")
    page.add_column("step")
    page.add_column("")
    page.add_column("found", overflow="fold")
    for step in steps:
        done = record.steps.get(step.name)
        if done is None:
            page.add_row(step.title, Text("not done", style="yellow"), "")
            continue
        bad = [f for f in done.findings if daily or f.mend == "hand"]
        mark = Text("good", style="green")
        if done.findings:
            mark = Text("MEND", style="bold red") if bad else Text("in file", style="yellow")
        few = done.lines if len(done.lines) <= _FEW else ()  # the rest was told on the way
        lines = [_words(finding) for finding in done.findings] or list(few)
        page.add_row(step.title, mark, Text("\n".join(lines)))
    return page


def _words(finding: Finding) -> str:
    could = f" (could also be: {finding.could_be})" if finding.could_be else ""
    return f"{finding.words}{could}"


def good(record: Record, steps: Sequence[Step], daily: bool) -> bool:
    """Whether all steps are done and nothing is to be mended: of a daily check nothing at all."""
    for step in steps:
        done = record.steps.get(step.name)
        if done is None or not done.good or (daily and done.findings):
            return False
    return True
