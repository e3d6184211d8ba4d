"""`softcr learn motion`: what a recorded repetition of a motion teaches for the next one."""

from pathlib import Path
from typing import Annotated

import numpy as np
from pydantic import Field
from rich.console import Console

from softcr_control.predictive.learned_motion import LearnedMotion, shift_after
from softcr_models.errors import UserError
from softcr_runtime.bags.robots import robot_bag
from softcr_runtime.bags.signals import Signal, read_signals
from softcr_runtime.console.terminal import say
from softcr_runtime.settings.command_line import command
from softcr_tools.report.run import LONGEST_HOLE, Run

_COVERED = 0.9  # of the motion: less teaches too little of it
_REFERENCES = ("reference/rod", "reference/output")

Gain = Annotated[float, Field(gt=0.0, le=1.0)]
Rows = Annotated[float, Field(ge=0.0, le=50.0)]


@command
def motion(run: Path, /, *, output: Path, gain: Gain = 0.7, smoothing: Rows = 1.5) -> int:
    """Learn from a run how the next repetition of its motion should aim.

    The next run aims to the other side of each error of the tip that the cameras saw: `softcr up
    simulation --reference.learned FILE`. Use the same file for all repetitions. Errors that repeat
    fade, whatever their cause; random errors and those faster than the loop remain. The filter of
    the next run begins with the parameters at the end of this one.

    Args:
        run: a bag, or the directory of a run with its bag in bag/.
        output: the file to update; it is created if it does not exist.
        gain: fraction of the error that is corrected.
        smoothing: standard deviation of the window that smooths the error, in control periods.

    Raises:
        UserError: the run tells too little, or the file cannot be written.
    """
    if output.suffix != ".json":
        raise UserError(f"--output {output}: must end in .json")
    taught = learn_from(Run(read_signals(robot_bag(run, None))), gain, smoothing)
    if output.is_file():
        before = LearnedMotion.load(output)
        before.refuse_others(output, taught.robot, taught.motion)
        taught = taught.model_copy(update={"errors": [*before.errors, *taught.errors]})
    taught.save(output)
    errors = ", ".join(f"{1e3 * error:.2f}" for error in taught.errors)
    say(Console(), f"{output}: repetitions so far had a mean error of {errors} mm")
    return 0


def learn_from(run: Run, gain: float = 0.7, smoothing: float = 1.5) -> LearnedMotion:
    """What one run teaches: its shift, moved against the error that it still had.

    Args:
        run: of a motion from the registry, with the tip's poses as measured.
        gain, smoothing: see `shift_after`.

    Raises:
        UserError: the run has no such motion, or too little of it was seen.
    """
    settings = run.said(("reference",), "settings")
    start = run.said(("reference",), "start_stamp")
    if not settings or not {"learned", "duration"} <= settings.keys() or start is None:
        raise UserError("the run has no motion to repeat: its reference published no beginning")
    told = next((topic for topic in _REFERENCES if (topic, "period") in run.bag.signals), "")
    known = "name" in run.bag.robot
    if not (told and known) or run.window is None or len(run.measured_tip) < 2:
        raise UserError(
            "the run holds no robot, no reference, no command or no measured pose of the tip"
        )
    period = float(run.bag.signal(told, "period").values[0])
    error = run.measured_tip.at(run.reference_tip.stamps, LONGEST_HOLE).minus(run.reference_tip)
    error = error.between(*run.window)
    rows = 1 + round(settings["duration"] / period)
    if len(error) < _COVERED * rows:
        raise UserError(
            f"{len(error)} of the motion's {rows} rows were followed and seen; must be at least "
            f"{100 * _COVERED:.0f} %"
        )
    grid = period * np.arange(rows)
    before = _on_grid(run.bag.signal(told, "shift"), start, grid)
    shift = shift_after(before, _on_grid(error, start, grid), gain, smoothing)
    from softcr_control.reference.block import motion_of  # brings kernels with it

    return LearnedMotion(
        robot=run.bag.robot["name"],
        motion=motion_of(settings),
        period=period,
        errors=[float(error.norm().values.mean())],
        shift=shift.tolist(),
        parameters=_found(run),
    )


def _found(run: Run) -> dict[str, float]:
    """Name -> number of all parameters that the filter estimated, when the motion ended."""
    assert run.window is not None
    told = {
        name: tuple(each.between(*run.window) for each in pair)
        for name, pair in run.parameters().items()
    }
    return {
        name: float(values.values[-1])
        for name, (values, deviations) in told.items()
        if len(values) and len(deviations) and deviations.values[-1] > 0.0
    }


def _on_grid(signal: Signal, start: int, grid: np.ndarray) -> np.ndarray:
    """(T, 3) of a signal at times (T,) [s] after a stamp [ns]; 0 of one that was not recorded."""
    if not len(signal):
        return np.zeros((len(grid), 3))
    times = 1e-9 * (signal.stamps - start)
    return np.stack([np.interp(grid, times, column) for column in signal.values.T], axis=1)
