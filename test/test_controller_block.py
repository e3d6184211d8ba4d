"""The controller's block: when answers are planned and sent, limits, and the vent."""

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from kit.controller_blocks import Asks, at_rest, block_of

from softcr_control.predictive.horizon import MAXIMUM_DELAY
from softcr_models import load_robot
from softcr_runtime.blocks.command_packets import FARTHEST, CommandPacket
from softcr_runtime.blocks.sample import Sample

PERIOD = 1 / 70
ROBOT = load_robot("licher2025")
MEASURED = np.full(3, 5e3)  # [Pa]


@pytest.fixture(scope="module")
def plain():
    return block_of()


def delay_after(block, *latencies):
    """[ticks] of the next answer, after answers of these ages [periods]."""
    block.reset()
    for latency in latencies:
        block.answered(latency * PERIOD)
    return block.describe()["delay"]


@pytest.mark.parametrize(
    ("latencies", "delay"),
    [
        ((0.97,), 1),
        ((0.99,), 2),  # too near to the tick to be there for it
        ((0.5, 1.9, 0.5), 2),  # the latest one counts
        ((3.3, 0.5), 4),
        ((6.5, *[0.5] * 69), MAXIMUM_DELAY),
        ((6.5, *[0.5] * 70), 1),  # no longer than it is among the last 70
        ((9.0, 0.5), 1),  # a stall is nothing that could be planned for
        ((9.0,), MAXIMUM_DELAY),
        ((-0.3,), 1),  # a clock that was set back
    ],
)
def test_an_answer_is_planned_for_when_the_latest_of_the_last_would_be_there(
    plain, latencies, delay
):
    assert delay_after(plain, *latencies) == delay


@pytest.mark.parametrize(
    ("told", "latencies", "delay"),
    [
        ({"least_delay": 3}, (0.5,), 3),
        ({"least_delay": 3}, (3.5,), 4),
        # on the bench a node of the valves takes a few milliseconds, which simulated ones do not
        ({"sampling": "separate"}, (0.7,), 1),
        ({"sampling": "separate"}, (0.8,), 2),
        ({"mode": "lockstep"}, (4.0, 4.0), 1),  # every answer is there in the next tick
    ],
)
def test_answers_are_planned_no_earlier_than_they_shall_be(told, latencies, delay):
    assert delay_after(block_of(**told), *latencies) == delay


# --- what is sent -------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def shared():
    controller = Asks()
    return block_of(lambda context: controller), controller


@pytest.fixture
def asked(shared):
    """A block that has just been reset, and its controller."""
    shared[0].reset()
    return shared


def stamp_of(cycle):
    return round(1e9 * cycle * PERIOD)


def samples_of(block, cycle, **told):
    return at_rest(block, stamp_of(cycle), **{"inputs": MEASURED, **told})


def ticked(block, cycle=1, **told):
    """The packet with which it answers."""
    return packet_of(block.tick(stamp_of(cycle), samples_of(block, cycle, **told)), stamp_of(cycle))


def packet_of(outputs, stamp):
    (output,) = outputs
    assert (output.topic, output.stamp) == ("pressure/plan", stamp)
    return output.value


def in_periods(packet, cycle):
    """Due times after the estimate of a cycle."""
    return (np.array(packet.due) - stamp_of(cycle)) / (1e9 * PERIOD)


def test_an_answer_is_a_packet_whose_commands_are_due_a_period_apart(asked):
    block, controller = asked
    for answer in (np.full(3, 1e3), np.full((5, 3), 1e3)):
        controller.answer = answer
        packet = ticked(block, 7)
        np.testing.assert_array_equal(packet.commands, np.atleast_2d(answer))
        assert in_periods(packet, 7) == pytest.approx(1 + np.arange(len(packet.due)), abs=1e-6)
    block.answered(2.5 * PERIOD)
    assert in_periods(ticked(block, 10), 10) == pytest.approx(3 + np.arange(5), abs=1e-6)


def test_a_controller_leads_the_models_tip_beside_the_goal(asked):
    """By what the robot's tip is beside it; a model knows no parameter of that name."""
    block, controller = asked
    told = {"bending_compliance": 41.0, "tip_offset_x": 1e-3, "tip_offset_z": -2e-3}
    ticked(block, parameters=told)
    seen = controller.seen[-1]
    assert dict(seen.parameters) == {"bending_compliance": 41.0}
    np.testing.assert_allclose(seen.reference.tip_positions, np.tile([-1e-3, 0.0, 2e-3], (9, 1)))


def test_whatever_a_controller_asks_for_stays_within_limits_and_rate(asked):
    block, controller = asked
    limits = ROBOT.pressure_limits
    step = limits.maximum_rate * PERIOD
    controller.answer = np.array([1e9, -1e9, 0.5 * step])
    first = ticked(block, 1).commands[0]
    assert first == pytest.approx([limits.minimum + step, limits.minimum, 0.5 * step])
    for cycle in range(2, 200):
        last = ticked(block, cycle).commands[0]
    assert last == pytest.approx([limits.maximum, limits.minimum, 0.5 * step])
    assert block.describe()["clipped"] == 199


@settings(max_examples=60, deadline=None)
@given(
    plans=st.lists(
        st.lists(st.lists(st.floats(-2e5, 3e5), min_size=3, max_size=3), min_size=1, max_size=6),
        min_size=1,
        max_size=5,
    ),
    ages=st.lists(st.floats(0.1, 9.0), min_size=5, max_size=5),
    skipped=st.lists(st.integers(1, 4), min_size=5, max_size=5),
)
def test_what_is_played_of_any_plans_keeps_limits_and_rate(shared, plans, ages, skipped):
    """Packets are played by hand, all of them in time, whatever the delay and the ticks between."""
    block, controller = shared
    block.reset()
    limits, cycle, planned = ROBOT.pressure_limits, 1, {0: np.zeros(3)}
    for plan, age, ticks in zip(plans, ages, skipped, strict=False):
        controller.answer = np.array(plan)
        delay = block.describe()["delay"]
        packet = ticked(block, cycle)
        begin = cycle + delay
        planned = {tick: command for tick, command in planned.items() if tick < begin}
        planned |= {begin + row: command for row, command in enumerate(packet.commands)}
        block.answered(age * PERIOD)
        if block.warnings():
            return  # led to rest: another test's
        cycle += ticks
    played, now = [], np.zeros(3)
    for tick in range(max(planned) + 1):
        now = planned.get(tick, now)  # held where nothing is due
        played.append(now)
    played = np.array(played)
    assert limits.minimum <= played.min() <= played.max() <= limits.maximum
    steps = np.abs(np.diff(played, axis=0))
    assert steps.max(initial=0.0) <= limits.maximum_rate * PERIOD * (1 + 1e-9)


@pytest.mark.parametrize(
    "answer",
    [np.full(3, np.nan), np.zeros(2), np.array(1.0), np.zeros((2, 2, 3)), np.diag([1, 1, np.inf])],
)
def test_an_answer_that_is_none_is_refused_and_changes_nothing(asked, answer):
    block, controller = asked
    controller.answer = np.full(3, 1e3)
    before = ticked(block).commands
    controller.answer = answer
    with pytest.raises(ValueError, match="must be 3 finite numbers"):
        ticked(block, 2)
    controller.answer = np.full(3, 1e3)
    assert ticked(block, 3).commands == pytest.approx(before)


def test_a_tick_that_is_refused_repeats_what_was_planned_for_it(asked):
    block, controller = asked
    assert not packet_of(block.hold(stamp_of(1)), stamp_of(1)).commands.any()
    controller.answer = np.outer(np.arange(1, 5), np.full(3, 1e3))
    ticked(block, 2)  # due in the ticks 3, 4, 5, 6
    for cycle, planned in ((4, 3e3), (5, 3e3), (9, 3e3)):  # and then it is held
        held = packet_of(block.hold(stamp_of(cycle)), stamp_of(cycle))
        np.testing.assert_array_equal(held.commands, np.full((1, 3), planned))
        assert in_periods(held, cycle) == pytest.approx([1], abs=1e-6)


def test_a_vent_is_one_packet_along_a_ramp_and_begins_the_controller_anew_once(asked):
    block, controller = asked
    controller.answer = np.full((8, 3), 5e3)
    ticked(block)
    resets = controller.resets
    assert block.idle(stamp_of(9), "inputs overdue") == []  # the last packet has not run out
    packet = packet_of(block.idle(stamp_of(11), "inputs overdue"), stamp_of(11))
    # from what is played to nothing within half a second, evenly, from the due tick on
    falling = 5e3 * (1 - np.arange(1, 36) / 35)
    assert packet.commands == pytest.approx(np.tile(falling[:, None], 3), abs=1e-9)
    assert in_periods(packet, 11) == pytest.approx(1 + np.arange(35), abs=1e-5)
    for cycle in (12, 13, 17):
        assert block.idle(stamp_of(cycle), "inputs overdue") == []
    assert controller.resets == resets + 1
    assert block.describe()["vents"] == 1
    assert block.warnings() == ["estimate or reference is missing: vented"]
    # after it pressures rise from nothing, as fast as they may
    step = ROBOT.pressure_limits.maximum_rate * PERIOD
    controller.answer = np.full(3, 9e4)
    assert ticked(block, 60).commands[0] == pytest.approx(np.full(3, step))
    assert block.warnings() == []


def test_a_vent_goes_on_from_what_is_played_when_it_begins(asked):
    """With answers that take three ticks, the plan before goes on until then."""
    block, controller = asked
    block.answered(2.5 * PERIOD)
    controller.answer = np.outer(np.arange(1, 9), np.full(3, 1e3))
    ticked(block, 1)  # 1 kPa in tick 4, 4 kPa in tick 7, which is the one before the vent
    packet = packet_of(block.idle(stamp_of(5), "stopped"), stamp_of(5))
    assert in_periods(packet, 5)[0] == pytest.approx(3, abs=1e-6)
    assert packet.commands[0] == pytest.approx(np.full(3, 4e3 * 34 / 35))
    assert not packet.commands[-1].any()


def test_answers_too_late_for_any_plan_lead_to_rest_until_they_are_in_time(asked):
    block, controller = asked
    controller.answer = np.full((8, 3), 5e3)
    late, cycle = (MAXIMUM_DELAY + 0.5) * PERIOD, 1

    def answer(age):
        nonlocal cycle
        cycle += 2
        outputs = block.tick(stamp_of(cycle), samples_of(block, cycle))
        block.answered(age)
        return [output.value.commands for output in outputs]

    assert answer(late)[0].shape == (8, 3)
    assert answer(0.5 * PERIOD)[0].shape == (8, 3)  # one of three is no reason
    assert answer(late)[0].shape == (8, 3)
    told = block.warnings()
    assert len(told) == 1
    assert f"answers are {1e3 * late:.0f} ms old" in told[0]
    assert "the robot is led to rest" in told[0]
    (rest,) = answer(late)
    assert not rest[-1].any()
    assert np.abs(np.diff(rest, axis=0)).max() < 5e3 / 30
    seen = len(controller.seen)
    assert answer(late) == answer(0.5 * PERIOD) == answer(0.5 * PERIOD) == []
    assert len(controller.seen) == seen + 3  # computed, but not sent
    late_in = cycle - 4
    while (cycle + 2 - late_in) * PERIOD <= 0.5:  # until the robot has come to rest
        assert block.warnings()
        assert answer(0.5 * PERIOD) == []
    assert block.warnings()
    assert answer(0.5 * PERIOD) == []
    assert block.warnings() == []
    resets = controller.resets
    controller.taken_over.clear()
    (again,) = answer(0.5 * PERIOD)
    assert again.shape == (8, 3)
    assert controller.resets == resets + 1
    (played,) = controller.taken_over  # it forgets its plans, but not what is on the way
    first = round((played.due[2] - stamp_of(cycle)) / PERIOD / 1e9)
    assert first == 0
    assert not played.commands.any()  # the packet that led to rest has ended
    assert block.describe()["vents"] == 1


def test_who_starts_afresh_knows_the_way_to_rest_that_is_still_played(asked):
    block, controller = asked
    controller.answer = np.full((8, 3), 5e3)
    block.tick(stamp_of(1), samples_of(block, 1))
    block.answered(0.5 * PERIOD)
    assert list(block.idle(stamp_of(3), "deactivated"))
    controller.taken_over.clear()
    assert list(block.tick(stamp_of(5), samples_of(block, 5)))
    (played,) = controller.taken_over
    assert round((played.due[2] - stamp_of(5)) / PERIOD / 1e9) == 0
    assert len(played.due) > MAXIMUM_DELAY
    assert np.diff(played.commands, axis=0).max() <= 0.0  # of the packet that led to rest
    assert played.commands[0].all()


def test_a_controller_is_told_the_delay_that_its_answer_will_have(asked):
    block, controller = asked
    for latency, expected in ((0.5, 1), (1.2, 2)):
        block.answered(latency * PERIOD)
        ticked(block)
        assert controller.seen[-1].delay == expected
        assert controller.seen[-1].last_age == latency * PERIOD


def test_a_controller_is_told_the_inputs_that_the_estimate_was_made_with(asked):
    block, controller = asked
    ticked(block)
    np.testing.assert_array_equal(controller.seen[-1].inputs, MEASURED)
    of_all = ["pressure/sent", "pressure/reference"]
    assert [each.topic for each in block.inputs] == ["estimate/rod", "reference/rod", *of_all]
    with pytest.raises(ValueError, match=r"estimate/rod tells no inputs .* a field input\.NAME is"):
        ticked(block, inputs=None)
    # one that is led by the tip alone hears the actuators
    led = block_of(controller=f"{Path(__file__).parents[1]}/examples/joint_pid.py:JointPid")
    of_tip = ["estimate/tip/pose", "reference/rod", "pressure/state"]
    assert [each.topic for each in led.inputs] == [*of_tip, *of_all]


def test_what_somebody_holds_is_planned_from_until_commands_are_played_again(asked):
    """The valves hold for safety's sake: what was sent meanwhile has not moved the robot."""
    block, controller = asked
    period = round(1e9 * PERIOD)
    for cycle in range(1, 41):
        controller.answer = np.tile(1e3 * cycle + np.arange(4.0)[:, None], (1, 3))
        held = 10 <= cycle < 30
        # answers are due in the next tick, so this one plays that of the cycle before
        played = np.full(3, 1e3 * (9 if held else cycle - 1))
        sent = Sample("pressure/sent", stamp_of(cycle) - period // 20, played, 0)
        samples = samples_of(block, cycle) | ({"pressure/sent": sent} if cycle > 1 else {})
        (packet,) = (each.value for each in block.tick(stamp_of(cycle), samples))
        seen = controller.seen[-1].held
        # 5 kPa, a twentieth of the range, are beyond what neighbouring commands explain
        if 20 <= cycle < 30:
            np.testing.assert_array_equal(seen, played)
        elif cycle <= 15 or cycle >= 30:
            assert seen is None
        assert packet.due[0] == stamp_of(cycle) + period
    controller.answer = np.full(3, 1e5)


def test_known_inputs_are_taken_as_far_as_a_packet_may_reach(asked):
    """However far a message says they reach; between its times they are linear."""
    block, controller = asked
    due = (stamp_of(4), stamp_of(8), 2**62)
    packet = CommandPacket(due, np.outer([1.0, 5.0, 5.0], np.ones(3)))
    known = Sample("pressure/reference", stamp_of(4), packet, 0.0)
    block.tick(stamp_of(5), samples_of(block, 5) | {"pressure/reference": known})
    inputs = controller.seen[-1].reference.inputs
    assert inputs[:4] == pytest.approx(np.outer([2.0, 3.0, 4.0, 5.0], np.ones(3)), abs=1e-6)
    assert len(inputs) == pytest.approx(FARTHEST / PERIOD, abs=2)
