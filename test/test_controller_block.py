"""The controller's block: when answers are planned and sent, limits, and the vent."""

from pathlib import Path

import numpy as np
import pytest

from softcr_control.controller import ControllerBlock
from softcr_models import load_robot
from softcr_runtime.sample import Sample
from softcr_runtime.values import ReferenceRows, StateEstimate

PERIOD = 1 / 70
ROBOT = load_robot("licher2025")
WAITED = 2 * PERIOD
MEASURED = np.full(3, 5e3)  # [Pa]


def block_of(make=None, **told):
    chosen = {"controller": "rod_mpc", "intervals": 2, **told}
    return ControllerBlock(ROBOT, ControllerBlock.settings_of(chosen), make)


@pytest.fixture(scope="module")
def blocks():
    bench = {"sampling": "separate", "command_age": WAITED}
    return {
        name: block_of(**settings)
        for name, settings in {
            "simulator": {},
            "waiting valves": bench,
            "hasty valves": bench | {"command_age": 0.0},
        }.items()
    }


def delay_after(block, *latencies):
    """[ticks] In periods the latencies of 15 answers, those named last."""
    block.reset()
    for latency in [latencies[0]] * (15 - len(latencies)) + list(latencies):
        block.answered(latency * PERIOD)
        block._delay = block.describe()["delay"]  # as the next answer is planned
    return block.describe()["delay"]


def test_the_simulator_follows_from_the_next_tick_on(blocks):
    block = blocks["simulator"]
    assert (delay_after(block, 0.5), block.age_to_send()) == (1, 0.0)
    assert (delay_after(block, 1.2), block.age_to_send()) == (2, 0.0)
    assert delay_after(block, 0.5, 1.9) == 1


def test_a_late_first_answer_changes_no_plan(blocks):
    block = blocks["simulator"]
    block.reset()
    planned = []
    for latency in (1.1, *[0.8] * 14):
        block.answered(latency * PERIOD)
        planned.append(block.describe()["delay"])
    assert set(planned) == {1}


def test_a_plan_for_later_ends_with_the_answers_that_asked_for_it(blocks):
    block = blocks["simulator"]
    assert delay_after(block, 1.2) == 2
    for _ in range(15):
        block.answered(0.8 * PERIOD)
    assert block.describe()["delay"] == 1


def test_waiting_valves_get_answers_at_once_and_follow_all_at_one_age(blocks):
    block = blocks["waiting valves"]
    assert (delay_after(block, 0.3), block.age_to_send()) == (2, 0.0)
    assert (delay_after(block, 1.6), block.age_to_send()) == (2, 0.0)
    assert delay_after(block, 1.6, 2.4) == 2  # one that was late


def test_answers_too_late_for_that_are_held_back_to_a_later_tick(blocks):
    block = blocks["waiting valves"]
    assert delay_after(block, 1.6, 2.1, 2.1) == 3
    assert 2 * PERIOD < block.age_to_send() < 3 * PERIOD
    assert delay_after(block, 9.0) == 4


def test_hasty_valves_get_answers_just_before_the_tick_they_are_planned_for(blocks):
    block = blocks["hasty valves"]
    assert delay_after(block, 1.2) == 2
    assert 1.5 * PERIOD < block.age_to_send() < 2 * PERIOD


# --- what is sent -------------------------------------------------------------------------------


class Asks:
    """A controller that answers what it is told to; counts how often it began anew."""

    def __init__(self):
        self.answer, self.resets, self.seen = np.zeros(3), 0, []

    def reset(self):
        self.resets += 1

    def command(self, observation):
        self.seen.append(observation)
        return self.answer


@pytest.fixture(scope="module")
def asked():
    controller = Asks()
    return block_of(lambda context: controller), controller


def ticked(block, stamp=1, others=None, inputs=MEASURED):
    """The command that answers a rod at rest, whose estimate was made with some inputs."""
    state = block.model.equilibrium(
        np.zeros(3), np.array([p.nominal for p in block.model.parameters])
    )
    rows = ReferenceRows(stamp, PERIOD, np.tile(state, (9, 1)), np.zeros((9, 3)))
    values = {
        "estimate/rod": StateEstimate(state, {}, inputs=inputs),
        "reference/rod": rows,
        **(others or {}),
    }
    samples = {topic: Sample(topic, stamp, value, 0.0) for topic, value in values.items()}
    (output,) = block.tick(stamp, samples)
    assert (output.topic, output.stamp) == ("pressure/command", stamp)
    return output.value


def test_whatever_a_controller_asks_for_stays_within_limits_and_rate(asked):
    block, controller = asked
    block.reset()
    limits = ROBOT.pressure_limits
    step = limits.maximum_rate * PERIOD
    controller.answer = np.array([1e9, -1e9, 0.5 * step])
    first = ticked(block, 1)
    assert first == pytest.approx([limits.minimum + step, limits.minimum, 0.5 * step])
    for stamp in range(2, 200):
        last = ticked(block, stamp)
    assert last == pytest.approx([limits.maximum, limits.minimum, 0.5 * step])
    assert block.describe()["clipped"] == 199


@pytest.mark.parametrize("answer", [np.full(3, np.nan), np.zeros(2), np.array(1.0)])
def test_an_answer_that_is_none_is_refused_and_changes_nothing(asked, answer):
    block, controller = asked
    block.reset()
    controller.answer = np.full(3, 1e3)
    before = ticked(block)
    controller.answer = answer
    with pytest.raises(ValueError, match="must be 3 finite numbers"):
        ticked(block, 2)
    controller.answer = np.full(3, 1e3)
    assert ticked(block, 3) == pytest.approx(before)


def test_a_vent_is_zero_at_once_and_begins_the_controller_anew_once(asked):
    block, controller = asked
    block.reset()
    controller.answer = np.full(3, 5e3)
    step = ROBOT.pressure_limits.maximum_rate * PERIOD
    while (sent := ticked(block)).max() < 5e3:
        pass
    resets = controller.resets
    for _ in range(3):
        (output,) = block.idle(7, "inputs overdue")
        assert (output.topic, output.stamp) == ("pressure/command", 7)
        assert not output.value.any()
    assert controller.resets == resets + 1
    assert block.describe()["vents"] == 1
    assert block.warnings() == ["estimate or reference is missing: vented"]
    # after it pressures rise from nothing, as fast as they may
    assert sent == pytest.approx(np.full(3, 5e3))
    assert ticked(block, 8) == pytest.approx(np.full(3, min(step, 5e3)))
    assert block.warnings() == []


def test_a_controller_is_told_the_delay_that_its_answer_will_have(asked):
    block, controller = asked
    block.reset()
    for latency, expected in ((0.5, 1), (1.2, 2)):
        for _ in range(15):
            block.answered(latency * PERIOD)
        ticked(block)
        assert controller.seen[-1].delay == expected


def test_a_controller_is_told_the_inputs_that_the_estimate_was_made_with(asked):
    block, controller = asked
    block.reset()
    ticked(block)
    np.testing.assert_array_equal(controller.seen[-1].inputs, MEASURED)
    assert [each.topic for each in block.inputs] == ["estimate/rod", "reference/rod"]


def test_what_an_older_run_joined_for_the_controller_goes_before(asked):
    block, controller = asked
    block.reset()
    ticked(block, others={"pressure/state": np.array([1.0, 2.0, 3.0])}, inputs=None)
    np.testing.assert_array_equal(controller.seen[-1].inputs, [1.0, 2.0, 3.0])
    ticked(block, 2, others={"pressure/state": np.array([3.0, 2.0, 1.0])})
    np.testing.assert_array_equal(controller.seen[-1].inputs, [3.0, 2.0, 1.0])


def test_an_estimate_that_tells_no_inputs_is_refused_with_what_it_needs(asked):
    block, _ = asked
    block.reset()
    with pytest.raises(ValueError, match=r"estimate/rod tells no inputs .* a field input\.NAME is"):
        ticked(block, inputs=None)


def test_a_controller_that_is_led_by_the_tip_alone_hears_the_actuators():
    block = block_of(controller=f"{Path(__file__).parents[1]}/examples/joint_pid.py:JointPid")
    assert [each.topic for each in block.inputs] == [
        "estimate/tip/pose", "reference/rod", "pressure/state",
    ]  # fmt: skip
