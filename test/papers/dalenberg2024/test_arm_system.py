"""The tendon-driven arm in the running system: files, plant, setpoints, a lock-step run, report."""

import json
import subprocess
from collections import defaultdict

import numpy as np
import pytest
from kit.processes import SOFTCR, free_port

from softcr_models.errors import UserError
from softcr_models.files.config import config_directory
from softcr_models.robots.robot import load_robot
from softcr_papers.dalenberg2024.apcc import Apcc, ApccSettings
from softcr_papers.dalenberg2024.arm import Arm, load_arm
from softcr_papers.dalenberg2024.arm_plant import ArmPlant
from softcr_papers.dalenberg2024.shape_error import shape_error
from softcr_papers.dalenberg2024.tip_references import TipReferenceSettings, tip_reference
from softcr_runtime.bags.signals import decoder
from softcr_runtime.blocks.command_packets import CommandPacket
from softcr_runtime.blocks.values import Pose
from softcr_runtime.wire.body_messages import pose_values_from_message, tendons_from_message
from softcr_runtime.wire.codecs import EXCHANGED, codec, expected_of
from softcr_runtime.wire.messages import from_stamp, pose_from_message
from softcr_tools.viewer.picture import Picture

ARM = load_arm("dalenberg_robot1")
FILE = config_directory() / "robots" / "dalenberg_robot1.yaml"
NAMES = ARM.actuator_names


# --- files --------------------------------------------------------------------------------------


def test_the_file_of_an_arm_says_so(tmp_path):
    assert isinstance(load_robot("dalenberg_robot2", ("rod", "arm")), Arm)
    copy = tmp_path / "mine.yaml"
    copy.write_text(FILE.read_text().replace("name: dalenberg_robot1", "name: mine"))
    mine = load_robot(copy, ("arm",))
    assert (mine.name, mine.bodies) == ("mine", ARM.bodies)
    with pytest.raises(UserError, match=r"mine.yaml.: is an arm driven by tendons, must be a rod"):
        load_robot(copy)


# --- setpoints ----------------------------------------------------------------------------------


def reference_of(**settings):
    return tip_reference(TipReferenceSettings.model_validate(settings), ARM)


def test_setpoints_hold_and_then_jump():
    source = reference_of(kind="trajectory", duration=20.0, dwell=5.0)
    first, second = source.at(0.0), source.at(5.0)
    np.testing.assert_array_equal(source.at(4.999), first)
    assert np.linalg.norm(second - first) > 0.05
    np.testing.assert_array_equal(source.at(100.0), source.at(15.0))
    setpoint = reference_of(kind="setpoint")
    np.testing.assert_array_equal(setpoint.at(7.0), setpoint.at(0.0))


def test_a_circle_is_level_and_a_model_that_only_bends_can_follow_it():
    source = reference_of(kind="tip_circle", duration=20.0, bend=0.4)
    tips = np.array([source.at(time) for time in np.linspace(0.0, 19.9, 40)])
    np.testing.assert_allclose(np.ptp(tips[:, 2]), 0.0, atol=1e-5)  # linear between points
    radii = np.linalg.norm(tips[:, :2], axis=1)
    np.testing.assert_allclose(radii, radii[0], atol=1e-5)
    # arcs of 0.4 rad one after the other, each as far out as its length and direction say
    bends = 0.4 * np.arange(4)
    out = ARM.model_lengths / 0.4 * (np.cos(bends[:-1]) - np.cos(bends[1:]))
    np.testing.assert_allclose(radii[0], out.sum(), atol=1e-5)


def test_a_file_of_tips_is_followed_and_one_out_of_reach_refused(tmp_path):
    path = tmp_path / "path.csv"
    path.write_text("time,tip_x,tip_y,tip_z\n0,0,0,-0.5\n2,0.1,0,-0.5\n")
    half_way = reference_of(kind="file", file=str(path)).at(1.0)
    np.testing.assert_allclose(half_way, [0.05, 0.0, -0.5], atol=1e-12)
    path.write_text("time,tip_x,tip_y,tip_z\n0,0,0,-0.5\n2,2.0,0,-0.5\n")
    with pytest.raises(UserError, match=r"beyond the arm's reach, 0\.9 m"):
        reference_of(kind="file", file=str(path))
    path.write_text("time,pressure_1\n0,1\n")
    with pytest.raises(UserError, match="an arm needs time and tip_positions"):
        reference_of(kind="file", file=str(path))


# --- the plant ----------------------------------------------------------------------------------


def test_the_plant_hangs_still_in_balance_and_holds_without_commands():
    plant = ArmPlant(ARM, payload=0.25)
    before = plant.sensed(1)
    plant.advance(0.5)  # nobody commands
    after = plant.sensed(2)
    np.testing.assert_allclose(after.q, before.q, atol=1e-5)
    np.testing.assert_allclose(after.true_tip_pose[:2, 3], 0.0, atol=1e-9)
    # weight of arm and payload against springs and tendons
    dynamics = plant.dynamics
    weight = dynamics.bias(after.q, 0 * after.q)
    balance = dynamics.force(after.q, 0 * after.q, after.forces) - weight
    assert np.abs(balance).max() < 1e-3 * np.abs(weight).max()
    np.testing.assert_allclose(after.lengths, dynamics.actuation.T @ after.q)


def test_motors_follow_and_cameras_have_noise_that_a_seed_repeats():
    command = np.zeros(len(NAMES))
    command[0] = -0.02
    quiet, loud, again = (ArmPlant(ARM, noise=noise, seed=5) for noise in (0.0, 1e-3, 1e-3))
    errors = []
    for plant in (quiet, loud, again):
        plant.follow(command)
    for stamp in range(1, 60):
        for plant in (quiet, loud, again):
            plant.advance(0.02)
        seen, noisy, same = (plant.sensed(stamp).poses for plant in (quiet, loud, again))
        np.testing.assert_array_equal(noisy, same)
        errors.append(noisy[:, :3, 3] - seen[:, :3, 3])
        turns = noisy[:, :3, :3]
        np.testing.assert_allclose(turns @ turns.swapaxes(1, 2), [np.eye(3)] * 3, atol=1e-12)
    assert 0.8e-3 < np.std(errors) < 1.2e-3
    # the first tendon runs along +x: pulling it bends the arm there
    assert quiet.sensed(61).true_tip_pose[0, 3] > 0.01
    assert quiet.sensed(61).lengths[0] < -1e-3


def test_an_arm_that_diverges_says_so():
    plant = ArmPlant(ARM)
    plant.follow(np.full(len(NAMES), 1e6))
    with pytest.raises(ArithmeticError, match="the arm diverged at tendon lengths"):
        plant.advance(2.0)


# --- the running system -------------------------------------------------------------------------

DURATION, PAYLOAD, ADAPTATION, SEED, PERIOD = 2.5, 0.25, 0.02, 3, 20_000_000


@pytest.fixture(scope="module")
def recorded(tmp_path_factory):
    """Directory of a lock-step run as a person starts it."""
    results = tmp_path_factory.mktemp("arm")
    command = [SOFTCR, "up", "simulation", "--robot", "dalenberg_robot1", "--mode", "lockstep"]
    command += ["--duration", str(DURATION), "--plant.payload", str(PAYLOAD), "--seed", str(SEED)]
    command += ["--controller.adaptation", str(ADAPTATION), "--results", str(results)]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=480)
    assert ended.returncode == 0, ended.stdout + ended.stderr
    assert "tip to setpoint" in ended.stdout
    return results / "latest"


def heard(directory):
    from rosbags.highlevel import AnyReader

    found = defaultdict(dict)
    with AnyReader([directory / "bag"]) as reader:
        for connection, _, raw in reader.messages():
            if connection.topic.removeprefix("/") not in EXCHANGED:
                continue
            message = reader.deserialize(raw, connection.msgtype)
            found[connection.topic.removeprefix("/")][from_stamp(message, "")] = message
    return found


class PlainLoop:
    """The same loop without ROS: plant, setpoints and controller called one after the other."""

    def __init__(self):
        self.plant = ArmPlant(ARM, PAYLOAD, 2e-4, SEED)
        law = {"gain": 1.5, "jacobian_state": "inferred", "adaptation": {"gains": (ADAPTATION,)}}
        self.controller = Apcc(
            ARM.model, ARM.model_lengths, np.array(ARM.racks), ARM.tendons(),
            ApccSettings.model_validate(law),
        )  # fmt: skip
        source = reference_of(kind="trajectory", duration=DURATION)
        self.commands, self.tips, self.targets, self.shapes = {}, {}, {}, {}
        command = None
        for stamp in range(PERIOD, round(DURATION * 1e9) + 1, PERIOD):
            if command is not None:
                self.plant.advance(PERIOD * 1e-9)
                self.plant.follow(command)
            measured = self.plant.sensed(stamp)
            # as they come out of the quaternions of their message
            poses = np.stack([Pose.of(pose).matrix for pose in measured.poses])
            target = source.at((stamp - PERIOD) * 1e-9)
            answer = self.controller.tick(stamp * 1e-9, poses, target)
            command = self.commands[stamp] = answer.tendons
            self.tips[stamp], self.targets[stamp] = measured.true_tip_pose[:3, 3], target
            self.shapes[stamp] = shape_error(
                ARM.chain, measured.q, ARM.rest_lengths,
                ARM.model, answer.inference.configuration, answer.rest_lengths,
            )  # fmt: skip


@pytest.fixture(scope="module")
def plain():
    return PlainLoop()


def test_a_lockstep_run_is_the_plain_loop_to_the_bit(recorded, plain):
    messages = heard(recorded)
    decode = codec("tendon/plan", expected_of(ARM)).decode
    plans = {stamp: decode(message) for stamp, message in messages["tendon/plan"].items()}
    assert all(plans[stamp].due == (stamp + PERIOD,) for stamp in plain.commands)
    commands = {stamp: plan.commands[0] for stamp, plan in plans.items()}
    assert commands.keys() >= plain.commands.keys()
    for stamp, expected in plain.commands.items():
        np.testing.assert_array_equal(commands[stamp], expected, err_msg=f"at {stamp} ns")
    assert len({tuple(command) for command in commands.values()}) > 100
    for stamp, tip in plain.tips.items():
        seen = pose_from_message(messages["simulation/truth/tip/pose"][stamp], "")
        np.testing.assert_array_equal(seen[:3, 3], tip)
    for stamp in sorted(plain.commands)[:-1]:  # followed from the next cycle on
        followed = tendons_from_message(messages["tendon/sent"][stamp + PERIOD], "", NAMES)
        np.testing.assert_array_equal(followed, plain.commands[stamp])
    for topic in ("tendon/state", "simulation/truth/state", "estimate/state", "reference/tip"):
        assert len(messages[topic]) >= len(plain.commands), topic


def test_the_report_holds_the_numbers_of_the_run(recorded, plain):
    summary = json.loads((recorded / "summary.json").read_text())
    errors = {s: 1e3 * np.linalg.norm(plain.tips[s] - plain.targets[s]) for s in plain.tips}
    assert summary["tip_aed_mm"] == pytest.approx(np.mean([*errors.values()]), rel=1e-9)
    assert summary["tip_error_max_mm"] == pytest.approx(max(errors.values()), rel=1e-9)
    stamps = sorted(errors)
    late = [errors[s] for s in stamps if s >= stamps[-1] - 10**9]
    assert summary["setpoint_errors_mm"] == pytest.approx([np.mean(late)], rel=1e-9)
    assert summary["setpoint_errors_mm"][0] < 0.1 * summary["tip_error_max_mm"]
    every_half_second = [plain.shapes[s] for s in stamps[::25]]
    assert summary["shape_error_mm"] == pytest.approx(1e3 * np.mean(every_half_second), rel=1e-6)
    lengths = plain.controller.rest_lengths
    assert summary["section_lengths_mm"] == pytest.approx(1e3 * lengths, rel=1e-9)
    commands = 1e3 * np.array([*plain.commands.values()])[:-1]  # that were followed
    assert summary["tendon"]["commanded_min_mm"] == pytest.approx(commands.min())
    assert summary["tendons"]["pull_max_n"] > 1.0
    assert summary["payload_kg"] == PAYLOAD
    assert summary["loops"]["apcc_controller"]["cycles"] == len(plain.commands)
    assert summary["node_deaths"] == []
    page = (recorded / "report.html").read_text()
    assert page.count("data:image/png;base64,") == 10
    assert "E_shape" in page


HEARD = (
    "estimate/state", "simulation/truth/state", "mocap/body/poses", "reference/tip", "tendon/sent",
    "tendon/state",
)  # fmt: skip


def pictured(messages, stamps):
    picture = Picture(ARM)
    for stamp in stamps:
        for topic in HEARD:
            message = messages[topic][stamp]
            value = decoder(topic, message, expected_of(ARM))(message)
            picture.hear(topic, stamp, value, stamp * 1e-9)
        picture.sample()
    return picture


def test_the_live_view_knows_and_draws_the_arm(recorded, plain):
    """Whatever viser refuses would be raised here; browsers are for test_viewer."""
    from softcr_tools.viewer.drawing import dots, lines, markers_message, path_message
    from softcr_tools.viewer.hand import HandControl
    from softcr_tools.viewer.page import Page
    from softcr_tools.viewer.words import state_html, values_html

    messages, last = heard(recorded), max(plain.commands)
    picture = pictured(messages, [last])
    np.testing.assert_allclose(picture.truth.positions[-1], plain.tips[last], atol=1e-9)
    np.testing.assert_allclose(picture.truth.positions[0], 0.0, atol=1e-12)
    hanging = [1.0, 0.0, 0.0, 0.0]  # half a turn about x
    np.testing.assert_allclose(np.abs(picture.truth.quaternions[0]), hanging, atol=1e-6)
    table = picture.table()
    tip = pose_values_from_message(messages["mocap/body/poses"][last], "", 3)[-1].position
    expected = np.linalg.norm(tip - plain.targets[last])
    assert table["measured_error"][-1] == pytest.approx(expected)
    assert table["commanded_tendon_1"][-1] == plain.commands[last - PERIOD][0]
    np.testing.assert_allclose(dots(picture)["target"].position, plain.targets[last])
    assert lines(picture)["truth"].points is not None
    assert lines(picture)["reference"].points is None  # a setpoint has no shape
    said = state_html(picture, last * 1e-9, {}) + values_html(picture, last * 1e-9)
    assert "rest length" in said
    assert "tendon_9" in said
    assert "compliance" not in said
    picture = pictured(messages, sorted(messages["estimate/state"])[-20:])
    page = Page(ARM, "127.0.0.1", free_port(), lambda: None, with_hand=True)
    try:
        page.draw(picture, HandControl(()), {}, last * 1e-9)
        assert page._hand is None  # nothing to slide
        page.say("no valves")  # and nobody who asked
    finally:
        page.close()
    markers = {marker.ns: marker for marker in markers_message(picture, ARM.radius).markers}
    assert {marker.header.frame_id for marker in markers.values()} == {"world"}
    assert len(markers["truth"].points) == len(picture.truth.positions)
    assert len(path_message(picture.estimate, "world").poses) == len(picture.estimate.positions)


# --- nodes --------------------------------------------------------------------------------------


def test_tendons_are_held_when_commands_stop():
    from softcr_runtime.blocks.block import CLOCK
    from softcr_runtime.blocks.sample import Sample
    from softcr_simulation.simulator import Simulator

    values = {"robot": "dalenberg_robot1", "mode": "lockstep", "rate_hz": 50.0}
    block = Simulator(ARM, Simulator.settings_of(values))
    block.reset()
    command = np.linspace(-0.02, 0.0, len(NAMES))
    period = 20_000_000
    packet = CommandPacket.single(2 * period, command)
    told = {"tendon/plan": Sample("tendon/plan", period, packet, 0.0)}
    for cycle, samples in enumerate(({}, told, {}), start=1):
        clock = {CLOCK: Sample(CLOCK, cycle * period, None, 0.0)}
        list(block.tick(cycle * period, clock | samples))
    np.testing.assert_array_equal(block.plant.command, command)
    assert block.warnings() == ["no tendon/plan: tendons held"]
    assert block.describe()["commands_stale"] == 1
    assert block.describe()["robot"]["name"] == "dalenberg_robot1"


def test_open_loop_commands_lead_the_chambers_along_the_reference():
    from softcr_control.open_loop.feedforward import Feedforward
    from softcr_control.reference.settings import ReferenceSettings
    from softcr_models.rod.description import rod_inputs
    from softcr_runtime.blocks.sample import Sample

    robot = load_robot("licher2025")
    values = {"mode": "lockstep", "reference": "circle", "duration": 2.0}
    block = Feedforward(robot, Feedforward.settings_of(values))
    block.reset()
    period, lag = round(1e9 / 70), robot.pressure_lag
    wanted = ReferenceSettings(kind="circle", duration=2.0).input_samples(1 / 70, rod_inputs(robot))
    pressures = [wanted[0], wanted[1]]  # an answer works from the next cycle on
    for cycle in range(1, 101):
        now = cycle * period
        state = Sample("pressure/state", now, pressures[-1], 0.0)
        (sent,) = block.tick(now, {each.topic: state for each in block.inputs})
        pressures.append(lag.step(pressures[-1], sent.value.commands[0], 1 / 70))
    np.testing.assert_allclose(pressures, wanted[: len(pressures)], atol=1.0)  # [Pa]
    (last,) = block.idle(101 * period, "stopped")
    assert not last.value.commands.any()
