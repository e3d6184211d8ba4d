"""Table 4.1 of Pawlowski (2019): what it prints, beside what our studies of its experiments found.

Nothing is run here: the newest tables of `pawlowski2019/mpc` and `pawlowski2019/learning` in the
same results are read.
"""

from pathlib import Path

from softcr_papers.pawlowski2019.studies import learning, mpc
from softcr_papers.pawlowski2019.studies.columns import COLUMNS, IMPLICIT
from softcr_studies.frame.study import Cell, Metric, Must, Published, Result, Study
from softcr_studies.frame.table import Row, read_table

RATIO = "real-time ratio"
POINT, ANY, STATIC, CIRCLE = (
    "dynamic reach, single point", "dynamic reach, any point", "static reach", "trajectory",
)  # fmt: skip
_COLUMNS = tuple(column.name for column in COLUMNS)
_SCHEME = tuple(column.name for column in IMPLICIT)
"""The thesis's own scheme; its columns of 0.05 and 0.1 s are printed beside it, too."""
_LEARNT = ("DDPG", "GPS")
_ALL = _COLUMNS + _LEARNT + _SCHEME
_PRINTED = {
    RATIO: {"NLSQ, 0.1 s": 0.95, "DDPG": 0.01, "GPS": 0.01, _SCHEME[1]: 0.95},
    POINT: {"DDPG": 100.0, "GPS": 100.0},
    ANY: dict(zip(_ALL, (100.0, 100.0, 100.0, 90.0, 90.0, 90.0, 83.6, 94.0, 100.0, 100.0),
                  strict=True)),
    STATIC: dict.fromkeys(_COLUMNS + _SCHEME, 100.0),
    CIRCLE: dict(zip(_ALL, (3.45, 4.36, 6.90, 1.64, 2.03, 3.38, 6.40, 10.3, 4.36, 6.90),
                     strict=True)),
}  # fmt: skip
"""Row -> column -> what is printed: [-] of ratios, else [%]."""

_OF_MPC = {
    RATIO: (mpc.ESTIMATED, mpc.RATIO), ANY: (mpc.REACH, mpc.REACHED),
    STATIC: (mpc.HOLD, mpc.REACHED), CIRCLE: (mpc.ESTIMATED, mpc.ERROR),
}  # fmt: skip
_OF_LEARNING = {
    RATIO: (learning.ANY, learning.RATIO),
    POINT: (learning.POINT, learning.REACHED),
    ANY: (learning.ANY, learning.STRICTLY),
    CIRCLE: (learning.TRACK, learning.AROUND),
}
"""Row -> case and quantity of the study."""


def run(cell: Cell) -> Result:
    """The figure of one place of the table, or why there is none."""
    found = _found(cell)
    if isinstance(found, str):
        return {"skipped": found}
    return {"ratio" if cell.case == RATIO else "share": found.mean}


def source(place: str, column: str) -> tuple[str, tuple[str, str, str]]:
    """Study, and key of its row, of one place of the table."""
    learnt = column in _LEARNT
    case, quantity = (_OF_LEARNING if learnt else _OF_MPC)[place]
    if column in _SCHEME and case == mpc.ESTIMATED:
        case = "middle circle"
    return "learning" if learnt else "mpc", (case, column, quantity)


def _found(cell: Cell) -> Row | str:
    """The row of a study; or why there is none."""
    study, key = source(cell.case, cell.method)
    try:
        rows = read_table(_beside(cell) / study / "latest" / "table.json")[1]
    except FileNotFoundError:
        return f"pawlowski2019/{study} had no table when this one was made"
    row = next((row for row in rows if row.key == key), None)
    return row or f"pawlowski2019/{study} has no row {', '.join(key)}"


def _beside(cell: Cell) -> Path:
    """Where the results of this group of studies lie."""
    return cell.folder.parents[2]


FIGURE = "Table 4.1"
STUDY = Study(
    name="pawlowski2019/table-4-1",
    source="Pawlowski, MSc thesis, Table 4.1",
    summary="the thesis's table of controllers, with the figures of our studies",
    run=run,
    cases=tuple(_PRINTED),
    methods=lambda case: tuple(_PRINTED[case] if case != RATIO else _ALL),
    metrics=(Metric(FIGURE, "%", "share"), Metric(FIGURE, "-", "ratio", timing=True)),
    published=tuple(
        Published(FIGURE, value, "simulation", case, column)
        for case, columns in _PRINTED.items() for column, value in columns.items()
    ),
    musts=tuple(
        Must(FIGURE, value, None, case, column, at_least=case not in (RATIO, CIRCLE))
        for case, columns in _PRINTED.items() for column, value in columns.items()
    ),
    exact="Reaches are in per cent of the points; all dynamic reaches but those of a single "
    "point have goals in one box, which holds all tips of random motions. The trajectory is the "
    "mean tip error on the middle circle in per cent of the length, real-time ratios are means. "
    "Ours are those of the plant that is finer and 5 % stiffer than the model, with noise and an "
    "estimated state, for the trajectory and the ratio of predictive controllers; policies are "
    "told the state, and so are controllers of the implicit scheme, whose plant is their model, "
    "as in the thesis. The sections of the studies say what else differs from the thesis: "
    "tendons, points, plants, delay. The thesis prints a ratio only where it is below 1.",
    seeded=False,
    after=("pawlowski2019/mpc", "pawlowski2019/learning"),
)  # fmt: skip
