"""The torch form of the constant-curvature chain against the compiled one and against autodiff."""

import numpy as np
import pytest
import torch

from softcr_models.constant_curvature.kernel import stumpff as compiled_stumpff
from softcr_models.constant_curvature.kinematics import ConstantCurvatureChain
from softcr_models.constant_curvature.torch_kinematics import chain_pose_and_jacobian, stumpff

RADIUS = 0.7
BASE = np.diag([1.0, -1.0, -1.0, 1.0])
BASE[:3, 3] = [0.1, -0.2, 0.3]


def batch(seed: int, sections: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """q (5, 4, 3 n) with bends up to 3 rad, straight ones among them, lengths, coverages (4, n)."""
    random = np.random.default_rng(seed)
    q = random.normal(size=(5, 4, 3 * sections)) * np.tile([1.0, 1.0, 0.05], sections)
    q[0], q[1] = 0.0, 1e-9 * q[1]
    coverage = np.clip(random.uniform(0.0, sections, (4, 1)) - np.arange(sections), 0.0, 1.0)
    return q, random.uniform(0.1, 0.3, (4, sections)), coverage


def tensors(*arrays, dtype=torch.float64):
    return [torch.tensor(each, dtype=dtype) for each in arrays]


def test_stumpff_functions_are_the_compiled_ones():
    z = np.r_[0.0, 1e-300, np.linspace(0.01, 40.0, 300)]
    found = torch.stack(stumpff(torch.tensor(z)), dim=-1).numpy()
    np.testing.assert_allclose(found, compiled_stumpff(z)[:, :5], atol=1e-14)


@pytest.mark.parametrize("sections", [1, 3, 5])
def test_poses_and_jacobians_are_the_compiled_ones(sections):
    arrays = batch(sections, sections)
    pose, jacobian = chain_pose_and_jacobian(*tensors(*arrays), RADIUS, *tensors(BASE))
    chain = ConstantCurvatureChain(sections, RADIUS, BASE)
    expected, expected_jacobian, _ = chain.motion(arrays[0], 0.0 * arrays[0], *arrays[1:])
    assert pose.shape == (5, 4, 4, 4)
    assert jacobian.shape == (5, 4, 6, 3 * sections)
    np.testing.assert_allclose(pose.numpy(), expected, atol=1e-14)
    np.testing.assert_allclose(jacobian.numpy(), expected_jacobian, atol=1e-13)
    # the tip alone, and single precision
    tip, _ = chain_pose_and_jacobian(
        *tensors(arrays[0], arrays[1], np.ones(sections), dtype=torch.float32),
        RADIUS, *tensors(BASE, dtype=torch.float32),
    )  # fmt: skip
    assert tip.dtype == torch.float32
    np.testing.assert_allclose(tip.numpy(), chain.pose(*arrays[:2]), atol=2e-6)


@pytest.mark.parametrize("index", [(0, 1), (3, 2)])  # straight; bent
def test_jacobians_are_the_derivatives_by_torch(index):
    """Autodiff of the pose knows nothing of the closed form."""
    q, lengths, coverage = batch(7, 3)
    rest = tensors(lengths[index[1]], coverage[index[1]])

    def pose_of(q):
        return chain_pose_and_jacobian(q, *rest, RADIUS, *tensors(BASE))

    (point,) = tensors(q[index])
    pose, jacobian = pose_of(point)
    slopes = torch.autograd.functional.jacobian(lambda q: pose_of(q)[0], point)
    np.testing.assert_allclose(jacobian[:3], slopes[:3, 3], atol=1e-13)
    for column in range(9):
        spin = slopes[:3, :3, column] @ pose[:3, :3].T
        expected = [spin[2, 1], spin[0, 2], spin[1, 0]]
        np.testing.assert_allclose(jacobian[3:, column], expected, atol=1e-13)
