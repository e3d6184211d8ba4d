"""Mistakes of command lines: one line each, exit code 2, and nothing left behind."""

import pytest

from softcr_tools import cli

MISTAKES = [
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
    (
        "rehearse --valves.interface eth0",
        "option valves.interface: a rehearsal brings its own devices",
    ),
    ("report nowhere", "nowhere: no such file"),
    ("replay nowhere", "nowhere: no such file"),
    ("run vavles", "node 'vavles': unknown; did you mean valves?"),
    ("run reference --raet-hz 3", "--raet-hz: unknown; did you mean --rate-hz?"),
    ("view --port 1 --robot nosuch", "nosuch"),
    ("view --port 1 --namespace 1a", "letters, digits and _ between slashes"),
    ("view --port 1 --host 203.0.113.1", "Cannot assign requested address"),
    ("up simulation --robot nemo", "robot 'nemo': unknown"),
    ("up simulation --controller.population many", "population"),
    ("up simulation --reference file --reference.file nowhere.csv", "nowhere.csv"),
    ("up simulation --controller nowhere.py:Pid", "nowhere.py:Pid"),
]


@pytest.mark.parametrize(("words", "said"), MISTAKES)
def test_a_mistake_is_one_line_and_exit_code_two_and_leaves_nothing(
    words, said, tmp_path, monkeypatch, capsys
):
    monkeypatch.chdir(tmp_path)
    assert cli.main(words.split()) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert said in line
    assert not [path for path in tmp_path.rglob("*") if path.is_file()]
