"""Experiment 2: rows of Tables IV and V, and a short run with the shipped network."""

import json

import numba
import numpy as np
import pytest
import torch
from rich.console import Console

from softcr_learning.surrogate.timing import StepTime
from softcr_learning.surrogate.verification import MOTIONS, Deviation, Verification
from softcr_models import CosseratRod, load_robot
from softcr_runtime.bags.reading import Bag
from softcr_runtime.bags.signals import read_signals
from softcr_tools.cli import main as softcr
from softcr_tools.experiments import surrogate
from softcr_tools.experiments.surrogate import PUBLISHED, table_iv, table_v
from softcr_tools.surrogate.verify import load_network

ROBOT = load_robot("licher2025")


@pytest.fixture(autouse=True)
def one_thread():
    threads = numba.get_num_threads(), torch.get_num_threads()
    yield
    numba.set_num_threads(threads[0])
    torch.set_num_threads(threads[1])


def test_table_iv_is_a_mean_over_seeds_beside_the_published_figures():
    one, other = (Deviation((m, 0.1), (0.01, 0.0), (0.1, 0.0), (1.0, 0.0)) for m in (0.2, 0.4))
    rows = {
        (r.case, r.method, r.quantity): r
        for r in table_iv({PUBLISHED: [one, other]}, {PUBLISHED: [(6.1, 6.0), (6.3, 6.2)]})
    }
    tip = rows[PUBLISHED, "network", "tip position"]
    assert (tip.paper, tip.seeds) == (0.549, 2)
    assert (tip.mean, tip.sd) == pytest.approx((0.3, 0.1))
    assert tip.mark == "MISS"  # 0.27 mm is asked for
    spread = rows[PUBLISHED, "network", "tip position, SD"]
    assert (spread.paper, spread.mean) == (0.377, pytest.approx(0.1))
    rod = rows[f"{PUBLISHED}, from a rod of 20 intervals", "its rod", "tip position"]
    assert (rod.paper, rod.mean) == (2.42, pytest.approx(6.1))


def test_table_v_is_of_batches_and_published_figures_stand_beside_single_steps():
    ways = [
        ("exact rod, float32", 1),
        ("exact rod, float32", 147),
        ("network, folded", 147),
        ("network on a GPU, float32, 8 steps", 1000),
        ("NEMPC tick x 8: network, arrays", 1000),
    ]
    rows = table_v([StepTime(way, batch, 0.5, 1.0) for way, batch in ways])
    # 3.30 us for each of 147 candidates
    assert [row.paper for row in rows] == [35.9, None, pytest.approx(0.4851), None, None]
    assert {(row.mean, row.unit) for row in rows} == {(0.5, "ms")}


def test_a_short_run_writes_table_figures_and_bag(tmp_path, monkeypatch):
    monkeypatch.setattr(surrogate, "HORIZONS", [1, 8])
    monkeypatch.setattr(surrogate, "step_times", lambda *_: [])
    network, card = load_network(ROBOT, "")
    seeds = [Verification(CosseratRod(ROBOT, card.intervals), network, 2, 40, s) for s in (1, 2)]
    rows = surrogate.run(seeds, {"network": "mine"}, tmp_path, Console(width=118))
    latest = tmp_path / "latest"
    table = json.loads((latest / "table.json").read_text())
    assert {row["case"] for row in table["rows"]} >= set(MOTIONS)
    assert (table["network"], len(table["rows"])) == ("mine", len(rows))
    assert {p.name for p in latest.glob("*.png")} == {"states.png", "horizons.png"}
    read = read_signals(Bag(latest / "bags" / "motion"))
    apart = 1e3 * np.linalg.norm(
        read.role("estimated tip").values - read.role("true tip").values, axis=1
    )
    assert 0.0 < apart.max() < 20.0
    assert len(read.role("readings")) == 40


def test_a_network_that_is_not_there_is_one_line(capsys):
    assert softcr(["experiment", "2", "--network", "/nowhere/net"]) == 2
    assert "/nowhere/net" in capsys.readouterr().err
