"""The bench: every row runs, durations and marks are what they say, the rival's rod is our rod."""

import io
import itertools
import json
import math
from dataclasses import replace

import numpy as np
import pytest
from rich.console import Console

from softcr_models.devices import what_cuda_lacks
from softcr_models.errors import UserError
from softcr_models.robot import load_robot
from softcr_models.rod.cosserat_rod import CosseratRod
from softcr_tools.benchmarks import (
    bus_cycle,
    command,
    pyelastica,
    pyelastica_runs,
    reference_motion,
    timing,
)
from softcr_tools.benchmarks.pyelastica_runs import Discretisation, PyElasticaError
from softcr_tools.benchmarks.row import Requirement, Rival, Row
from softcr_tools.benchmarks.table import figure, one_line, print_table
from softcr_tools.benchmarks.timing import Effort, Timing

ROBOT = load_robot("licher2025")
SMALL = Effort(repeats=3, seconds=0.2, periods=8)
TIMING = Timing(2.0, 3.0, 1.0, 50)
# names of rows that have a tip error, and what it may be [mm]
TIP_ERRORS = {
    "rod step n = 5": 0.1,
    "rod step n = 20": 0.1,
    "batch 1000 x 8, float32, one core": 0.2,
    "scalar kernel": 0.2,
    "UKF tick, one core": 1.0,
    "EKF tick, one core": 1.0,
}


@pytest.fixture(autouse=True)
def own_cache(tmp_path, monkeypatch):
    """References are computed here, not taken from the person's cache; kernels stay in theirs."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


def test_every_row_of_ours_runs(tmp_path):
    path = tmp_path / "bench" / "latest.json"
    output = io.StringIO()
    groups = [group for group in command.GROUPS if group not in ("bus", "pyelastica")]
    rows = command.run(groups, SMALL, path, Console(file=output, width=100))
    kinds = ("rod step", "beside BDF", "batch", "scalar", "CUDA", "UKF", "EKF", "NEMPC tick 1000 x")
    kinds += ("Gauss-Newton tick, 70 Hz", "Gauss-Newton tick, 500 Hz", "bounded minimum")
    for kind in kinds:
        assert any(kind in row.name for row in rows), kind
    for row in rows:
        if "two cores" in row.name and timing.cores_available() < 2:
            assert row.mark == "skipped"
            continue
        if "CUDA" in row.name and what_cuda_lacks("numba"):
            assert row.skipped == what_cuda_lacks("numba")
            continue
        assert 0.0 < row.timing.minimum <= row.timing.median <= row.timing.p99, row.name
    errors = {row.name: row.tip_error for row in rows}
    for name, limit in TIP_ERRORS.items():
        assert 0.0 < 1e3 * errors[name] < limit, name
    content = json.loads(path.read_text())
    assert [row["name"] for row in content["rows"]] == [row.name for row in rows]
    assert content["rows"][0]["timing"]["median"] == rows[0].timing.median
    assert content["machine"]["processor"]
    assert len(content["machine"]["load_average_at_start"]) == 3
    for word in ("median", "p99", "≤ 20 us", "BDF", "sub-steps"):
        assert word in output.getvalue(), word
    assert not list(path.parent.glob("*.draft"))


def test_without_a_wire_the_bus_is_skipped_with_a_reason(monkeypatch):
    monkeypatch.setattr(bus_cycle, "what_a_wire_lacks", lambda: "needs root")
    rows = list(bus_cycle.rows(ROBOT, SMALL))
    assert [(row.mark, row.skipped) for row in rows] == [("skipped", "needs root")] * 2


@pytest.mark.network
def test_the_bus_is_regulated_while_it_is_measured():
    if lacking := bus_cycle.what_a_wire_lacks():
        pytest.skip(lacking)
    rows = list(bus_cycle.rows(ROBOT, SMALL))
    for row in rows:
        assert row.timing.repeats == 3000
        late, bad = row.requirements
        assert late.value == row.timing.p99 > 0.0
        assert f"{bad.value:.0f} bad working counters" in row.note
    assert "valves enabled at the end" in rows[1].note


def test_rows_beside_pyelastica(monkeypatch):
    pytest.importorskip("elastica")
    monkeypatch.setattr(pyelastica, "FINE", 20)
    monkeypatch.setattr(pyelastica, "THEIR_FINE", Discretisation(20, 64))
    monkeypatch.setattr(pyelastica, "THEIRS", (Discretisation(4, 12), Discretisation(19, 57)))
    rows = list(pyelastica.rows(ROBOT, replace(SMALL, periods=20)))
    assert [row.name.split(" beside")[0] for row in rows] == ["n = 5", "n = 10"]
    for row in rows:
        assert row.rival.median > 0.0
        assert " with 19 elements" in row.note
    assert rows[1].tip_error < rows[0].tip_error


def test_pyelastica_computes_the_same_rod_where_both_laws_agree():
    """At a tenth of the pressures its large-strain law and its damping hardly matter."""
    pytest.importorskip("elastica")
    pressures = 0.1 * reference_motion.three_phase_pressures(70)
    theirs = pyelastica_runs.simulate(ROBOT, pressures, [Discretisation(20, 64)])[0].tips
    rod = CosseratRod(ROBOT, 20)
    ours = pyelastica._rod_ends(rod, rod.simulate(rod.rest_state(), pressures, 1 / 70))
    amplitude = np.linalg.norm(ours - ours.mean(axis=0), axis=1).mean()
    assert reference_motion.mean_distance(ours, theirs) < 0.08 * amplitude


def test_without_pyelastica_its_rows_say_so(monkeypatch):
    monkeypatch.setattr(pyelastica.importlib.util, "find_spec", lambda name: None)
    rows = list(pyelastica.rows(ROBOT, SMALL))
    assert len(rows) == 2
    assert all(row.mark == "skipped" and "pip install pyelastica" in row.skipped for row in rows)


def test_pyelastica_that_fails_or_diverges_is_told():
    pytest.importorskip("elastica")
    pressures = reference_motion.three_phase_pressures(20)
    with pytest.raises(PyElasticaError, match="process failed"):
        pyelastica_runs.simulate(ROBOT, pressures, [Discretisation(1, 3)])
    coarse = pyelastica_runs.simulate(ROBOT, pressures, [Discretisation(20, 10)])[0]
    assert np.isnan(coarse.tips).all()


def test_radau_is_computed_once(monkeypatch, tmp_path):
    rod, pressures = CosseratRod(ROBOT, 2), reference_motion.three_phase_pressures(2)
    calls = []

    def integrate(rod, pressures):
        calls.append(len(pressures))
        return np.full((len(pressures), rod.state_size), float(len(calls)))

    monkeypatch.setattr(reference_motion, "_integrate_with_radau", integrate)
    for _ in range(2):
        assert (reference_motion.radau_states(rod, pressures) == 1.0).all()
    assert (reference_motion.radau_states(rod, 2.0 * pressures) == 2.0).all()
    assert (reference_motion.radau_states(CosseratRod(ROBOT, 3), pressures) == 3.0).all()
    softer = CosseratRod(ROBOT.replace(bending_compliance=55.0), 2)
    assert (reference_motion.radau_states(softer, pressures) == 4.0).all()
    for file in (tmp_path / "cache").rglob("radau_*.npy"):
        file.write_bytes(b"")
    assert (reference_motion.radau_states(rod, pressures) == 5.0).all()


def test_radau_and_our_fine_steps_are_one_motion():
    rod, pressures = CosseratRod(ROBOT, 5), reference_motion.three_phase_pressures(4)
    radau, fine = (
        reference_motion.tip_positions(rod, states(rod, pressures))
        for states in (reference_motion.radau_states, reference_motion.fine_states)
    )
    assert 0.0 < reference_motion.mean_distance(radau, fine) < 1e-5


def test_only_the_work_is_timed(monkeypatch):
    clock = [0]
    monkeypatch.setattr(timing.time, "perf_counter_ns", lambda: clock[0])
    monkeypatch.setattr(timing.time, "perf_counter", lambda: 1e-9 * clock[0])

    def items():
        for number in itertools.count():
            clock[0] += 10**9
            yield number

    def work(number):
        # the warm-up takes longer than everything after it
        clock[0] += 10**6 if number < timing.WARM_UP else number * 1000

    found = timing.measure_each(work, items(), Effort(repeats=5, seconds=1e6)).times(1e6)
    assert found.repeats == 5
    assert found.minimum == pytest.approx(3.0)
    assert found.median == pytest.approx(5.0)
    assert found.p99 == pytest.approx(np.percentile([3, 4, 5, 6, 7], 99))
    few = timing.measure_each(work, items(), Effort(repeats=50, seconds=1.0))
    assert few.repeats == timing.FEWEST


def test_cores_are_given_back():
    def broken():
        with timing.cores(1):
            seen.append(timing.numba.get_num_threads())
            raise ZeroDivisionError

    seen: list[int] = []
    before = timing.numba.get_num_threads()
    with pytest.raises(ZeroDivisionError):
        broken()
    assert seen == [1]
    assert timing.numba.get_num_threads() == before


@pytest.mark.parametrize(
    ("requirements", "mark"),
    [
        ((), ""),
        ((Requirement(13.0, "us", 20.0, 14.0),), "goal"),
        ((Requirement(15.0, "us", 20.0, 14.0),), "pass"),
        ((Requirement(21.0, "us", 20.0, 14.0),), "MISS"),
        ((Requirement(13.0, "us", 20.0, 14.0), Requirement(0.2, "mm", 0.1)), "MISS"),
        ((Requirement(99.0, "x", 100.0, at_least=True),), "MISS"),
        ((Requirement(101.0, "x", 100.0, at_least=True),), "goal"),
        ((Requirement(math.nan, "mm", 0.1),), "MISS"),
    ],
)
def test_marks(requirements, mark):
    row = Row("row", "us", TIMING, rival=Rival("rival", 50.0), requirements=requirements)
    assert row.mark == mark
    assert row.ratio == 25.0
    assert one_line(row) == "row: 2.00 us, 25.0 x" + (f" ({mark})" if mark else "")


def test_a_skipped_row_says_why():
    row = Row("row", skipped="no such thing here")
    output = io.StringIO()
    print_table(Console(file=output, width=100), [row])
    assert row.mark == "skipped"
    assert "row: no such thing here" in output.getvalue()
    assert one_line(row) == "row: skipped: no such thing here"


@pytest.mark.parametrize(
    ("value", "text"),
    [(0.05288, "0.0529"), (17.55, "17.6"), (1359.6, "1360"), (0.0, "0.0"), (math.inf, "inf")],
)
def test_three_digits(value, text):
    assert figure(value) == text


def test_a_place_that_cannot_be_written_is_named_before_anything_is_measured(tmp_path):
    (tmp_path / "results").write_text("a file")
    with pytest.raises(UserError, match="results"):
        command.main(["--only", "rod", "--results", str(tmp_path / "results")])
