"""Measures the rows of docs/comparison.md that stand beside SoRoMoX: error against time.

    python3.11 -m venv /tmp/soromox && /tmp/soromox/bin/pip install soromox
    python docs/comparison/measure.py /tmp/soromox/bin/python

Both compute the same continuous problem: the rod of `licher2025` without its hole, caps and tip mass,
upright, with the same stiffnesses and the same damping of Kelvin and Voigt, under the pressures of the
benchmark (30 +- 25 kPa, three phases, 1 Hz, held over 1/70 s) for two seconds. Only the
discretisation differs, so both are judged against one fine solution, and that one against the
other's.
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
OURS = ((3, None), (5, None), (10, None), (20, None))
THEIRS = (
    *({"pieces": n, "solver": "Tsit5", "steps_per_period": s, "tolerance": 0.0}
      for n, s in ((2, 200), (3, 200), (3, 400), (5, 400), (5, 800), (8, 800), (8, 1600))),
    *({"pieces": n, "solver": "Kvaerno3", "steps_per_period": 0, "tolerance": 1e-4}
      for n in (2, 3, 5, 8)),
)  # fmt: skip


def main() -> int:
    """Print one line for each run."""
    robot = load_robot("licher2025").replace(
        inner_diameter=0.0, tip_mass=0.0, sensor_to_base_cap=0.0, base_cap_length=0.0,
        tip_cap_length=0.0,
    )  # fmt: skip
    turns = np.arange(PERIODS)[:, None] * PERIOD + np.arange(3) / 3
    pressures = 3e4 + 2.5e4 * np.sin(2 * np.pi * turns)
    fine = _ours(CosseratRod(robot, 40, max_substep=PERIOD / 32), pressures)[0]
    for intervals, substep in OURS:
        rod = CosseratRod(robot, intervals)
        tips, seconds = min((_ours(rod, pressures) for _ in range(3)), key=lambda found: found[1])
        _say(f"softcr, {intervals} intervals", tips, seconds, fine)
    order = {
        "period": PERIOD,
        "wrenches": (pressures @ robot.actuation_matrix.T).tolist(),
        "rod": {
            "length": robot.length, "radius": robot.outer_diameter / 2, "density": robot.density,
            "stiffness": (1 / robot.compliances).tolist(),
            "relaxation": list(robot.relaxation_times), "gravity": robot.gravity,
        },
        "runs": list(THEIRS),
    }  # fmt: skip
    script = Path(__file__).with_name("soromox_process.py")
    done = subprocess.run(
        [sys.argv[1], str(script)], input=json.dumps(order), capture_output=True, text=True,
        check=False, env={**os.environ, "JAX_PLATFORMS": "cpu", "PYTHONPATH": ""},
    )  # fmt: skip
    if done.returncode:
        raise SystemExit(done.stderr[-2000:])
    for run, found in zip(THEIRS, json.loads(done.stdout), strict=True):
        how = f"{run['steps_per_period']} steps" if run["steps_per_period"] else f"tolerance {run['tolerance']:g}"
        name = f"SoRoMoX, {run['pieces']} pieces, {run['solver']}, {how}"
        tips = np.full((PERIODS, 3), np.nan) if found["tips"] is None else np.array(found["tips"])
        _say(name, tips, found["seconds"], fine)
        print(f"    compiled in {found['compiling']:.1f} s")
    return 0


def _ours(rod: CosseratRod, pressures: np.ndarray) -> tuple[np.ndarray, float]:
    begin = time.perf_counter()
    states = rod.simulate(rod.rest_state(), pressures, PERIOD)
    seconds = time.perf_counter() - begin
    return np.array([rod.tip_pose(state)[:3, 3] for state in states]), seconds


def _say(name: str, tips: np.ndarray, seconds: float, fine: np.ndarray) -> None:
    error = 1e3 * np.linalg.norm(tips - fine, axis=1).mean()
    speed = PERIODS * PERIOD / seconds
    print(f"{name}: {error:.3f} mm, {1e3 * seconds:.2f} ms, {speed:.4g} s of motion per second", flush=True)


if __name__ == "__main__":
    sys.exit(main())
