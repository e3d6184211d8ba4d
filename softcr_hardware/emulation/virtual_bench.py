"""A loop around the devices of an emulated bench, on virtual time: what studies and the rehearsal
run."""

from dataclasses import replace

import numpy as np

from softcr_hardware.emulation.virtual_devices import (
    POSES,
    EmulatedBench,
    Probe,
    devices_of,
    part_of,
)
from softcr_runtime.blocks.block import BlockBase
from softcr_runtime.blocks.system import Part, System

ENDLESS = 1e6
"""Duration of such a system [s]: the probe ends the run when the motion is over."""


def bench_system(
    bench: EmulatedBench,
    loop: tuple[Part, Part, Part],
    random: np.random.Generator,
    duration: float,
) -> tuple[System, dict[str, BlockBase]]:
    """Valves, cameras and a probe of the true tip, with the loop that moves the rod.

    The motion begins once the valves are enabled. What the estimator hears of the cameras comes as
    late as to the valves, and the same frames are lost.

    Args:
        bench: what the devices stand around.
        loop: reference, estimator and controller.
        random: gives the phases of the devices' clocks, and seeds of what wires lose and delay.
        duration: of the motion [s].

    Returns:
        The system, and by the names of their parts the blocks of all devices: those of the loop are
        still to be made.
    """
    probe = part_of(Probe(bench, round(duration / bench.figures.command_period)))
    made = [*devices_of(bench, random), probe]
    poses = next(part.wires[POSES] for part, _ in made if POSES in part.wires)
    reference, estimator, controller = loop
    hears = replace(estimator, wires={**estimator.wires, POSES: poses})
    parts = (*(part for part, _ in made), reference, hears, controller)
    names = tuple(part.name for part in parts)
    begin = "valves/enable", f"{reference.name}/start", "probe/start"
    system = System("bench", parts, names, ENDLESS, False, controller.name, begin)
    return system, {part.name: device for part, device in made}
