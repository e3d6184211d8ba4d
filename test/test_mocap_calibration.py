"""From the cameras' world to the robot's base."""

import numpy as np
import pinocchio as pin
import pytest
from hypothesis import given
from hypothesis import strategies as st
from kit.bench import CALIBRATION, RESTING
from kit.refusals import one_line

from softcr_hardware.optitrack.calibration import (
    MocapCalibration,
    Placement,
    calibrated_by_base,
    calibrated_by_tip,
    load_calibration,
    resting_mean,
    save_calibration,
)
from softcr_models.errors import UserError

PLACEMENTS = st.tuples(st.integers(0, 2**31)).map(lambda seed: some_pose(*seed))


def some_pose(seed):
    random = np.random.default_rng(seed)
    rotation = pin.exp3(random.uniform(-1.5, 1.5, 3))
    return pin.SE3(rotation, random.uniform(-2, 2, 3)).homogeneous


def placed(base, tip_in_body):
    places = {"base_in_world": base, "tip_in_body": tip_in_body}
    return MocapCalibration(**{name: Placement.of(pose) for name, pose in places.items()})


def around(pose, count, metres, radians=0.0, seed=0):
    random = np.random.default_rng(seed)
    moves = np.repeat([metres, radians], 3) * random.standard_normal((count, 6))
    return np.array([(pin.SE3(pose) * pin.exp6(move)).homogeneous for move in moves])


@given(PLACEMENTS, PLACEMENTS, PLACEMENTS)
def test_tip_and_body_are_each_others_inverse(base, tip_in_body, tip):
    calibration = placed(base, tip_in_body)
    assert np.allclose(calibration.tip(calibration.body(tip)), tip, atol=1e-6)


@given(PLACEMENTS, PLACEMENTS)
def test_the_resting_tip_tells_where_the_base_stands(base, tip_in_body):
    truth = placed(base, tip_in_body)
    start = truth.model_copy(update={"base_in_world": Placement()})
    seen = around(truth.body(RESTING), 100, 1e-4, 1e-3)
    found = calibrated_by_tip(start, seen, RESTING, 1e-3)
    assert np.allclose(found.base_in_world.pose, truth.base_in_world.pose, atol=1e-3)
    assert found.tip_in_body == truth.tip_in_body


def test_a_body_on_the_base_tells_it_too():
    base, offset = some_pose(1), some_pose(2)
    start = MocapCalibration(base_in_world=Placement(), base_in_body=Placement.of(offset))
    seen = around(base @ np.linalg.inv(offset), 100, 1e-5)
    found = calibrated_by_base(start, seen, 1e-3)
    assert np.allclose(found.base_in_world.pose, base, atol=1e-4)


def test_the_mean_of_poses_is_the_one_their_logarithms_cancel_at():
    poses = around(some_pose(3), 50, 1e-3, 0.3)
    mean = pin.SE3(resting_mean(poses, 1.0))
    logarithms = [pin.log6(mean.actInv(pin.SE3(pose))).vector for pose in poses]
    assert np.abs(np.mean(logarithms, axis=0)).max() < 1e-10


@pytest.mark.parametrize(
    ("poses", "says"),
    [
        (around(np.eye(4), 5, 0.0), "5 poses in the last second, must be 20"),
        (around(np.eye(4), 100, 0.01), r"moved by \d+\.\d+ mm, must rest within 1\.00 mm"),
    ],
)
def test_what_is_no_rest_is_refused_in_one_line(poses, says):
    with one_line(says):
        resting_mean(poses, 1e-3)


def test_a_saved_calibration_is_loaded_as_it_was(tmp_path):
    path = tmp_path / "mine.yaml"
    calibration = CALIBRATION.model_copy(update={"base_in_world": Placement.of(some_pose(4))})
    save_calibration(path, calibration)
    assert load_calibration(path) == calibration
    with pytest.raises(UserError, match="cannot be written"):
        save_calibration(path / "mine.yaml", calibration)  # below a file
