"""Robots of several segments and with tendons in the loop: messages, plants, runs, reports."""

import numpy as np
import pytest
from kit.loops import SMALL, looped, replayed

from softcr_control.reference.block import ReferenceBlock
from softcr_models import CosseratRod, UserError, load_robot
from softcr_models.rod.state import RodState
from softcr_models.rod_model.rows import interval_counts, restricted, row_poses, with_matching_nodes
from softcr_runtime.bags.reading import Bag
from softcr_runtime.bags.signals import read_signals
from softcr_runtime.blocks.values import StateEstimate
from softcr_runtime.wire.codecs import codec, expected_of
from softcr_runtime.wire.messages import MessageError, cloud_fields, cloud_values
from softcr_tools.report.plant import plant
from softcr_tools.report.run import Run
from softcr_tools.report.sections import actuators
from softcr_tools.viewer.body import tendon_lines, tubes
from softcr_tools.viewer.shape import shape_makers

TWO, TENDONS = load_robot("two_segments"), load_robot("tendon_arm")


def turned(robot):
    """The same with a connector that turns what comes after it."""
    first, *others = (each.model_dump() for each in robot.segments)
    first["connector"] |= {"rotation": [0.3, -0.2, 0.5]}
    return robot.replace(segments=[first, *others])


@pytest.fixture(scope="module")
def moving():
    """A robot of two segments, its rod and a state in motion."""
    robot = turned(TWO)
    rod = CosseratRod(robot, 3)
    inputs = 1e3 * np.array([30.0, 0.0, 10.0, 0.0, 25.0, 5.0])
    return robot, rod, rod.step(rod.rest_state(), inputs, 0.03)


def estimate_of(rod, state):
    rows = row_poses(rod, state)
    return StateEstimate(
        state, {"bending_compliance": 40.0}, poses=lambda: np.concatenate((rows[:1], rows))
    )


# --- messages -----------------------------------------------------------------------------------


def test_states_of_several_segments_survive_their_message(moving):
    robot, rod, state = moving
    wire = codec("estimate/rod", expected_of(robot, 3))
    message = wire.encode(estimate_of(rod, state), 7)
    told = wire.decode(message)
    assert told.state.tobytes() == state.tobytes()
    assert told.counts == interval_counts(rod) == (3, 3)
    assert message.width == sum(told.counts) + len(told.counts) + 1
    assert "segment" in cloud_fields(message, "estimate/rod")
    anyone = codec("estimate/rod", expected_of(load_robot("licher2025")))
    assert anyone.decode(message).state.tobytes() == state.tobytes()
    with pytest.raises(MessageError, match="width 9 must be 13 for a rod of 2 segments and 10"):
        codec("estimate/rod", expected_of(robot, 5)).decode(message)


def test_beyond_a_connector_a_message_tells_the_same_rigid_motion(moving):
    """The kernel's own matrix from the motion before a connector to that behind it is the oracle;
    the message knows the poses of both ends alone."""
    robot, rod, state = moving
    count = interval_counts(rod)[0]
    before = RodState(state, 2).velocities[count - 1]
    message = codec("estimate/rod", expected_of(robot, 3)).encode(estimate_of(rod, state), 7)
    names = list(cloud_fields(message, "t"))
    values = cloud_values(message, "t")[0, 2 + count]
    told = [values[names.index(name)] for name in ("vx", "vy", "vz", "wx", "wy", "wz")]
    assert np.linalg.norm(told[:3] - before[:3]) > 0.01
    assert told == pytest.approx(rod.fittings.adjoint[0] @ before, abs=1e-12)


# --- grids --------------------------------------------------------------------------------------


def test_a_coarser_grid_keeps_what_its_nodes_have():
    """States whose numbers are the arc lengths of their rows, told apart on both sides of the
    boundary."""
    coarse_rod = CosseratRod(TWO, 5)
    fine_rod = CosseratRod(with_matching_nodes(TWO, 5), 10)
    assert interval_counts(coarse_rod) == (6, 4)
    assert interval_counts(fine_rod) == (12, 8)

    def marked(rod):
        parts = zip(interval_counts(rod), np.diff(TWO.segment_ends), strict=True)
        rows = [k + np.linspace(0.0, length, n + 1) for k, (n, length) in enumerate(parts)]
        wrenches = np.concatenate(rows)[:, None] * np.ones(6)
        velocities = np.concatenate([each[1:] for each in rows])[:, None] * np.ones(6)
        return RodState.join(velocities, wrenches, np.full(6, 7.0), 2).array

    seen = restricted(marked(fine_rod)[None], (12, 8), (6, 4))[0]
    assert seen == pytest.approx(marked(coarse_rod))
    with pytest.raises(UserError, match=r"intervals 6 \+ 4: the nodes of a rod of 11 \+ 9 do not"):
        restricted(np.zeros(258), (11, 9), (6, 4))


def test_a_reference_stands_at_the_nodes_of_the_controllers_rod():
    told = {"robot": "two_segments", "reference": "setpoint", "intervals": 2}
    told |= {"trajectory_intervals": 4, "duration": 1.0, "horizon": 2}
    block = ReferenceBlock(TWO, ReferenceBlock.settings_of(told))
    rows = block.tick(1, {})[0].value
    assert rows.states.shape[1] == CosseratRod(TWO, 2).state_size
    assert np.isfinite(rows.states).all()


# --- the loop -----------------------------------------------------------------------------------


@pytest.fixture(scope="module", params=["two_segments", "tendon_arm"])
def ran(request, tmp_path_factory):
    """A robot, and the bag and the outputs of a second of a small loop round it."""
    bag = tmp_path_factory.mktemp(request.param) / "bag"
    sent = looped("nempc", "setpoint", SMALL, bag, robot=request.param, duration=1.0)
    return load_robot(request.param), bag, sent


def test_the_loop_brings_arms_to_a_setpoint(ran):
    _, _, sent = ran
    wanted = [each.tip_positions[0] for each in sent.values("reference/rod")]
    tips = [each.position for each in sent.values("simulation/truth/tip/pose")]
    errors = np.linalg.norm(np.array(tips[-15:]) - wanted[-1], axis=1)
    assert errors.mean() < 0.1 * np.linalg.norm(tips[0] - wanted[-1])
    assert errors.mean() < 2e-3


@pytest.mark.later
def test_a_run_of_an_arm_comes_back_to_the_bit(ran):
    _, bag, _ = ran
    content = replayed(bag, "--controller")
    for counts in (content["estimates"], content["commands"]):
        assert counts["identical"] == counts["compared"] == counts["recorded"] > 60


def test_the_report_speaks_of_tensions_where_there_are_no_chambers(ran):
    robot, bag, _ = ran
    told = plant(Run(read_signals(Bag(bag))))
    lines = [*told["exact"], *told["differs"], *told["unknown"]]
    about = "pressure" if robot.tendons else "tension"
    assert not [line for line in lines if about in line]
    if robot.tendons:
        assert "tensions follow their commands within a cycle, as in the robot file" in lines
        assert [line for line in lines if "tension noise" in line]
    else:
        assert "pressure lag of the robot file" in lines


def test_reports_and_pictures_know_tendons_and_segments(ran):
    robot, bag, sent = ran
    run = Run(read_signals(Bag(bag)))
    numbers = actuators(run)
    estimate = [each for each in sent if each.topic == "estimate/rod"][-1]
    wire = codec("estimate/rod", expected_of(robot))
    cloud = wire.decode(wire.encode(estimate.value, estimate.stamp))
    shape = shape_makers(robot)["estimate/rod"](cloud, estimate.stamp)
    parts, lines = tubes(robot, shape), tendon_lines(robot, shape)
    if robot.tendons:
        assert set(numbers) == {"tension"}
        assert 0.0 < numbers["tension"]["commanded_max_n"] <= robot.tension_limits.maximum
        assert [part.radius for part in parts] == [0.005]
        for line in lines.values():  # as far from the centre line as the tendons run
            away = np.linalg.norm(line - parts[0].positions, axis=1)
            assert away == pytest.approx(0.004)
    else:
        assert set(numbers) == {"pressure"}
        assert [part.radius for part in parts] == pytest.approx([0.020, 0.015, 0.012, 0.009])
        assert [part.rigid for part in parts] == [False, False, True, True]  # connector, payload
        assert np.linalg.norm(np.diff(parts[2].positions, axis=0)) == pytest.approx(0.012)
        assert not lines
