"""The box of tips: constant twists, the inverse map, bounds around tips."""

import numpy as np
import pytest

from softcr_models import UserError
from softcr_papers.pawlowski2019.lie import se3
from softcr_papers.pawlowski2019.reference.workspace import Workspace, coordinates_of, tip_of

LENGTH = 0.1
RANDOM = np.random.default_rng(5)


def twist(curvature, stretch, place):
    out = np.array([0.0, 0.0, 1.0 + stretch, 0.0, 0.0, 0.0])
    out[3 + place] = curvature
    return out


@pytest.mark.parametrize("curvature", [0.0, 1e-6, 5.0, 40.0])
def test_tip_is_that_of_a_constant_twist(curvature):
    direction, stretch = 0.7, -0.02
    turn = se3.exp(np.array([0, 0, 0, 0, 0, direction]))
    want = (turn @ se3.exp(LENGTH * twist(curvature, stretch, 0)))[:3, 3]
    found = tip_of(np.array([curvature, direction, stretch]), LENGTH)
    assert found == pytest.approx(want, abs=1e-15)
    if curvature == 5.0:  # (2.117) as printed bends about another axis than (2.116) and (2.120)
        printed = (turn @ se3.exp(LENGTH * twist(curvature, stretch, 1)))[:3, 3]
        assert np.abs(printed - found).max() > 0.02


def test_coordinates_come_back():
    given = RANDOM.uniform((1e-3, -3.1, -0.1), (60.0, 3.1, 0.1), (200, 3))
    assert coordinates_of(tip_of(given, LENGTH), LENGTH) == pytest.approx(given, abs=1e-9)
    straight = coordinates_of(np.array([0.0, 0.0, 0.102]), LENGTH)
    assert straight[[0, 2]] == pytest.approx([0.0, 0.02], abs=1e-15)


def test_a_workspace_contains_its_tips_and_its_samples():
    tips = tip_of(RANDOM.uniform((0, -3, -0.02), (17, 3, 0.05), (50, 3)), LENGTH)
    space = Workspace.around(tips, LENGTH)
    assert space.contains(tips).all()
    assert space.contains(space.sample(500, RANDOM)).all()
    beyond = tip_of(np.array([1.01 * space.curvature, 0.3, 0.0]), LENGTH)
    assert not space.contains(beyond)
    assert not space.contains(np.array([0.0, 0.0, 0.12]))
    with pytest.raises(UserError, match="at least one"):
        Workspace.around(np.empty((0, 3)), LENGTH)
