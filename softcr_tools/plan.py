"""`softcr plan`: a tip path in, a reference the rod can follow out."""

import argparse
from collections.abc import Sequence
from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn
from threadpoolctl import threadpool_limits

from softcr_control.planning import Plan, plan_along
from softcr_control.references import from_file
from softcr_models import CosseratRod, load_robot
from softcr_models.errors import UserError
from softcr_models.prediction import RodPrediction
from softcr_runtime.console import say

INTERVALS = 10
PERIOD = 1 / 70


def main(arguments: Sequence[str]) -> int:
    """Run the command line after `softcr plan`; returns the exit code.

    Raises:
        UserError: the path, the robot or the output cannot be used.
    """
    given = _parser().parse_args(arguments)
    robot = load_robot(given.robot)
    if given.output.suffix != ".npz":
        raise UserError(f"{given.output}: the output must end in .npz")
    prediction = RodPrediction(CosseratRod(robot, INTERVALS), single_precision=False)
    wanted = from_file(prediction, given.path, PERIOD).tip_positions
    console = Console()
    columns = TextColumn("planning"), BarColumn(), TimeRemainingColumn()
    with threadpool_limits(limits=1, user_api="blas"), Progress(*columns, console=console) as bar:
        task = bar.add_task("", total=len(wanted))
        plan = plan_along(robot, prediction, wanted, PERIOD, lambda rows: bar.advance(task, rows))
    write(plan, given.output)
    draw(plan, given.output.with_suffix(".png"))
    deviation = 1e3 * plan.deviation
    limits = robot.pressure_limits
    margin = 1e-3 * (limits.maximum - limits.minimum)
    touching = (plan.pressures < limits.minimum + margin) | (
        plan.pressures > limits.maximum - margin
    )
    say(console, f"deviation from the path: mean {deviation.mean():.2f} mm, "
        f"largest {deviation.max():.2f} mm at {deviation.argmax() * PERIOD:.2f} s")  # fmt: skip
    say(console, f"at a pressure limit {100 * touching.any(axis=1).mean():.1f} % of the time")
    say(console, f"follow it with: make sim REFERENCE=file REFERENCE_FILE={given.output}")
    return 0


def write(plan: Plan, path: Path) -> None:
    """An NPZ of `time` [s] and chamber `pressures` [Pa], as the reference 'file' reads it.

    Raises:
        OSError: it cannot be written.
    """
    times = plan.period * np.arange(len(plan.pressures))
    with path.open("wb") as file:
        np.savez_compressed(file, time=times, pressures=plan.pressures)


def draw(plan: Plan, path: Path) -> None:
    """Wanted and planned tip, their distance, the pressures."""
    times = plan.period * np.arange(len(plan.pressures))
    figure, (tip, deviation, pressure) = plt.subplots(3, 1, figsize=(8.0, 8.0), sharex=True)
    for axis, name in enumerate("xyz"):
        tip.plot(times, 1e3 * plan.tips[:, axis], f"C{axis}", label=name)
        tip.plot(times, 1e3 * plan.wanted_tips[:, axis], "k--", linewidth=0.8)
    tip.set_ylabel("tip (wanted dashed) [mm]")
    tip.legend(loc="upper right")
    deviation.plot(times, 1e3 * plan.deviation, "C3")
    deviation.set_ylabel("deviation [mm]")
    for chamber, pressures in enumerate(plan.pressures.T):
        pressure.plot(times, 1e-3 * pressures, label=f"chamber {chamber + 1}")
    pressure.set_ylabel("pressure [kPa]")
    pressure.set_xlabel("time [s]")
    pressure.legend(loc="upper right")
    for axes in (tip, deviation, pressure):
        axes.grid(alpha=0.3)
    figure.tight_layout()
    figure.savefig(path, dpi=120)
    plt.close(figure)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="softcr plan",
        description="Turns a tip path into pressures that move the nominal rod along it, through "
        "pressure lag and limits, and says how far it stays away.",
        epilog="PATH is a CSV with the columns time [s], tip_x, tip_y, tip_z [m, base frame], or "
        "an NPZ with time (T,) and tip_positions (T, 3).",
        allow_abbrev=False,
    )
    parser.add_argument("path", type=Path, metavar="PATH", help="the wanted tip path")
    parser.add_argument("--robot", default="licher2025", help="name or YAML file")
    parser.add_argument("--output", type=Path, default=Path("plan.npz"), help="(default: plan.npz)")
    return parser
