"""What a controller takes for pending, and for played, is what is played of its packets."""

from typing import NamedTuple

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from kit.models import PERIOD, LinearModel, circle

from softcr_control.command_ramp import HELD
from softcr_control.observation import Observation
from softcr_control.predictive.horizon import MAXIMUM_DELAY
from softcr_control.sent_commands import SentCommands
from softcr_runtime.blocks.command_packets import LATEST, CommandPacket, PacketPlayer

MEASURED = np.array([3e4, 2e4, 1e4])
LOW, HIGH = np.zeros(3), np.full(3, 1e5)
NANO = round(1e9 * PERIOD)
SEEN = 0.1
"""Of a tick is over when it is looked at what is played in it: what came meanwhile counts."""


class Answered(NamedTuple):
    """An answer: to which tick, when due, how many commands, and how old."""

    tick: int
    delay: int
    commands: int
    age: float  # [periods]


@st.composite
def answers(draw):
    """One after the other, some ticks skipped; some come too late for their first command, and some
    too late for a player."""
    tick, free, told = 0, 0.0, []
    for _ in range(draw(st.integers(1, 12))):
        tick += draw(st.sampled_from([1, 1, 1, 2, 3, 6]))
        delay = draw(st.integers(1, MAXIMUM_DELAY))
        # the computing begins when the answer before has been sent; nothing comes at an edge
        tenths = draw(st.integers(0, 10 * (delay + LATEST) + 15))
        came = 0.1 * (np.ceil(10 * max(free, tick)) + tenths) + 0.05
        told.append(Answered(tick, delay, draw(st.integers(1, 8)), came - tick))
        free = came
        tick = max(tick, int(came) - 1)
    return told


def commands_of(number, count):
    return 1e3 * (1.0 + number) + 10.0 * np.arange(3 * count).reshape(count, 3)


def played(told, ticks):
    """What a PacketPlayer plays in ticks, which ascend, of all of these answers."""
    player, waiting, found = PacketPlayer(NANO), list(enumerate(told)), []
    for tick in ticks:
        now = tick * NANO + round(SEEN * NANO)
        while waiting and (at := round((waiting[0][1].tick + waiting[0][1].age) * NANO)) <= now:
            number, answer = waiting.pop(0)
            due = (answer.tick + answer.delay) * NANO
            plan = commands_of(number, answer.commands)
            player.hear(CommandPacket.regular(due, NANO, plan), at)
        command = player.at(now)
        found.append(MEASURED if command is None else command)
    return np.array(found)


def observation(tick, delay, last_age=0.0, inputs=MEASURED):
    stamp, model = tick * PERIOD, LinearModel()
    return Observation(stamp, np.zeros(5), {}, circle(stamp, 2), inputs, model, delay, last_age)


@settings(max_examples=400, deadline=None)
@given(answers(), st.sampled_from([(1.0,), (0.4, 0.6)]))
def test_pending_and_held_are_what_a_player_plays(told, ramp):
    sent, weights = SentCommands(np.array(ramp), PERIOD), np.array(ramp)
    age, before = 0.0, None
    for number, answer in enumerate(told):
        sent.observe(observation(answer.tick, answer.delay, age * PERIOD), LOW, HIGH)
        begin, due = (before.tick if before else answer.tick), answer.tick + answer.delay
        truth = played(told[:number], range(begin - 1, due))
        pairs = [truth[row : row + 2][-len(ramp) :] for row in range(len(truth) - 1)]
        held = np.stack([weights @ pair for pair in pairs])
        np.testing.assert_allclose(sent.pending, held[answer.tick - begin :])
        np.testing.assert_allclose(sent.held(begin * PERIOD), held[0])
        np.testing.assert_allclose(sent.previous, truth[-1])
        assert sent.due == pytest.approx(due * PERIOD)
        if before:
            assert sent.shift == due - (before.tick + before.delay)
        sent.answer(commands_of(number, answer.commands))
        age, before = answer.age, answer


def test_before_any_command_the_robot_follows_what_is_measured_inside_the_limits():
    sent = SentCommands(np.ones(1), PERIOD)
    sent.observe(observation(1, 3, inputs=np.array([np.nan, -5.0, 2e5])), LOW, HIGH)
    np.testing.assert_array_equal(sent.pending, np.tile([0.0, 0.0, 1e5], (3, 1)))
    assert sent.shift == 1


def test_packets_of_another_controller_go_on_and_are_overridden():
    sent = SentCommands(np.ones(1), PERIOD)
    first, second = commands_of(0, 4), commands_of(1, 2)
    packets = ((11, first), (13, second))
    sent.take_over([CommandPacket.regular(tick * NANO, NANO, each) for tick, each in packets])
    sent.observe(observation(11, 5), LOW, HIGH)
    expected = [first[0], first[1], second[0], second[1], second[1]]
    np.testing.assert_array_equal(sent.pending, expected)
    sent.answer(commands_of(2, 3))
    sent.observe(observation(15, 2, last_age=1.5 * PERIOD), LOW, HIGH)
    np.testing.assert_array_equal(sent.pending, [second[1], commands_of(2, 3)[0]])
    sent.reset()
    sent.observe(observation(16, 1), LOW, HIGH)
    np.testing.assert_array_equal(sent.pending, [MEASURED])


@given(st.lists(st.integers(0, 2), min_size=1, max_size=12))
def test_a_packet_without_repetitions_is_played_and_taken_over_as_the_whole_one(levels):
    """A controller that comes back is told of packets whose commands are no period apart."""
    whole = CommandPacket.regular(NANO, NANO, np.outer(levels, np.ones(3)))
    short, told = whole.without_repetitions, []
    assert (short.due[0], short.due[-1]) == (whole.due[0], whole.due[-1])
    assert (np.diff(short.commands[:-1], axis=0) != 0.0).all()
    times = [tick * NANO + NANO // 2 for tick in range(1, len(levels) + 3)]
    for packet in (whole, short):
        player, sent = PacketPlayer(NANO), SentCommands(HELD, PERIOD)
        player.hear(packet, 0)
        sent.take_over([packet])
        told.append([float(player.at(time)[0]) for time in times])
        told.append([float(sent.at(tick * PERIOD)[0]) for tick in range(1, len(levels) + 3)])
    assert told[0] == told[1] == told[2] == told[3]


def test_a_packet_that_reaches_far_is_taken_over_as_far_as_a_message_may_have_commands():
    sent = SentCommands(HELD, PERIOD)
    sent.take_over([CommandPacket((NANO, 2**62), np.ones((2, 3)))])
    assert sent.at(1e3 * PERIOD)[0] == 1.0


def test_what_somebody_holds_counts_whatever_was_sent():
    sent, period, held = SentCommands(HELD, 0.01), 0.01, np.array([7.0])
    for tick in range(6):
        holds, stamp, zero = held if 2 <= tick < 4 else None, tick * period, np.array([0.0])
        seen = Observation(stamp, None, {}, None, zero, None, delay=2, held=holds)
        sent.observe(seen, np.array([-9.0]), np.array([9.0]))
        if holds is not None:
            assert sent.previous == sent.held(seen.stamp - period) == 7.0
            np.testing.assert_array_equal(sent.pending, [[7.0], [7.0]])
        sent.answer(np.array([[float(tick)]]))
    # what was sent meanwhile is played once nobody holds
    np.testing.assert_array_equal(sent.pending, [[3.0], [4.0]])
