"""Learning from repetitions of a motion: the law, its file, and its way to the controller."""

import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from kit.controller_blocks import Asks, at_rest, block_of
from kit.refusals import one_line

from softcr_control.predictive.learned_motion import LearnedMotion, shift_after
from softcr_control.reference.block import ReferenceBlock, motion_of
from softcr_models import load_robot
from softcr_models.errors import UserError
from softcr_runtime.bags.signals import BagSignals, NodeStatus, Signal
from softcr_runtime.blocks.values import ReferenceRows
from softcr_runtime.settings.node_settings import setting_values
from softcr_runtime.wire.messages import MessageError
from softcr_runtime.wire.rod_clouds import (
    SHIFT,
    reference_cloud_from_message,
    reference_cloud_message,
)
from softcr_runtime.wire.state_clouds import reference_from_message, reference_message
from softcr_tools.learn_motion import learn_from
from softcr_tools.report.run import Run

PERIOD = 0.01
MOTION = {"reference": "circle", "duration": 0.5}


def learned(shift, robot="licher2025", motion=MOTION):
    return LearnedMotion(robot=robot, motion=motion, period=PERIOD, errors=[], shift=shift.tolist())


@given(gain=st.floats(0.1, 1.0), slope=st.floats(0.6, 1.4))
def test_an_error_that_repeats_fades_by_the_laws_own_factor(gain, slope):
    """Tip = slope * aim + disturbance: what is left is (1 - gain slope)^k, without smoothing."""
    times = np.linspace(0.0, 1.0, 50)[:, None]
    wanted, disturbance = np.sin(7.0 * times * [1, 2, 3]), np.cos(5.0 * times * [1, 2, 3])
    shift = np.zeros_like(wanted)
    first = error = slope * wanted + disturbance - wanted
    for k in range(1, 6):
        shift = shift_after(shift, error, gain, 0.0)
        error = slope * (wanted + shift) + disturbance - wanted
        np.testing.assert_allclose(error, (1.0 - gain * slope) ** k * first, atol=1e-12)


def test_smoothing_passes_slow_errors_and_holds_back_noise():
    slow = np.sin(np.linspace(0.0, 3.0, 400))[:, None] * [1, 2, 3]
    np.testing.assert_allclose(shift_after(0 * slow, slow, 1.0, 1.5), -slow, atol=2e-2)
    noise = np.random.default_rng(1).normal(size=(4000, 3))
    passed = shift_after(0 * noise, noise, 1.0, 1.5).std()
    assert passed == pytest.approx(1.0 / np.sqrt(2.0 * 1.5 * np.sqrt(np.pi)), rel=0.05)


def test_a_file_gives_back_what_it_holds_and_refuses_others(tmp_path):
    path = tmp_path / "motion.json"
    shift = np.arange(9.0).reshape(3, 3)
    learned(shift).save(path)
    found = LearnedMotion.load(path)
    np.testing.assert_array_equal(found.at(np.array([-1.0, 0.0, 0.005, 9.0])),
                                  [[0, 1, 2], [0, 1, 2], [1.5, 2.5, 3.5], [6, 7, 8]])  # fmt: skip
    found.refuse_others(path, "licher2025", MOTION)
    with pytest.raises(UserError, match="learned of robot licher2025, must be of two_segments"):
        found.refuse_others(path, "two_segments", MOTION)
    with pytest.raises(UserError, match=r"learned with duration = 0.5, must be 2.0"):
        found.refuse_others(path, "licher2025", MOTION | {"duration": 2.0})


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("", "must be a file of `softcr learn motion`"),
        ('{"robot": "a"}', "motion: Field required"),
        (json.dumps({**learned(np.ones((1, 3))).model_dump(), "shift": [[1, 2]]}), "shift.0.2"),
        (json.dumps({**learned(np.ones((1, 3))).model_dump(), "period": -1}), "period"),
    ],
)
def test_what_is_no_such_file_is_refused_in_one_line(tmp_path, content, said):
    path = tmp_path / "motion.json"
    path.write_text(content)
    with one_line(says=said) as caught:
        LearnedMotion.load(path)
    assert str(caught.value).startswith(str(path))
    with pytest.raises(UserError, match="No such file"):
        LearnedMotion.load(tmp_path / "none.json")


def test_the_shift_travels_beside_the_goal_and_half_of_one_is_refused():
    tips, shift = np.arange(6.0).reshape(2, 3), np.arange(6.0).reshape(2, 3) * 1e-3
    states = np.full((2, 72), np.nan)
    for sent in (None, shift):
        message = reference_cloud_message(states, None, tips, 5, PERIOD, shift=sent)
        told = reference_cloud_from_message(message, "reference/rod")
        assert told.period == PERIOD
        message = reference_message(
            ReferenceRows(5, PERIOD, None, tips, shift=sent), None, 5, "base"
        )
        for each in (told, reference_from_message(message, "reference/output")):
            np.testing.assert_array_equal(each.tip_positions, tips)
            np.testing.assert_equal(each.shift, sent)
    message.fields = [field for field in message.fields if field.name != SHIFT[1]]
    with pytest.raises(MessageError, match="must be all of shift_x, shift_y, shift_z"):
        reference_from_message(message, "reference/output")


def test_the_reference_tells_what_was_learned_of_its_motion_alone(tmp_path):
    path, robot = tmp_path / "motion.json", load_robot("licher2025")
    told = {"robot": "licher2025", "reference": "tip_circle", "duration": 0.5}
    plain = ReferenceBlock.settings_of(told)
    shift = np.random.default_rng(2).normal(size=(80, 3))
    learned(shift, motion=motion_of(setting_values(plain))).save(path)
    settings = plain.model_copy(update={"learned": str(path)})
    block, period = ReferenceBlock(robot, settings), settings.period
    list(block.tick(0, {}))
    (told,) = block.tick(round(3 * period * 1e9), {})
    rows = 3 * period + period * np.arange(len(told.value.tip_positions))
    expected = np.stack([np.interp(rows, PERIOD * np.arange(80), c) for c in shift.T], axis=1)
    np.testing.assert_allclose(told.value.shift, expected, atol=1e-7)
    (goal,) = ReferenceBlock(robot, plain).tick(0, {})
    assert goal.value.shift is None
    with pytest.raises(UserError, match=r"learned with duration = 0.5, must be 0.6"):
        ReferenceBlock(robot, settings.model_copy(update={"duration": 0.6}))


def test_a_controller_aims_beside_the_goal():
    controller = Asks()
    block = block_of(lambda context: controller)
    tips, shift = np.arange(45.0).reshape(15, 3), np.full((15, 3), 0.25)
    for sent in (None, shift):
        list(block.tick(0, at_rest(block, 0, tips=tips, shift=sent)))
    aims = [each.reference.tip_positions for each in controller.seen]
    np.testing.assert_array_equal(aims, [tips, tips + shift])


def recorded(error, **settings):
    """A run of half a second whose measured tip ends `error` (51, 3) beside its goal."""
    stamps = (1_000_000_000 + np.arange(51) * 10_000_000).astype(np.int64)
    goal = np.sin(np.arange(51.0))[:, None] * [1, 2, 3]
    told = {
        ("reference/rod", "tip"): goal,
        ("reference/rod", "period"): np.full(51, PERIOD),
        ("mocap/tip/pose", "position"): goal + error,
        ("pressure/command", "pressure"): np.zeros((51, 3)),
        ("pressure/state", "pressure"): np.zeros((51, 3)),
        ("estimate/tip/pose", "position"): goal,
        ("estimate/rod", "parameter.softness"): np.linspace(1.0, 2.0, 51),
        ("estimate/rod", "std.softness"): np.full(51, 0.1),
        ("estimate/rod", "parameter.length"): np.full(51, 0.12),  # not estimated
        ("estimate/rod", "std.length"): np.zeros(51),
    }
    signals = {key: Signal(stamps, values, *key) for key, values in told.items()}
    said = {"settings": {**MOTION, "learned": "", **settings}, "start_stamp": int(stamps[0])}
    node = NodeStatus({**said, "robot": {"name": "licher2025"}})
    return Run(BagSignals(signals, {"reference": node}, (), int(stamps[-1]), ()))


def test_a_recorded_run_teaches_the_next_one():
    error = np.tile([1e-3, -2e-3, 0.0], (51, 1))
    found = learn_from(recorded(error))
    assert found.motion == MOTION
    assert found.robot == "licher2025"
    assert found.errors == [pytest.approx(np.sqrt(5.0) * 1e-3)]
    np.testing.assert_allclose(found.shift, -0.7 * error, atol=1e-12)
    assert found.parameters == {"softness": 2.0}


def test_half_a_run_teaches_nothing():
    run = recorded(np.zeros((51, 3)), duration=1.0)
    with pytest.raises(UserError, match="51 of the motion's 101 rows were followed and seen"):
        learn_from(run)
