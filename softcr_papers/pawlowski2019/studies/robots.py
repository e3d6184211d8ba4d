"""The rod of Table 2.1 of Pawlowski (2019), and how its solvers are timed."""

import time
from collections.abc import Callable
from dataclasses import replace

import numpy as np

from softcr_models.robots.robot import Robot, load_robot
from softcr_papers.pawlowski2019.reference.reference_rod import ReferenceRod


def lying() -> Robot:
    """Gravity acts along -x of the base, across the straight rod, as in Sec. 2.7.1 and 3.4."""
    return load_robot("tendon_arm").replace(base_orientation=(0.0, -np.pi / 2, 0.0))


def floating() -> Robot:
    """Without gravity; the tendons are ours, the thesis does not say where they are."""
    return load_robot("tendon_arm").replace(gravity=0.0)


def undamped(robot: Robot) -> ReferenceRod:
    """Without viscosity."""
    return replace(ReferenceRod.of_robot(robot), viscosity=np.zeros(6))


def processor_time(work: Callable[[], object], repeats: int) -> float:
    """The least of the processor times of `work()` [s]; called once before."""
    work()
    durations = []
    for _ in range(repeats):
        begin = time.process_time_ns()
        work()
        durations.append(time.process_time_ns() - begin)
    return 1e-9 * min(durations)
