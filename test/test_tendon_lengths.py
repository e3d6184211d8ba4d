"""Lengths of tendons against the way through their holes, and against closed forms."""

import numpy as np
import pytest
from oracles.robot_files import TENSIONS, tendon, two_segments

from softcr_models.arguments import ArgumentError
from softcr_models.robot import Robot
from softcr_models.rod.cosserat_rod import CosseratRod
from softcr_models.rod.state import RodState
from softcr_models.rod_rows import interval_counts, row_poses
from softcr_models.tendon_lengths import tendon_lengths
from softcr_models.yaml_files import validated

PITCH = 0.16
TENDONS = (
    tendon("short", 0.4, 0.016, "proximal"),
    tendon("straight", 0.0, 0.009, "distal"),
    tendon("helical", 1.0, 0.009, "distal", routing={"kind": "helical", "pitch": PITCH}),
    tendon("tapered", 2.0, 0.009, "distal", routing={"kind": "tapered", "end_lever_arm": 0.006}),
)


def rod_with(intervals, model="exact"):
    content = two_segments(more=TENDONS) | TENSIONS | {"tendon_model": model}
    return CosseratRod(validated(Robot, content, "the test's"), intervals)


def smooth_state(rod):
    """Wrenches that change slowly along the rod, the same on every grid."""
    first = rod.grid.first_row
    s = np.concatenate(
        [a + np.linspace(0.0, 1.0, first[a + 1] - first[a]) for a in range(rod.segments)]
    )[:, None]
    wrenches = np.array([1.5, -2.0, 3.0, 0.15, -0.1, 0.05]) * np.cos(s + np.arange(6))
    still = np.zeros((rod.total_intervals, 6))
    return RodState.join(still, wrenches, wrenches[0], rod.segments).array


def through_holes(rod, state):
    """(tendons,) of straight pieces between the holes at the rows [m]."""
    poses, robot = row_poses(rod, state), rod.robot
    holes, row = [], 0
    for a, count in enumerate(interval_counts(rod)):
        arcs = robot.segment_ends[a] + rod.grid.interval_length[a] * np.arange(count + 1)
        offsets = robot.tendon_offsets(a, arcs)[:, :, 0]
        turned = np.einsum("jkl,jtl->jtk", poses[row : row + count + 1, :3, :3], offsets)
        holes.append(poses[row : row + count + 1, None, :3, 3] + turned)
        row += count + 1
    ways = (holes[0], np.concatenate(holes))
    lengths = [np.linalg.norm(np.diff(way, axis=0), axis=-1).sum(axis=0) for way in ways]
    return np.where(robot.tendon_reaches == 0, *lengths)


def test_lengths_are_those_of_the_way_through_the_holes():
    coarse, fine = (
        tendon_lengths(rod, state) - through_holes(rod, state)
        for rod in (rod_with(16), rod_with(32))
        for state in (smooth_state(rod),)
    )
    assert coarse / fine == pytest.approx(4.0, rel=0.1)
    assert np.abs(4.0 * fine - coarse).max() / 3.0 < 1e-6


def test_of_the_straight_rod_they_are_known():
    rod = rod_with(6)
    short, straight, helical, tapered = tendon_lengths(rod, rod.rest_state())
    connector = rod.robot.segments[0].connector.length
    assert short == pytest.approx(0.10, rel=1e-12)
    assert straight == pytest.approx(0.18 + connector, rel=1e-12)
    assert helical == pytest.approx(0.18 * np.hypot(1.0, 0.009 * 2 * np.pi / PITCH) + connector)
    assert tapered == pytest.approx(np.hypot(0.18, 0.003) + connector, rel=1e-9)


def test_states_come_in_batches_and_the_model_of_the_wrench_does_not_matter():
    rod, constant = rod_with(4), rod_with(4, "constant")
    states = np.stack((rod.rest_state(), smooth_state(rod)))
    lengths = tendon_lengths(rod, states)
    assert lengths.shape == (2, 4)
    for state, row in zip(states, lengths, strict=True):
        assert np.array_equal(tendon_lengths(constant, state), row)
    softer = tendon_lengths(rod, states[1], rod.nominal_parameters * np.array([1.2, 1.0, 1.0]))
    assert np.abs(softer - lengths[1]).max() > 1e-4


def test_states_of_another_grid_are_told():
    rod = rod_with(4)
    with pytest.raises(ArgumentError, match=r"tendon_lengths: states of shape \(7,\)"):
        tendon_lengths(rod, np.zeros(7))
