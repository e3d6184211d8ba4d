"""Studies of speed: every cell runs, durations are what they say, PyElastica's rod is ours."""

import itertools
import math

import numpy as np
import pytest
from kit.studies import run_of

from softcr_models.robots.robot import load_robot
from softcr_models.rod.cosserat_rod import CosseratRod
from softcr_studies.frame.catalogue import load_study
from softcr_studies.frame.study import Must
from softcr_studies.frame.table import read_table
from softcr_studies.speed import bus, integrators, motion, pyelastica, timing
from softcr_studies.speed.controller import BESIDE
from softcr_studies.speed.timing import Baseline, Effort, Skipped, speed_study

ROBOT = load_robot("licher2025")
SMALL = Effort(repeats=3, seconds=0.2, periods=8)
# methods that have a tip error, and what it may be [mm]
TIP_ERRORS = {
    ("rod step n = 5", "softcr"): 0.1,
    ("rod step n = 20", "softcr"): 0.1,
    ("batch 1000 x 8", "float32, one core"): 0.2,
    ("batch 1000 x 8", "scalar kernel"): 0.2,
    ("tick", "UKF, one core"): 1.0,
    ("tick", "EKF, one core"): 1.0,
}


@pytest.fixture(autouse=True)
def own_cache(tmp_path, monkeypatch):
    """References are computed here, not taken from the person's cache; kernels stay in theirs."""
    monkeypatch.setattr(motion, "cache_directory", lambda: tmp_path / "cache")
    integrators._motion.cache_clear()
    pyelastica._course.cache_clear()


def run(name, tmp_path, settings=SMALL):
    directory, shown = run_of(name, tmp_path, settings)
    rows = {}
    for row in read_table(directory / "table.json")[1]:
        rows.setdefault((row.case, row.method), {})[row.quantity] = row
    return rows, shown


@pytest.mark.parametrize(("group", "faster"), [
    ("rod", {}),
    ("house", {}),
    ("integrators", {"softcr": "SciPy BDF, exact Jacobian"}),
    ("batch", {"float32, one core": "scalar kernel"}),
    ("filter", {
        "UKF, one core": "147 x one step, scalar kernel",
        "EKF, one core": "UKF, one core",
    }),
    ("controller", {
        "NEMPC 1000 x 8, at most two cores": "8000 x one step, scalar kernel",
        "Gauss-Newton, 500 Hz, horizon 40, one core": "NEMPC 512 x 8, at most two cores",
        "softcr": "scipy's lsq_linear, bvls",
    }),
])  # fmt: skip
def test_every_row_of_ours_runs(group, faster, tmp_path):
    rows, shown = run(f"speed/{group}", tmp_path)
    study = load_study(f"speed/{group}")
    assert list(rows) == [(cell.case, cell.method) for cell in study.cells(SMALL)]
    for (case, method), found in rows.items():
        if found["median"].note.startswith("skipped"):
            assert "two cores" in method
            assert math.isnan(found["median"].mean)
            assert found["median"].mark == ""
            continue
        times = [found[name] for name in ("minimum", "median", "p99")]
        assert 0.0 < times[0].mean <= times[1].mean <= times[2].mean, (case, method)
        assert all(row.timing for row in times)
        if (case, method) in TIP_ERRORS:
            assert 0.0 < found["tip error"].mean < TIP_ERRORS[case, method]
        if method in faster:
            ratio = found[f"times faster than {faster[method]}"]
            assert ratio.mean > 0.0
            assert (ratio.unit, ratio.at_least) == ("x", True)
        if case == "tick as shipped, one core":
            assert found[BESIDE].mean > 0.0
    for note in {row.note for found in rows.values() for row in found.values()}:
        assert " ".join(note.split())[:40] in " ".join(shown.split())


def test_bounds_are_asked_of_the_rows_that_have_them():
    asked = {
        (must.case, must.method, must.quantity): (must.bound, must.goal)
        for group in ("rod", "batch", "filter", "controller", "bus")
        for must in load_study(f"speed/{group}").musts
    }
    assert asked["rod step n = 5", None, "median"] == (20.0, 14.0)
    assert asked["rod step n = 5", None, "tip error"] == (0.1, None)
    assert asked[None, "float32, two cores", "median times cores"] == (2.5, 1.2)
    assert asked[None, "UKF, one core", "median"] == (1.5, 0.7)
    assert asked[None, "NEMPC 1000 x 8, at most two cores", "median"] == (10.0, 6.0)
    assert asked[None, "Gauss-Newton, 70 Hz, horizon 8, one core", "p99"] == (3.0, 1.0)
    chain = "EKF, pressure chain, pressures filtered, one core"
    assert asked[None, chain, "median"] == (1.5, 0.9)
    assert asked[None, "nempc on licher2025_chain", BESIDE] == (1.25, 1.1)
    assert asked[None, "rod_mpc on licher2025_chain", BESIDE] == (1.25, 1.1)
    assert asked[None, None, "p99"] == (200.0, 100.0)


def test_without_a_wire_the_bus_is_skipped_with_a_reason(monkeypatch, tmp_path):
    monkeypatch.setattr(bus, "what_a_wire_lacks", lambda: "needs root")
    rows, shown = run("speed/bus", tmp_path)
    assert [found["median"].note for found in rows.values()] == ["skipped: needs root"] * 2
    assert "skipped: needs root" in shown


@pytest.mark.network
def test_the_bus_is_regulated_while_it_is_measured(tmp_path):
    if lacking := bus.what_a_wire_lacks():
        pytest.skip(lacking)
    rows, _ = run("speed/bus", tmp_path)
    for found in rows.values():
        assert found["repeats"].mean == 3000
        assert found["p99"].mean > 0.0
        assert found["p99"].must == 200.0
        assert found["bad working counters"].must == 0.0
    assert "valves enabled at the end" in found["median"].note


@pytest.mark.slow
def test_rows_beside_pyelastica(monkeypatch, tmp_path):
    pytest.importorskip("elastica")
    monkeypatch.setattr(pyelastica, "FINE", 20)
    monkeypatch.setattr(pyelastica, "THEIR_FINE", (20, 64))
    monkeypatch.setattr(pyelastica, "TRIED", ((4, 12), (19, 57)))
    rows, _ = run("speed/pyelastica", tmp_path, SMALL.model_copy(update={"periods": 20}))
    errors = []
    for n in (5, 10):
        case = f"n = {n} at equal tip error"
        ours, theirs = rows[case, "softcr"], rows[case, "PyElastica"]
        assert " 19 elements" in theirs["median"].note
        assert theirs["tip error"].mean <= ours["tip error"].mean
        ratio = theirs["median"].mean / ours["median"].mean
        assert ours["times faster than PyElastica"].mean == pytest.approx(ratio)
        errors.append(ours["tip error"].mean)
    assert errors[1] < errors[0]


@pytest.mark.slow
def test_pyelastica_computes_the_same_rod_where_both_laws_agree():
    """At a tenth of the pressures its large-strain law and its damping hardly matter."""
    pytest.importorskip("elastica")
    pressures = 0.1 * motion.three_phase_pressures(70)
    theirs = pyelastica.simulate(ROBOT, pressures, [(20, 64)])[0].tips
    rod = CosseratRod(ROBOT, 20)
    ours = pyelastica.rod_ends(rod, rod.simulate(rod.rest_state(), pressures, 1 / 70))
    amplitude = np.linalg.norm(ours - ours.mean(axis=0), axis=1).mean()
    assert motion.mean_distance(ours, theirs) < 0.08 * amplitude


def test_without_pyelastica_its_rows_say_so(monkeypatch, tmp_path):
    util, find = pyelastica.importlib.util, pyelastica.importlib.util.find_spec
    monkeypatch.setattr(util, "find_spec", lambda name: None if name == "elastica" else find(name))
    rows, _ = run("speed/pyelastica", tmp_path)
    notes = [found["median"].note for found in rows.values()]
    assert len(notes) == 4
    assert all("pip install pyelastica" in note for note in notes)


@pytest.mark.slow  # it imports and compiles PyElastica
def test_pyelastica_that_fails_or_diverges_is_told():
    pytest.importorskip("elastica")
    pressures = motion.three_phase_pressures(20)
    with pytest.raises(Skipped, match="process failed"):
        pyelastica.simulate(ROBOT, pressures, [(1, 3)])
    coarse = pyelastica.simulate(ROBOT, pressures, [(20, 10)])[0]
    assert np.isnan(coarse.tips).all()


def test_radau_is_computed_once(monkeypatch, tmp_path):
    rod, pressures = CosseratRod(ROBOT, 2), motion.three_phase_pressures(2)
    numbers = itertools.count(1.0)

    def integrate(rod, pressures):
        return np.full((len(pressures), rod.state_size), next(numbers))

    monkeypatch.setattr(motion, "_integrate_with_radau", integrate)
    for _ in range(2):
        assert (motion.radau_states(rod, pressures) == 1.0).all()
    assert (motion.radau_states(rod, 2.0 * pressures) == 2.0).all()
    assert (motion.radau_states(CosseratRod(ROBOT, 3), pressures) == 3.0).all()
    softer = CosseratRod(ROBOT.replace(bending_compliance=55.0), 2)
    assert (motion.radau_states(softer, pressures) == 4.0).all()
    for file in (tmp_path / "cache").rglob("radau_*.npy"):
        file.write_bytes(b"")
    assert (motion.radau_states(rod, pressures) == 5.0).all()


def test_radau_and_our_fine_steps_are_one_motion():
    rod, pressures = CosseratRod(ROBOT, 5), motion.three_phase_pressures(4)
    radau, fine = (
        motion.tip_positions(rod, states(rod, pressures))
        for states in (motion.radau_states, motion.fine_states)
    )
    assert 0.0 < motion.mean_distance(radau, fine) < 1e-5


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

    found = timing.measure_each(work, items(), Effort(repeats=5, seconds=600.0))
    assert 1e6 * found == pytest.approx([3, 4, 5, 6, 7])
    told = timing.told(1e6 * found, "us")
    assert (told["unit"], told["repeats"]) == ("us", 5)
    assert told["minimum"] == pytest.approx(3.0)
    assert told["median"] == pytest.approx(5.0)
    assert told["p99"] == pytest.approx(6.96)
    few = timing.measure_each(work, items(), Effort(repeats=50, seconds=1.0))
    assert len(few) == timing.FEWEST


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
    with pytest.raises(Skipped, match="kernels may use"), timing.cores(1000):
        broken()


@pytest.mark.parametrize(
    ("ours", "must", "mark"),
    [(13.0, 20.0, "goal"), (15.0, 20.0, "pass"), (21.0, 20.0, "MISS"), (math.nan, 20.0, "MISS")],
)
def test_a_baseline_is_a_row_and_a_ratio(ours, must, mark, tmp_path, monkeypatch):
    def cell(median):
        return lambda effort: timing.told(np.full(50, median), "us", note="a note")

    def gone(effort):
        raise Skipped("no such thing here")

    theirs = ("work", "theirs")
    cells = {("work", "ours"): cell(ours), theirs: cell(260.0), ("gone", "ours"): gone}
    beside = [Baseline(("work", "ours"), theirs, 2, must=50.0), Baseline(("gone", "ours"), theirs)]
    musts = (Must("median", must, 14.0, method="ours"),)
    study = speed_study("speed/made", "made by hand", cells, ["us"], beside, musts=musts)
    for module in ("runner", "workers"):
        monkeypatch.setattr(f"softcr_studies.frame.{module}.load_study", lambda place: study)
        monkeypatch.setattr(f"softcr_studies.frame.{module}.run_version", lambda file: "1")
    monkeypatch.setattr("softcr_studies.frame.runner.code_version", lambda file: "1")
    rows, shown = run("speed/made", tmp_path)
    assert rows["work", "ours"]["median"].mark == mark
    assert rows["work", "theirs"]["median"].mark == ""
    ratio = rows["work", "ours"]["times faster than 2 x theirs"]
    assert ratio.mean == pytest.approx(520.0 / ours, nan_ok=True)
    assert ratio.mark == ("goal" if ours < 10.4 else "MISS")
    gone = rows["gone", "ours"]
    assert list(gone) == ["median"]
    assert (gone["median"].note, gone["median"].mark) == ("skipped: no such thing here", "")
    assert "gone, ours: skipped: no such thing here" in shown
    assert "work, ours; work, theirs: a note" in shown
    page = tmp_path / "studies/speed/made/latest/page.md"
    assert "gone, ours: skipped: no such thing here" in page.read_text()
