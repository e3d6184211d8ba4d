"""Figs. 2.5, 3.7 and 3.8 of Pawlowski (2019): where the tip gets, at rest and in motion.

The thesis prints no number of these figures.
"""

from pathlib import Path

import numpy as np
from matplotlib.axes import Axes
from pydantic import Field
from scipy.spatial import cKDTree

from softcr_papers.pawlowski2019.reference.dynamic_workspace import dynamic_workspace
from softcr_papers.pawlowski2019.reference.workspace import Workspace, coordinates_of, tip_of
from softcr_papers.pawlowski2019.studies.targets import LENGTH, SHARE, moving_tips, static_tips
from softcr_runtime.console.panels import panels
from softcr_studies.frame.study import Cell, Metric, Result, Results, Seeds, Study, StudySettings

STATIC, MOVING = "at rest", "in motion"
STRICT, QUANTILE = "all tips", f"{100 * SHARE:g} % of the tips in each bound"
_DRAWN = 4000  # tips of a picture


class Settings(StudySettings):
    """See StudySettings."""

    seeds: Seeds = 3
    equilibria: int = Field(
        2000, ge=20, le=100_000, description="number of random tensions of the statics"
    )
    runs: int = Field(4096, ge=8, le=100_000, description="number of random motions of 2.5 s")


def run(cell: Cell) -> Result:
    """Bounds of the box, and some of the tips."""
    if cell.case == STATIC:
        tips = static_tips(cell.settings.equilibria, cell.random("tensions"))
    else:
        tips = moving_tips(cell.settings.runs, cell.stream("tensions"))
    rows = tips.reshape(-1, 3)
    rows = rows[np.isfinite(rows).all(axis=1)]
    space = dynamic_workspace(rows, LENGTH, 1.0 if cell.method == STRICT else SHARE)
    filled = space.sample(len(rows), cell.random("samples"))
    return {
        "curvature": space.curvature, "low": space.stretch[0], "high": space.stretch[1],
        "tips": len(rows), "lateral": 1e3 * np.hypot(rows[:, 0], rows[:, 1]).max(),
        "inside": 100.0 * space.contains(rows).mean(),
        "near": 100.0 * _near(filled[:2000], rows),
        "drawn": rows[:: max(1, len(rows) // _DRAWN)], "lost": np.isnan(tips).any(axis=-1).sum(),
    }  # fmt: skip


def _near(points: np.ndarray, tips: np.ndarray, within: float = 5e-3) -> float:
    """Share of points (J, 3) that some tip comes as near to as 5 % of the length."""
    return float((cKDTree(tips).query(points)[0] < within).mean())


def draw(results: Results, directory: Path) -> None:
    """Tips seen from the side, radius against height, with both boxes, at rest and in motion."""
    cases = (STATIC, MOVING)
    with panels(directory / "workspace.png", ["z [mm]"] * 2, x="distance from the axis [mm]",
                height=3.2) as rows:  # fmt: skip
        for axes, case in zip(rows, cases, strict=True):
            tips = 1e3 * results.first(case, STRICT)["drawn"]
            axes.plot(np.hypot(tips[:, 0], tips[:, 1]), tips[:, 2], ".", ms=1.5, color="0.6")
            axes.set_title(case)
            for method, style in ((STRICT, "k-"), (QUANTILE, "k--")):
                _outline(axes, _space(results.first(case, method)), style, method)
            axes.legend(loc="lower left")


def _space(found: Result) -> Workspace:
    return Workspace(LENGTH, float(found["curvature"]), (float(found["low"]), float(found["high"])))


def _outline(axes: Axes, space: Workspace, style: str, label: str) -> None:
    """The border of a box."""
    curvatures = np.linspace(0.0, space.curvature, 100)
    edge = [(c, 0.0, space.stretch[1]) for c in curvatures]
    edge += [(c, 0.0, space.stretch[0]) for c in curvatures[::-1]]
    tips = 1e3 * tip_of(np.array([*edge, edge[0]]), LENGTH)
    axes.plot(np.hypot(tips[:, 0], tips[:, 1]), tips[:, 2], style, lw=1.0, label=label)


def _back(result: Result) -> float:
    """Largest distance of a drawn tip from that of its coordinates [m]: the inverse map."""
    tips = result["drawn"]
    again = tip_of(coordinates_of(tips, LENGTH), LENGTH)
    return float(np.linalg.norm(again - tips, axis=1).max())


STUDY = Study(
    name="pawlowski2019/workspace",
    source="Pawlowski, MSc thesis, Sec. 2.7.3 and 3.4.1",
    summary="where the tip gets at rest and in motion, as a box of curvature and stretch",
    run=run,
    cases=(STATIC, MOVING),
    methods=(STRICT, QUANTILE),
    settings=Settings,
    metrics=(
        Metric("largest curvature", "1/m", "curvature"),
        Metric("least stretch", "-", "low"),
        Metric("largest stretch", "-", "high"),
        Metric("farthest tip from the axis", "mm", "lateral"),
        Metric("tips", "-", "tips"),
        Metric("tips inside", "%", "inside"),
        Metric("points of the box within 5 % of the length of a tip", "%", "near"),
        Metric("error of the inverse map", "m", _back),
        Metric("runs whose numbers blew up", "-", "lost"),
    ),
    exact="The rod of the house with four tendons of ours, without weight; 5 intervals at rest, 10 "
    "in motion with a step of 2.5 ms. In motion every run begins at rest, and all tensions, "
    "uniform from 0 to 0.5 N, jump every 0.25 to 0.5 s; tips are taken every 0.05 s. The thesis "
    "says that its boxes hold all tips; how many it had and how long inputs were held it does "
    "not say, and it prints no number of them.",
    draw=draw,
)  # fmt: skip
