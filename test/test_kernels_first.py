"""Kernels are compiled once, before anything is started, and the person is told so beforehand."""

import io
import subprocess
import sys
from types import SimpleNamespace

import pytest
from rich.console import Console

from softcr_models import load_robot, warm_up
from softcr_models.errors import UserError
from softcr_models.rod.compilation import cache_directory
from softcr_runtime.console import compile_kernels
from softcr_tools.cli import main

LINE = "compiling the rod's kernels, once on this machine"


class Compiler:
    """The process that compiles: what had been said when it was started, and how it ends."""

    def __init__(self, said, code):
        self.said, self.code, self.calls = said, code, []

    def __call__(self, command, env):
        self.calls.append((command, env["PYTHONHASHSEED"], self.said()))
        if self.code == 0:
            cache_directory().mkdir(parents=True)
            (cache_directory() / "complete").touch()
        return subprocess.CompletedProcess(command, self.code)


@pytest.fixture
def bare_machine(monkeypatch, tmp_path):
    """A function that says how the compiler ends, on a machine without compiled kernels."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))

    def ends_with(code, said=lambda: ""):
        compiler = Compiler(said, code)
        monkeypatch.setattr(warm_up, "subprocess", SimpleNamespace(run=compiler))
        return compiler

    return ends_with


def test_the_line_is_said_before_and_the_duration_after_and_only_once(bare_machine):
    text = io.StringIO()
    console = Console(file=text, width=200)
    compiler = bare_machine(0, text.getvalue)
    compile_kernels(console)
    ((command, seed, before),) = compiler.calls
    assert command == [sys.executable, "-m", "softcr_models.warm_up", "rod"]
    assert seed == "0"  # the same bits in every process
    assert before == f"{LINE}: one to two minutes\n"
    assert text.getvalue().splitlines()[1].startswith(f"{LINE} ... ")
    said = text.getvalue()
    compile_kernels(console)
    assert text.getvalue() == said
    assert len(compiler.calls) == 1


def test_only_what_a_run_needs_is_compiled(bare_machine, monkeypatch, capsys):
    compiler = bare_machine(1)
    two = load_robot("two_segments")
    for robot, around, expected in (
        (load_robot("licher2025"), {}, ["rod"]),
        (load_robot("licher2025"), {"loads": True}, ["rod", "fittings"]),
        (two, {"obstacles": True}, ["rod", "fittings", "contact"]),
        (load_robot("dalenberg_robot1", ("arm",)), {}, ["rod"]),
    ):
        assert warm_up.needed_kernels(robot, **around) == expected
    cache_directory().mkdir(parents=True)
    (cache_directory() / "complete").touch()
    assert main(["up", "simulation", "--robot", "two_segments", "--obstacles", "ball"]) == 2
    assert compiler.calls[0][0][3:] == ["fittings", "contact"]
    assert "two to four minutes" in capsys.readouterr().out
    assert main(["up", "simulation", "--estimator.tip-force"]) == 2
    assert compiler.calls[1][0][3:] == ["fittings"]


def test_kernels_that_cannot_be_compiled_are_a_users_error(bare_machine):
    bare_machine(1)
    with pytest.raises(UserError, match="could not be compiled: see above"):
        compile_kernels(Console(file=io.StringIO()))


def test_softcr_up_starts_nothing_before(bare_machine, monkeypatch, tmp_path, capsys):
    compiler = bare_machine(1, lambda: capsys.readouterr().out)
    monkeypatch.setattr(
        "softcr_runtime.ros_executor.supervisor.Supervisor.run",
        lambda self: pytest.fail("the run was begun"),
    )
    results = tmp_path / "results"
    assert main(["up", "simulation", "--results", str(results)]) == 2
    ((_, _, before),) = compiler.calls
    assert f"{LINE}: one to two minutes" in before
    assert "starting" not in before
    assert list(results.glob("*")) == []
    assert "could not be compiled" in capsys.readouterr().err
