"""Lengths of tendons against the way through their holes, and against closed forms."""

import numpy as np
import pytest
import yaml
from kit.loops import looped, replayed
from oracles.robot_files import TENSIONS, tendon, two_segments

from softcr_estimation.estimator import EstimatorBlock
from softcr_models.arguments import ArgumentError
from softcr_models.errors import UserError
from softcr_models.files.yaml_files import read_mapping, validated, yaml_path
from softcr_models.robots.robot import Robot, load_robot
from softcr_models.rod.cosserat_rod import CosseratRod
from softcr_models.rod.description import has_tendon_lengths
from softcr_models.rod.state import RodState
from softcr_models.rod_model.rows import interval_counts, row_poses
from softcr_models.rod_model.tendon_lengths import tendon_lengths
from softcr_runtime.wire.codecs import expected_of
from softcr_runtime.wire.value_checks import check_value
from softcr_simulation.plants import RodPlant

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
    other = rod.nominal_parameters * np.array([1.2, 1.0, 1.0])
    softer = tendon_lengths(rod, states[1], other)
    assert np.abs(softer - lengths[1]).max() > 1e-4
    each = tendon_lengths(rod, states[[1, 1]], np.stack((rod.nominal_parameters, other)))
    assert np.array_equal(each, np.stack((lengths[1], softer)))
    with pytest.raises(ArgumentError, match=r"tendon_lengths: states of shape \(7,\)"):
        tendon_lengths(rod, np.zeros(7))


# --- as a measurement ---------------------------------------------------------------------------

NOISE = 1e-4


@pytest.fixture(scope="module")
def measured_arm(tmp_path_factory):
    """The file of an arm whose spools have encoders."""
    content = read_mapping(yaml_path("tendon_arm", "robots", "robot"), "robot")
    content["sensors"].append({"type": "tendon_length", "noise": NOISE})
    path = tmp_path_factory.mktemp("arm") / "measured.yaml"
    path.write_text(yaml.safe_dump(content), encoding="utf-8")
    return str(path)


def test_a_robot_file_may_have_the_sensor_once_and_with_tendons(measured_arm):
    robot = load_robot(measured_arm)
    assert has_tendon_lengths(robot)
    assert not has_tendon_lengths(load_robot("tendon_arm"))
    twice = {"sensors": [*robot.sensors, robot.sensors[-1]]}
    with pytest.raises(UserError, match="tension and tendon_length at most once"):
        robot.replace(**twice)
    pneumatic = load_robot("licher2025")
    with pytest.raises(UserError, match="each once, found"):
        pneumatic.replace(sensors=[*pneumatic.sensors, robot.sensors[-1]])


def test_the_plant_measures_them(measured_arm):
    robot = load_robot(measured_arm)
    plant = RodPlant(robot, RodPlant.Settings(intervals=2), 3)
    assert "tendon/lengths" in plant.topics
    plant.follow(np.array([0.4, 0.0, 0.0, 0.1]))
    plant.advance(0.1)
    seen = np.array([plant.measure(k)["tendon/lengths"] for k in range(200)])
    rod = plant.simulated.rod
    assert seen.mean(axis=0) == pytest.approx(
        tendon_lengths(rod, plant.simulated.state), abs=4 * NOISE / np.sqrt(200)
    )
    assert seen.std(axis=0) == pytest.approx(np.full(4, NOISE), rel=0.25)
    assert seen.mean(axis=0)[0] < seen.mean(axis=0)[2] - 1e-3  # what is pulled is shorter
    with pytest.raises(ValueError, match=r"tendon/lengths has shape \(3,\), must be \(4,\)"):
        check_value("tendon/lengths", seen[0, :3], expected_of(robot))


def test_an_estimator_may_do_with_lengths_alone(measured_arm, tmp_path):
    """The plant bends 15 % farther than the file says, and nobody looks at the tip: at 16 mm to
    the side, prediction alone is 2 mm off. The run comes back from its bag to the bit."""
    of = {
        "plant": {"intervals": 4, "errors": "bending_factor=1.15"},
        "estimator": {"intervals": 2, "use_tip_pose": False, "tendon_length_noise": NOISE},
        "reference": {"intervals": 2, "trajectory_intervals": 4, "mean": 0.25, "amplitude": 0.2},
        "controller": {"intervals": 2},
    }
    bag = tmp_path / "bag"
    sent = looped("rod_mpc", "circle", of, bag, robot=measured_arm, duration=1.8)
    true = np.array([e.position for e in sent.values("simulation/truth/tip/pose")])[-20:]
    found = np.array([e.pose().position for e in sent.values("estimate/tip/pose")])[-20:]
    assert np.linalg.norm(true[:, :2], axis=1).min() > 0.01
    assert np.linalg.norm(found - true[: len(found)], axis=1).mean() < 1e-3
    nominal = load_robot(measured_arm).bending_compliance
    factor = sent.values("estimate/rod")[-1].parameters["bending_compliance"] / nominal
    assert factor == pytest.approx(1.15, abs=0.06)
    told = replayed(bag)["estimates"]
    assert told["identical"] == told["compared"] > 90


def test_an_estimator_that_hears_nothing_is_refused():
    told = {"robot": "tendon_arm", "intervals": 2, "use_tip_pose": False}
    with pytest.raises(UserError, match="use_tip_pose = False: nothing else is measured"):
        EstimatorBlock(load_robot("tendon_arm"), EstimatorBlock.settings_of(told))
