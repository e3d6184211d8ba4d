"""The kinematic simulation of Dalenberg, Sec. V-A: an arm that goes exactly where it is told.

The arm has the model's three sections and other lengths. The rates of the control law are applied
to it as they are, so the commanded configuration is the true one. The thesis leaves open the start,
the time step, the filter's window, the secondary objective's gain, and which configuration the
law's Jacobian is taken at. Several readings are run and shown, diverging ones among them; what is
required is asked of the commanded configuration from a straight start. A length error is that of
the section whose length is farthest off.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes
from pydantic import Field

from softcr_control.apcc import Apcc, ApccSettings
from softcr_control.apcc.adaptation import AdaptationSettings
from softcr_models.constant_curvature.kinematics import ConstantCurvatureChain, coverage_of
from softcr_models.constant_curvature.shape_error import shape_error
from softcr_models.constant_curvature.tendons import Tendons
from softcr_studies.study import Cell, Metric, Must, Result, Results, Row, Study, StudySettings

CHAIN = ConstantCurvatureChain(3, base=np.diag([1.0, -1.0, -1.0, 1.0]))
TRUE_LENGTHS = np.array([0.105, 0.255, 0.24])
FIRST_LENGTHS = np.array([0.12, 0.28, 0.27])
SENSORS = np.array([0.105, 0.36, 0.60])
CENTRE, AMPLITUDE, FREQUENCY = np.array([0.0, 0.0, -0.5]), np.array([0.5, 0.3, 0.1]), 0.2 * np.pi
GAINS = (90.0, 42.5, 35.0)
LOST = 1.0
"""A run whose tip error exceeds this has diverged [m]."""
LAST = 5.0
"""The tip's error counts over so many seconds at the end [s]."""

COARSE = 0.01  # the other time step [s]
FIXED, COMMANDED = "fixed lengths", "commanded q"
_TENDONS = Tendons.of_racks(SENSORS, 0.03, np.zeros((3, 1)))  # they move nothing here
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
    """A start and a time step.

    Attributes:
        name: in the table.
        methods: among LAWS.
        dt: time step [s]; None: the study's fine one.
        longer: the run is this many times the usual length T.
        bent: whether the seed draws the start.
    """

    name: str
    methods: tuple[str, ...]
    dt: float | None = COARSE
    longer: int = 1
    bent: bool = False


STRAIGHT = Case("straight start", (COMMANDED, FIXED, "q known"), None)
CASES = (
    STRAIGHT,
    Case("straight, 10 ms", (COMMANDED, "... no objective", "inferred q")),
    Case("straight, 10 ms, 3 T", ("inferred q, Γ / 50",), longer=3),
)
BENT = Case("bent starts, 10 ms", (COMMANDED, FIXED), bent=True)


class Settings(StudySettings):
    """See StudySettings."""

    seeds: int = Field(1, ge=1, le=100, description="random starts beside the straight one")
    seconds: float = Field(
        20.0, ge=1.0, le=100.0, description="length T of a run", json_schema_extra={"unit": "s"}
    )
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
    """One reading of the law, and how far its lengths are off after every T."""
    case, seconds = cell.case, cell.settings.seconds
    start = bent_start(cell.seed) if case.bent else straight_start()
    dt = case.dt or 1e-3 * cell.settings.step_ms
    trace = simulate(LAWS[cell.method], start, dt, case.longer * seconds)
    if trace["diverged"]:
        return trace
    ends = np.searchsorted(trace["times"], seconds * np.arange(1, case.longer + 1)) - 1
    worst = np.abs(trace["lengths"][ends] - TRUE_LENGTHS).max(axis=1)
    return trace | {f"length error {end + 1}": 1e3 * each for end, each in enumerate(worst)}


def simulate(
    settings: ApccSettings, start: np.ndarray, dt: float, seconds: float
) -> dict[str, Any]:
    """One run.

    Args:
        settings: of the controller.
        start: (9,) true configuration, which the controller is told [m].
        dt: time step of arm and controller [s].
        seconds: length of the run.

    Returns:
        times (T,) [s]; errors (T,) distance of the tip from its target [m]; lengths (T, 3)
        estimates before the tick [m]; linear, angular (T, 3) what Algorithm 2 left of the sensors'
        errors [m], [rad]; shapes (K,) E_shape every 0.1 s [m]; diverged: whether the run was given
        up, so that it is shorter.
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
        rows.append((t, error, before, inference.linear, inference.angular))
        if step % every == 0:
            model = CHAIN, inference.configuration, before
            shapes.append(shape_error(CHAIN, q, TRUE_LENGTHS, *model))
        q = q + dt * command.rate
    names = "times", "errors", "lengths", "linear", "angular"
    trace = {
        name: np.array(column) for name, column in zip(names, zip(*rows, strict=True), strict=True)
    }
    return trace | {"shapes": np.array(shapes), "diverged": diverged}


def tip_rms(trace: Result) -> float:
    """Root mean square of the tip's distance over the last seconds [m]."""
    counted = trace["times"] > trace["times"][-1] - LAST
    return float(np.sqrt(np.mean(trace["errors"][counted] ** 2)))


def bent_cells(results: Results) -> list[Cell]:
    """Nothing else is random."""
    return [Cell(BENT, method, seed, results.settings) for seed in range(results.settings.seeds)
            for method in BENT.methods]  # fmt: skip


def rows(results: Results) -> list[Row]:
    """Tip errors relative to that of fixed lengths from the straight start."""
    fixed = tip_rms(results.first(STRAIGHT.name, FIXED))
    quantity, found = "tip RMS over that of fixed lengths", []
    for (case, method), runs in results.by_method().items():
        if case != BENT.name and method != FIXED and not runs[0]["diverged"]:
            must = 5.0 if (case, method) == (STRAIGHT.name, COMMANDED) else None
            share = 100.0 * tip_rms(runs[0]) / fixed
            found.append(Row.of(case, method, quantity, [share], "%", must=must))
    return found


def draw(results: Results, directory: Path) -> None:
    """Figs. 7 to 9 of what is required beside fixed lengths; Fig. 8 of every reading."""
    figure, axes = plt.subplots(5, sharex=True, figsize=(8.0, 9.0), layout="constrained")
    for method, style in ((COMMANDED, "-"), (FIXED, ":")):
        trace = results.first(STRAIGHT.name, method)
        shape_times = np.linspace(0.0, trace["times"][-1], len(trace["shapes"]))
        axes[0].plot(trace["times"], 1e3 * trace["errors"], style, label=method)
        axes[1].plot(shape_times, 1e3 * trace["shapes"], style)
        axes[2].plot(trace["times"], trace["lengths"].sum(axis=1), style)
        axes[4].plot(trace["times"], 1e3 * trace["linear"].max(axis=1), style)
    axes[2].axhline(TRUE_LENGTHS.sum(), color="black", linestyle="--")
    _draw_lengths(axes[3], results.first(STRAIGHT.name, COMMANDED))
    for ax in axes[[0, 1, 4]]:
        ax.set(yscale="log", ylim=(1e-2, None))
    labels = ("tip error / mm", "E_shape / mm", "whole length / m", "lengths / m",
              "sensors' distance / mm")  # fmt: skip
    for ax, label in zip(axes, labels, strict=True):
        ax.set_ylabel(label)
    axes[0].legend(loc="upper right", ncols=2)
    axes[-1].set_xlabel("time / s")
    figure.savefig(directory / "convergence.png")
    plt.close(figure)
    found = {f"{method}; {case}": runs[0] for (case, method), runs in results.by_method().items()
             if case != BENT.name}  # fmt: skip
    size = (10.0, 1.7 * len(found) + 0.6)
    figure, axes = plt.subplots(len(found), 2, figsize=size, layout="constrained")
    for (left, right), (name, trace) in zip(axes, found.items(), strict=True):
        left.plot(trace["times"], 1e3 * trace["errors"])
        left.set(yscale="log", ylabel="tip error / mm")
        left.set_title(name + (", diverges" if trace["diverged"] else ""), loc="left")
        _draw_lengths(right, trace)
        right.set(ylim=(0.0, 0.5), ylabel="lengths / m")
    for ax in axes[-1]:
        ax.set_xlabel("time / s")
    figure.savefig(directory / "readings.png")
    plt.close(figure)


def _draw_lengths(ax: Axes, trace: Result) -> None:
    for section, colour in enumerate(("tab:blue", "tab:orange", "tab:green")):
        ax.plot(trace["times"], trace["lengths"][:, section], color=colour)
        ax.axhline(TRUE_LENGTHS[section], color=colour, linestyle="--", linewidth=0.8)


def _kept(value: Any) -> Any:
    """A measure that diverged runs do not have."""
    return lambda trace: None if trace["diverged"] else value(trace)


STUDY = Study(
    name="dalenberg2024/section-lengths",
    source="Dalenberg, MSc thesis, Sec. V-A",
    summary="a controller follows a trajectory and finds its arm's section lengths",
    run=run,
    cases=CASES,
    methods=lambda case: case.methods,
    settings=Settings,
    metrics=(
        Metric("runs that diverge", "%", lambda trace: 100.0 * trace["diverged"]),
        Metric("diverges after", "s",
               lambda trace: trace["times"][-1] if trace["diverged"] else None),
        Metric("tip RMS, last 5 s", "mm", _kept(lambda trace: 1e3 * tip_rms(trace))),
        Metric("length error", "mm", "length error 1"),
        Metric("length error after 2 T", "mm", "length error 2"),
        Metric("length error after 3 T", "mm", "length error 3"),
        Metric("E_shape at the end", "mm", _kept(lambda trace: 1e3 * trace["shapes"][-1])),
        Metric("sensors' distance, end", "mm",
               _kept(lambda trace: 1e3 * trace["linear"][-1].max())),
        Metric("sensors' angle, end", "mrad",
               _kept(lambda trace: 1e3 * trace["angular"][-1].max())),
    ),
    musts=(
        Must("tip RMS, last 5 s", 1.0, None, STRAIGHT.name, COMMANDED),
        Must("length error", 3.0, None, STRAIGHT.name, COMMANDED),
    ),
    exact="The arm has the model's own equations and goes where it is told, without mass, tendons "
    "or delay; poses are measured without noise. Only the section lengths differ.",
    further_rows=rows,
    draw=draw,
    later=bent_cells,
    seeded=False,
)  # fmt: skip
