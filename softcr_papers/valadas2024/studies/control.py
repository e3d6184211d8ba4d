"""Fig. 8 of Valadas et al. (2024): setpoints of the shape, with a learned model's feed-forward.

The plant is case 2 without noise of the state. The model is learned from 4 s of noisy poses. The
continuous law is integrated with the plant, its proportional and derivative terms inside, its
integral every millisecond; a controller with a period computes its torque by `ShapeRegulator.tick`
and holds it.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from pydantic import Field

from softcr_papers.valadas2024.learning.learn import LearnSettings, learn_dynamics
from softcr_papers.valadas2024.learning.shape_fit import PoseNoise
from softcr_papers.valadas2024.shape_regulator import RegulatorGains, ShapeRegulator
from softcr_papers.valadas2024.strain.dynamics import StrainDynamics
from softcr_papers.valadas2024.strain.integration import Integration, rodas
from softcr_papers.valadas2024.strain.numbers import StrainNumbers
from softcr_papers.valadas2024.strain_references import LARGEST, SETPOINTS
from softcr_papers.valadas2024.studies.robots import CASES
from softcr_runtime.console.panels import leave_room, panels
from softcr_runtime.settings.node_settings import Seconds
from softcr_studies.frame.results import Results
from softcr_studies.frame.study import Cell, Metric, Must, Published, Result, Study, StudySettings

_SIZE = np.array([0.1, 5.0, 60.0, 0.1, 5.0, 60.0])
GAINS = RegulatorGains(
    proportional=0.1 * _SIZE,
    integral=0.6 * _SIZE,
    derivative=0.02 * np.array([0.1, 5.0, 40.0, 0.1, 5.0, 40.0]),
    saturation=np.array([40.0, 0.1, 0.2, 40.0, 0.1, 0.2]),
)
"""Of the authors' public data; the paper prints none."""

GENTLE = RegulatorGains(
    GAINS.proportional,
    GAINS.integral * np.array([0.25, 1.0, 1.0] * 2),
    GAINS.derivative,
    GAINS.saturation,
)
"""With a quarter of the integral gain of bending, which remembers the last setpoint."""


@dataclass(frozen=True)
class Law:
    """A way to control.

    Attributes:
        model: learned, true, or none for no feed-forward.
        period: of the controller [s]; 0: continuous.
        gentle: whether bending has a quarter of its integral gain.
    """

    model: str = "learned"
    period: float = 0.0
    gentle: bool = False


LEARNED, SAMPLED = "learned model", "learned model, every 5 ms"
METHODS: Mapping[str, Law] = {
    LEARNED: Law(),
    "true model": Law("true"),
    "no feed-forward": Law("none"),
    SAMPLED: Law(period=0.005),
    f"{LEARNED}, K_i / 4": Law(gentle=True),
    f"{SAMPLED}, K_i / 4": Law(period=0.005, gentle=True),
}
RATIO = "largest ratio to the paper"
_STRAINS = ("bending 1", "shear 1", "axial 1", "bending 2", "shear 2", "axial 2")
_PAPER = (9.2e-4, 3.1e-3, 5.6e-4, 3.2e-4, 2.0e-3, 6.7e-4)
_INTEGRAL = 0.001  # between steps of the continuous law's integral [s]
_SETTLED = 0.05  # of a step
_DRAWN = 0.02  # between states that are drawn [s]


class Settings(StudySettings):
    """See StudySettings."""

    seeds: int = Field(
        10, ge=1, le=100, description="draws of setpoints, and of torques and noise to learn from"
    )
    hold: Seconds = Field(5.0, ge=2.0, le=20.0, description="time for each setpoint")


def run(cell: Cell) -> Result:
    """Mean error of each strain over the last second of each setpoint, mean over setpoints."""
    law, true = METHODS[cell.method], CASES[1].arm.numbers
    numbers = true if law.model == "true" else _learned(cell)
    gains = GENTLE if law.gentle else GAINS
    if law.model == "none":
        numbers = true.replace(weight=0.0 * true.weight, stiffness=0.0 * true.stiffness)
    regulator, shapes = ShapeRegulator(StrainDynamics(numbers), gains), setpoints(cell)
    steps = round(cell.settings.hold / (law.period or _INTEGRAL))
    states = (_sampled if law.period else _continuous)(
        StrainDynamics(true), regulator, shapes, law.period or _INTEGRAL, steps
    )
    if not np.isfinite(states).all():
        return {"runs that diverge": 100.0}
    strains = states[..., :6]
    last = round(1.0 / (law.period or _INTEGRAL))
    errors = np.abs(strains - shapes[:, None])
    mean = errors[:, -last:].mean(axis=1).mean(axis=0)
    settled = _settling(strains, shapes, steps, law.period or _INTEGRAL)
    return {
        "runs that diverge": 0.0,
        RATIO: float((mean / _PAPER).max()),
        **{f"error of {name}": float(each) for name, each in zip(_STRAINS, mean, strict=True)},
        **{f"settling of {name}": each for name, each in zip(_STRAINS, settled, strict=True)},
        "strains": strains[:, :: round(_DRAWN / (law.period or _INTEGRAL))].reshape(-1, 6),
    }


def setpoints(cell: Cell) -> np.ndarray:
    """(7, 6) shapes: of the first seed those of the authors' data, of others in their ranges."""
    if not cell.seed:
        return SETPOINTS
    return cell.random("setpoints").uniform(-1.0, 1.0, SETPOINTS.shape) * LARGEST


def _learned(cell: Cell) -> StrainNumbers:
    """From noisy poses, the segments known."""
    case = CASES[1]
    position, angle = case.noise
    data = case.training(cell.stream("plant"))
    motion = data.motion.with_noise(position, angle, cell.random("camera"))
    settings = LearnSettings(noise=PoseNoise(position, angle), limits=None)
    return learn_dynamics(motion, None, case.arm.lengths, settings).regression.numbers


def _continuous(
    plant: StrainDynamics, regulator: ShapeRegulator, shapes: np.ndarray, dt: float, steps: int
) -> np.ndarray:
    """(7, steps, 12) states; springs and dampers of the feedback are in the plant's equations."""
    gains, numbers = regulator.gains, plant.numbers
    closed = StrainDynamics(
        numbers.replace(
            stiffness=numbers.stiffness + gains.proportional,
            damping=numbers.damping + gains.derivative,
        )
    )
    state, how, out = np.zeros(12), Integration(tolerance=1e-6), []
    for wanted in shapes:
        held = regulator.feedforward(wanted) + gains.proportional * wanted
        for _ in range(steps):
            # as the integral would go on at the present error: second order in dt
            ahead = regulator.integral + dt * np.tanh(gains.saturation * (wanted - state[:6]))
            levels = held + gains.integral * np.stack([regulator.integral, ahead])
            after = rodas(closed, state[None], levels[None], None, dt, how, held=False)[0, 0]
            for q in (state[:6], after[:6]):
                regulator.integrate(q, wanted, 0.5 * dt)
            state = after
            out.append(state)
    return np.array(out).reshape(len(shapes), steps, 12)


def _sampled(
    plant: StrainDynamics, regulator: ShapeRegulator, shapes: np.ndarray, period: float, steps: int
) -> np.ndarray:
    """(7, steps, 12) states; the torque is held for a period."""
    state, how, out = np.zeros(12), Integration(tolerance=1e-6), []
    for wanted in shapes:
        for _ in range(steps):
            finite = np.isfinite(state).all()
            torque = regulator.tick(state[:6], state[6:], wanted, period) if finite else np.zeros(6)
            levels = np.stack([torque, torque])[None]
            state = rodas(plant, state[None], levels, None, period, how)[0, 0]
            out.append(state)
    return np.array(out).reshape(len(shapes), steps, 12)


def _settling(strains: np.ndarray, shapes: np.ndarray, steps: int, dt: float) -> list[float]:
    """Median time until a strain stays within 5 % of its step [s]; the hold where it never does."""
    before = np.concatenate([np.zeros((1, 6)), shapes[:-1]])
    size = np.abs(shapes - before)
    outside = np.abs(strains - shapes[:, None]) > _SETTLED * size[:, None]
    last = steps - np.argmax(outside[:, ::-1], axis=1)
    return (np.median(np.where(outside.any(axis=1), last, 0), axis=0) * dt).tolist()


def draw(results: Results, directory: Path) -> None:
    """Fig. 8: every strain over time."""
    units = ["rad/m" if "bending" in name else "-" for name in _STRAINS]
    labels = [f"{name} [{unit}]" for name, unit in zip(_STRAINS, units, strict=True)]
    shown = {LEARNED: "C0-", "no feed-forward": "C1-", SAMPLED: "C2--"}
    with panels(directory / "figure_8_setpoints.png", labels, x="time [s]") as axes:
        for method, line in shown.items():
            found = results.first("2: 2S PCS", method)
            if "strains" in found:
                times = _DRAWN * np.arange(len(found["strains"]))
                for panel, strain in zip(axes, found["strains"].T, strict=True):
                    panel.plot(times, strain, line, label=method, linewidth=1.0)
        hold = results.settings.hold
        for panel, wanted in zip(axes, SETPOINTS.T, strict=True):
            edges = hold * np.arange(len(wanted) + 1)
            panel.stairs(wanted, edges, baseline=None, color="k", linestyle=":", label="setpoint")
        leave_room(axes)


STUDY = Study(
    name="valadas2024/control",
    source="Valadas et al. (2024), Section IV-E and Fig. 8",
    summary="setpoints of the shape with a learned model's feed-forward",
    run=run,
    cases=("2: 2S PCS",),
    methods=tuple(METHODS),
    settings=Settings,
    metrics=(
        Metric("runs that diverge", "%", "runs that diverge"),
        Metric(RATIO, "-", RATIO),
        *(
            Metric(f"error of {name}", "rad/m" if "bending" in name else "-", f"error of {name}")
            for name in _STRAINS
        ),
        *(Metric(f"settling of {name}", "s", f"settling of {name}") for name in _STRAINS),
    ),
    published=tuple(
        Published(f"error of {name}", value, "simulation", None, LEARNED)
        for name, value in zip(_STRAINS, _PAPER, strict=True)
    ),
    musts=(
        Must(RATIO, 1.0, 0.5),
        *(
            Must(f"error of {name}", value, 0.5 * value, None, method)
            for method in (LEARNED, SAMPLED, f"{LEARNED}, K_i / 4", f"{SAMPLED}, K_i / 4")
            for name, value in zip(_STRAINS, _PAPER, strict=True)
        ),
    ),
    draw=draw,
    exact="Plant and model share the equations of constant strain; the state is measured without "
    "noise and without delay. Setpoints of the first seed are those of the authors' data, of which "
    "the paper's figures are; those of the other seeds are drawn in its ranges.",
    about={"figures of the paper": "of the authors' public data, since Fig. 8 is a plot"},
)
