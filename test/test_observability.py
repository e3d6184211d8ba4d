"""Fisher information of motions: against relations and simulations that must hold."""

import json

import numpy as np
import pytest

from softcr_models import load_robot
from softcr_models.errors import UserError
from softcr_models.pressure import PressureLag
from softcr_tools.experiments import observability
from softcr_tools.experiments.observability import (
    PERIOD,
    Information,
    Motion,
    lag_information,
    main,
    planned,
    recorded,
    tip_information,
)

ROBOT = load_robot("licher2025")


def test_deviations_are_those_of_the_inverse_and_infinite_where_two_are_one():
    matrix = np.array([[4e4, 1e4], [1e4, 9e4]])
    found = Information(("a", "b"), matrix)
    assert found.alone == pytest.approx([1 / 200, 1 / 300])
    assert found.together == pytest.approx(np.sqrt(np.linalg.inv(matrix).diagonal()))
    assert found.not_excited == ()
    same = Information(("a", "b", "c"), np.array([[1e8, 1e8, 0], [1e8, 1e8, 0], [0, 0, 1.0]]))
    assert same.together[:2] == pytest.approx([np.inf, np.inf])
    assert same.together[2] == pytest.approx(1.0)
    assert same.not_excited == ("a", "b", "c")
    assert same.least in ("+0.71 a -0.71 b", "+0.71 b -0.71 a")
    nothing = Information(("a",), np.zeros((1, 1)))
    assert np.isinf(nothing.alone).all()
    assert np.isinf(nothing.together).all()


def test_at_rest_a_gain_is_an_offset_and_in_motion_it_is_not():
    held = np.tile([45e3, 25e3, 15e3], (8, 1))
    rest = tip_information(ROBOT, held)
    gains, offsets = slice(3, 6), slice(6, 9)
    ratio = held[0] / 1e4  # d(gain p) = p dgain, the offset's unit is 10 kPa
    by_gain, by_offset = rest.matrix[gains], rest.matrix[offsets]
    assert by_gain == pytest.approx(ratio[:, None] * by_offset, rel=1e-3)
    assert rest.matrix[2, 2] < 1e-9 * rest.matrix[0, 0]  # damping
    assert np.isinf(rest.together).any()
    times = np.arange(0, 1.5, PERIOD)[:, None]
    turning = 35e3 + 20e3 * np.sin(2 * np.pi * (1.5 * times + np.arange(3) / 3))
    moved = tip_information(ROBOT, turning)
    assert np.isfinite(moved.together).all()
    assert moved.together[2] < 0.02


def test_the_lags_information_is_what_least_squares_scatters_by():
    lag, random = PressureLag(11.0, 10.94), np.random.default_rng(0)
    commands = random.uniform(1e4, 6e4, (300, 1))
    readings = lag.trajectory(np.array([3e4]), commands[None], PERIOD)[0]
    motion = Motion("steps", readings[:-1], commands)
    bound = lag_information(lag, motion).together
    found = []
    for _ in range(400):
        noise = 100.0 * random.standard_normal(len(commands) - 1)
        noise *= np.sqrt(1 + np.exp(-2 * lag.pole * PERIOD))
        target = readings[1:-1, 0] + noise
        a, b = np.linalg.lstsq(np.hstack([readings[:-2], commands[:-1]]), target, rcond=None)[0]
        found.append((-np.log(a) / PERIOD / lag.pole, b / (1 - a) / (lag.gain / lag.pole)))
    assert np.std(found, axis=0) == pytest.approx(bound, rel=0.15)


def test_the_commands_of_a_planned_motion_make_its_pressures():
    fast = planned(ROBOT)[0]
    made = ROBOT.pressure_lag.trajectory(fast.readings[0], fast.commands[None, :-1], PERIOD)[0]
    assert made == pytest.approx(fast.readings, abs=1e-6)


def test_a_recorded_motion_is_reported(tmp_path, monkeypatch, capsys):
    short = Motion("bag", *(2 * [np.full((3, 3), 2e4)]))
    monkeypatch.setattr(observability, "recorded", lambda path: short)
    assert main(["--bag", "run", "--results", str(tmp_path)]) == 0
    path = tmp_path / "experiments" / "observability" / "latest" / "table.json"
    table = json.loads(path.read_text())
    assert {row["method"] for row in table["rows"]} >= {"tip_mass", "pressure_gain_2", "lag_pole"}
    assert table["bag"].startswith("not excited: bending_compliance, ")
    assert "shows least: " in capsys.readouterr().out


def test_a_bag_that_is_none_is_one_line(tmp_path):
    with pytest.raises(UserError, match="nowhere"):
        recorded(tmp_path / "nowhere")
