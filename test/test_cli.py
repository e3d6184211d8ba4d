"""The `softcr` command itself: what it lists, how it ends, completion."""

import re
import subprocess
import sys
from inspect import signature

import pytest
from cyclopts import Parameter

from softcr_tools import cli


def listed(text):
    """Name -> what is said of it, of every line of a list of commands."""
    return dict(re.findall(r"^\W*([a-z][\w-]+)  +(\S.*?) *\W?$", text, re.MULTILINE))


def test_help_has_a_line_of_80_columns_for_every_command(capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    assert cli.main(["replay", "--help"]) == 0  # a command's own help stays its own
    assert "--controller" in capsys.readouterr().out
    assert cli.main(["--help"]) == 0
    text = capsys.readouterr().out
    told = listed(text)
    for commands in (cli._COMMANDS, cli.ROS_COMMANDS):
        assert {name: said for name, (_, said) in commands.items()}.items() <= told.items()
    assert {name for name in cli.app if not name.startswith("-")} <= told.keys()
    assert max(map(len, text.splitlines())) <= 80


def test_help_imports_no_command_and_no_model():
    code = (
        "import sys; from softcr_tools.cli import main; main(['--help'])\n"
        "print(sorted({'numpy', 'numba', 'pydantic', 'softcr_models', 'rclpy', 'torch'}"
        " & sys.modules.keys()), file=sys.stderr)"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert run.stderr.strip() == "[]"


@pytest.mark.parametrize("name", [*cli._COMMANDS, "up simulation", "up hardware", "emulate bench"])
def test_every_command_has_help_of_its_own(name, capsys):
    assert cli.main([*name.split(), "--help"]) == 0
    assert f"Usage: softcr {name}" in capsys.readouterr().out


def test_the_version_is_told(capsys):
    assert cli.main(["--version"]) == 0
    assert re.fullmatch(r"softcr \d+\.\d+\.\d+\n", capsys.readouterr().out)


# one of each kind; that every setting is told by name, value and range is in test_bad_input
MISTAKES = [
    ("upp", "command 'upp': unknown; did you mean up?"),
    ("up --duration 3", "unknown"),
    ("up simulation --duratoin 3", "--duratoin: unknown; did you mean --duration?"),
    ("up simulation --robot lichr2025", "did you mean licher2025? known are"),
    ("up simulation --controller rod_mcp", "did you mean rod_mpc? known are"),
    ("up simulation --reference file --reference.file nowhere.csv", "nowhere.csv"),
    ("up simulation --controller nowhere.py:Pid", "nowhere.py:Pid"),
    ("study run robustnes/fair", "did you mean robustness/fair?"),
    ("report nowhere", "nowhere: no such file"),
    ("replay nowhere", "nowhere: no such file"),
    ("hold now", "unexpected: now"),
    ("view --port 70000", "--port"),
    ("view --port 1 --robot nosuch", "nosuch"),
    ("view --port 1 --namespace 1a", "letters, digits and _ between slashes"),
    ("view --port 1 --host 203.0.113.1", "Cannot assign requested address"),
    ("doctor bench", "bench"),
    ("commission --mistakes 3", "only of a virtual bench"),
    ("commission --daily --virtual", "commission first"),
    ("commission --virtual --station regulators", "its valves are pressure regulators"),
    ("commission --virtual --from lunch", "step 'lunch': unknown; known are devices, zero"),
    ("commission --virtual --mistakes none.yaml", "none.yaml"),
    ("emulate", "must be followed by one of ethercat, optitrack, force-torque, bench"),
    ("emulate mocap", "known are ethercat, optitrack, force-torque, bench"),
    ("emulate ethercat", "--interface"),
    ("emulate optitrack --frame-rate 0", "frame_rate = 0.0: must be a number from 1.0 to 1000.0"),
    ("goal 0.1 -0.2", "2 numbers, must be x y z of each point"),
    ("rehearse --valves.interface eth0", "a rehearsal brings its own devices"),
    ("run vavles", "node 'vavles': unknown; did you mean valves?"),
    ("run reference --raet-hz 3", "--raet-hz: unknown; did you mean --rate-hz?"),
]


@pytest.mark.parametrize(("words", "said"), MISTAKES)
def test_a_mistake_is_one_line_and_exit_code_two_and_leaves_nothing(
    words, said, tmp_path, monkeypatch, capsys
):
    monkeypatch.chdir(tmp_path)
    assert cli.main(words.split()) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("softcr: error: ")
    assert said in line
    assert not [path for path in tmp_path.rglob("*") if path.is_file()]


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_a_shell_can_complete_commands_and_options(shell):
    script = cli.app.generate_completion(shell=shell)
    for word in ("verify-surrogate", "plant.intervals", "no-deadman-switch", "lockstep"):
        assert word in script


@pytest.mark.skipif("completer" not in signature(Parameter).parameters, reason="cyclopts before 5")
@pytest.mark.parametrize(
    ("words", "names"),
    [
        ("up simulation --robot", {"licher2025", "two_segments", "./mine.yaml"}),
        ("up simulation --controller", {"nempc", "rod_mpc", "none"}),
        ("up hardware --reference", {"circle", "goal"}),
        ("up simulation --plant.obstacles", {"ball"}),
        ("identify run.csv --robot", {"tendon_arm", "./mine.yaml"}),
        ("doctor simulation --robot", {"licher2025"}),
        ("study run", {"speed/rod", "robustness/fair"}),
    ],
)
def test_a_shell_completes_names_and_files(words, names, capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mine.yaml").touch()
    word = "./" if "./mine.yaml" in names else ""
    assert cli.main(["__complete", *words.split(), word]) == 0
    assert names <= set(capsys.readouterr().out.splitlines())
