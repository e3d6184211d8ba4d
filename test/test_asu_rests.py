"""The included rests of a pneumatic arm, and the robot that the command in its head finds."""

import re

import pytest

from softcr_models import load_robot
from softcr_models.files.config import config_directory
from softcr_tools.cli import main

RECORDINGS = config_directory() / "recordings"


@pytest.mark.later
def test_trials_that_were_held_out_are_predicted(tmp_path, capsys):
    families = re.search(r"--find (\S+)", _head())
    assert families is not None
    told = [
        "identify", str(RECORDINGS / "asu_rests.csv"), "--map", str(RECORDINGS / "asu_map.yaml"),
        "--robot", str(RECORDINGS / "asu_two_segments_guess.yaml"), "--find", families[1],
        "--results", str(tmp_path),
    ]  # fmt: skip
    assert main(told) == 0
    (found,) = tmp_path.glob("identification/2*/identified.yaml")
    ours, theirs = load_robot("asu_two_segments"), load_robot(str(found))
    for one, other in zip(ours.segments, theirs.segments, strict=True):
        assert one.bending_compliance == pytest.approx(other.bending_compliance, rel=0.01)
    capsys.readouterr()
    assert main([*told, "--hold-out", "mar7_1", "--hold-out", "apr4_4"]) == 0
    said = capsys.readouterr().out
    off = dict(re.findall(r"held out: (\w+) position ([\d.]+) mm off", said))
    assert float(off["tip"]) < 20.0
    assert float(off["plate_1"]) < 12.0


def _head() -> str:
    path = config_directory() / "robots" / "asu_two_segments.yaml"
    return path.read_text(encoding="utf-8")
