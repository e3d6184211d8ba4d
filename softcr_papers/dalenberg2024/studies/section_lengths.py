"""The kinematic simulation of Dalenberg, Sec. V-A: an arm that goes exactly where it is told.

The arm has the model's three sections and other lengths. The rates of the control law are applied
to it as they are, so the commanded configuration is the true one. The thesis leaves open the start,
the time step, the filter's window, the secondary objective's gain, and which configuration the
law's Jacobian is taken at. Several readings are run and shown, diverging ones among them; what is
required is asked of the commanded configuration from a straight start. A length error is that of
the section whose length is farthest off.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from pydantic import Field

from softcr_papers.constant_curvature.kinematics import ConstantCurvatureChain, coverage_of
from softcr_papers.dalenberg2024.apcc import Apcc, ApccSettings
from softcr_papers.dalenberg2024.apcc.adaptation import AdaptationSettings
from softcr_papers.dalenberg2024.shape_error import shape_error
from softcr_papers.dalenberg2024.tendons import Tendons
from softcr_runtime.console.panels import panels
from softcr_runtime.settings.node_settings import Seconds
from softcr_studies.frame.study import (
    Cell,
    Metric,
    Must,
    Result,
    Results,
    Row,
    Study,
    StudySettings,
)

CHAIN = ConstantCurvatureChain(3, base=np.diag([1.0, -1.0, -1.0, 1.0]))
TRUE_LENGTHS = np.array([0.105, 0.255, 0.24])
FIRST_LENGTHS = np.array([0.12, 0.28, 0.27])
SENSORS = np.array([0.105, 0.36, 0.60])
CENTRE, AMPLITUDE, FREQUENCY = np.array([0.0, 0.0, -0.5]), np.array([0.5, 0.3, 0.1]), 0.2 * np.pi
GAINS = (90.0, 42.5, 35.0)
LOST = 1.0  # a run whose tip error exceeds this has diverged [m]
LAST = 5.0  # the tip's error counts over so many seconds at the end [s]

COARSE = 0.01  # the other time step [s]
FIXED, COMMANDED = "fixed lengths", "commanded q"
_TENDONS = Tendons.of_racks(SENSORS, 0.03, np.zeros((3, 1)))  # they move nothing here
RMS = "tip RMS, last 5 s"
_SHAPE_PERIOD = 0.1  # between shapes that are compared [s]


def law(
    gains: Sequence[float] = GAINS, objective_gain: float = 1.0, state: str = "commanded"
) -> ApccSettings:
    """The thesis's controller of this simulation, without bounds on the lengths but > 2 cm."""
    adaptation = AdaptationSettings(gains=tuple(gains), longest=np.inf)
    told = {"gain": 1.0, "null_space_gain": objective_gain, "jacobian_state": state}
    return ApccSettings.model_validate(told | {"adaptation": adaptation})


LAWS = {
    COMMANDED: law(),
    FIXED: law().without_adaptation(),
    "q known": law(state="true"),
    "... no objective": law(objective_gain=0.0),
    "inferred q": law(state="inferred"),
    "inferred q, Γ / 50": law(tuple(0.02 * gain for gain in GAINS), state="inferred"),
}


@dataclass(frozen=True)
class Case:
    """A start and a time step."""

    name: str
    methods: tuple[str, ...]  # among LAWS
    dt: float | None = COARSE  # time step [s]; None: the study's fine one
    longer: int = 1  # the run is this many times the usual length T
    bent: bool = False  # whether the seed draws the start


STRAIGHT = Case("straight start", (COMMANDED, FIXED, "q known"), None)
CASES = (
    STRAIGHT,
    Case("straight, 10 ms", (COMMANDED, "... no objective", "inferred q")),
    Case("straight, 10 ms, 3 T", ("inferred q, Γ / 50",), longer=3),
)
BENT = Case("bent starts, 10 ms", (COMMANDED, FIXED), bent=True)


class Settings(StudySettings):
    """See StudySettings."""

    seeds: int = Field(
        10, ge=1, le=100, description="number of random starts besides the straight one"
    )
    seconds: Seconds = Field(20.0, ge=1.0, le=100.0, description="length T of a run")
    step_ms: float = Field(
        1.0, ge=0.1, le=10.0, description="fine time step", json_schema_extra={"unit": "ms"}
    )


def straight_start() -> np.ndarray:
    """(9,) the straight arm, shortened evenly to end at the trajectory's first point [m]."""
    shortening = (np.linalg.norm(CENTRE) - TRUE_LENGTHS.sum()) / 3.0
    return np.tile([0.0, 0.0, shortening], 3)


def bent_start(seed: int) -> np.ndarray:
    """(9,) a random shape, bends of some 0.5 rad, whose tip is at the trajectory's first point."""
    random = np.random.default_rng(seed)
    q = random.normal(size=9) * np.tile([0.5, 0.5, 0.0], 3)
    for _ in range(200):
        inverse = np.linalg.pinv(CHAIN.position_jacobian(q, TRUE_LENGTHS))
        q = q + 0.3 * inverse @ (CENTRE - CHAIN.position(q, TRUE_LENGTHS))
    return q


def run(cell: Cell) -> Result:
    """One reading of the law, with its figures by their names in the table."""
    case, length = cell.case, cell.settings.seconds
    start = bent_start(cell.seed) if case.bent else straight_start()
    dt = case.dt or 1e-3 * cell.settings.step_ms
    trace = simulate(LAWS[cell.method], start, dt, case.longer * length)
    times = trace["times"]
    trace["runs that diverge"] = 100.0 * trace["diverged"]
    if trace["diverged"]:
        return trace | {"diverges after": times[-1]}
    ends = np.searchsorted(times, length * np.arange(1, case.longer + 1)) - 1
    worst = 1e3 * np.abs(trace["lengths"][ends] - TRUE_LENGTHS).max(axis=1)
    names = "length error", "length error after 2 T", "length error after 3 T"
    late = trace["errors"][times > times[-1] - LAST]
    return trace | dict(zip(names, worst, strict=False)) | {
        RMS: 1e3 * float(np.sqrt(np.mean(late**2))),
        "E_shape at the end": 1e3 * trace["shapes"][-1],
        "sensors' distance, end": 1e3 * trace["linear"][-1].max(),
        "sensors' angle, end": 1e3 * trace["angular"][-1].max(),
    }  # fmt: skip


def simulate(
    settings: ApccSettings, start: np.ndarray, dt: float, seconds: float
) -> dict[str, Any]:
    """One run from a configuration (9,) [m], which the controller is told.

    Returns:
        times (T,) [s], `dt` apart; errors (T,) distance of the tip from its target [m]; lengths
        (T, 3) estimates before the tick [m]; linear, angular (T, 3) what Algorithm 2 left of the
        sensors' errors [m], [rad]; shapes (K,) E_shape every 0.1 s [m]; diverged: whether the run
        was given up, so that it is shorter.
    """
    controller = Apcc(CHAIN, FIRST_LENGTHS, SENSORS, _TENDONS, settings)
    controller.start(start)
    coverage = coverage_of(SENSORS, TRUE_LENGTHS)
    q, every, diverged = np.array(start, float), max(1, round(_SHAPE_PERIOD / dt)), False
    rows, shapes = [], []
    for step in range(round(seconds / dt) + 1):
        t, before = step * dt, controller.rest_lengths
        phase = FREQUENCY * t
        poses = CHAIN.pose(q, TRUE_LENGTHS, coverage)
        target = CENTRE + AMPLITUDE * np.sin(phase)
        velocity = FREQUENCY * AMPLITUDE * np.cos(phase)
        command = controller.tick(t, poses, target, velocity, true_configuration=q)
        error, inference = float(np.linalg.norm(command.error)), command.inference
        if diverged := not error < LOST:
            break
        rows.append({
            "times": t, "errors": error, "lengths": before, "linear": inference.linear,
            "angular": inference.angular,
        })  # fmt: skip
        if step % every == 0:
            model = CHAIN, inference.configuration, before
            shapes.append(shape_error(CHAIN, q, TRUE_LENGTHS, *model))
        q = q + dt * command.rate
    trace = {name: np.array([row[name] for row in rows]) for name in rows[0]}
    return trace | {"shapes": np.array(shapes), "diverged": diverged}


def bent_cells(results: Results) -> list[Cell]:
    """Nothing else is random."""
    return [Cell(BENT, method, seed, results.settings) for seed in range(results.settings.seeds)
            for method in BENT.methods]  # fmt: skip


def rows(results: Results) -> Iterator[Row]:
    """Tip errors relative to that of fixed lengths from the straight start."""
    fixed = results.first(STRAIGHT.name, FIXED)[RMS]
    for (case, method), (first, *_) in results.by_method().items():
        if case != BENT.name and method != FIXED and RMS in first:
            must = 5.0 if (case, method) == (STRAIGHT.name, COMMANDED) else None
            share, quantity = 100.0 * first[RMS] / fixed, "tip RMS over that of fixed lengths"
            yield Row.of(case, method, quantity, [share], "%", must=must)


def draw(results: Results, directory: Path) -> None:
    """Figs. 7 to 9 of every reading: tip error, E_shape, lengths, the sensors' errors."""
    found = {f"{method}; {case}": runs[0] for (case, method), runs in results.by_method().items()
             if case != BENT.name}  # fmt: skip
    labels = "tip error / mm", "E_shape / mm", "sensors' distance / mm", "lengths / m"
    with panels(directory / "readings.png", labels, len(found), sharex=False) as axes:
        for column, (name, trace) in zip(axes.T, found.items(), strict=True):
            times, shapes = trace["times"], 1e3 * trace["shapes"]
            column[0].plot(times, 1e3 * trace["errors"])
            column[1].plot(np.linspace(0.0, times[-1], len(shapes)), shapes)
            column[2].plot(times, 1e3 * trace["linear"].max(axis=1))
            column[3].plot(times, trace["lengths"])
            column[3].hlines(TRUE_LENGTHS, 0.0, times[-1], ("C0", "C1", "C2"), "dashed")
            column[3].set_ylim(0.0, 0.5)
            for each in column[:3]:
                each.set(yscale="log", ylim=(1e-2, None))
            column[0].set_title(name + (", diverges" if trace["diverged"] else ""), loc="left")


_UNITS = {
    "runs that diverge": "%", "diverges after": "s", RMS: "mm",
    "length error": "mm", "length error after 2 T": "mm", "length error after 3 T": "mm",
    "E_shape at the end": "mm", "sensors' distance, end": "mm", "sensors' angle, end": "mrad",
}  # fmt: skip

STUDY = Study(
    name="dalenberg2024/section-lengths",
    source="Dalenberg, MSc thesis, Sec. V-A",
    summary="a controller follows a trajectory and finds its arm's section lengths",
    run=run,
    cases=CASES,
    methods=lambda case: case.methods,
    settings=Settings,
    metrics=tuple(Metric(name, unit, name) for name, unit in _UNITS.items()),
    musts=(
        Must(RMS, 1.0, None, STRAIGHT.name, COMMANDED),
        Must("length error", 3.0, None, STRAIGHT.name, COMMANDED),
    ),
    exact="The arm has the model's own equations and goes where it is told, without mass, tendons "
    "or delay; poses are measured without noise. Only the section lengths differ.",
    further_rows=rows,
    draw=draw,
    later=bent_cells,
    seeded=False,
    quick={"seconds": 5.0},
)  # fmt: skip
