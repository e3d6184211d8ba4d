"""The study of a GPU and its kit: what they measure and write where there is none."""

import json
import math
import sys
import zipfile
from contextlib import contextmanager
from importlib.metadata import distributions
from unittest.mock import MagicMock

import numpy as np
import pytest
import torch

from softcr_models.devices import what_cuda_lacks
from softcr_papers.licher2025 import gpu_training
from softcr_papers.licher2025.training.time_to_musts import TimeToMusts
from softcr_studies.frame.cell import Cell
from softcr_studies.frame.page import study_section
from softcr_studies.frame.table import read_table
from softcr_studies.speed import gpu, gpu_batches, gpu_kit, gpu_loops, gpu_wheels
from softcr_studies.speed.gpu_batches import GpuEffort
from softcr_studies.speed.gpu_loops import LoopOf
from softcr_studies.speed.timing import Skipped

SMALL = GpuEffort(
    repeats=3, seconds=0.1, periods=8, largest=256, loop_seconds=0.5, training_seconds=1.0
)
RODS = gpu.rollout("licher2025", 1000), gpu.rollout("licher2025", 65_536)


@pytest.fixture
def no_gpu():
    if not what_cuda_lacks("torch"):
        pytest.skip("there is a GPU")


@pytest.fixture
def measurements(tmp_path):
    return gpu_kit.Measurements(tmp_path, SMALL)


def rows_in(folder):
    return {row.key: row for row in read_table(folder / "table.json")[1]}


# -- what is asked ---------------------------------------------------------------------------------


def test_every_part_has_a_time_limit_and_every_cell_one_part():
    assert list(gpu_kit.LIMITS) == ["machine", *gpu.PARTS]
    cells = [cell for part in gpu.PARTS.values() for cell in part]
    assert len(cells) == len(set(cells))
    named = {(cell.case, cell.method) for cell in gpu.STUDY.cells(SMALL)}
    assert named == set(cells)


@pytest.mark.parametrize(
    ("cell", "quantity", "figures", "marks"),
    [
        ((RODS[0], gpu.GPU), "median", (0.2, 0.9, 1.1), ("goal", "pass", "MISS")),
        ((RODS[1], gpu.GPU), "per candidate-step", (4.0, 19.0, 21.0), ("goal", "pass", "MISS")),
        ((LoopOf(1000).name, gpu.GPU), "median", (0.5, 1.9, 2.1), ("goal", "pass", "MISS")),
        ((LoopOf(20_000).name, gpu.GPU), "p99", (14.0, 15.0), ("goal", "MISS")),
        ((LoopOf(1000, 500.0).name, gpu.GPU), "p99", (1.9, 2.1), ("goal", "MISS")),
        (("tests on a GPU", "pytest"), "failed", (0, 1), ("goal", "MISS")),
        ((gpu.MUSTS, gpu.GPU), "reached", (50.0, math.nan), ("goal", "MISS")),
    ],
)
def test_figures_are_marked_by_their_bounds(measurements, tmp_path, cell, quantity, figures, marks):
    name = {"reached": "time until it is good enough"}.get(quantity, quantity)
    for figure, mark in zip(figures, marks, strict=True):
        measurements.add(*cell, {quantity: figure, "note": "on a card"})
        row = rows_in(tmp_path)[(*cell, name)]
        assert row.mark == mark
        assert row.note == "on a card"


# -- what is measured ------------------------------------------------------------------------------


def test_without_a_gpu_one_line_says_so(no_gpu):
    for cell in (RODS[0], gpu.GPU), (LoopOf(1000).name, gpu.GPU), (gpu.MUSTS, gpu.GPU):
        found = gpu.run(Cell(*cell, 0, SMALL))
        assert found["skipped"].startswith("compiled, not run: ")
        assert "\n" not in found["skipped"]


def test_a_batch_on_the_processor():
    case = gpu.rollout("licher2025", 256)
    found = gpu.run(Cell(case, gpu.ALL_CORES, 0, SMALL))
    assert 0.0 < found["median"] <= found["p99"]
    assert found["per candidate-step"] == pytest.approx(1e6 * found["median"] / (256 * 8))
    assert 0.0 < found["deviation"] < 0.01
    larger = gpu.run(Cell(RODS[0], gpu.ALL_CORES, 0, SMALL))
    assert larger["skipped"] == "1000 candidates: more than 256 were not asked for"


def test_a_tip_that_is_not_finite_is_no_small_deviation():
    tips = np.zeros((2, 8, 3, 4))
    assert np.isfinite(gpu_batches._deviation(tips, "licher2025", 2))
    tips[1, 7, 0, 3] = np.nan
    assert math.isnan(gpu_batches._deviation(tips, "licher2025", 2))


def test_a_closed_loop_on_the_processor():
    found = gpu_loops.ticks(LoopOf(32, device="cpu"), SMALL)
    assert found["repeats"] == 35 - gpu_loops.FIRST
    assert 0.0 < found["median"] <= found["p99"] <= found["worst"]
    assert 0.0 <= found["missed"] <= 100.0
    assert 0.0 < found["tip error"] < 100.0
    assert "processor" in found["note"]


def test_what_a_measurement_raises_becomes_the_reason(monkeypatch, capsys):
    def fails(effort):
        raise reasons.pop(0)

    reasons = [RuntimeError("an illegal address"), Skipped("too large")]
    monkeypatch.setitem(gpu._WORK, (RODS[0], gpu.GPU), fails)
    reason = gpu.measured(Cell(RODS[0], gpu.GPU, 0, SMALL))["skipped"]
    assert reason.startswith("failed: RuntimeError: an illegal address (test_study_gpu.py")
    assert "Traceback" in capsys.readouterr().out
    assert gpu.measured(Cell(RODS[0], gpu.GPU, 0, SMALL)) == {"skipped": "too large"}


@pytest.mark.parametrize(
    ("output", "passed", "failed", "left_out"),
    [
        ("===== 5 passed, 91 deselected in 3.20s =====\n", 5, 0, 0),
        ("a\n=== 1 failed, 4 passed, 2 skipped in 63.02s (0:01:03) ===\n", 4, 1, 2),
        ("=== 2 passed, 1 error in 3.00s ===\n", 2, 1, 0),
        ("=== 96 deselected in 1.00s ===\n", 0, 1, 0),
        ("Segmentation fault\n", 0, 1, 0),
    ],
)
def test_what_pytest_says_is_counted(output, passed, failed, left_out):
    found = gpu.counted(output)
    assert found == {"passed": passed, "failed": failed, "left out": left_out}


class FakeGpu:
    """What `on_gpu` asks of torch.cuda; every piece of work takes 2 ms, in a graph 1 ms."""

    def __init__(self):
        self.now, self.recording = 0.0, None
        gpu = self

        class Event:
            def __init__(self, enable_timing):
                assert enable_timing

            def record(self):
                self.time = gpu.now

            synchronize = MagicMock()

            def elapsed_time(self, end):
                return end.time - self.time

        class Graph:
            def replay(self):
                gpu.now += 1.0 * len(self.work)

        @contextmanager
        def graph(made):
            made.work = gpu.recording = []
            yield
            gpu.recording = None

        self.cuda = MagicMock(Event=Event, CUDAGraph=Graph, graph=graph)  # streams take no time

    def work(self):
        if self.recording is None:
            self.now += 2.0
        else:
            self.recording.append(True)


def test_a_gpu_is_measured_by_events_with_and_without_a_graph(monkeypatch):
    fake = FakeGpu()
    monkeypatch.setattr(torch, "cuda", fake.cuda)
    launched, replayed = gpu_batches.on_gpu(fake.work, GpuEffort(repeats=30, seconds=0.02))
    assert launched == pytest.approx(np.full(10, 2.0))
    assert replayed == pytest.approx(np.full(20, 1.0))


@pytest.mark.parametrize("reached", [12.0, None])
def test_when_a_training_is_good_enough(monkeypatch, reached):
    seen = []

    def time_to_musts(*args):
        seen.append(args[:3])
        reached_mm = {"smooth": 0.4, "lagged steps": 0.8}
        figures = {f"{name} 100 %: tip position [mm]": mm for name, mm in reached_mm.items()}
        return TimeToMusts(3.0, 2.0, 20.0, 0.5, 6000, 300.0, {}, reached, figures)

    module = "softcr_papers.licher2025.training.time_to_musts"
    monkeypatch.setattr(f"{module}.time_to_musts", time_to_musts)
    monkeypatch.setattr(gpu_training, "require_gpu", lambda: None)
    found = gpu_training.until_good_enough(GpuEffort(training_seconds=10.0))
    assert found["reached"] == pytest.approx(math.nan if reached is None else reached, nan_ok=True)
    assert (found["smooth"], found["steps"], found["rate"]) == (0.4, 0.8, 300.0)
    assert seen == [("cuda", 10.0, "licher2025")]


# -- the kit ---------------------------------------------------------------------------------------


def test_a_part_that_fails_or_hangs_does_not_stop_the_others(monkeypatch, tmp_path):
    scripts = {
        "first": "print('one', flush=True); raise SystemExit(3)",
        "second": "import time; print('two', flush=True); time.sleep(60)",
        "third": "print('three')",
    }
    monkeypatch.setattr(gpu_kit, "LIMITS", {"first": 30, "second": 1.5, "third": 30})
    lines, told = [], []
    broken = gpu_kit.run_parts(
        list(scripts), lambda part: [sys.executable, "-c", scripts[part]], 60.0, lines.append,
        lambda part, left: told.append(part),
    )  # fmt: skip
    assert broken == {"first": "ended with code 3", "second": "took longer than 2 s"}
    assert [line for line in lines if " " not in line] == ["one", "two", "three"]
    assert told == list(scripts)
    late = gpu_kit.run_parts(["third"], lambda part: [], 0.5, lines.append)
    assert late == {"third": "no time was left"}


def test_what_was_measured_is_there_after_a_stop_and_the_rest_says_why(measurements, tmp_path):
    measurements.add(RODS[0], gpu.GPU, {"median": 0.4, "note": "on a card"})
    assert gpu_kit.Measurements(tmp_path, SMALL).has(RODS[0], gpu.GPU)
    gpu_kit.note_missing({"batches": "took longer than 2 s", "machine": "-"}, tmp_path, SMALL)
    rows = rows_in(tmp_path)
    assert rows[RODS[0], gpu.GPU, "median"].mean == 0.4
    missing = rows[RODS[1], gpu.GPU, "median"]
    assert math.isnan(missing.mean)
    assert missing.note == "skipped: the part batches took longer than 2 s"
    measurements.drop({(RODS[0], gpu.GPU): None})
    assert not measurements.has(RODS[0], gpu.GPU)
    (tmp_path / "cells.json").write_text('[{"case": 3')  # a broken file is begun anew
    gpu_kit.Measurements(tmp_path, SMALL).add(RODS[0], gpu.GPU, {"median": 0.4})
    assert len(rows_in(tmp_path)) == 1


def test_the_page_names_the_card_and_what_was_published(measurements, tmp_path):
    gpu_kit.tell_machine(tmp_path)
    machine = json.loads((tmp_path / "machine.json").read_text())
    (tmp_path / "machine.json").write_text(json.dumps(machine | {"gpu": "Card 9000"}))
    measurements.add(RODS[0], gpu.GPU, {"median": 0.4, "note": "float32"})
    about, rows = read_table(tmp_path / "table.json")
    assert about["experiment"] == gpu.STUDY.name
    assert [(row.must, row.goal, row.mark) for row in rows] == [(1.0, 0.3, "pass")]
    section = study_section(about, rows, tmp_path)
    assert "Card 9000" in section
    assert "| 6.42 | 0.4 |" in section


def test_a_part_is_measured_cell_by_cell(monkeypatch, tmp_path, capsys):
    cells = {(RODS[0], gpu.GPU): None, (RODS[1], gpu.GPU): None}
    monkeypatch.setattr(gpu, "PARTS", {"batches": cells})
    results = iter([{"median": 1.0, "note": "n"}, {"skipped": "too large"}])
    monkeypatch.setattr(gpu, "measured", lambda cell: next(results))
    gpu_kit.measure_part("batches", tmp_path, SMALL)
    first, second = capsys.readouterr().out.splitlines()
    assert first.startswith(f"{RODS[0]}, GPU: median 1 (")
    assert second.startswith(f"{RODS[1]}, GPU: too large (")
    assert len(rows_in(tmp_path)) == 2


def test_the_command_runs_a_part_in_a_process(monkeypatch, tmp_path, capsys):
    monkeypatch.setattr(gpu_kit, "KERNELS", ())
    earlier, folder = tmp_path / "earlier", tmp_path / "now"
    earlier.mkdir()
    gpu_kit.Measurements(earlier, SMALL).add(RODS[0], gpu.GPU, {"median": 0.4})
    words = ["--output", str(folder), "--parts", "machine", "--begin-with", str(earlier)]
    assert gpu_kit.main(words) == 0
    assert gpu_kit.Measurements(folder, SMALL).has(RODS[0], gpu.GPU)
    assert "machine: done after" in (folder / "log.txt").read_text()
    assert "cores" in json.loads((folder / "machine.json").read_text())
    assert "[" in capsys.readouterr().out


def test_parts_find_pinocchio_and_an_openmp_library(monkeypatch, tmp_path):
    site, libraries = tmp_path / "site", tmp_path / "libraries"
    python = f"python{sys.version_info.major}.{sys.version_info.minor}"
    inner = site / "cmeel.prefix" / "lib" / python / "site-packages"
    inner.mkdir(parents=True)
    carried = site / "pykdtree.libs" / "libgomp-1a2b.so.1.0.0"
    carried.parent.mkdir()
    carried.touch()
    monkeypatch.setattr(sys, "path", ["", str(site), "/elsewhere"])
    monkeypatch.setattr(gpu_kit, "declare_package", lambda folder: [str(folder)])
    monkeypatch.delenv("LD_LIBRARY_PATH", raising=False)
    monkeypatch.setattr(gpu_kit.ctypes, "CDLL", lambda name: None)
    found = gpu_kit.environment(libraries)
    assert found["PYTHONPATH"] == f"{site}:{inner}:/elsewhere:{libraries}"
    assert "LD_LIBRARY_PATH" not in found

    def none(name):
        raise OSError(name)

    monkeypatch.setattr(gpu_kit.ctypes, "CDLL", none)
    for _ in range(2):
        found = gpu_kit.environment(libraries)
    assert found["LD_LIBRARY_PATH"] == str(libraries)
    assert (libraries / "libgomp.so.1").resolve() == carried


def test_what_the_package_declares_is_found_where_it_is_not_installed(monkeypatch, tmp_path):
    """Without declarations the training, which belongs to a paper, would be left out in silence."""
    assert gpu_kit.declare_package(tmp_path / "none") == []

    def missing(name):
        raise gpu_kit.PackageNotFoundError(name)

    monkeypatch.setattr(gpu_kit, "version", missing)
    (folder,) = gpu_kit.declare_package(tmp_path)
    points = {point.group for found in distributions(path=[folder]) for point in found.entry_points}
    assert {"softcr.names", "softcr.models", "softcr.studies"} <= points
    monkeypatch.setattr(gpu, "PARTS", {"training": {}})
    with pytest.raises(SystemExit, match="training: nothing is declared"):
        gpu_kit.measure_part("training", tmp_path, SMALL)


# -- the wheels ------------------------------------------------------------------------------------


def test_wheels_keep_what_python_loads(tmp_path):
    lib, site = "cmeel.prefix/lib/", "cmeel.prefix/lib/python3.12/site-packages/"
    named = {
        f"{lib}libboost_b.so": b"\0libboost_b.so.1.9\0",
        f"{lib}libboost_b.so.1.9": b"\0libboost_b.so.1.9\0",
        f"{lib}libboost_unused.so.1.9": b"\0libboost_b.so.1.9\0",
        "cmeel.prefix/include/boost/b.hpp": b"text",
        "cmeel.prefix/bin/tool": b"program",
        "boost-1.dist-info/RECORD": b"",
    }
    modules = {
        f"{site}pin/wrap.cpython-312-x86_64-linux-gnu.so": b"\0libown.so\0",
        f"{lib}libown.so": b"\0libboost_b.so.1.9\0",
        f"{site}pin/__init__.py": b"import wrap",
        "pin-1.dist-info/RECORD": b"",
    }
    for name, files in (("boost", named), ("pin", modules)):
        with zipfile.ZipFile(tmp_path / f"{name}.whl", "w") as archive:
            for path, content in files.items():
                archive.writestr(path, content)
    gpu_wheels.make_small(tmp_path)
    kept = {}
    for name in ("boost", "pin"):
        with zipfile.ZipFile(tmp_path / f"{name}.whl") as archive:
            kept[name] = {each: archive.read(each) for each in archive.namelist()}
    assert set(kept["boost"]) == {f"{lib}libboost_b.so.1.9", "boost-1.dist-info/RECORD"}
    assert set(kept["pin"]) == set(modules)
    record = kept["boost"]["boost-1.dist-info/RECORD"].decode().splitlines()
    assert record[0].startswith(f"{lib}libboost_b.so.1.9,sha256=")
    assert record[1] == "boost-1.dist-info/RECORD,,"


def test_wheels_are_of_pinned_packages():
    pinned = (gpu._TREE / "constraints.txt").read_text()
    names = {line.partition("==")[0] for line in pinned.splitlines()}
    assert set(gpu_wheels.PACKAGES) <= names
