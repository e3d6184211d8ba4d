"""Compiling every kernel ahead of time, so that no node does it while a robot waits.

`python -m softcr_models.warm_up` does it once per version and processor; later it loads them. Not
everybody needs all kernels, so they come in sets: `python -m softcr_models.warm_up fittings
contact` compiles these two.
"""

import os
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import numpy as np

from softcr_models.constant_curvature.kernel import kernels
from softcr_models.prediction import RodPrediction
from softcr_models.robot import Robot, load_robot
from softcr_models.rod.compilation import cache_directory
from softcr_models.rod.cosserat_rod import CosseratRod
from softcr_models.rod.discretise import needs_fittings
from softcr_models.rod.obstacles import Sphere

ROD, FITTINGS, CONTACT = "rod", "fittings", "contact"


def needed_kernels(robot: object, *, loads: bool = False, obstacles: bool = False) -> list[str]:
    """The sets of kernels that a robot's nodes call.

    Args:
        robot: as loaded from its file.
        loads: whether forces act on it, be they a simulator's or estimated ones.
        obstacles: whether a simulated one may touch something.
    """
    fitted = loads or (isinstance(robot, Robot) and needs_fittings(robot))
    return [ROD, *([FITTINGS] if fitted else []), *([CONTACT] if obstacles else [])]


def is_warm(sets: Sequence[str] = (ROD,)) -> bool:
    """Whether the compiled kernels of this version lie on this machine already."""
    return not _missing(sets)


def ensure_warm(sets: Sequence[str] = (ROD,)) -> bool:
    """Compile the kernels in a process of its own, unless they lie on this machine already.

    A process that compiles a kernel itself computes other last bits than one that loads it, so
    whoever promises equal bits calls this first, before it touches a kernel. The order in which
    Python hashes words reaches the compiler too, so it is fixed.

    Returns:
        Whether they are there.
    """
    missing = _missing(sets)
    if not missing:
        return True
    compiling = [sys.executable, "-m", "softcr_models.warm_up", *missing]
    return subprocess.run(compiling, env=os.environ | {"PYTHONHASHSEED": "0"}).returncode == 0


def warm_up(sets: Sequence[str]) -> None:
    """Compile, or load, what simulator, filters and controllers call; minutes at most."""
    for each in sets:
        _CALLS[each]()
        cache_directory().mkdir(parents=True, exist_ok=True)
        _mark(each).touch()


def _rod() -> None:
    _call(CosseratRod(load_robot("licher2025")))
    kernels()


def _fittings() -> None:
    _call(CosseratRod(load_robot("two_segments"), 2))


def _call(rod: CosseratRod) -> None:
    RodPrediction(rod).warm_up()
    RodPrediction(rod, single_precision=False).warm_up()
    rod.linearize_parameters(rod.rest_state(), np.zeros(rod.input_size))


def _contact() -> None:
    rod = CosseratRod(load_robot("licher2025"), 2, obstacles=[Sphere((0.0, 0.0, 1.0), 0.01)])
    state, levels = rod.rest_state(), np.zeros((2, rod.input_size))
    rod.simulate_ramps(state, levels, 0.001, substeps=1)
    rod.contact_points(state)
    rod.base_wrench(state, levels[0])


_CALLS: Mapping[str, Callable[[], None]] = {ROD: _rod, FITTINGS: _fittings, CONTACT: _contact}


def _mark(name: str) -> Path:
    return cache_directory() / ("complete" if name == ROD else f"complete_{name}")


def _missing(sets: Sequence[str]) -> list[str]:
    return [each for each in sets if not _mark(each).is_file()]


if __name__ == "__main__":
    warm_up(_missing(sys.argv[1:] or [ROD]))
    sys.exit(0)
