"""Packets of commands: what is played of them, against a slow oracle, and their messages."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from kit.refusals import one_line

from softcr_runtime.blocks.command_packets import (
    FARTHEST,
    LATEST,
    MOST_COMMANDS,
    CommandPacket,
    PacketPlayer,
)
from softcr_runtime.wire.messages import MessageError, plan_from_message, plan_to_message
from softcr_runtime.wire.topics import qos

MS = 1_000_000  # [ns]
PERIOD = 10 * MS
END = 2400  # of what is played [ms]


# --- what is played -----------------------------------------------------------------------------


class Painted:
    """The slow oracle: a command for each millisecond, over which each packet is painted."""

    def __init__(self):
        self.commands = np.full(END, np.nan)

    def hear(self, due, values, now):
        """Milliseconds; whether the packet is taken."""
        if now - due[0] > 30 or due[-1] - now > 1000:
            return False
        for at, value in zip(due, values, strict=True):
            self.commands[max(at, now) :] = value
        return True


@st.composite
def arrivals(draw):
    """Packets in the order in which they come, some late, some far ahead: [(now, due times)]."""
    now, told = 0, []
    for _ in range(draw(st.integers(1, 8))):
        now += draw(st.sampled_from([0, 1, 7, 10, 23, 60, 150]))
        first = now + draw(st.one_of(st.integers(-45, 60), st.integers(-31, -29)))
        gaps = draw(st.lists(st.sampled_from([1, 5, 10, 10, 130]), max_size=8))
        told.append((now, np.cumsum([first, *gaps]).tolist()))
    return told


@settings(max_examples=300, deadline=None)
@given(arrivals(), st.lists(st.integers(0, 40), min_size=60, max_size=60))
def test_what_is_played_is_what_a_slow_oracle_plays(told, pauses):
    player, oracle = PacketPlayer(PERIOD), Painted()
    refused, number, waiting, time = 0, 0.0, list(told), 0
    for pause in pauses:
        time += pause
        while waiting and waiting[0][0] <= time:
            now, due = waiting.pop(0)
            values = number + np.arange(len(due))
            number += 100.0
            packet = CommandPacket(tuple(each * MS for each in due), values[:, None])
            taken = player.hear(packet, now * MS) == ""
            assert taken == oracle.hear(due, values, now)
            refused += not taken
        played, expected = player.at(time * MS), oracle.commands[time]
        np.testing.assert_equal(np.nan if played is None else played[0], expected)
    assert sum(player.refused.values()) == refused


@settings(max_examples=200, deadline=None)
@given(arrivals(), st.integers(0, 700), st.integers(1, 300))
def test_between_changes_nothing_changes(told, after, passed):
    """Told in advance, all of the times at which the command becomes another one; of the past a few
    periods are known."""
    after = max(after, max((now for now, _ in told), default=0) - 4 * PERIOD // MS)
    player, oracle = PacketPlayer(PERIOD), Painted()
    for number, (now, due) in enumerate(told):
        values = 100.0 * number + np.arange(len(due))
        packet = CommandPacket(tuple(each * MS for each in due), values[:, None])
        player.hear(packet, now * MS)
        oracle.hear(due, values, now)
    changes = player.changes(after * MS, (after + passed) * MS)
    assert changes == sorted(set(changes))
    played = np.nan_to_num(oracle.commands[after : after + passed + 1], nan=-1.0)
    steps = MS * (after + 1 + np.flatnonzero(np.diff(played)))
    assert set(steps.tolist()) <= set(changes)
    assert all(after * MS < each <= (after + passed) * MS for each in changes)


def test_after_its_last_command_a_packet_holds_and_says_since_when():
    player = PacketPlayer(PERIOD)
    assert player.at(0) is None
    assert player.runs_out == -math.inf
    player.hear(CommandPacket.regular(20 * MS, PERIOD, np.array([[1.0], [2.0], [3.0]])), 15 * MS)
    assert player.at(19 * MS) is None
    assert [player.at(time * MS)[0] for time in (20, 29, 30, 40, 900)] == [1.0, 1.0, 2.0, 3.0, 3.0]
    assert player.runs_out == 50 * MS
    player.hear(CommandPacket.single(900 * MS, [7]), 900 * MS)
    assert player.runs_out == 910 * MS
    assert player.at(901 * MS)[0] == 7.0
    player.reset()
    assert player.at(901 * MS) is None


@pytest.mark.parametrize(
    ("due", "line"),
    [
        ((-31,), "came late: 31 ms after its first command was due, of 30 ms"),
        ((-400, 900), "came late: 400 ms after its first command was due, of 30 ms"),
        ((0, 1001), "reaches too far: its last command is due in 1 s, of 1 s"),
        ((3500,), "reaches too far: its last command is due in 3.5 s, of 1 s"),
        ((-30, 1000), ""),
    ],
)
def test_packets_too_late_or_too_far_ahead_are_refused_in_a_line(due, line):
    now = 50_000
    player = PacketPlayer(PERIOD)
    player.hear(CommandPacket.single((now - 1) * MS, [5.0]), now * MS)
    packet = CommandPacket(tuple((now + each) * MS for each in due), np.ones((len(due), 1)))
    assert player.hear(packet, now * MS) == line
    assert player.at(now * MS)[0] == (5.0 if line else 1.0)
    assert player.refused == ({line.partition(":")[0]: 1} if line else {})
    assert (LATEST * PERIOD, FARTHEST) == (30 * MS, 1.0)


# --- messages -----------------------------------------------------------------------------------

NAMES = ("left", "right")
STAMP = 1_700_000_000 * 10**9 + 123


def message_of(packet, names=NAMES, field="effort"):
    pytest.importorskip("trajectory_msgs")
    return plan_to_message(packet, names, STAMP, field)


def read(message, field="effort"):
    return plan_from_message(message, NAMES, "pressure/plan", field)


def test_actuators_in_another_order_are_sorted():
    packet = CommandPacket.regular(STAMP, PERIOD, np.array([[1.0, 2.0], [3.0, 4.0]]))
    message = message_of(packet, ("right", "left"))
    np.testing.assert_array_equal(read(message).commands, [[2.0, 1.0], [4.0, 3.0]])


def test_two_plans_may_wait_for_who_plays_them():
    """The first of them is due before the second one."""
    pytest.importorskip("rclpy")
    for topic in ("pressure/plan", "tendon/plan", "torque/plan"):
        assert qos(topic).depth == qos(topic, offered_period=0.01).depth == 5
    assert qos("pressure/command").depth == 1


def effort(row, *values):
    return lambda message: setattr(message.points[row], "effort", list(values))


def joints(*names):
    return lambda message: setattr(message, "joint_names", list(names))


def many_points(message):
    message.points = message.points[:1] * (MOST_COMMANDS + 1)


def twice_at_a_time(message):
    message.points[2].time_from_start = message.points[1].time_from_start


def back_in_time(message):
    message.points[1].time_from_start.sec = -1


def without_a_stamp(message):
    message.header.stamp.sec = message.header.stamp.nanosec = 0


@pytest.mark.parametrize(
    ("spoil", "line"),
    [
        (
            joints("left", "middle"),
            r"joint_names \['left', 'middle'\] must be the actuators \['lef",
        ),
        (joints("left", "left"), r"joint_names \['left', 'left'\] must be the actuators"),
        (joints("left"), r"joint_names \['left'\] must be the actuators"),
        (
            lambda message: message.points.clear(),
            f"points: 0 of them, must be 1 to {MOST_COMMANDS}",
        ),
        (many_points, f"points: {MOST_COMMANDS + 1} of them, must be 1 to {MOST_COMMANDS}"),
        (effort(1, 1.0), r"points\[1\]\.effort has 1 values, must have 2"),
        (effort(0), r"points\[0\]\.effort has 0 values, must have 2"),
        (effort(2, 1.0, math.nan), r"points\[2\]\.effort of right.*nan"),
        (effort(0, -math.inf, 1.0), r"points\[0\]\.effort of left.*inf"),
        (twice_at_a_time, r"points\[2\]\.time_from_start 0\.01 s must be after .* it, 0\.01 s"),
        (back_in_time, r"points\[1\]\.time_from_start -0\.99 s must be after .* it, 0 s"),
        (without_a_stamp, r"stamp 0 s, 0 ns must be a positive time"),
    ],
)
def test_each_malformed_plan_is_refused_in_one_line(spoil, line):
    message = message_of(CommandPacket.regular(STAMP, PERIOD, np.ones((3, 2))))
    assert read(message).commands.shape == (3, 2)
    spoil(message)
    with one_line(line, MessageError) as refused:
        read(message)
    assert refused.value.topic == "pressure/plan"
