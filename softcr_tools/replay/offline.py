"""One offline replay from bag to report: the new bag, what differs from the recorded one."""

import json
import shutil
from pathlib import Path

from rich.console import Console
from rich.progress import Progress
from threadpoolctl import threadpool_limits

from softcr_models.errors import UserError
from softcr_runtime.bags.reading import Bag
from softcr_runtime.bags.signals import read_signals
from softcr_runtime.console import step
from softcr_runtime.replay.bag_replay import BagReplay, ReplayTask
from softcr_tools.replay.comparison import Comparison, compare, draw
from softcr_tools.up import compile_kernels


def replay(bag: Bag, task: ReplayTask, output: Path, console: Console) -> Comparison:
    """Replay a bag into a directory: a bag, comparison.json and comparison.png.

    Raises:
        UserError: a needed topic is missing, a parameter is not allowed, the output exists.
    """
    if output.exists():
        raise UserError(f"{output} exists already: remove it or choose another --output")
    compile_kernels(console)
    # as every node does: more threads give other bits, and the matrices are small
    threadpool_limits(limits=1, user_api="blas")
    with step(console, "preparing"):
        again = BagReplay(bag, task)
    try:
        with Progress(console=console) as progress:
            bar = progress.add_task("replaying", total=again.lead_count)
            factor = again.play(output, lambda: progress.advance(bar))
            progress.update(bar, completed=again.lead_count)
        with step(console, "comparing"):
            return _reported(bag, again, output, factor)
    except BaseException:
        shutil.rmtree(output, ignore_errors=True)
        raise


def _reported(bag: Bag, again: BagReplay, output: Path, factor: float) -> Comparison:
    recorded, replayed = read_signals(bag), read_signals(Bag(output))
    estimates = again.estimates
    notes = [*([bag.damage] if bag.damage else []), *again.notes]
    if estimates.compared < estimates.recorded:
        missing = estimates.recorded - estimates.compared
        notes.append(f"{missing} recorded estimates were not replayed: their samples are missing")
    comparison = compare(recorded, replayed, estimates, again.commands, factor, notes)
    content = {"bag": str(bag.path), "settings": again.settings, **comparison.to_dict()}
    try:
        (output / "comparison.json").write_text(
            json.dumps(content, indent=2, allow_nan=False) + "\n", encoding="utf-8"
        )
        draw(recorded, replayed, output / "comparison.png")
    except OSError as error:
        raise UserError(f"cannot write the comparison to {output}: {error.strerror}") from None
    return comparison
