"""`softcr plan`: a tip path in, a reference the rod can follow out."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn
from threadpoolctl import threadpool_limits

from softcr_models.errors import UserError
from softcr_models.robots.kinds import ShownInput
from softcr_models.robots.robot import load_robot
from softcr_runtime.console.panels import panels
from softcr_runtime.console.terminal import say
from softcr_runtime.settings.command_line import RobotName, command

if TYPE_CHECKING:
    from softcr_control.reference.planning import Plan

INTERVALS = 10
PERIOD = 1 / 70


@command
def plan(path: Path, /, *, robot: RobotName = "licher2025", output: Path = Path("plan.npz")) -> int:
    """Turn a tip path into a motion the rod can do.

    This finds pressures and tensions that move the nominal rod along the path within its lag and
    limits, and prints the deviation from the path.

    Args:
        path: a CSV with the columns time [s], tip_x, tip_y, tip_z [m, base frame], or an NPZ
            with time (T,) and tip_positions (T, 3).
        robot: name or YAML file of the robot.
        output: NPZ file for the reference 'file'; a picture is drawn beside it.

    Raises:
        UserError: the path, the robot or the output cannot be used.
    """
    from softcr_control.reference.planning import plan_along  # brings kernels with it
    from softcr_control.reference.references import from_file
    from softcr_models.prediction import RodPrediction
    from softcr_models.rod.cosserat_rod import CosseratRod

    described = load_robot(robot)
    if output.suffix != ".npz":
        raise UserError(f"{output}: the output must end in .npz")
    prediction = RodPrediction(CosseratRod(described, INTERVALS), single_precision=False)
    wanted = from_file(prediction, path, PERIOD).tip_positions
    console = Console()
    columns = TextColumn("planning"), BarColumn(), TimeRemainingColumn()
    with threadpool_limits(limits=1, user_api="blas"), Progress(*columns, console=console) as bar:
        task = bar.add_task("", total=len(wanted))
        planned = plan_along(
            described, prediction, wanted, PERIOD, lambda rows: bar.advance(task, rows)
        )
    write_inputs(output, planned.pressures, planned.period, prediction.inputs.quantity)
    draw(planned, output.with_suffix(".png"), described.shown_inputs)
    deviation = 1e3 * planned.deviation
    limits = prediction.inputs
    margin = 1e-3 * (limits.high - limits.low)
    touching = (planned.pressures < limits.low + margin) | (
        planned.pressures > limits.high - margin
    )
    say(console, f"deviation from the path: mean {deviation.mean():.2f} mm, "
        f"largest {deviation.max():.2f} mm at {deviation.argmax() * PERIOD:.2f} s")  # fmt: skip
    say(console, f"at a limit of an input {100 * touching.any(axis=1).mean():.1f} % of the time")
    say(console, f"follow it with: softcr up simulation --reference file --reference.file {output}")
    return 0


def write_inputs(path: Path, inputs: np.ndarray, period: float, quantity: str) -> None:
    """An NPZ of `time` [s] and inputs (T, m) [Pa, N, rad] a period [s] apart, as the reference
    'file' reads it: `pressures` where the quantity of the inputs is a pressure.

    Raises:
        OSError: it cannot be written.
    """
    content: dict[str, Any] = {"time": period * np.arange(len(inputs)), f"{quantity}s": inputs}
    with path.open("wb") as file:
        np.savez_compressed(file, **content)


def draw(plan: "Plan", path: Path, inputs: Sequence[ShownInput]) -> None:
    """Wanted and planned tip, their distance, the inputs of each unit."""
    times = plan.period * np.arange(len(plan.pressures))
    units = dict.fromkeys((each.quantity, each.unit) for each in inputs)
    labels = ["tip (wanted dashed) [mm]", "deviation [mm]", *(f"{w} [{u}]" for w, u in units)]
    with panels(path, labels, x="time [s]", height=2.5) as (tip, deviation, *others):
        tip.plot(times, 1e3 * plan.tips, label=list("xyz"))
        tip.plot(times, 1e3 * plan.wanted_tips, "k--", linewidth=0.8)
        deviation.plot(times, 1e3 * plan.deviation, "C3")
        axes = dict(zip(units, others, strict=True))
        for each, values in zip(inputs, plan.pressures.T, strict=True):
            axes[each.quantity, each.unit].plot(times, each.scale * values, label=each.name)
