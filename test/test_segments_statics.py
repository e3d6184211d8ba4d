"""Arms of several segments at rest: two integrators of the boundary value problem agree.

What they find stands as numbers in oracles/cases.py; faster tests compare with those.
"""

import numpy as np
import pytest
from oracles import cases, statics
from oracles.arms import Arm, Body, Connector, Segment

QUICK = ("A", "E", "soft rod 2 N", "Rao")
DIGIT = {"Till": 5.1e-8, "Rao": 5.1e-8}  # the last digit that is written down [m]


def agrees(found, name):
    """Whether a rest is the case's, to the digits that it has."""
    want = cases.SOLUTIONS[name]
    digit = DIGIT.get(name.split()[0], 5.1e-9)
    assert np.abs(found.tip - want.tip).max() < digit
    if want.quaternion is not None:
        assert np.abs(found.quaternion - want.quaternion).max() < 5.1e-8
    if want.force is not None:
        assert np.abs(found.base[:3] - want.force).max() < 5.1e-7
        assert np.abs(found.base[3:] - want.moment).max() < 5.1e-8


@pytest.mark.parametrize("name", cases.ARMS)
def test_collocation_finds_the_known_rest(name):
    agrees(statics.collocation(cases.ARMS[name]), name)


@pytest.mark.parametrize("name", QUICK)
def test_shooting_finds_the_known_rest(name):
    agrees(statics.shooting(cases.ARMS[name]), name)


@pytest.mark.slow
@pytest.mark.parametrize("name", [name for name in cases.ARMS if name not in QUICK])
def test_shooting_finds_the_other_known_rests(name):
    agrees(statics.shooting(cases.ARMS[name]), name)


@pytest.mark.parametrize("name", ["soft rod 2 N", "Rao"])
def test_straight_tendons_without_shear_and_torsion_push_along_the_section(name):
    arm = cases.soft_rod(2.0, exact=False) if name == "soft rod 2 N" else cases.rao(exact=False)
    agrees(statics.collocation(arm), name)


def test_a_pulled_tendon_makes_an_arc():
    """Without shear, torsion and weight the curvature is constant: tension times lever over EI."""
    arm = cases.soft_rod(2.0)
    (segment,) = arm.segments
    curvature = 2.0 * 0.004 * segment.compliance[4]
    stretch = 1.0 - 2.0 * segment.compliance[2]
    angle = curvature * segment.length
    tip = stretch / curvature * np.array([1.0 - np.cos(angle), 0.0, np.sin(angle)])
    assert cases.SOLUTIONS["soft rod 2 N"].tip == pytest.approx(tip, abs=1e-9)


def test_rigid_parts_carry_the_pose_and_their_weight():
    """A stiff arm is statics of rigid bodies: every pose and lever by hand."""
    stiff = Segment(0.1, np.full(6, 1e-9), np.full(6, 0.005), 0.5, np.full(3, 1e-4))
    turned = Connector((0.01, 0.0, 0.02), (0.0, np.pi / 2, 0.0), Body(0.2, (0.03, 0.0, 0.01)))
    bent = Segment(**{**stiff.__dict__, "connector": turned})
    arm = Arm((bent, stiff), payload=Body(0.1, (0.0, 0.0, 0.05)), up=cases.gravity(0, 0, 0))
    found = statics.shooting(arm)
    assert found.tip == pytest.approx([0.11, 0.0, 0.12], abs=1e-7)
    assert found.quaternion == pytest.approx([np.sqrt(0.5), 0.0, np.sqrt(0.5), 0.0], abs=1e-7)
    weights = cases.G * np.array([0.05, 0.05, 0.2, 0.1])
    levers = np.array([0.0, 0.06, 0.03, 0.16])  # along x
    assert found.base[:3] == pytest.approx([0, 0, -weights.sum()], abs=1e-7)
    assert found.base[3:] == pytest.approx([0, weights @ levers, 0], abs=1e-7)
