"""Measures the rows of docs/comparison.md that stand beside SoRoMoX: error against time.

    python3.11 -m venv /tmp/soromox && /tmp/soromox/bin/pip install soromox
    python docs/comparison/measure.py /tmp/soromox/bin/python

Both compute the same continuous problem: the rod of `licher2025` without its hole, caps and tip
mass, upright, with the same stiffnesses and damping of Kelvin and Voigt, under pressures of
30 +- 25 kPa in three phases at 1 Hz, held over 1/70 s, for two seconds. Only the discretisation
differs, so both are judged against one fine solution. Times are a processor's, of one thread, so
that other work on the machine disturbs them less.
"""

import json
import os
import subprocess
import sys
import time
from pathlib import Path

import numpy as np

from softcr_models import CosseratRod, load_robot

PERIOD, PERIODS = 1 / 70, 140
OURS = (3, 5, 10, 20)
THEIRS = (
    {"pieces": 2, "solver": "Tsit5", "steps_per_period": 400, "tolerance": 0.0},
    {"pieces": 3, "solver": "Tsit5", "steps_per_period": 400, "tolerance": 0.0},
    {"pieces": 5, "solver": "Tsit5", "steps_per_period": 400, "tolerance": 0.0},
    {"pieces": 3, "solver": "Kvaerno3", "steps_per_period": 0, "tolerance": 1e-3},
)


def main() -> int:
    """Print one line for each run."""
    robot = load_robot("licher2025").replace(
        inner_diameter=0.0, tip_mass=0.0, sensor_to_base_cap=0.0, base_cap_length=0.0,
        tip_cap_length=0.0,
    )  # fmt: skip
    turns = np.arange(PERIODS)[:, None] * PERIOD + np.arange(3) / 3
    pressures = 3e4 + 2.5e4 * np.sin(2 * np.pi * turns)
    fine = _ours(CosseratRod(robot, 40, max_substep=PERIOD / 32), pressures)[0]
    for intervals in OURS:
        rod = CosseratRod(robot, intervals)
        tips, seconds = min((_ours(rod, pressures) for _ in range(3)), key=lambda found: found[1])
        _say(f"softcr, {intervals} intervals", tips, seconds, fine)
    # a solid circle with the mass and the rotary inertia of our section, which has chambers
    radius = 2 * float(np.sqrt(robot.second_moment_of_area / robot.cross_section_area))
    order = {
        "period": PERIOD,
        "wrenches": (pressures @ robot.actuation_matrix.T).tolist(),
        "rod": {
            "length": robot.length, "radius": radius,
            "density": robot.density * robot.cross_section_area / (np.pi * radius**2),
            "stiffness": (1 / robot.compliances).tolist(),
            "relaxation": list(robot.relaxation_times), "gravity": robot.gravity,
        },
        "runs": list(THEIRS),
    }  # fmt: skip
    script = Path(__file__).with_name("soromox_process.py")
    one_thread = "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1"
    with subprocess.Popen(
        [sys.argv[1], str(script)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
        env={**os.environ, "JAX_PLATFORMS": "cpu", "PYTHONPATH": "", "XLA_FLAGS": one_thread},
    ) as process:  # fmt: skip
        assert process.stdin
        assert process.stdout
        process.stdin.write(json.dumps(order))
        process.stdin.close()
        for run, line in zip(THEIRS, process.stdout, strict=True):
            _say_theirs(run, json.loads(line), fine)
    return 0


def _say_theirs(run: dict, found: dict, fine: np.ndarray) -> None:
    steps, tolerance = run["steps_per_period"], run["tolerance"]
    how = f"{steps} steps per period" if steps else f"tolerance {tolerance:g}"
    tips = np.full((PERIODS, 3), np.nan) if found["tips"] is None else np.array(found["tips"])
    name = f"SoRoMoX, {run['pieces']} pieces, {run['solver']}, {how}"
    _say(name, tips, found["seconds"], fine)
    print(f"    compiled in {found['compiling']:.1f} s", flush=True)


def _ours(rod: CosseratRod, pressures: np.ndarray) -> tuple[np.ndarray, float]:
    begin = time.process_time()
    states = rod.simulate(rod.rest_state(), pressures, PERIOD)
    seconds = time.process_time() - begin
    return np.array([rod.tip_pose(state)[:3, 3] for state in states]), seconds


def _say(name: str, tips: np.ndarray, seconds: float, fine: np.ndarray) -> None:
    error = 1e3 * np.linalg.norm(tips - fine, axis=1).mean()
    speed = PERIODS * PERIOD / seconds
    print(f"{name}: {error:.3f} mm, {speed:.4g} s of motion per second of a core", flush=True)


if __name__ == "__main__":
    sys.exit(main())
