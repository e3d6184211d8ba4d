"""Whether a run was good, in a line that stands before everything else."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from softcr_models.robots.kinds import KINDS
from softcr_runtime.blocks.command_swings import SWINGS
from softcr_tools.report.page import times
from softcr_tools.report.run import Run

MOST_MISSED = 0.05
"""Of the cycles of simulator, estimator and controller, what a good run may miss beside them."""

LARGEST_ERROR = 0.05
"""Of the robot's length, the settled tip error that a good run may have."""

USUAL_PLANT = "typical"
"""The plant of a simulation where nobody chooses another; others are named beside the verdict."""

_LEAVING = 1.0  # so long before its end a run may be vented because it ends [s]
_VENTS = re.compile(r"(ramp to vent|vent now): (.*)")


@dataclass(frozen=True)
class Verdict:
    """Whether a run was good.

    Attributes:
        line: for the person; it begins with `good` or with `NOT good`.
        good: whether the robot followed, and the machine kept up.
        failed: whether the robot was never commanded, was vented, or a class raised: the command's
            exit code tells.
        follows: whether the tip's error, where there is one, is small.
    """

    line: str
    good: bool
    failed: bool
    follows: bool

    def numbers(self) -> dict[str, Any]:
        """As it stands in summary.json."""
        return {"verdict": asdict(self)}


def verdict(run: Run, numbers: Mapping[str, Any]) -> Verdict:
    """The verdict on a run, of which `numbers` are those of the other sections.

    A run is good where no node died, the robot was commanded, was not vented before the end, the
    settled tip error (of setpoints the one at their end) is below `LARGEST_ERROR`, and no loop
    missed more than `MOST_MISSED` of its cycles.
    """
    failures, strays = [*_failures(run)], [*_strays(run, numbers)]
    reasons = [*failures, *_deaths(run), *strays, *_late(run)]
    found = [*_error_in_words(numbers), *_missed_in_words(run)]
    words = numbers["plant_in_words"]
    other_plant = f" (plant: {words})" if words and words != USUAL_PLANT else ""
    if run.bag.damage:
        found.append("of a damaged bag, whose lost messages are in no figure")
        reasons += found[-1:] * bool(reasons)
    if reasons:
        return Verdict(
            f"NOT good: {'; '.join(reasons)}{other_plant}", False, bool(failures), not strays
        )
    told = ", ".join(found) or "nothing went wrong"
    return Verdict(f"good: {told}{other_plant}", True, False, True)


def _failures(run: Run) -> Iterator[str]:
    """Why the robot did not move as it should at all."""
    stale = run.bag.said("simulator", "commands_stale")
    in_vain = run.bag.said("simulator", "without_commands") is True and not stale
    if in_vain or not len(run.commands):
        yield "the robot was never commanded"
    for node, status in run.bag.nodes.items():
        for line, count in (status.values.get("refusals") or {}).items():
            yield f"{node}: {line}, {times(count)}"
    if stale and isinstance(stale, int):
        what = "held" if KINDS[run.kind].field == "positions" else "vented"
        swung = any(SWINGS in key for each in run.bag.nodes.values() for key in each.alarms)
        why = SWINGS if swung else "commands stopped"
        yield f"the robot was {what} {times(stale)} because {why}"
    last = max((int(s.stamps[-1]) for s in (run.reference_tip, run.tip) if len(s)), default=0)
    moved = False
    for time, told in run.bag.safety:
        vents = _VENTS.fullmatch(told)
        if moved and vents and last - time > 1e9 * _LEAVING:
            yield f"vented after {1e-9 * (time - run.bag.start):.1f} s: {vents[2]}"
            break
        moved = moved or vents is None


def _deaths(run: Run) -> Iterator[str]:
    if died := [str(death.get("node")) for death in run.system.get("deaths", ())]:
        yield f"{', '.join(died)} died"


def _strays(run: Run, numbers: Mapping[str, Any]) -> Iterator[str]:
    """Whether the robot did not follow."""
    (error, when), length = _error(numbers), run.length
    if error is not None and length and error > 1e3 * LARGEST_ERROR * length:
        share = 0.1 * error / length
        yield f"the tip was {error:.3g} mm off {when}, {share:.0f} % of the length"


def _late(run: Run) -> Iterator[str]:
    """Loops that did not keep up with the clock; in lock-step there is none to keep up with."""
    for node in (run.controller, "estimator", "simulator"):
        missed = _missed(run, node)
        if missed is not None and missed > MOST_MISSED:
            yield f"{node} missed {100 * missed:.0f} % of its cycles"


def _error(numbers: Mapping[str, Any]) -> tuple[float | None, str]:
    """The tip error that counts [mm], and when it is one."""
    if dwells := numbers["setpoint_errors_mm"]:
        return float(np.mean(dwells)), "at setpoints"
    if numbers["tip_aed_settled_mm"] is not None:
        return numbers["tip_aed_settled_mm"], "settled"
    return numbers["tip_aed_mm"], "on the mean"


def _error_in_words(numbers: Mapping[str, Any]) -> Iterator[str]:
    error, when = _error(numbers)
    if error is not None:
        yield f"{error:.2f} mm {when}"


def _missed_in_words(run: Run) -> Iterator[str]:
    share = _missed(run, run.controller)
    if share is not None and run.bag.said(run.controller, "mode") != "lockstep":
        yield f"{100 * share:.1f} % of the controller's cycles missed"


def _missed(run: Run, node: str) -> float | None:
    """Missed cycles over the others, as the table of loops tells them, but for those that a
    simulator has made up for; None: it told none."""
    missed, cycles = (run.bag.said(node, name) for name in ("missed_cycles", "cycles"))
    if not isinstance(missed, int) or not isinstance(cycles, int) or not cycles:
        return None
    return max(missed - (run.bag.said(node, "cycles_made_up") or 0), 0) / cycles
