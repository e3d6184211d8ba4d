"""Machines that lack what others have: a writable home, symbolic links, a network interface."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from softcr_models import kernel_cache
from softcr_models.errors import UserError
from softcr_runtime.console.results import new_run_directory, point_latest_to
from softcr_runtime.ros import context as ros_context
from softcr_tools.cli import main
from softcr_tools.doctor.finding import FAIL
from softcr_tools.doctor.network import check_loopback

NOWHERE = "/dev/null/nowhere"  # no folder can be made below a file, whoever tries


@pytest.fixture
def places(monkeypatch, tmp_path):
    """Sets variables of the environment; what is not named cannot be written."""
    kernel_cache._found.cache_clear()
    monkeypatch.setattr(kernel_cache.tempfile, "gettempdir", lambda: str(tmp_path / "tmp"))

    def say(**named):
        for name in ("XDG_CACHE_HOME", "NUMBA_CACHE_DIR", "XDG_RUNTIME_DIR", "MPLCONFIGDIR"):
            monkeypatch.setenv(name, "")  # of one that was absent nothing would be undone
            monkeypatch.delenv(name)
        for name, value in ({"HOME": NOWHERE} | named).items():
            monkeypatch.setenv(name, str(tmp_path / value) if value != NOWHERE else value)

    yield say
    kernel_cache._found.cache_clear()


@pytest.mark.parametrize(
    ("named", "where", "warned"),
    [
        ({"XDG_CACHE_HOME": "a", "NUMBA_CACHE_DIR": "b", "HOME": "c"}, "a/softcr", False),
        ({"NUMBA_CACHE_DIR": "b", "HOME": "c"}, "b/softcr", False),
        ({"HOME": "c"}, "c/.cache/softcr", False),
        ({"XDG_CACHE_HOME": NOWHERE, "NUMBA_CACHE_DIR": "b"}, "b/softcr", False),
        ({"XDG_RUNTIME_DIR": "r"}, "r/softcr", True),
        ({}, f"tmp/softcr-{os.geteuid()}/softcr", True),
    ],
)
def test_the_cache_is_in_the_first_writable_folder(places, tmp_path, capsys, named, where, warned):
    (tmp_path / "tmp").mkdir()
    places(**named)
    assert kernel_cache.cache_home() == tmp_path / where
    said = capsys.readouterr().err
    assert said.count("set XDG_CACHE_HOME to a folder that stays") == warned
    # processes that this one starts find the same place, and say nothing more
    kernel_cache._found.cache_clear()
    assert kernel_cache.cache_home() == tmp_path / where
    assert capsys.readouterr().err == ""


def test_a_folder_for_everybody_is_no_place_for_machine_code(places, tmp_path):
    (tmp_path / "tmp" / f"softcr-{os.geteuid()}").mkdir(parents=True)
    (tmp_path / "tmp" / f"softcr-{os.geteuid()}").chmod(0o777)
    places()
    with pytest.raises(UserError, match=r"cannot be written .*: set XDG_CACHE_HOME"):
        kernel_cache.cache_home()


NO_KERNELS = """
import sys
from softcr_tools.cli import app, main

def helps(app, *words):
    names = [name for name in app if not name.startswith("-")] if hasattr(app, "__iter__") else []
    for name in names:
        yield [*words, name]

below = {"up": ["simulation", "hardware"], "study": ["run", "list"], "learn": ["strain", "motion",
         "policy"], "param": ["list", "set"], "emulate": ["optitrack"]}
commands = [*helps(app)]
commands += [[name, each] for name, others in below.items() for each in others]
parts = ("up", "rehearse")  # whose help lists the settings of the parts, which have kernels
for words in commands:
    if words[0] not in parts:
        assert main([*words, "--help"]) == 0, words
        assert "numba" not in sys.modules, words
assert main(["doctor", "simulation", "--results", sys.argv[1]]) in (0, 1)
assert "numba" not in sys.modules
for words in commands:
    assert main([*words, "--help"]) == 0, words
from pathlib import Path
assert not [*Path(sys.argv[1]).rglob("*.nb[ic]")]  # nothing was compiled
"""


@pytest.mark.later
def test_help_and_doctor_load_no_kernels_and_need_no_home(tmp_path):
    environment = {k: v for k, v in os.environ.items() if k != "XDG_CACHE_HOME"}
    environment |= {"HOME": NOWHERE, "TMPDIR": str(tmp_path)}
    command = [sys.executable, "-c", NO_KERNELS, str(tmp_path)]
    ran = subprocess.run(command, env=environment, capture_output=True, text=True)
    assert ran.returncode == 0, ran.stderr
    assert "Traceback" not in ran.stderr


def test_without_symbolic_links_results_stay_and_one_line_says_so(monkeypatch, tmp_path, capsys):
    def refused(self, target, target_is_directory=False):
        raise PermissionError(1, "Operation not permitted", str(self))

    monkeypatch.setattr(Path, "symlink_to", refused)
    point_latest_to(new_run_directory(tmp_path))
    assert capsys.readouterr().err.endswith(": Operation not permitted\n")
    monkeypatch.undo()
    (tmp_path / "latest" / "copied").mkdir(parents=True)  # as a copy without links leaves it
    point_latest_to(new_run_directory(tmp_path))
    assert "latest does not point to" in capsys.readouterr().err
    assert not list(tmp_path.glob(".latest*"))


@pytest.mark.parametrize("words", [["up", "simulation"], ["topics"]])
def test_without_a_network_one_line_says_so_at_once(monkeypatch, tmp_path, capsys, words):
    def unreachable(self, data, address):
        raise OSError(101, "Network is unreachable")

    monkeypatch.setattr(ros_context.socket.socket, "sendto", unreachable)
    monkeypatch.chdir(tmp_path)
    assert main(words) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert line.endswith("(Network is unreachable): switch the loopback interface on with: "
                         "sudo ip link set lo up")  # fmt: skip
    assert not (tmp_path / "results").exists()
    assert check_loopback(ros_context.loopback_error()).level is FAIL
