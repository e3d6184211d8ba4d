"""What the rest of a loop costs beside plant, filter and controller: valves, messages, joins."""

import itertools
from functools import partial
from typing import Any

import numpy as np

from softcr_hardware.ethercat.memory_cycle import memory_cycle
from softcr_models.robots.robot import load_robot
from softcr_models.rod.cosserat_rod import CosseratRod
from softcr_runtime.blocks.block import Input
from softcr_runtime.blocks.join import Join
from softcr_runtime.blocks.sample import Sample
from softcr_runtime.wire.rod_clouds import (
    reference_cloud_from_message,
    reference_cloud_message,
    rod_cloud_from_message,
    rod_cloud_message,
)
from softcr_studies.frame.study import Result
from softcr_studies.speed.timing import Effort, measure, speed_study, told

UNIT = "us"
ROWS = 9  # of a reference
_ENABLED = 1000  # cycles after which the handshake is complete
_PIECES = 20  # of what is shorter than a clock can tell
_STAMP, _PERIOD = 1_700_000_000_000_000_000, 1 / 70


def valve_cycle(effort: Effort) -> Result:
    """With the valves enabled, on emulated chambers in memory."""
    cycle = memory_cycle()
    for _ in range(_ENABLED):
        cycle()
    return _timed(cycle, effort)


def estimate(decoded: bool, effort: Effort) -> Result:
    """A rod of 5 intervals to a point cloud, or back."""
    rod, state, poses = _rod()
    numbers: tuple[Any, ...] = {"bending_compliance": 47.0}, {"bending_compliance": 0.1}, _STAMP
    message = rod_cloud_message(state, poses, *numbers)
    if decoded:
        topic = "estimate/rod"
        return _timed(lambda: rod_cloud_from_message(message, topic, rod.intervals), effort)
    return _timed(lambda: rod_cloud_message(state, poses, *numbers), effort)


def reference(decoded: bool, effort: Effort) -> Result:
    """ROWS of them."""
    rod, state, poses = _rod()
    rods = np.repeat(state[None], ROWS, 0), np.repeat(poses[None], ROWS, 0)
    tips = rods[1][:, -1, :3, 3].copy()
    message = reference_cloud_message(*rods, tips, _STAMP, _PERIOD)
    if decoded:
        topic = "reference/rod"
        return _timed(lambda: reference_cloud_from_message(message, topic, rod.intervals), effort)
    return _timed(lambda: reference_cloud_message(*rods, tips, _STAMP, _PERIOD), effort)


def join(effort: Effort) -> Result:
    """Two samples of equal stamps to a tick."""
    made = Join((Input("lead", "lead"), Input("other", "same")), "newest", _PERIOD)
    stamps = itertools.count(1)

    def one() -> None:
        stamp = next(stamps)
        made.put(Sample("other", stamp, None, 0.0))
        made.put(Sample("lead", stamp, None, 0.0))
        made.take(0.0)

    return _timed(one, effort)


def _rod() -> tuple[CosseratRod, np.ndarray, np.ndarray]:
    """A bent rod, its state and poses of base and nodes."""
    rod = CosseratRod(load_robot("licher2025"), 5)
    state = rod.equilibrium(np.array([3e4, 1e4, 0.0]))
    return rod, state, rod.backbone(state, rod.intervals + 2)


def _timed(work: Any, effort: Effort) -> Result:
    """Of one call, as a mean of some."""

    def some() -> None:
        for _ in range(_PIECES):
            work()

    return told(1e6 * measure(some, effort) / _PIECES, UNIT)


STUDY = speed_study(
    "speed/house",
    "what a loop costs beside plant, filter and controller",
    {("valve cycle in memory", "enabled"): valve_cycle,
     ("estimate/rod", "encoded"): partial(estimate, False),
     ("estimate/rod", "decoded"): partial(estimate, True),
     ("reference/rod of 9 rows", "encoded"): partial(reference, False),
     ("reference/rod of 9 rows", "decoded"): partial(reference, True),
     ("join of two topics", "same stamp"): join},
    [UNIT],
)  # fmt: skip
