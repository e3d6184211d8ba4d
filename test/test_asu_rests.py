"""The included recordings of a pneumatic arm, and the robot that the command in its head finds."""

import re
import shlex
import subprocess

import pytest
from kit.processes import SOFTCR

from softcr_models import load_robot
from softcr_models.files.config import config_directory
from softcr_tools.cli import main

RECORDINGS = config_directory() / "recordings"


@pytest.mark.later
def test_rests_that_were_held_out_are_predicted(tmp_path, capsys):
    told = [
        "identify", str(RECORDINGS / "asu_rests.csv"), "--map", str(RECORDINGS / "asu_map.yaml"),
        "--robot", str(RECORDINGS / "asu_two_segments_guess.yaml"), "--find",
        "stiffness,taper,density,tip_mass,lever_arms,gains,offsets,registration,markers",
        "--results", str(tmp_path), "--hold-out", "mar7_1", "--hold-out", "apr4_4",
    ]  # fmt: skip
    assert main(told) == 0
    said = capsys.readouterr().out
    off = dict(re.findall(r"held out: (\w+) position ([\d.]+) mm off", said))
    assert float(off["tip"]) < 20.0
    assert float(off["plate_1"]) < 12.0


@pytest.mark.slow
def test_the_command_in_the_head_of_the_robot_finds_it(tmp_path):
    """In a process of its own: one in which other tests have compiled kernels computes other last
    bits than one that loads them, and so long a search ends elsewhere."""
    path = config_directory() / "robots" / "asu_two_segments.yaml"
    lines = [line.removeprefix("#").strip() for line in path.read_text("utf-8").splitlines()]
    begin = next(k for k, line in enumerate(lines) if line.startswith("softcr identify"))
    (words,) = re.findall(r"softcr (identify .*?hysteresis)\b", " ".join(lines[begin:]), re.S)
    root = config_directory().parent
    told = [str(root / each) if each.startswith("config/") else each
            for each in shlex.split(words.replace("\\", "").replace(", ", ","))]  # fmt: skip
    subprocess.run([SOFTCR, *told, "--results", str(tmp_path)], check=True)
    (found,) = tmp_path.glob("identification/2*/identified.yaml")
    ours, theirs = load_robot("asu_two_segments"), load_robot(str(found))
    for one, other in zip(ours.segments, theirs.segments, strict=True):
        assert one.bending_compliance == pytest.approx(other.bending_compliance, rel=0.05)
    chains = [dict(each.pressure_chain.values) for each in (ours, theirs)]
    assert chains[0] == pytest.approx(chains[1], abs=0.05)
    # wide stops remember more than a tenth of the range: 57 mm at rest
    assert chains[0]["hysteresis_3"] > 0.1
