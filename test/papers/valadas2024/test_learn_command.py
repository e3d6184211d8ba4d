"""`softcr learn strain`: recordings in, a robot file out, or one line."""

import numpy as np
import pytest

from softcr_models import UserError
from softcr_papers.valadas2024.learning.recordings import read_motion
from softcr_papers.valadas2024.learning.simulated import simulated_motion
from softcr_papers.valadas2024.strain.arm import load_strain_arm
from softcr_tools import cli

ONE, KINDS = load_strain_arm("pcs_one_segment").numbers, ("bending", "shear", "axial")


def write(path, motion, trajectory, times=None, drop=(), change=None):
    """A trajectory as a person's program writes it: angles within half a turn."""
    poses, torques = motion.poses[trajectory], motion.torques[trajectory]
    columns = {"time": 1e-3 * np.arange(len(poses)) if times is None else times}
    for marker in range(poses.shape[1]):
        columns[f"x_{marker + 1}"] = poses[:, marker, 0]
        columns[f"y_{marker + 1}"] = poses[:, marker, 1]
        columns[f"theta_{marker + 1}"] = np.angle(np.exp(1j * poses[:, marker, 2]))
    for place, name in enumerate(KINDS):
        columns[f"torque_{name}_1"] = torques[:, place]
    columns["note"] = ["-"] * len(poses)
    columns = {name: list(map(str, values)) for name, values in columns.items() if name not in drop}
    for (name, line), cell in (change or {}).items():
        columns[name][line] = cell
    lines = [",".join(columns), *map(",".join, zip(*columns.values(), strict=True))]
    path.write_text("\n".join(lines))
    return path


@pytest.fixture(scope="module")
def motion():
    random = np.random.default_rng(0)
    starts = np.array([[-59.0, -0.2, 0.15], [59.0, 0.1, -0.05], [56.0, 0.0, -0.1]])
    torques = random.uniform(-1.0, 1.0, (3, 40, 3)) * [0.04, 0.4, 0.4]
    return simulated_motion(ONE, starts, torques, markers=11, tolerance=1e-7).motion


def test_a_robot_file_is_learned(motion, tmp_path, capsys):
    files = [str(write(tmp_path / f"{k}.csv", motion, k)) for k in range(3)]
    output = tmp_path / "mine.yaml"
    words = ["learn", "strain", *files, "--length", "0.1", "--output", str(output)]
    assert cli.main(words) == 0
    said = capsys.readouterr().out
    assert "1 segments: 100.00 mm" in said
    assert "stiffness_bending_1" in said
    found = load_strain_arm(output)
    assert found.name == "mine"
    np.testing.assert_allclose(found.numbers.stiffness, ONE.stiffness, rtol=5e-3)
    np.testing.assert_allclose(found.numbers.damping, ONE.damping, rtol=5e-3)
    np.testing.assert_allclose(found.numbers.mass, ONE.mass, rtol=5e-3)


def test_a_file_holds_what_was_written(motion, tmp_path):
    found = read_motion([write(tmp_path / "0.csv", motion, 0)], 0.1)
    np.testing.assert_allclose(found.poses[0], motion.poses[0], atol=1e-12)
    np.testing.assert_array_equal(found.torques[0], motion.torques[0])
    np.testing.assert_allclose(found.period, 1e-3)
    without = read_motion([write(tmp_path / "1.csv", motion, 0, drop=["torque_shear_1"])], 0.1)
    assert not without.torques[..., 1].any()


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"drop": ["theta_4"]}, "column theta_4 is missing"),
        ({"drop": ["time"]}, "column time is missing"),
        ({"drop": [f"torque_{kind}_1" for kind in KINDS]}, "without torques no equations"),
        ({"change": {("x_3", 6): ""}}, "line 8: x_3 = '': must be a finite number"),
        ({"change": {("y_3", 6): "nan"}}, "line 8: y_3 = 'nan': must be a finite number"),
        ({"times": -1e-3 * np.arange(400)}, "frames out of order"),
    ],
)
def test_a_bad_recording_gets_one_line(motion, tmp_path, capsys, given, message):
    path = write(tmp_path / "bad.csv", motion, 0, **given)
    assert cli.main(["learn", "strain", str(path)]) == 2
    said = capsys.readouterr().err.strip()
    assert message in said
    assert str(path) in said
    assert "\n" not in said


def test_recordings_must_belong_together(motion, tmp_path):
    first = write(tmp_path / "0.csv", motion, 0)
    slower = write(tmp_path / "1.csv", motion, 1, times=2e-3 * np.arange(400))
    with pytest.raises(UserError, match=r"a frame each 0\.002 s, but 0\.001 s"):
        read_motion([first, slower], 0.1)
    with pytest.raises(UserError, match="length 0 m"):
        read_motion([first], 0)
    assert cli.main(["learn", "strain", str(first), "--output", "mine.txt"]) == 2
