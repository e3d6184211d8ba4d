"""Plateaus of recorded trials: where they are found, and what a rod without memory says of them."""

import numpy as np

from softcr_models import load_robot
from softcr_models.identification.actuation import actuation_as
from softcr_models.identification.measured_groups import groups_of
from softcr_models.identification.motion_fit import Motion, Simulation
from softcr_models.rod.description import rod_inputs
from softcr_studies.frame.study import Cell
from softcr_studies.recordings import asu_two_segments, models
from softcr_studies.recordings.models import FORGETFUL, MEAN, ROD, parts_of
from softcr_studies.recordings.plateaus import plateaus, recorded_plateaus, rod_without_memory

PERIOD = 0.05
ROBOT = load_robot("licher2025")
TIP = tuple(each for each in groups_of(ROBOT) if each.name == "tip position")
HOLD = 60


def stepped(levels):
    """(T, m) inputs that go to each level (K, m) within 1 s and stay for 3 s."""
    found, before = [], np.zeros(3)
    for level in np.atleast_2d(levels):
        ramp = np.linspace(0.0, 1.0, 20)[:, None]
        found += [before + ramp * (level - before), np.tile(level, (HOLD, 1))]
        before = level
    return np.vstack(found)


def trial(name, levels, values):
    """What a rod with unknowns of such values shows."""
    motion = Motion(name, stepped(levels), {}, PERIOD)
    simulation = Simulation(ROBOT, [motion], TIP)
    seen, _ = simulation.along([actuation_as(ROBOT, values)], simulation.whole)
    return Motion(name, motion.inputs, {TIP[0].name: seen[0, 0, :, 0]}, PERIOD)


def test_a_plateau_is_where_inputs_stay_and_the_arm_has_stopped():
    random, high = np.random.default_rng(0), rod_inputs(ROBOT).high[0]
    levels = high * np.array([[0.5, 0.0, 0.0], [0.0, 0.0, 0.3]])
    inputs = stepped(levels) + 0.01 * high * random.standard_normal((160, 3))
    tip = np.full((160, 3), np.nan)
    tip[:, 0] = 0.1 * stepped(levels)[:, 0] / high + 1e-4 * random.standard_normal(160)
    # moves on where the second level has long been reached, then stops again
    tip[125:140, 0] += np.linspace(0.0, 0.02, 15)
    tip[140:, 0] += 0.02
    first, second = plateaus(ROBOT, Motion("", inputs, {TIP[0].name: tip}, PERIOD))
    assert first.start >= 20
    assert first.stop <= 80
    assert second.start >= 139
    assert first.stop - first.start == round(1.0 / PERIOD)
    tip[130:, 0] = np.nan
    first, second = plateaus(ROBOT, Motion("", inputs, {TIP[0].name: tip}, PERIOD))
    assert second.start >= 100
    assert second.stop <= 130
    (only,) = recorded_plateaus(ROBOT, [Motion("", inputs[:90], {}, PERIOD)], TIP).inputs
    assert abs(only - levels[0]).max() < 0.01 * high


def test_a_rod_without_memory_knows_plateaus_of_one_history_alone():
    random, high = np.random.default_rng(1), rod_inputs(ROBOT).high[0]
    values = {"stiffness": 0.3, "gain": 0.1}
    levels = 0.5 * high * random.uniform(0.0, 1.0, (3, 3, 3))
    fitted = [trial(str(k), each, values) for k, each in enumerate(levels)]
    level = 0.3 * high * np.array([1.0, 0.0, 0.5])
    up = trial("up", [0.0 * level, level], values)
    down = [0.0 * level, 0.7 * high * np.array([1.0, 0.0, 0.5]), level]
    kept = trial("down", down, values | {"hysteresis_3": 0.4})
    (risen,), (fallen,) = (
        [off[-1:, 0] for off in rod_without_memory(
            ROBOT, ("stiffness", "gains", "hysteresis"), fitted, [each], TIP)]
        for each in (up, kept)
    )  # fmt: skip
    assert risen[0] < 1e-3
    assert fallen[0] > 5e-3
    (nothing,) = rod_without_memory(ROBOT, ("stiffness",), [up], [trial("", [level], {})], TIP)
    assert nothing.shape == (1, 1)


def test_models_are_judged_at_plateaus_with_what_a_trial_has_left_behind(monkeypatch):
    """A rod that has run along a trial knows where it rests, one without memory does not."""
    random, high = np.random.default_rng(2), rod_inputs(ROBOT).high[0]
    values = {"stiffness": 0.2, "hysteresis_3": 0.4}
    levels = 0.6 * high * random.uniform(0.0, 1.0, (3, 3, 3))
    motions = [trial(str(k), each, values) for k, each in enumerate(levels)]
    monkeypatch.setattr(models, "parts_of", lambda settings: (ROBOT, motions[1:], motions[:1], TIP))
    settings = models.Settings(find="stiffness, hysteresis")
    off = {}
    for method in (ROD, MEAN):
        found = models.run(Cell("all trials", method, 0, settings))
        kept = {name: np.asarray(each) for name, each in found.items()}
        off |= {each[:2]: each[2] for each in models._errors(method, kept, 0)}
    still = "tip position, plateaus"
    assert off[ROD, still].shape == (len(plateaus(ROBOT, motions[0])),) == (3,)
    assert off[ROD, still].mean() < 0.3 * off[FORGETFUL, still].mean()
    assert off[FORGETFUL, still].mean() < 0.5 * off[MEAN, still].mean()


def test_the_shipped_recording_has_plateaus_in_each_trial():
    robot, fitted, held, groups = parts_of(asu_two_segments.Settings())
    for motion in (*fitted, *held):
        rows = plateaus(robot, motion)
        ends = np.array([each.stop for each in rows]) * motion.period
        # commands change every 20 s, every 10 s and 20 s of mar7_1
        changes = [10.0, 30.0, 40.0, 51.0] if motion.name == "mar7_1" else [20.0, 31.0]
        assert len(rows) == (1 if motion.name == "apr4_7" else len(changes))
        assert (np.diff(np.searchsorted(changes, ends)) == 1).all()
    means = recorded_plateaus(robot, fitted, groups)
    assert len(means) == 9
    assert np.isfinite(np.stack(list(means.outputs.values()))).all()
