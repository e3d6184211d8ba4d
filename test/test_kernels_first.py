"""Kernels are compiled once, before anything is started, and the person is told so beforehand."""

import io
import os
import re
import subprocess
import sys
import time
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from types import SimpleNamespace

import numba
import numpy as np
import pytest
from rich.console import Console

from softcr_models import load_robot, warm_up
from softcr_models.rod import compilation
from softcr_models.rod.compilation import COMPILE_OPTIONS
from softcr_models.rod.inner import inlined, inner
from softcr_models.warm_up import Part, parts_of
from softcr_runtime.console.terminal import compile_kernels
from softcr_tools.cli import main
from softcr_tools.running.run_options import SimulationOptions
from softcr_tools.running.up import _kernels

LINE = "compiling the robot's kernels, once on this machine"
OTHERS = [
    "softcr_simulation.warm_up:PLANT",
    "softcr_estimation.warm_up:FILTER",
    "softcr_control.warm_up:MINIMUM",
]


def mark(names):
    """As if the kernels of these sets were compiled."""
    for part in (part for name in names for part in parts_of(name)):
        part.mark.parent.mkdir(parents=True, exist_ok=True)
        part.mark.touch()


@pytest.fixture
def bare_machine(monkeypatch, tmp_path):
    """A function that says how the process that compiles ends, on a machine without compiled
    kernels; it returns the calls: command, seed of hashes, and what had been said before."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))

    def ends_with(code, said=lambda: ""):
        calls = []

        @contextmanager
        def process(command, env, stdout, text):
            calls.append((command, env["PYTHONHASHSEED"], said()))
            yield SimpleNamespace(stdout=["0.25\n", "1.0\n"], returncode=code)
            if code == 0:
                mark(command[4:])

        faked = SimpleNamespace(Popen=process, PIPE=subprocess.PIPE)
        monkeypatch.setattr(warm_up, "subprocess", faked)
        return calls

    return ends_with


OF_STRAINS = "softcr_papers.valadas2024.strain.warm_up:KERNELS"


def test_the_line_is_said_before_and_the_duration_after_and_only_once(bare_machine):
    text = io.StringIO()
    console = Console(file=text, width=200)
    calls = bare_machine(0, text.getvalue)
    compile_kernels(console)
    ((command, seed, before),) = calls
    assert command == [sys.executable, "-m", "softcr_models.warm_up", "--tell", "rod"]
    assert seed == "0"  # the same bits in every process
    assert re.fullmatch(rf"{LINE}: about \d+ s\n", before)
    assert text.getvalue().splitlines()[1].startswith(f"{LINE} ... ")
    said = text.getvalue()
    compile_kernels(console)
    assert text.getvalue() == said
    assert len(calls) == 1


def test_only_what_a_run_needs_is_compiled(bare_machine):
    calls = bare_machine(1)
    two = load_robot("two_segments")
    for robot, around, expected in (
        (load_robot("licher2025"), {}, ["rod"]),
        (load_robot("licher2025"), {"loads": True}, ["rod", "fittings"]),
        (load_robot("licher2025_chain"), {}, ["rod", "chain"]),
        (load_robot("tentacle"), {"loads": True}, ["rod", "hyperelastic"]),
        (load_robot("asl_trunk"), {}, ["rod", "motors"]),
        (two, {"obstacles": True}, ["rod", "chain", "fittings", "contact"]),
        (load_robot("dalenberg_robot1", ("arm",)), {}, ["constant_curvature"]),
        (load_robot("pcs_one_segment", ("strain",)), {}, [OF_STRAINS]),
    ):
        assert warm_up.needed_kernels(robot, **around) == expected
    assert main(["up", "simulation", "--robot", "two_segments", "--plant.obstacles", "ball"]) == 2
    asked = calls[0][0][4:]
    assert asked == ["rod", "chain", "fittings", "contact", *OTHERS[1:]]
    mark(asked[:1])
    missing = [part.name for part in warm_up._missing(asked)]
    assert "fittings_float32" in missing
    assert not [name for name in missing if name.startswith("rod")]
    assert main(["up", "simulation", "--estimator.tip-force"]) == 2
    assert "fittings" in calls[1][0]


@pytest.mark.parametrize(
    ("values", "more"),
    [
        ({}, ["rod", "chain", *OTHERS]),
        ({"plant.plant_errors": "same_structure"}, ["rod", "chain", *OTHERS[1:]]),
        ({"estimator": "cc"}, ["rod", "constant_curvature", *OTHERS[1:]]),
    ],
)
def test_the_sets_of_a_simulation_are_those_of_its_parts(values, more):
    assert _kernels(SimulationOptions.of_options(values)) == more


def test_make_compiles_those_of_its_first_run_while_it_installs():
    text = (Path(__file__).parents[1] / "Makefile").read_text()
    sets = re.search(r"^KERNELS := ((?:.*\\\n)*.*)$", text, re.MULTILINE)[1]
    assert sets.replace("\\\n", " ").split() == _kernels(SimulationOptions.of_options({}))


def test_softcr_up_starts_nothing_before_and_a_compiler_that_fails_is_told(
    bare_machine, monkeypatch, tmp_path, capsys
):
    calls = bare_machine(1, lambda: capsys.readouterr().out)
    monkeypatch.setattr(
        "softcr_runtime.ros.executor.supervisor.Supervisor.run",
        lambda self: pytest.fail("the run was begun"),
    )
    results = tmp_path / "results"
    assert main(["up", "simulation", "--results", str(results)]) == 2
    ((_, _, before),) = calls
    assert f"{LINE}: about " in before
    assert "starting" not in before
    assert list(results.glob("*")) == []
    assert "could not be compiled: see above" in capsys.readouterr().err


# -- the processes that compile --------------------------------------------------------------------


def _noted(path, name, code=0, beside=""):
    """Stands for a kernel: notes when it began and ended; ends once another one has begun."""
    with path.open("a") as file:
        file.write(f"begin {name}\n")
    time.sleep(0.1)
    end = time.monotonic() + 60.0
    while beside and f"begin {beside}" not in path.read_text() and time.monotonic() < end:
        time.sleep(0.01)
    with path.open("a") as file:
        file.write(f"end {name}\n")
    if code:
        os._exit(code)


@pytest.fixture
def compiled(monkeypatch, tmp_path):
    """Compiles parts that are made of (name, seconds, writes, last, exit code), and of the name of
    another one that must have begun before they end; returns whether it worked, the shares told,
    and what was begun and ended."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr(warm_up, "_cores", lambda: 2)

    def compile_them(*rows):
        notes, told = tmp_path / "notes", []
        parts = tuple(
            Part(name, partial(_noted, notes, name, code, *beside), seconds, writes, last)
            for name, seconds, writes, last, code, *beside in rows
        )
        monkeypatch.setattr(warm_up, "_SETS", {"these": parts})
        good = warm_up.warm_up(["these"], told.append)
        return good, told, notes.read_text().splitlines() if notes.exists() else [], parts

    return compile_them


def test_parts_that_write_the_same_index_are_never_compiled_at_the_same_time(compiled):
    good, told, lines, _ = compiled(
        ("a", 3.0, "x", False, 0, "c"), ("b", 2.0, "x", False, 0), ("c", 1.0, "", False, 0)
    )
    assert good
    assert lines.index("end a") < lines.index("begin b")
    assert lines.index("begin c") < lines.index("end a")  # the other core is used meanwhile
    assert told == sorted(told)
    assert told[-1] == 1.0


def test_what_loads_the_kernels_of_others_comes_last(compiled):
    good, _, lines, _ = compiled(("z", 9.0, "", True, 0), ("a", 1.0, "", False, 0))
    assert good
    assert lines == ["begin a", "end a", "begin z", "end z"]


def test_a_part_that_fails_is_told_and_tried_again_and_the_others_stay(compiled):
    good, _, _, (a, b) = compiled(("a", 1.0, "", False, 3), ("b", 1.0, "", False, 0))
    assert not good
    assert not a.mark.exists()
    assert b.mark.exists()
    good, _, lines, _ = compiled(("a", 1.0, "", False, 0), ("b", 1.0, "", False, 0))
    assert good
    assert lines.count("begin a") == 2
    assert lines.count("begin b") == 1


def test_a_mark_is_of_the_text_it_was_compiled_from(monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    text = tmp_path / "kernels" / "text.py"
    text.parent.mkdir()
    text.write_text("x = 1\n")
    part = Part("a", int, 1.0, sources=(text.parent,))
    before = part.mark
    text.write_text("x = 2\n")
    assert part.mark != before


def test_every_part_has_a_name_of_its_own():
    names = [part.name for name in (*warm_up._SETS, *OTHERS) for part in parts_of(name)]
    assert len(names) == len(set(names))


# -- what kernels are compiled of ------------------------------------------------------------------


@inlined
def _twice(x):
    return 2.0 * x


@inner
def _sum_of_doubles(values):
    total = 0.0
    for k in range(values.shape[0]):
        total += _twice(values[k])
    return total


def test_inner_functions_are_a_part_of_their_kernel_and_no_machine_code_of_their_own():
    options = COMPILE_OPTIONS | {"cache": False}

    @numba.njit(parallel=True, **options)
    def sums(rows, out):
        for k in numba.prange(rows.shape[0]):
            out[k] = _sum_of_doubles(rows[k])

    rows = np.arange(12.0).reshape(3, 4)
    out = rows[:, 0].copy()
    emitted = []
    library, name = numba.core.codegen.JITCodeLibrary, "_finalize_specific"
    finalised = getattr(library, name)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(library, name, lambda one: (emitted.append(one.name), finalised(one))[1])
        sums(rows, out)
    assert out.tolist() == [_sum_of_doubles(row) for row in rows] == [12.0, 44.0, 76.0]
    (own,) = (name for name in emitted if name != "nrt")  # numba's own, once in a process
    assert own.endswith("sums")


_TWO_KERNELS = """
import sys

import numba

from softcr_models.rod.compilation import COMPILE_OPTIONS

@numba.njit(**COMPILE_OPTIONS)
def called(x):
    return x + 1.0

@numba.njit(**COMPILE_OPTIONS)
def calling(x):
    return 2.0 * called(x)

for name in sys.argv[1:]:
    print(globals()[name](3.0))
print(*(sum(kernel.stats.cache_hits.values()) for kernel in (called, calling)))
"""


def test_python_may_call_a_kernel_that_came_from_the_cache_while_another_was_compiled(tmp_path):
    script = tmp_path / "two_kernels.py"
    script.write_text(_TWO_KERNELS)
    environment = {**os.environ, "XDG_CACHE_HOME": str(tmp_path)}

    def printed(*names):
        command = [sys.executable, str(script), *names]
        return subprocess.check_output(command, env=environment, text=True).split()

    assert printed("called") == ["4.0", "0", "0"]
    assert printed("calling", "called") == ["8.0", "4.0", "1", "0"]
    assert printed("calling", "called") == ["8.0", "4.0", "1", "1"]


def test_a_process_says_once_that_it_compiles_and_only_of_our_kernels(capsys, monkeypatch):
    monkeypatch.setattr(compilation, "ANNOUNCES_NOTHING", False)
    listener = compilation._Announcing()
    for module in ("theirs", "softcr_models.rod.stepper", "softcr_models.rod.tangents"):
        kernel = SimpleNamespace(py_func=SimpleNamespace(__module__=module))
        listener.on_start(SimpleNamespace(data={"dispatcher": kernel}))
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("softcr: compiling kernels, once on this machine")
