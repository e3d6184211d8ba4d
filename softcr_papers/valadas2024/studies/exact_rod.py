"""Beyond the paper: strain models of an exact rod, and its material, from 4 s of noisy shapes.

The paper's robots are chains of constant strain, as its models are. Here the robot is a Cosserat
rod with a heavy tip, whose strains change along it. "Threshold 0.2" is the paper's fusion, "three
segments" the closest pair at a time, both with a mass, moment of inertia, stiffness and damping of
each segment. "Ten segments, one material" shares them, so that they are those of the rod: E I, G A,
E A, their damping, and the line densities of body and tip. Beside them the rod itself, identified
by output error from the same poses.
"""

from dataclasses import replace
from pathlib import Path

import numpy as np
from pydantic import Field

from softcr_papers.valadas2024.learning.basis import Basis
from softcr_papers.valadas2024.learning.fusion import FusionSettings, fuse, fuse_to
from softcr_papers.valadas2024.learning.learn import LearnSettings, learn_dynamics, rows_of
from softcr_papers.valadas2024.learning.material import Material, regress_material
from softcr_papers.valadas2024.learning.motion import ShapeMotion
from softcr_papers.valadas2024.learning.shape_fit import (
    PoseNoise,
    fit_strains,
    refine_lengths,
    shape_errors,
)
from softcr_papers.valadas2024.learning.simulated import mean_errors, predicted_strains
from softcr_papers.valadas2024.learning.smoothing import Smoothing
from softcr_papers.valadas2024.learning.sparsification import Stiffest
from softcr_papers.valadas2024.strain.kinematics import StrainKinematics
from softcr_papers.valadas2024.strain.numbers import StrainNumbers
from softcr_papers.valadas2024.studies import rod_motion
from softcr_papers.valadas2024.studies.rod_motion import (
    FRAME,
    GRAVITY,
    INTERVALS,
    TEST_HOLD,
    PlanarRod,
)
from softcr_runtime.console.panels import leave_room, panels
from softcr_studies.frame.results import Results
from softcr_studies.frame.study import Cell, Metric, Must, Result, Study, StudySettings

FUSED, THREE, BENT = "threshold 0.2", "three segments", "three segments without shear"
MATERIAL = "ten segments, one material"
ROD, COARSE = "rod of 20 intervals", "rod of 5 intervals"
CASE = "rod with a tip"

_NOISE = PoseNoise()
_CLOSE = FusionSettings(scale="constants", denoise=15)
_SETTINGS = LearnSettings(
    noise=_NOISE, gravity=GRAVITY, limits=Stiffest(integrated=True),
    smoothing=Smoothing(21, 3), half_width=40,
)  # fmt: skip
_TIP = 2  # of the ten segments
_OFF = (1.1, 0.9, 0.9, 1.1, 0.9, 1.2, 1.2, 0.8)  # of the rod's first guess

PARAMETERS = {
    "stiffness_bending": "E of bending", "stiffness_axial": "E of axial strain",
    "stiffness_shear": "G", "mass_body": "density", "mass_tip": "line density of the tip",
    "damping_bending": "damping of bending", "damping_shear": "damping of shear",
    "damping_axial": "damping of axial strain",
}  # fmt: skip
"""Name of a number -> the table's; areas are known, so that errors in per cent are the same."""

_95 = 1.96


class Settings(StudySettings):
    """See StudySettings."""

    seeds: int = Field(5, ge=1, le=100, description="draws of pressures and noise")


def run(cell: Cell) -> Result:
    """Errors of the test of 7 s and, where there are any, of the material."""
    true = rod_motion.true_rod()
    levels = rod_motion.test_levels()
    robot = true.motion(levels, TEST_HOLD)[::TEST_HOLD]
    if cell.method in (ROD, COARSE):
        found, tip = _rod(cell, levels)
    else:
        found, tip = _chain(cell, true, levels, robot)
    found |= {"robot_tip": robot[:, -1], "model_tip": tip}
    if not np.isfinite(tip).all():
        return found | {"runs that diverge": 100.0}
    position, angle = mean_errors(tip, robot[:, -1])
    return found | {"runs that diverge": 0.0, "tip": 1e3 * position, "angle": angle}


def _seen(cell: Cell) -> tuple[ShapeMotion, ShapeMotion, np.ndarray]:
    """The true motion and what is seen of it, without torques, and pressures (8, 500, 2)."""
    poses, levels = rod_motion.training(cell.stream("plant"))
    places = np.linspace(0.0, rod_motion.true_rod().robot.length, poses.shape[2])
    motion = ShapeMotion(poses, places, np.zeros((*poses.shape[:2], 3)), FRAME)
    random = cell.random("camera")
    return motion, motion.with_noise(_NOISE.position, _NOISE.angle, random), levels


def _chain(
    cell: Cell, rod: PlanarRod, levels: np.ndarray, robot: np.ndarray
) -> tuple[dict[str, object], np.ndarray]:
    """What a chain of constant strains is like, and the poses of its tip (701, 3) in the test."""
    true, seen, pressures = _seen(cell)
    found: dict[str, object] = {}
    if cell.method == MATERIAL:
        lengths = np.full(10, 0.1 * true.length)
        motion = replace(seen, torques=rod.torques(pressures, lengths))
        material, strains = learned_material(motion, lengths)
        numbers = material.regression.numbers
        pairs = {name: material.of(name) for name in PARAMETERS}
        found |= _judged(pairs)
    else:
        fusion = fuse(seen, _CLOSE) if cell.method == FUSED else fuse_to(seen, 3, _CLOSE)[-1]
        lengths = refine_lengths(seen, fusion.lengths, _NOISE)
        motion = replace(seen, torques=rod.torques(pressures, lengths))
        shear = 1.0 if cell.method == BENT else Stiffest().shear_modulus
        limits = Stiffest(integrated=True, shear_modulus=shear)
        learned = learn_dynamics(motion, None, lengths, replace(_SETTINGS, limits=limits))
        strains, numbers = learned.strains, learned.regression.numbers
    found |= {
        "segments": len(lengths),
        "strains kept": 100.0 * numbers.size / (3 * len(lengths)),
        "shape": 1e3 * shape_errors(true, lengths, strains)[0],
        "note": f"segments {np.round(1e3 * lengths, 1).tolist()} mm (first seed)",
    }
    return found, _predicted_tip(numbers, rod.torques(levels, lengths), robot)


def learned_material(motion: ShapeMotion, lengths: np.ndarray) -> tuple[Material, np.ndarray]:
    """The material of segments whose last ones have the tip's mass, and strains of all frames."""
    strains = fit_strains(motion, lengths, noise=_NOISE).strains
    down, size = np.array(GRAVITY) / abs(GRAVITY[1]), abs(GRAVITY[1])
    basis = Basis(lengths, down, size, np.arange(3 * len(lengths)))
    parts = ["body"] * (len(lengths) - _TIP) + ["tip"] * _TIP
    return regress_material(basis, rows_of(basis, motion, strains, _SETTINGS), parts), strains


def _predicted_tip(numbers: StrainNumbers, torques: np.ndarray, robot: np.ndarray) -> np.ndarray:
    places = np.linspace(0.0, numbers.lengths.sum(), robot.shape[1])
    first = ShapeMotion(np.tile(robot[:1], (1, 30, 1, 1)).reshape(1, 30, *robot.shape[1:]), places,
                        np.zeros((1, 30, 3)), FRAME)  # fmt: skip
    start = fit_strains(first, numbers.lengths, numbers.active).strains[0, 0]
    strains = predicted_strains(numbers, start, torques, TEST_HOLD * FRAME)
    return StrainKinematics(numbers.lengths).tip(strains)


def _rod(cell: Cell, levels: np.ndarray) -> tuple[dict[str, object], np.ndarray]:
    """What an identified rod is like, and the poses of its tip in the test."""
    true, intervals = rod_motion.true_rod().robot, INTERVALS if cell.method == ROD else 5
    _, seen, _ = _seen(cell)
    numbers = rod_motion.numbers_of(true)
    off = {name: v * f for (name, v), f in zip(numbers.items(), _OFF, strict=True)}
    guess = rod_motion.with_numbers(true, off)
    pressures = rod_motion.training_levels(cell.stream("plant"))
    values, errors = rod_motion.identify(seen.poses, pressures, _NOISE, guess, intervals)
    found = _judged({name: (values[name], errors[name]) for name in PARAMETERS})
    model = PlanarRod(rod_motion.with_numbers(true, values), intervals)
    return found, model.motion(levels, TEST_HOLD)[::TEST_HOLD, -1]


def _judged(found: dict[str, tuple[float, float]]) -> dict[str, object]:
    """Error, half width of the 95 % interval [%], and whether it holds the truth, of each."""
    truths = rod_motion.numbers_of(rod_motion.true_rod().robot)
    result: dict[str, object] = {}
    inside = []
    for name, (value, error) in found.items():
        off, half = 100.0 * (value / truths[name] - 1.0), 100.0 * _95 * error / truths[name]
        inside.append(abs(off) <= half)
        result |= {f"{PARAMETERS[name]}, off by": abs(off), f"{PARAMETERS[name]}, +-": half}
    return result | {
        "truths inside their intervals": 100.0 * float(np.mean(inside)),
        "off": np.array([100.0 * (v / truths[n] - 1.0) for n, (v, _) in found.items()]),
        "half": np.array([100.0 * _95 * e / truths[n] for n, (_, e) in found.items()]),
    }


def draw(results: Results, directory: Path) -> None:
    """The tip in the test, and the material with its intervals."""
    labels = "x [mm]", "y [mm]", "angle [rad]", "distance [mm]"
    with panels(directory / "test.png", labels, x="time [s]", title="tip, first seed") as axes:
        for number, method in enumerate((THREE, MATERIAL, ROD)):
            found = results.first(CASE, method)
            robot, model = (found[f"{who}_tip"] * [1e3, 1e3, 1.0] for who in ("robot", "model"))
            times = TEST_HOLD * FRAME * np.arange(len(robot))
            for k in range(3):
                if not number:
                    axes[k].plot(times, robot[:, k], "k", linewidth=2.5, label="exact rod")
                axes[k].plot(times, model[:, k], f"C{number}--", label=method)
            apart = np.linalg.norm((model - robot)[:, :2], axis=1)
            axes[3].semilogy(times, np.maximum(apart, 1e-5), f"C{number}", label=method)
        leave_room(axes[:3])
        axes[3].set_ylim(top=1e3)
    _draw_material(results, directory / "material.png")


def _draw_material(results: Results, path: Path) -> None:
    methods = MATERIAL, ROD, COARSE
    with panels(path, [f"{method}\noff by [%]" for method in methods], x="", height=2.4) as axes:
        for panel, method in zip(axes, methods, strict=True):
            for seed, found in enumerate(results.of(CASE, method)):
                places = np.arange(len(PARAMETERS)) + 0.12 * (seed - 2)
                panel.errorbar(places, found["off"], found["half"], fmt=".", color="C0")
            panel.axhline(0.0, color="k", linewidth=1.0)
            panel.set_yscale("symlog", linthresh=0.1)
        axes[-1].set_xticks(np.arange(len(PARAMETERS)), PARAMETERS.values(), rotation=20)


_UNITS = {
    "segments": "-", "strains kept": "%", "shape": "mm", "runs that diverge": "%",
    "tip": "mm", "angle": "rad",
    **{f"{name}, {what}": "%" for name in PARAMETERS.values() for what in ("off by", "+-")},
    "truths inside their intervals": "%",
}  # fmt: skip

STUDY = Study(
    name="valadas2024/exact-rod",
    source="",
    summary="strain models of an exact rod and its material, from 4 s of noisy shapes",
    run=run,
    cases=(CASE,),
    methods=(FUSED, THREE, BENT, MATERIAL, ROD, COARSE),
    settings=Settings,
    metrics=tuple(Metric(name, unit, name) for name, unit in _UNITS.items()),
    musts=tuple(
        Must("truths inside their intervals", 80.0, 90.0, method=method, at_least=True)
        for method in (MATERIAL, ROD)
    ),
    exact="The robot is a Cosserat rod, whose equations no chain of constant strains has: what is "
    "left of those is their own error. Exact for them are pressures, how chambers act, length, "
    "gravity, the state at the start of the test and, for one material, where the tip begins. The "
    "rod of 20 intervals has the robot's own equations, grid and time steps, that of 5 its "
    "equations: theirs is the error of the noise and of the grid alone.",
    about={
        "noise": "normal, 0.1 mm and 0.5 deg, of each pose but the base's",
        "motion": "8 x 0.5 s under pressures that jump every 50 ms; test 7 s of sines",
        "intervals": "of 95 %, by standard errors",
    },
    draw=draw,
)  # fmt: skip
