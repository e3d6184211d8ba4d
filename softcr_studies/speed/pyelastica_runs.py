"""PyElastica simulating our robot, in a process of its own."""

import json
import os
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from softcr_models.robot import Robot
from softcr_models.rod.cosserat_rod import CosseratRod
from softcr_studies.speed.motion import PERIOD

SCRIPT = Path(__file__).with_name("pyelastica_process.py")
LONGEST_WAIT = 600.0


class PyElasticaError(RuntimeError):
    """Its process failed."""


@dataclass(frozen=True)
class Discretisation:
    """How finely PyElastica computes."""

    elements: int
    steps_per_period: int


@dataclass(frozen=True, eq=False)
class Run:
    """One simulation.

    Attributes:
        discretisation: how it was done.
        tips: (T, 3) end of the rod after each period [m], frame of its base; NaN if it diverged.
        microseconds: per period.
    """

    discretisation: Discretisation
    tips: np.ndarray
    microseconds: float


def simulate(
    robot: Robot, pressures: np.ndarray, discretisations: Sequence[Discretisation]
) -> list[Run]:
    """Simulates the robot's rod from rest under pressures (T, 3) [Pa], each held for a period.

    Raises:
        PyElasticaError: the process failed.
    """
    answer = _ask(_order(robot, pressures, discretisations))
    runs = []
    for discretisation, result in zip(discretisations, answer, strict=True):
        diverged = result["tips"] is None
        tips = np.full((len(pressures), 3), np.nan) if diverged else np.array(result["tips"])
        runs.append(Run(discretisation, tips, 1e6 * result["seconds"] / len(pressures)))
    return runs


def _order(
    robot: Robot, pressures: np.ndarray, discretisations: Sequence[Discretisation]
) -> dict[str, Any]:
    """What the process is asked for.

    The pressure wrench is constant along the rod in the local frame (it acts along the chambers),
    so what it does to an elastic rod is what an intrinsic strain does: C w_p.
    """
    strains = pressures @ robot.actuation_matrix.T * robot.compliances
    rod = CosseratRod(robot, 10)
    return {
        "period": PERIOD,
        "intrinsic_strains": strains.tolist(),
        "rod": {
            "length": robot.length,
            "area": robot.cross_section_area,
            "second_moment_of_area": robot.second_moment_of_area,
            "density": robot.density,
            "tip_mass": robot.tip_mass,
            "tip_mass_fraction": robot.tip_mass_fraction,
            "stiffness": (1.0 / robot.compliances).tolist(),
            "gravity": (-rod.grid.gravity).tolist(),
            "damping_constant": _damping_constant(rod),
        },
        "runs": [
            {"elements": item.elements, "steps_per_period": item.steps_per_period}
            for item in discretisations
        ],
    }


def _damping_constant(rod: CosseratRod) -> float:
    """Uniform damping [1/s] with which the slowest oscillation decays as ours does.

    Velocities that decay with a constant g let an oscillation decay with g / 2.
    """
    unloaded = np.zeros(rod.input_size)
    jacobian, _ = rod.linearize(rod.equilibrium(unloaded), unloaded)
    modes = np.linalg.eigvals(jacobian)
    oscillating = modes[modes.imag > 0.1 * np.abs(modes)]
    return float(-2.0 * oscillating[np.abs(oscillating).argmin()].real)


def _ask(order: dict[str, Any]) -> list[dict[str, Any]]:
    try:
        done = subprocess.run(
            [sys.executable, str(SCRIPT)],
            input=json.dumps(order),
            capture_output=True,
            text=True,
            timeout=LONGEST_WAIT,
            env={**os.environ, "OPENBLAS_NUM_THREADS": "1"},
            check=False,
        )
    except subprocess.TimeoutExpired:
        raise PyElasticaError(f"PyElastica took longer than {LONGEST_WAIT:.0f} s") from None
    if done.returncode:
        last = (done.stderr.strip().splitlines() or ["no message"])[-1]
        raise PyElasticaError(f"PyElastica's process failed: {last}")
    return json.loads(done.stdout)
