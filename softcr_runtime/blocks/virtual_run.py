"""Blocks and systems run on virtual time until they have finished, with a bag if wanted."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from threadpoolctl import threadpool_limits

from softcr_runtime.bags.virtual_recording import VirtualRecording
from softcr_runtime.blocks.block import BlockBase, Output
from softcr_runtime.blocks.system import Part, System
from softcr_runtime.blocks.virtual import Observer, VirtualExecutor


class Log:
    """An observer that keeps what was sent on some topics."""

    def __init__(self, *topics: str) -> None:
        """Nothing sent yet."""
        self._outputs: dict[str, list[Output]] = {topic: [] for topic in topics}

    def __call__(self, name: str, output: Output) -> None:
        """Keep an output."""
        if output.topic in self._outputs:
            self._outputs[output.topic].append(output)

    def values(self, topic: str) -> list:
        """What was sent on a topic, in order."""
        return [output.value for output in self._outputs[topic]]


def run_blocks(
    blocks: Mapping[str, BlockBase],
    observe: Observer,
    clock: Callable[[], float] | None = None,
    bag: Path | None = None,
) -> VirtualExecutor:
    """Run blocks until one of them has finished; what one of them raises ends the run.

    Args:
        blocks: by the names of their nodes.
        observe: told of every output.
        clock: to measure ticks with [s].
        bag: to be written; None: none is.

    Raises:
        UserError: the bag cannot be written.
    """
    parts = tuple(
        Part(name, f"{type(block).__module__}:{type(block).__qualname__}")
        for name, block in blocks.items()
    )
    names = tuple(blocks)
    system = System("study", parts, names, _ENDLESS, simulated_time=True, controller=names[-1])
    return run_system(
        system, observe, clock, bag, make=lambda part: blocks[part.name], guarded=False
    )


def run_system(
    system: System,
    observe: Observer,
    clock: Callable[[], float] | None = None,
    bag: Path | None = None,
    progress: Callable[[float], bool] | None = None,
    **options: Any,
) -> VirtualExecutor:
    """Run a system on virtual time, on one thread of BLAS; arguments as `run_blocks`.

    Args:
        progress: told of the virtual time [s] at each instant; whether the run goes on.
        options: of VirtualExecutor.
    """
    recording = VirtualRecording() if bag else None

    def told(name: str, output: Output) -> None:
        observe(name, output)
        if recording:
            recording.observe(name, output)

    note = recording.note if recording else None
    executor = VirtualExecutor(system, told if recording else observe, note, clock=clock, **options)
    # as every node does: more threads give other bits, and the matrices are small
    with threadpool_limits(limits=1, user_api="blas"):
        executor.run(progress=progress)
    if recording and bag:
        bag.parent.mkdir(parents=True, exist_ok=True)
        recording.write(bag, executor)
    return executor


_ENDLESS = 1e6  # the simulator says when it has finished [s]
