"""Study `recordings/models` on a small recording that a rod made itself."""

import numpy as np
import pytest
import yaml
from kit.refusals import one_line
from kit.studies import rows_of

from softcr_estimation.identification.stages import write_robot
from softcr_models import load_robot
from softcr_models.identification.actuation import actuation_as
from softcr_models.identification.measured_groups import groups_of
from softcr_models.identification.motion_fit import Motion, Simulation
from softcr_studies.koopman.selection import grid
from softcr_studies.recordings import models
from softcr_studies.recordings.models import MEAN, METHODS, ROD, STATIC, STUDY, Settings, parts_of

TRUE = {"stiffness": 0.2, "delay": 0.05}
PERIOD = 0.05
SMALL = {"koopman": grid((2,), (2,), (1e-6,)), "linear ARX": grid((2,), (1,), (1e-6,))}


def saved(folder, trials=3, rows=200):
    """A recording of tips by a rod of other stiffness, whose inputs are late; its map and guess."""
    robot, random, arrays = load_robot("licher2025"), np.random.default_rng(0), {}
    groups = tuple(each for each in groups_of(robot) if each.name == "tip position")
    for trial in range(trials):
        times = PERIOD * np.arange(rows)
        phases, hertz = random.uniform(0.0, 6.0, (2, 3)), random.uniform(0.1, 0.6, (2, 3))
        waves = np.sin(2.0 * np.pi * hertz * times[:, None, None] + phases).mean(axis=1)
        inputs = 3e4 * (0.5 + 0.5 * waves)
        simulation = Simulation(robot, [Motion("", inputs, {}, PERIOD)], groups)
        seen, _ = simulation.along([actuation_as(robot, TRUE)], simulation.whole)
        noise = 1e-4 * random.standard_normal((rows, 3))
        arrays |= {f"t{trial}": times, f"u{trial}": inputs, f"y{trial}": seen[0, 0, :, 0] + noise}
    np.savez(folder / "arm.npz", **arrays)
    write_robot(robot, folder / "guess.yaml")
    content = {
        "time": {"column": "t"},
        "inputs": [{"column": f"u_{k + 1}", "unit": "Pa"} for k in range(3)],
        "positions": {"tip": {"columns": ["y_1", "y_2", "y_3"], "unit": "m"}},
    }
    (folder / "map.yaml").write_text(yaml.safe_dump(content))
    return {
        "data": str(folder / "arm.npz"), "map": str(folder / "map.yaml"),
        "robot": str(folder / "guess.yaml"), "find": "stiffness,delay", "hold_out": "2",
    }  # fmt: skip


def test_the_rod_that_made_the_recording_predicts_it_best(tmp_path, monkeypatch):
    monkeypatch.setattr(models, "CANDIDATES", SMALL)
    monkeypatch.setattr(models, "HORIZONS", (1.0, 0.5))
    monkeypatch.setattr(models, "_BEFORE", 5)
    rows, directory = rows_of(STUDY.name, tmp_path / "results", Settings(**saved(tmp_path)))
    whole = {m: rows["2", m, "tip position, whole trial"].mean for m in METHODS}
    near = {m: rows["2", m, "tip position, 0.5 s from true starts"].mean for m in METHODS}
    assert whole[ROD] < 0.3
    assert near[ROD] < 0.3
    assert max(near["linear ARX"], whole[ROD]) < 0.5 * whole[STATIC]
    assert whole[ROD] < 0.2 * min(whole[method] for method in SMALL)
    assert whole[STATIC] < whole[MEAN]
    assert near[STATIC] == pytest.approx(whole[STATIC], rel=0.3)
    assert rows["all trials", ROD, "tip position, whole trial"].mean == pytest.approx(whole[ROD])
    assert (directory / "models.png").is_file()
    page = (directory / "page.md").read_text()
    assert "| ours, recording |" in page
    assert "simulation" not in page


def test_chambers_of_the_guess_lie_where_the_recording_has_them(tmp_path):
    random, angles, arrays = np.random.default_rng(0), np.array([0.4, 2.2, 4.6]), {}
    for trial in range(5):
        inputs = random.uniform(0.0, 7.0, (60, 3))
        towards = -np.stack((np.cos(angles), np.sin(angles)), axis=1)
        tips = 5.0 + inputs @ towards
        arrays |= {f"t{trial}": np.arange(60) / 12.0, f"u{trial}": inputs, f"y{trial}": tips}
    np.savez(tmp_path / "arm.npz", **arrays)
    robot, fitted, held, groups = parts_of(Settings(data=str(tmp_path / "arm.npz")))
    found = np.array([each.angle for each in robot.actuators])
    np.testing.assert_allclose(np.cos(found - angles), 1.0, atol=1e-3)
    assert [each.name for each in fitted] == ["0", "1", "2", "3"]
    assert [each.name for each in held] == ["4"]
    assert [each.name for each in groups] == ["tip position"]


def test_of_a_few_trials_the_last_quarter_is_predicted_and_a_trial_that_is_none_is_a_line(tmp_path):
    given = saved(tmp_path, trials=2, rows=60)
    with one_line("--hold-out 2: no such file or trial; there are 0, 1"):
        parts_of(Settings(**given))
    _, fitted, held, _ = parts_of(Settings(**{**given, "hold_out": ""}))
    assert [len(each) for each in (*fitted, *held)] == [45, 45, 15, 15]
    _, whole, _, _ = parts_of(Settings(**{**given, "hold_out": "1"}))
    for of in (lambda each: each.inputs, lambda each: each.outputs["tip position"]):
        begin, end, both = map(of, (fitted[0], held[0], whole[0]))
        np.testing.assert_array_equal(np.vstack((begin, end)), both)
