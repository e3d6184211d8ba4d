"""Goals set while a robot runs: motions that never jump, the workspace, the block's actions."""

import subprocess
import sys
from itertools import pairwise

import numpy as np
import pytest
from domains import fresh_domain
from hypothesis import given, settings
from hypothesis import strategies as st
from kit.desks import Desk
from kit.processes import Peer
from scipy.optimize import least_squares
from scipy.spatial.transform import Rotation

from softcr_control.goals.block import PATH, STREAM, GoalReference
from softcr_control.goals.motion import Limits, OnPath, Path, Point, pursued
from softcr_control.goals.workspace import ModelTipSolver, Workspace
from softcr_models import CosseratRod, load_robot
from softcr_models.errors import UserError
from softcr_models.prediction import RodPrediction
from softcr_runtime.blocks.values import Goal, GoalState
from softcr_runtime.ros.block_node import block_node_class
from softcr_runtime.wire.goal_messages import (
    goal_state_to_message,
    path_from_message,
    path_to_message,
    tip_from_message,
    tip_to_message,
)
from softcr_runtime.wire.messages import MessageError, pressures_to_message
from softcr_tools.running.hardware_system import HardwareOptions, hardware_system
from softcr_tools.running.run_options import SimulationOptions
from softcr_tools.running.systems import simulation_system

PERIOD = 1 / 70
LIMITS = Limits(speed=0.05, acceleration=0.25, period=PERIOD)
ROD, ARM = load_robot("licher2025"), load_robot("dalenberg_robot1", ("arm",))
STATICS = CosseratRod(ROD, 5)

places = st.tuples(*[st.floats(-0.1, 0.1)] * 3).map(np.array)


def rates(points):
    """Largest speed [m/s] and change of speed per time [m/s^2] of points one period apart, which
    begin and end at rest."""
    velocities = np.diff(points, axis=0) / PERIOD
    changes = np.diff(np.vstack((np.zeros(3), velocities, np.zeros(3))), axis=0) / PERIOD
    return np.linalg.norm(velocities, axis=1).max(), np.linalg.norm(changes, axis=1).max()


# --- motions -----------------------------------------------------------------------------------


@settings(max_examples=40, deadline=None)
@given(st.lists(places, min_size=2, max_size=6), st.integers(0, 120))
def test_a_path_is_followed_exactly_within_the_limits_and_stopped_anywhere(points, periods):
    path = Path(np.array(points), LIMITS)
    moving, way = OnPath(path), []
    while not moving.arrived and len(way) < 3000:
        way.append(moving.point.position)
        moving = moving.after()
    assert moving.arrived
    way.append(moving.point.position)
    np.testing.assert_allclose(way[-1], path.points[-1], atol=1e-12)
    speed, change = rates(np.array([*way, way[-1]]))
    assert speed <= LIMITS.speed * (1 + 1e-9)
    assert change <= 2.5 * LIMITS.acceleration  # along the way, and to the side where it turns
    assert max(distance_to(path.points, point) for point in way[:: max(len(way) // 20, 1)]) < 1e-9

    moving, way = OnPath(path), [path.points[0]]
    for _ in range(periods):
        moving = moving.after()
        way.append(moving.point.position)
    foreseen = moving.stopped().point.position
    moving = OnPath(path, moving.place, moving.speed, stops=True)
    while moving.speed > 0.0:
        moving = moving.after()
        way.append(moving.point.position)
    np.testing.assert_allclose(way[-1], foreseen, atol=1e-12)
    assert rates(np.array([*way, way[-1]]))[1] <= 2.5 * LIMITS.acceleration


def distance_to(points, point):
    """Of a point from the line through others [m]."""
    found = []
    for begin, end in pairwise(points):
        way = end - begin
        part = np.clip((point - begin) @ way / max(way @ way, 1e-30), 0.0, 1.0)
        found.append(np.linalg.norm(begin + part * way - point))
    return min(found, default=np.linalg.norm(points[0] - point))


@settings(max_examples=40, deadline=None)
@given(st.lists(places, min_size=1, max_size=5), st.integers(1, 90))
def test_a_target_that_jumps_is_pursued_without_a_jump_and_reached(targets, held):
    point, way = Point.at_rest(np.zeros(3)), [np.zeros(3)]
    for target in targets:
        for _ in range(held):
            point = pursued(point, target, LIMITS)
            way.append(point.position)
    for _ in range(1500):
        point = pursued(point, targets[-1], LIMITS)
        way.append(point.position)
    np.testing.assert_allclose(point.position, targets[-1], atol=1e-5)
    speed, change = rates(np.array(way))
    assert speed <= LIMITS.speed * (1 + 1e-9)
    assert change <= LIMITS.acceleration * (1 + 1e-6)


def test_a_long_line_takes_as_long_as_speed_and_acceleration_say():
    path = Path(np.array([[0.0, 0.0, 0.0], [0.1, 0.0, 0.0]]), LIMITS)
    moving, periods = OnPath(path), 0
    while not moving.arrived:
        moving, periods = moving.after(), periods + 1
    trapezoid = 0.1 / 0.05 + 0.05 / 0.25
    assert trapezoid <= periods * PERIOD <= trapezoid + 5 * PERIOD


# --- the workspace -----------------------------------------------------------------------------


@pytest.fixture(scope="module")
def rod_workspace():
    reach = ModelTipSolver(RodPrediction(CosseratRod(ROD, 5), single_precision=False))
    return Workspace(reach, tolerance=1e-3)


def tip_at(*pressures):
    """Of the rod's own statics."""
    return STATICS.tip_pose(STATICS.equilibrium(np.array(pressures)))[:3, 3]


def test_a_way_of_a_rod_holds_at_equilibria_inside_the_pressure_limits(rod_workspace):
    """The oracle is the rod's own statics at pressures that are chosen first."""
    chosen = np.array([4e4, 1e4, 2.5e4])
    goal = tip_at(*chosen)
    numbers, left = rod_workspace.numbers_at(goal)
    assert left < 1e-5
    np.testing.assert_allclose(numbers, chosen, rtol=1e-2, atol=50.0)
    way = rod_workspace.way(rod_workspace.rest, goal[None], 0.01)
    assert way.problem == ""
    np.testing.assert_allclose(way.points[-1], goal, atol=1e-9)
    gaps = np.linalg.norm(np.diff([rod_workspace.rest, *way.points], axis=0), axis=1)
    assert gaps.max() < 0.03


@pytest.mark.parametrize("goal", [(0.2, 0.0, 0.1), (0.0, 0.0, 0.3), (0.0, 0.0, -0.1)])
def test_a_goal_that_the_rod_cannot_reach_is_refused_with_a_reason(rod_workspace, goal):
    way = rod_workspace.way(rod_workspace.rest, np.array([goal]), 0.01)
    assert "is outside of the workspace: the tip comes no nearer than" in way.problem
    assert not rod_workspace.contains(np.array(goal))


def test_a_path_whose_middle_leaves_the_workspace_is_refused(rod_workspace):
    path = np.array([tip_at(6e4, 0.0, 0.0), FAR, tip_at(0.0, 6e4, 0.0)])
    way = rod_workspace.way(rod_workspace.rest, path, 0.01)
    assert way.problem.startswith("a point on the way")


def test_a_way_keeps_the_rate_of_the_inputs(rod_workspace):
    way = rod_workspace.way(rod_workspace.rest, tip_at(5e4, 5e4, 0.0)[None], 0.01)
    points = np.vstack((rod_workspace.rest, way.points))
    found = np.array([rod_workspace.numbers_at(point)[0] for point in points])
    ways = np.linalg.norm(np.diff(points, axis=0), axis=1)
    fastest = np.abs(np.diff(found, axis=0)).max(axis=1) / ways * way.speeds
    assert fastest.max() <= ROD.pressure_limits.maximum_rate * 1.2  # the search ends within 1e-8


def test_an_arm_reaches_the_tips_of_its_bent_sections():
    workspace = Workspace(ARM.tip_solver(), tolerance=2e-3)
    straight = ARM.model_lengths.sum()
    hanging = Rotation.from_euler("xyz", ARM.base_orientation).apply([0, 0, straight])
    np.testing.assert_allclose(workspace.rest, hanging, atol=1e-9)
    goal = ARM.tip_solver().tip(np.tile([0.3, -0.2], len(ARM.model_lengths)))
    assert workspace.numbers_at(goal)[1] < 1e-4
    far = np.array([0.0, 0.0, 2.0 * straight])
    assert "outside of the workspace" in workspace.way(workspace.rest, far[None], 0.1).problem


# --- the block ---------------------------------------------------------------------------------


class RodDesk(Desk):
    """Of a rod whose workspace is known."""

    def __init__(self, workspace, **chosen):
        values = GoalReference.settings_of({"intervals": 5, **chosen})
        super().__init__(GoalReference(ROD, values, workspace))

    def go(self, tip, count=0):
        """Sent to a place, and so many ticks on the way to it."""
        self.tick(pose=goal_at(tip))
        self.block.act("go")
        return self.tick(count)

    def until(self, word, most=3000):
        while self.states[-1].state != word:
            assert most, f"never {word}, but {self.states[-1]}"
            most -= 1
            self.tick()
        return self

    def keeps_limits(self, turns=2.5):
        """Its largest speed [m/s]; `turns` is how much more it accelerates where a path turns."""
        speed, change = rates(np.array([*self.tips, self.tips[-1]]))
        assert speed <= 0.05 * (1 + 1e-9)
        assert change <= turns * 0.25 * (1 + 1e-6)
        return speed


def goal_at(*tips, frame="base"):
    return Goal(np.array(tips, float), frame)


@pytest.fixture
def desk(rod_workspace):
    return RodDesk(rod_workspace).tick()


NEAR, OTHER, FAR = (0.03, 0.02, 0.165), (-0.02, 0.01, 0.17), (0.2, 0.0, 0.1)


def test_the_tip_goes_to_a_pose_at_the_speed_limit_and_says_so(desk, rod_workspace):
    np.testing.assert_array_equal(desk.tips[0], rod_workspace.rest)
    desk.tick(pose=goal_at(NEAR))
    assert "going to (0.03, 0.02, 0.165) m" in desk.block.act("go")
    desk.tick().until("idle")
    np.testing.assert_allclose(desk.tips[-1], NEAR, atol=1e-9)
    assert desk.states[-1].message == "arrived"
    assert desk.keeps_limits() > 0.9 * 0.05
    assert {"moving", "idle"} == {state.state for state in desk.states}
    desk.go(NEAR, 2)  # where it is it has arrived at once
    assert (desk.states[-1].state, desk.states[-1].message) == ("idle", "arrived")


def test_rows_ahead_are_what_the_tip_then_does(desk):
    desk.go(NEAR, 30)
    foreseen = desk.rows[-1].tip_positions
    begin = len(desk.tips) - 1
    desk.tick(len(foreseen) - 1)
    np.testing.assert_allclose(desk.tips[begin:], foreseen, atol=1e-12)


def quaternion_at(tip):
    """The oracle: that of the rod's own statics with pressures that bring the tip there."""
    reached = least_squares(
        lambda p: 1e3 * (STATICS.tip_pose(STATICS.equilibrium(1e5 * p))[:3, 3] - tip),
        np.full(3, 0.3),
    )
    pose = STATICS.tip_pose(STATICS.equilibrium(1e5 * reached.x))
    np.testing.assert_allclose(pose[:3, 3], tip, atol=1e-5)
    return Rotation.from_matrix(pose[:3, :3])


@pytest.mark.parametrize(("degrees", "accepted"), [(0.0, True), (4.0, True), (12.0, False)])
@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_the_orientation_that_the_tip_has_there_may_be_asked_for(desk, degrees, accepted, sign):
    turn = Rotation.from_rotvec(np.radians(degrees) * np.array([0.6, 0.0, 0.8]))
    asked = sign * (quaternion_at(NEAR) * turn).as_quat()
    desk.tick(pose=Goal(np.array([NEAR]), "base", asked[None]))
    if accepted:
        assert "going to" in desk.block.act("go")
        return
    with pytest.raises(UserError, match=r"at \(0.03, 0.02, 0.165\) m is 12 deg away .* 5.7 deg"):
        desk.block.act("go")
    desk.tick()
    assert desk.states[-1].warns


def test_of_a_path_each_orientation_counts_that_is_asked_for(desk):
    none, wrong = [0.0, 0.0, 0.0, 1.0], [1.0, 0.0, 0.0, 0.0]
    tips = np.array([NEAR, OTHER])
    desk.tick(path=Goal(tips, "base", np.array([none, wrong])))
    with pytest.raises(UserError, match=r"asked for at \(-0.02, 0.01, 0.17\) m"):
        desk.block.act("go")
    right = quaternion_at(NEAR).as_quat()
    desk.tick(path=Goal(tips, "base", np.array([right, none])))
    assert "going to" in desk.block.act("go")


def test_a_goal_is_used_once_and_none_is_an_error(desk):
    with pytest.raises(UserError, match="no goal: none came on goal/pose or goal/path"):
        desk.block.act("go")
    desk.go(NEAR)
    with pytest.raises(UserError, match="no goal"):
        desk.block.act("go")


@pytest.mark.parametrize(
    ("goal", "reason"),
    [
        (goal_at(FAR), r"the goal, \(0.2, 0, 0.1\) m, is outside of the workspace"),
        (goal_at(NEAR, frame="map"), "the goal is in frame 'map', must be 'base', or empty"),
    ],
)
def test_a_refused_goal_leaves_the_motion_as_it_was(desk, goal, reason):
    desk.go(NEAR, 20).tick(pose=goal)
    with pytest.raises(UserError, match=reason):
        desk.block.act("go")
    desk.tick()
    assert desk.states[-1].warns
    assert "refused" in desk.states[-1].message
    desk.until("idle")
    np.testing.assert_allclose(desk.tips[-1], NEAR, atol=1e-9)


def test_a_new_goal_on_the_way_and_a_cancelled_one_make_no_jump(desk):
    desk.go(NEAR, 30).tick(path=goal_at(OTHER, (0.0, 0.0, 0.175)))
    desk.block.act("go")
    desk.tick(25)
    assert "cancelled" in desk.block.act("cancel")
    desk.tick().until("idle")
    stood = desk.tips[-1]
    desk.tick(20)
    np.testing.assert_array_equal(desk.tips[-1], stood)
    assert np.linalg.norm(stood - (0.0, 0.0, 0.175)) > 5e-3
    desk.keeps_limits()


def test_a_stream_is_followed_and_a_silent_one_lets_the_tip_stand(desk):
    with pytest.raises(UserError, match="nothing comes on reference/tip"):
        desk.block.act("follow")
    desk.tick(stream=np.array(NEAR))
    assert desk.block.act("follow") == "following reference/tip"
    for turn in np.linspace(0.0, 6.0, 200):
        desk.tick(stream=np.array([0.02 * np.cos(turn), 0.02 * np.sin(turn), 0.17]))
    assert np.linalg.norm(desk.tips[-1] - [0.02 * np.cos(6), 0.02 * np.sin(6), 0.17]) < 0.01
    assert desk.states[-1].state == "following"
    desk.tick(60)  # silence
    assert desk.states[-1].state == "waiting"
    assert "reference/tip is silent" in desk.states[-1].message
    np.testing.assert_array_equal(desk.tips[-1], desk.tips[-20])
    desk.tick(300, stream=np.array(OTHER))
    np.testing.assert_allclose(desk.tips[-1], OTHER, atol=1e-5)
    desk.tick(60, stream=np.array(FAR))
    assert "outside of the workspace: the tip stops" in desk.states[-1].message
    np.testing.assert_allclose(desk.tips[-1], OTHER, atol=2e-2)
    desk.block.act("cancel")
    desk.tick(50, stream=np.array(NEAR))
    assert desk.states[-1].state == "idle"
    desk.keeps_limits(1.0)


def test_on_a_bench_goals_wait_for_the_start_of_the_run(rod_workspace):
    desk = RodDesk(rod_workspace, start="service").tick(pose=goal_at(NEAR))
    with pytest.raises(UserError, match="the run has not begun"):
        desk.block.act("go")
    desk.block.act("start")
    desk.block.act("go")


def test_missed_ticks_are_made_up_for_and_a_pause_is_a_pause(desk):
    desk.go(NEAR, 40)
    before = desk.tips[-1]
    desk.now += round(3e9 * PERIOD)  # four periods in one tick
    desk.tick()
    np.testing.assert_allclose(np.linalg.norm(desk.tips[-1] - before), 4 * 0.05 * PERIOD, rtol=0.05)
    before = desk.tips[-1]
    desk.now += 60_000_000_000
    desk.tick()
    assert np.linalg.norm(desk.tips[-1] - before) <= 10 * 0.05 * PERIOD * (1 + 1e-9)


def test_a_lower_speed_holds_for_the_next_goal_and_brakes_a_pursuit(desk):
    for turn in range(60):
        desk.tick(stream=np.array(NEAR))
        if not turn:
            desk.block.act("follow")
    slow = desk.block.settings.model_copy(update={"speed": 0.01})
    desk.block.prepared(slow)()
    desk.tick(20, stream=np.array(NEAR))
    assert np.linalg.norm(desk.tips[-1] - desk.tips[-2]) <= 0.01 * PERIOD * (1 + 1e-9)
    desk.keeps_limits(1.0)


def test_time_that_jumps_lets_the_tip_stop_where_it_is(desk):
    desk.go(NEAR, 40)
    desk.block.time_jumped(-5.0)
    desk.now -= 5_000_000_000
    desk.tick(60)
    assert desk.states[-1].state == "idle"
    assert "time jumped" in desk.states[-1].message
    assert np.linalg.norm(desk.tips[-1] - NEAR) > 1e-3
    desk.keeps_limits()


# --- messages ----------------------------------------------------------------------------------


def test_foreign_goals_are_refused():
    pytest.importorskip("rclpy")
    from nav_msgs.msg import Path as PathMessage

    mixed = path_to_message(goal_at(NEAR, OTHER), 5)
    mixed.poses[1].header.frame_id = "map"
    bad = path_to_message(goal_at(NEAR, (np.nan, 0.0, 0.0)), 5)
    for message, said in ((PathMessage(), "0 poses"), (bad, "."), (mixed, "a pose in frame 'map'")):
        with pytest.raises(MessageError, match=said):
            path_from_message(message, PATH)
    turned = np.array([0.0, 0.6, 0.0, 0.8])
    with pytest.raises(MessageError, match=r"orientation .0, 0.6, 0, 0.8. cannot be followed"):
        tip_from_message(tip_to_message(NEAR, 5, "base", turned), STREAM, "base")
    tip = tip_to_message(NEAR, 5, "world")
    np.testing.assert_array_equal(tip_from_message(tip, STREAM, "world"), NEAR)
    with pytest.raises(MessageError, match="frame 'world' must be 'base'"):
        tip_from_message(tip, STREAM, "base")


def test_the_state_of_a_goal_is_a_diagnostic_that_people_can_read():
    pytest.importorskip("rclpy")
    state = GoalState("moving", "going to (0, 0, 0.17) m", False, 0.0123, np.ones(3), "base")
    (status,) = goal_state_to_message(state, 5).status
    assert (status.message, status.level) == ("going to (0, 0, 0.17) m", b"\x00")
    values = {pair.key: pair.value for pair in status.values}
    assert values["state"] == "moving"
    assert float(values["distance"]) == 0.0123


# --- arms, options, the node -------------------------------------------------------------------


def test_an_arm_takes_no_orientation_of_its_tip():
    """How it goes where it is sent is in test_goal_runs."""
    chosen = {"robot": "dalenberg_robot1", "horizon": 1, "mode": "lockstep"}
    desk = Desk(GoalReference(ARM, GoalReference.settings_of(chosen)))
    desk.tick(pose=Goal(desk.block.tip[None], "world", np.array([[1.0, 0.0, 0.0, 0.0]])))
    with pytest.raises(UserError, match="no orientation of this robot's tip can be asked for"):
        desk.block.act("go")


@pytest.mark.parametrize("robot", ["licher2025", "dalenberg_robot1"])
def test_systems_around_every_kind_of_robot_have_the_node_goal(tmp_path, robot):
    told = {"robot": robot, "reference": "goal", "reference.speed": "0.02"}
    system = simulation_system(SimulationOptions.of_options(told), tmp_path)
    assert GoalReference.settings_of(system.part("goal").parameters).speed == 0.02


def test_on_the_bench_planning_is_no_neighbour_of_the_loop(tmp_path):
    system = hardware_system(HardwareOptions.of_options({"reference": "goal"}), tmp_path)
    assert system.processes["goal"] == (system.part("goal"),)
    assert system.begin[-1] == "goal/start"
    with pytest.raises(UserError, match="with estimator 'cc'"):  # an open loop takes no goals
        SimulationOptions.of_options({"estimator": "cc", "reference": "goal"})


def test_a_person_sends_the_tip_by_the_command_line(rod_workspace, monkeypatch, tmp_path):
    pytest.importorskip("rclpy")
    from rclpy.parameter import Parameter

    monkeypatch.setenv("ROS_DOMAIN_ID", fresh_domain())
    monkeypatch.setattr("softcr_control.goals.block.Workspace", lambda *_: rod_workspace)
    other = Peer("other")
    fast = [Parameter("speed", value=1.0), Parameter("acceleration", value=20.0)]
    node = block_node_class(GoalReference)(context=other.context, parameter_overrides=fast)
    other.executor.add_node(node)
    node.trigger_configure()
    node.trigger_activate()
    state = other.publisher("pressure/state")

    def sense():
        state.publish(pressures_to_message(np.zeros(3), ROD.chamber_names, other.now()))

    other.node.create_timer(PERIOD, sense)
    other.start()
    try:
        command = [sys.executable, "-m", "softcr_tools.cli", "goal", *map(str, NEAR)]
        done = subprocess.run(
            [*command, "--timeout", "30"], capture_output=True, text=True, timeout=60
        )
    finally:
        other.stop()
        node.finish()
        node.destroy_node()
        other.close()
    assert done.returncode == 0, done
    first, *_, last = done.stdout.splitlines()
    assert first.startswith("going to (0.03, 0.02, 0.165) m")
    assert last == "arrived"
