"""Compiling every kernel ahead of time, so that no node does it while a robot waits.

`python -m softcr_models.warm_up` does it once per version and processor; later it loads them.
"""

import os
import subprocess
import sys

import numpy as np

from softcr_models.constant_curvature.kernel import kernels
from softcr_models.prediction import RodPrediction
from softcr_models.robot import load_robot
from softcr_models.rod.compilation import cache_directory
from softcr_models.rod.cosserat_rod import CosseratRod

_MARK = "complete"


def is_warm() -> bool:
    """Whether the compiled kernels of this version lie on this machine already."""
    return (cache_directory() / _MARK).is_file()


def ensure_warm() -> bool:
    """Compile the kernels in a process of its own, unless they lie on this machine already.

    A process that compiles a kernel itself computes other last bits than one that loads it, so
    whoever promises equal bits calls this first, before it touches a kernel. The order in which
    Python hashes words reaches the compiler too, so it is fixed.

    Returns:
        Whether they are there.
    """
    if is_warm():
        return True
    compiling = [sys.executable, "-m", "softcr_models.warm_up"]
    return subprocess.run(compiling, env=os.environ | {"PYTHONHASHSEED": "0"}).returncode == 0


def warm_up() -> None:
    """Compile, or load, what simulator, filters and controllers call; minutes at most."""
    rod = CosseratRod(load_robot("licher2025"))
    RodPrediction(rod).warm_up()
    RodPrediction(rod, single_precision=False).warm_up()
    kernels()
    rod.linearize_parameters(rod.rest_state(), np.zeros(rod.input_size))
    cache_directory().mkdir(parents=True, exist_ok=True)
    (cache_directory() / _MARK).touch()


if __name__ == "__main__":
    if not is_warm():
        warm_up()
    sys.exit(0)
