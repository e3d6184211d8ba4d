"""Study `recordings/asl-trunk`: its recording, what a residual learns, what a filter tells."""

from dataclasses import replace

import numpy as np
import pytest
from safetensors.numpy import load_file

from softcr_models import load_robot
from softcr_models.errors import UserError
from softcr_models.identification.actuation import actuation_as
from softcr_models.identification.measured_groups import groups_of
from softcr_models.identification.motion_fit import Motion, Simulation, distances
from softcr_models.rod.description import rod_inputs
from softcr_studies.recordings.asl_trunk import STUDY, Settings
from softcr_studies.recordings.filtered import filtered
from softcr_studies.recordings.models import begun, outputs_of, parts_of
from softcr_studies.recordings.residual import learned

PERIOD = 0.02


def test_the_shipped_recording_is_one_of_a_trunk_with_motors():
    robot, fitted, held, groups = parts_of(Settings())
    assert robot.quantities == ("angle",) * 6
    assert [each.name for each in fitted] == ["a_0g", "a_300g"]
    payloads = {"a_0g_end": 0.0, "a_300g_end": 0.3, "c_0g": 0.0}
    assert {each.name: each.payload for each in held} == payloads
    positions = {f"{name} position" for name in ("tip", "disc_1", "disc_2")}
    assert {each.name for each in groups} == positions
    for motion in (*fitted, *held):
        assert motion.period == PERIOD
        measured = outputs_of(motion, groups)
        assert np.isfinite(measured).all()
        # hanging below the base, disc 1 nearest, within the trunk's length of 0.33 m
        below = np.median(measured[:, :, 2], axis=0)
        assert 0.09 < below[1] < below[2] < below[0] < 0.33
        assert np.abs(motion.inputs).max() < rod_inputs(robot).high.max()
    assert STUDY.needs == ()
    given = Settings(data="mine.npz", map="mine.yaml")  # is taken instead
    assert given.filled() is given


def test_another_day_is_predicted_after_its_first_30_seconds():
    held = parts_of(Settings())[2]
    begins, left = begun(Settings(), held)
    assert [each and each.name for each in begins] == [None, None, "c_0g, its first 30 s"]
    assert [each.name for each in left] == ["a_0g_end", "a_300g_end", "c_0g, after 30 s"]
    told = begins[2]
    assert len(told) == round(30.0 / PERIOD)
    np.testing.assert_array_equal(np.vstack((told.inputs, left[2].inputs)), held[2].inputs)
    with pytest.raises(UserError, match="another_day: trial a_0g is not held out"):
        begun(Settings(another_day="a_0g"), held)
    with pytest.raises(UserError, match="trial c_0g has no more than 30 s"):
        begun(Settings(), [replace(told, name="c_0g")])


def two_trials(of):
    random = np.random.default_rng(0)
    inputs = [random.standard_normal((400, 2)).cumsum(axis=0) / 20.0 for _ in range(2)]
    predicted = [np.stack((u[:, 0], u[:, 1], u.sum(axis=1)), axis=1) for u in inputs]
    return inputs, predicted, [p + of(u, random) for p, u in zip(predicted, inputs, strict=True)]


def late_product(inputs, random):
    late = np.vstack((np.repeat(inputs[:1], 10, axis=0), inputs[:-10]))
    return np.stack((0.3 * late[:, 0], inputs[:, 0] * inputs[:, 1], 0.0 * late[:, 0]), axis=1)


def test_a_residual_finds_what_inputs_explain(tmp_path):
    inputs, predicted, measured = two_trials(late_product)
    measured[0][50:60, 1] = np.nan
    residual = learned(inputs[:1], predicted[:1], measured[:1], PERIOD)
    off = predicted[1] + residual.along(inputs[1], predicted[1]) - measured[1]
    assert np.sqrt(np.mean(off**2)) < 0.1 * np.sqrt(np.mean((predicted[1] - measured[1]) ** 2))
    residual.save(tmp_path / "residual.safetensors")
    found = load_file(tmp_path / "residual.safetensors")
    np.testing.assert_array_equal(found["slopes"], residual.slopes)


def test_a_residual_leaves_noise_alone():
    inputs, predicted, measured = two_trials(lambda u, random: random.standard_normal((len(u), 3)))
    residual = learned(inputs, predicted, measured, PERIOD)
    assert np.abs(residual.along(inputs[0], predicted[0])).std() < 0.1


def test_a_filter_that_sees_the_tip_finds_the_discs():
    """Motors of the trunk that moved wind a fifth more than those that the filter knows of."""
    robot = load_robot("asl_trunk")
    groups = tuple(each for each in groups_of(robot) if each.unit == "m")
    times = PERIOD * np.arange(80)[:, None]
    inputs = 0.3 * np.sin(4.0 * times + np.arange(6)) * np.minimum(times, 1.0)
    simulation = Simulation(robot, [Motion("", inputs, {}, PERIOD)], groups)
    guess = actuation_as(robot, {})
    true = actuation_as(robot, {"gain": 0.2})
    (seen, alone), _ = simulation.along([true, guess], simulation.whole)
    motion = Motion("", inputs, {g.name: seen[0, :, k] for k, g in enumerate(groups)}, PERIOD)
    off = distances(filtered(guess, motion, groups, 80) - seen[0])
    blind = distances(alone[0] - seen[0])
    discs = [k for k, each in enumerate(groups) if each.output != "tip"]
    assert len(discs) == 2
    assert off[20:, discs].mean() < 0.7 * blind[20:, discs].mean()
