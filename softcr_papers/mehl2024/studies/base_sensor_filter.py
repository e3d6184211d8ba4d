"""Table II of Mehl et al.: a rod's motion as filters of constant curvature see it from its base.

A run is cut into parts. The model is identified on the first, and every filter starts straight and
at rest on every part. The first is among those that count, as in the paper; it starts straight,
too, so the others are the harder ones. Means are over all parts; a figure of the paper's full data
set leaves out the two parts that did not converge, ours leaves out nothing.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
from pydantic import Field

from softcr_models import CosseratRod, Robot, load_robot
from softcr_papers.mehl2024.dynamics import ConstantCurvatureModel
from softcr_papers.mehl2024.identification import FITTED, identified
from softcr_papers.mehl2024.studies.filters import FILTERS, LEFT_OUT, corrected, see, see_as_rod
from softcr_papers.mehl2024.studies.plant import DT, deflection, sensed_run, table_one_robot
from softcr_runtime.console.panels import panels
from softcr_runtime.settings.node_settings import Seconds
from softcr_studies.frame.cell import Seeds, StudySettings
from softcr_studies.frame.study import Cell, Metric, Must, Published, Result, Results, Study

LOST = 0.010
"""A filter has converged when its mean tip error over a part's second half is below this [m]. Mehl
et al. do not say when they call a part converged; their worst part has a mean error of 3.2 mm."""

CC_UKF, ROD_UKF = "CC-UKF", "rod UKF"
IDENTIFIED, MODEL = "as identified", "identified model"
_ONE_MASS, _SHARED = "one mass", "mass shared"
_STATES = ("Δx", "Δy", "δL", "Δx'", "Δy'", "δL'")
_SHOWN = 7.0  # of the worst part, as in Mehl et al. [s]
_TIME = "time since the filter's start / s"


@dataclass(frozen=True)
class Case:
    """What is compared."""

    name: str
    methods: tuple[str, ...]
    stiffness_factor: float = 1.0  # on the identified bending stiffness


class Settings(StudySettings):
    """See StudySettings."""

    seeds: Seeds = 3
    robot: str = Field(
        "", description="plant, a name in config/robots or a path; empty: Mehl et al., Table I"
    )
    parts: int = Field(10, ge=1, le=100, description="number of parts into which a run is divided")
    seconds: Seconds = Field(10.0, ge=0.5, le=1000.0, description="length of a part")
    rod: bool = Field(
        False,
        description="whether a filter with the Cosserat rod as its model also runs, on the first "
        "seed",
    )


def cases(settings: Settings) -> list[Case]:
    """The plant, the model that is identified, and the filters with a right and a wrong one."""
    names = tuple(FILTERS)
    return [
        Case(f"{settings.parts} parts of {settings.seconds:g} s", ("plant",)),
        Case(MODEL, (_ONE_MASS, _SHARED)),
        Case(IDENTIFIED, names),
        Case("k_θ -15 %", names[:3], 0.85),
    ]


def with_rod(results: Results) -> list[Cell]:
    """The filter over the rod takes minutes."""
    case = Case(IDENTIFIED, tuple(FILTERS))
    return [Cell(case, ROD_UKF, 0, results.settings)] if results.settings.rod else []


def run(cell: Cell) -> Result:
    """One method on all parts."""
    settings: Settings = cell.settings
    robot = load_robot(settings.robot) if settings.robot else table_one_robot()
    nominal = ConstantCurvatureModel.of_robot(robot)
    height = CosseratRod(robot, 1).base_height
    parts = _parts(robot.model_dump_json(), settings.parts, settings.seconds, cell.stream("plant"))
    if cell.method == "plant":
        far = max(deflection(part["tips"], robot.length) for part in parts)
        fast = max(np.linalg.norm(part["velocities"], axis=1).max() for part in parts)
        return {"max deflection": 1e3 * far, "max velocity": 1e3 * fast}
    chosen = FILTERS.get(cell.method)
    shared = chosen.share_mass if chosen else cell.method == _SHARED
    model = identified(nominal, parts[0], DT, height, shared)
    if cell.case.name == MODEL:
        return {name: getattr(model, name) for name in FITTED}
    stiffness = cell.case.stiffness_factor * model.bending_stiffness
    model = model.replace(bending_stiffness=stiffness)
    if chosen is None:
        return scores(parts, [see_as_rod(robot, part, model) for part in parts])
    seen = [see(chosen, part, model, height) for part in parts]
    return scores(parts, corrected(model, parts, seen) if chosen.corrected else seen)


@lru_cache(maxsize=1)
def _parts(robot: str, parts: int, seconds: float, stream: int) -> list[Result]:
    """The run that all methods of a seed see; `robot` as JSON."""
    plant, samples = Robot.model_validate_json(robot), round(seconds / DT)
    nominal = ConstantCurvatureModel.of_robot(plant)
    whole = sensed_run(plant, nominal, parts * seconds, stream)
    begins = 1 + samples * np.arange(parts)
    return [{name: each[begin : begin + samples] for name, each in whole.items()}
            for begin in begins]  # fmt: skip


def scores(parts: Sequence[Result], seen: Sequence[Result]) -> dict[str, Any]:
    """What the table says of a filter, and what its figures show.

    Args:
        parts: the truth, see `sensed_run`; all are equally long.
        seen: what the filter says of each; what is not finite counts as infinitely wrong.

    Returns:
        Figures by their names in the table; tip_errors (parts, T) [m]; and of the part with the
        largest mean NRMSE: worst, its number; truth, found (T, 6) coordinates [m] and rates [m/s];
        stiffness (T,) [N/m].
    """
    first = round(LEFT_OUT / DT)
    truth, found = (np.concatenate([_all(each, "coordinates"), _all(each, "rates")], axis=2)
                    for each in (parts, seen))  # fmt: skip
    errors = np.nan_to_num(found - truth, nan=np.inf)[:, first:]
    # root mean square error over the largest true magnitude [%], by part and coordinate
    nrmse = 100.0 * np.sqrt(np.mean(errors**2, axis=1)) / np.abs(truth).max(axis=1)
    tip_errors, velocity_errors = (
        np.nan_to_num(np.linalg.norm(_all(seen, name) - _all(parts, name), axis=2), nan=np.inf)
        for name in ("tips", "velocities")
    )
    late = tip_errors[:, tip_errors.shape[1] // 2 :].mean(axis=1)
    worst = int(np.argmax(nrmse.mean(axis=1)))
    figures = {f"NRMSE {name}": each for name, each in zip(_STATES, nrmse.mean(0), strict=True)}
    return figures | {
        "NRMSE mean": nrmse.mean(),
        "NRMSE mean, worst part": nrmse[worst].mean(),
        "tip error": 1e3 * tip_errors[:, first:].mean(),
        "tip velocity error": 1e3 * velocity_errors[:, first:].mean(),
        "parts not converged": float(np.sum(~(late < LOST))),
        "tick": 1e3 * np.median(_all(seen, "ticks"), axis=1).mean(),
        "tip_errors": tip_errors,
        "worst": worst,
        "truth": truth[worst],
        "found": found[worst],
        "stiffness": seen[worst]["stiffness"],
    }


def _all(each: Sequence[Result], name: str) -> np.ndarray:
    """(parts, T, ...) one series of every part."""
    return np.array([part[name] for part in each])


def draw(results: Results, directory: Path) -> None:
    """The first seed: the worst part as Fig. 5, and every filter's tip errors."""
    _draw_part(results.first(IDENTIFIED, CC_UKF), directory / "worst_part.png")
    found = {f"{method}; {case}": each[0]["tip_errors"]
             for (case, method), each in results.by_method().items()
             if "tip_errors" in each[0]}  # fmt: skip
    with panels(directory / "tip_errors.png", len(found) * ["tip error / mm"], x=_TIME) as axes:
        for ax, (name, errors) in zip(axes, found.items(), strict=True):
            ax.plot(DT * np.arange(errors.shape[1]), 1e3 * errors.T, linewidth=0.8)
            ax.axhline(1e3 * LOST, color="tab:red", linestyle=":", linewidth=1.0)
            ax.set(yscale="log", ylim=(0.05, 200.0))
            ax.set_title(name, loc="left")


def _draw_part(result: Result, path: Path) -> None:
    shown = slice(0, round(_SHOWN / DT))
    times = DT * np.arange(len(result["truth"]))[shown]
    units = (*3 * ["mm"], *3 * ["mm/s"])
    labels = [f"{name} / {unit}" for name, unit in zip(_STATES, units, strict=True)]
    with panels(path, [*labels, "k_θ / (N/m)"], x=_TIME) as axes:
        for axis, ax in enumerate(axes[:6]):
            true, found = (1e3 * result[each][shown, axis] for each in ("truth", "found"))
            ax.plot(times, true, color="black", label="truth" if axis == 0 else None)
            ax.plot(times, found, "--", color="tab:orange", label="estimate" if axis == 0 else None)
            # the filter's first ticks would otherwise make everything else flat
            margin = 0.3 * np.ptp(true)
            ax.set_ylim(true.min() - margin, true.max() + margin)
        axes[6].plot(times, result["stiffness"][shown], "--", color="tab:orange")
        mean = f"mean NRMSE {result['NRMSE mean, worst part']:.1f} %"
        axes[0].set_title(f"{CC_UKF}, worst part {result['worst'] + 1}: {mean}")


_UNITS = {
    "max deflection": "mm", "max velocity": "mm/s",
    **dict(zip(FITTED, ("kg", "kg", "N/m", "N s/m", "N/m", "N s/m"), strict=True)),
    **{f"NRMSE {name}": "%" for name in _STATES}, "NRMSE mean": "%", "NRMSE mean, worst part": "%",
    "tip error": "mm", "tip velocity error": "mm/s", "parts not converged": "", "tick": "ms",
}  # fmt: skip
_TABLE_TWO = (*(f"NRMSE {name}" for name in _STATES), "NRMSE mean", "tip error", "max deflection",
              "tip velocity error", "max velocity", "NRMSE mean, worst part",
              "parts not converged")  # fmt: skip
_SIMULATED = (4.3, 4.6, 6.4, 18.4, 26.0, 12.7, 12.0, 3.1, 57.4, 57.5, 275.7, 15.3, 2.0)
_MEASURED = (6.9, 8.4, 5.9, 20.4, 20.3, 21.4, 13.9, 5.2, 63.9, 76.6, 398.0, 16.8, 0.0)
_TABLE_ONE_SIMULATED = (0.16, 0.0, 505.0, 0.15, 1128.0, 6.23)
_TABLE_ONE_MEASURED = (0.13, 0.05, 729.0, 1.83, 1015.0, 9.19)


def _printed(names: Sequence[str], values: Sequence[float], *more: Any) -> list[Published]:
    return [Published(*pair, *more) for pair in zip(names, values, strict=True)]


STUDY = Study(
    name="mehl2024/base-sensor-filter",
    source="Mehl et al. (2024), Tables I and II",
    summary="a constant-curvature filter sees a rod's motion through the sensor under its base",
    run=run,
    cases=cases,
    methods=lambda case: case.methods,
    settings=Settings,
    metrics=tuple(Metric(name, unit, name, name == "tick") for name, unit in _UNITS.items()),
    published=(
        *_printed(_TABLE_TWO, _SIMULATED, "simulation"),
        *_printed(_TABLE_TWO, _MEASURED, "bench"),
        *_printed(FITTED, _TABLE_ONE_SIMULATED, "simulation", MODEL, _ONE_MASS),
        *_printed(FITTED, _TABLE_ONE_MEASURED, "bench", MODEL, _ONE_MASS),
        # a tick at 8 ms in compiled MATLAB, 13 to 14 times as fast as real time
        Published("tick", 8.0 / 13.5, "bench"),
    ),
    musts=(
        Must("NRMSE mean", 12.0, 8.0, IDENTIFIED, CC_UKF),
        Must("tip error", 3.1, 2.0, IDENTIFIED, CC_UKF),
        Must("tip velocity error", 57.5, 40.0, IDENTIFIED, CC_UKF),
        Must("parts not converged", 0.0, None, IDENTIFIED, CC_UKF),
        Must("tick", 0.3, None, IDENTIFIED, CC_UKF),
    ),
    exact="The plant is a Cosserat rod RECONSTRUCTED from Table I on the section of licher2025, so "
    "absolute figures mean little: the paper's rod and motion are not printed. Filter and plant "
    "share geometry, chambers, gravity and pressures, which are known without noise; the other "
    "numbers of the filter's model are identified on the true motion of part 1. The sensor has the "
    "paper's white noise and no offset. The rod UKF has the plant's own equations and numbers on "
    "half as many intervals.",
    later=with_rod,
    draw=draw,
)  # fmt: skip
