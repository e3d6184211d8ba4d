"""The surrogate's study: rows of Tables IV and V, and a short run with the shipped network."""

import matplotlib
import numpy as np
import pytest
from kit.studies import results_of

from softcr_papers.licher2025.studies import surrogate_accuracy
from softcr_papers.licher2025.studies.surrogate_accuracy import FAMILY, STUDY, TIMES
from softcr_papers.licher2025.studies.surrogate_steps import StepTime
from softcr_papers.licher2025.training.verification import MOTIONS
from softcr_runtime.bags.reading import Bag
from softcr_runtime.bags.signals import read_signals
from softcr_studies.frame.cell import Cell

WAYS = [
    ("exact rod, float32", 1),
    ("exact rod, float32", 147),
    ("network, folded", 147),
    ("network on a GPU, float32, 8 steps", 1000),
    ("NEMPC tick x 8: network, arrays", 1000),
]


pytestmark = pytest.mark.usefixtures("one_thread")


def times(cell):
    ways, batches = zip(*WAYS, strict=True)
    return {"way": ways, "batch": batches, "median_ms": [0.5] * len(WAYS)}


def test_rows_are_a_mean_over_seeds_beside_the_published_figures(tmp_path):
    def found(cell):
        if cell.case == TIMES:
            return times(cell)
        of_seed = {"tip position": 0.2 + 0.2 * cell.seed, "tip position, SD": 0.1}
        return of_seed | {"finer_mm": [6.1 + 0.2 * cell.seed, 6.0 + 0.2 * cell.seed]}

    rows = {
        row.key: row for row in STUDY.rows(results_of(STUDY, tmp_path, found, seeds=2, motions=2))
    }
    tip = rows[FAMILY, "network", "tip position"]
    assert (tip.published, tip.seeds) == ({"simulation": 0.549}, 2)
    assert (tip.mean, tip.sd) == pytest.approx((0.3, 0.1))
    assert tip.mark == "MISS"  # 0.27 mm is asked for
    spread = rows[FAMILY, "network", "tip position, SD"]
    assert spread.published == {"simulation": 0.377}
    assert spread.mean == pytest.approx(0.1)
    rod = rows[f"{FAMILY}, from a rod of 20 intervals", "its rod", "tip position"]
    assert rod.published == {"bench": 2.42}
    assert rod.mean == pytest.approx(6.1)
    # of batches: 3.30 us for each of 147 candidates
    timed = [rows[f"batch {batch}", way, "median time"] for way, batch in WAYS]
    published = [row.published.get("simulation") for row in timed]
    assert published == [35.9, None, pytest.approx(0.4851), None, None]
    assert {(row.mean, row.unit, row.timing) for row in timed} == {(0.5, "ms", True)}


def test_a_short_run_makes_rows_figures_and_bag(tmp_path, monkeypatch):
    matplotlib.use("Agg")
    monkeypatch.setattr(surrogate_accuracy, "HORIZONS", [1, 8])
    monkeypatch.setattr(surrogate_accuracy, "TICKS", 40)
    monkeypatch.setattr(
        surrogate_accuracy, "step_times", lambda *_: [StepTime(*way, 0.5, 1.0) for way in WAYS]
    )

    def found(cell):
        bag = tmp_path / "bag" if cell.case == FAMILY and not cell.seed else None
        return STUDY.run(Cell(cell.case, cell.method, cell.seed, cell.settings, bag))

    results = results_of(STUDY, tmp_path / "run", found, seeds=2, motions=2)
    rows = STUDY.rows(results)
    assert {row.case for row in rows} >= set(MOTIONS)
    assert len(rows) == 3 * 8 + 2 + len(WAYS)
    STUDY.draw(results, tmp_path)
    assert {path.name for path in tmp_path.glob("*.png")} == {"states.png", "horizons.png"}
    read = read_signals(Bag(tmp_path / "bag"))
    apart = 1e3 * np.linalg.norm(
        read.role("estimated tip").values - read.role("true tip").values, axis=1
    )
    assert 0.0 < apart.max() < 20.0
    assert len(read.role("readings")) == 40
