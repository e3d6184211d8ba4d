"""References: signals, feasibility of what the rod is asked, files, windows."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from kit.models import PERIOD, LinearModel
from kit.refusals import one_line

from softcr_control.reference import signals
from softcr_control.reference.references import (
    SampledReference,
    from_file,
    pressure_trajectory,
    setpoint,
    tip_circle,
)
from softcr_control.reference.settings import ReferenceSettings
from softcr_models.errors import UserError


def ramp(rows: int = 11) -> SampledReference:
    steps = np.arange(rows, dtype=float)
    return SampledReference(0.1, np.stack([steps, -steps], axis=1), np.stack([steps] * 3, axis=1))


def test_a_window_is_rows_of_the_grid_and_the_first_and_last_hold_beyond_it():
    source = ramp()
    window = source.window(0.1 * 3, 4)
    assert (window.stamp, window.period) == (0.1 * 3, 0.1)
    assert np.array_equal(window.states[:, 0], [3, 4, 5, 6])
    assert np.array_equal(window.tip_positions[:, 2], [3, 4, 5, 6])
    for time, tips in ((0.9, [9, 10, 10, 10]), (99.0, [10, 10]), (-0.2, [0, 0, 0, 1])):
        assert np.array_equal(source.window(time, len(tips)).tip_positions[:, 0], tips)
    assert source.duration == pytest.approx(1.0)
    source.states[4] = np.nan  # what is unknown of one row does not reach another
    assert np.array_equal(np.isnan(source.window(0.3, 3).states[:, 0]), [False, True, False])


@given(st.floats(0.0, 0.7))
def test_window_between_grid_points_is_interpolated(time):
    window = ramp().window(time, 3)
    assert np.allclose(window.tip_positions[:, 0], time / 0.1 + np.arange(3), atol=1e-5)


def test_setpoint_is_the_equilibrium_for_ever():
    model, pressures = LinearModel(), np.array([45e3, 25e3, 15e3])
    window = setpoint(model, pressures, PERIOD).window(17.3, 5)
    state = model.equilibrium(pressures, None)
    assert np.allclose(window.states, state)
    assert np.allclose(model.step(state, pressures, pressures, None, PERIOD), state)
    assert np.allclose(window.tip_positions, model.tip_positions(state[None], None))


@pytest.mark.parametrize("kind", ["circle", "chirp_circle", "trajectory"])
def test_moving_references_obey_the_model_from_a_vented_start(kind):
    model = LinearModel()
    source = ReferenceSettings(kind=kind, duration=3.0).source(model, PERIOD)
    assert source.duration == pytest.approx(3.0)
    assert np.allclose(source.states[0], model.equilibrium(np.zeros(3), None))
    # Rows belong together if some pressures inside the box make each row from the one before.
    forced = source.states[1:] - source.states[:-1] @ model._a.T
    pressures = forced @ np.linalg.pinv(model._b).T
    assert np.allclose(pressures @ model._b.T, forced, atol=1e-12)
    assert -1e-6 <= pressures.min() <= pressures.max() <= 55e3 * 1.0001
    assert pressures[70:].min() >= 15e3 * 0.999


def test_soft_start_is_slow_enough_for_the_valves():
    times = signals.time_grid(3.0, PERIOD)
    wanted = signals.sines(times, 3, 35e3, 20e3, (0.5, 1.0, 1.5))
    pressures = signals.soft_start(wanted, np.zeros(3), times, 1.0)
    assert np.array_equal(pressures[0], np.zeros(3))
    assert np.array_equal(pressures[times >= 1.0], wanted[times >= 1.0])
    # The command that makes a lag (11, 10.94) follow: (dp/dt + 10.94 p) / 11.
    rates = np.gradient(pressures, PERIOD, axis=0)
    commands = (rates + 10.94 * pressures) / 11.0
    assert -1e-9 < commands.min() <= commands.max() < 1e5


def test_rotating_inputs_keep_their_sum_and_turn_the_bending_direction():
    phase = np.linspace(0, 7, 50)
    pressures = signals.rotating_inputs(phase, 3, 35e3, 20e3)
    assert np.allclose(pressures.sum(axis=1), 105e3)
    directions = np.exp(2j * np.pi * np.arange(3) / 3)
    assert np.allclose(pressures @ directions, 30e3 * np.exp(1j * phase))


def test_chirp_sweeps_from_first_to_last_frequency():
    times = signals.time_grid(10.0, 0.001)
    frequency = np.gradient(signals.chirp_phase(times, 0.2, 1.5), times) / (2 * np.pi)
    assert frequency[0] == pytest.approx(0.2, abs=1e-3)
    assert frequency[5000] == pytest.approx(0.85, abs=1e-3)
    assert frequency[-1] == pytest.approx(1.5, abs=1e-3)


def test_sines_hold_their_frequencies_bounds_and_phase_shift():
    times = np.arange(4000) * 0.01
    pressures = signals.sines(times, 3, 35e3, 20e3, (0.5, 1.0, 1.5))
    assert 15e3 <= pressures.min() <= pressures.max() <= 55e3
    spectrum = np.abs(np.fft.rfft(pressures - 35e3, axis=0))
    frequencies = np.fft.rfftfreq(4000, 0.01)
    for channel in spectrum.T:
        assert np.allclose(np.sort(frequencies[np.argsort(channel)[-3:]]), [0.5, 1.0, 1.5])
    assert np.allclose(pressures.mean(axis=0), 35e3)
    assert not np.allclose(pressures[:, 0], pressures[:, 1], atol=5e3)


def test_tip_circle_knows_the_tip_only():
    model, times = LinearModel(), signals.time_grid(4.0, PERIOD)
    source = tip_circle(model, times, np.array([0.0, 0.0, 0.1]), 0.02, 0.5, 1.0)
    assert source.states is None
    assert np.allclose(source.tip_positions[0], 0.0)
    moving = source.tip_positions[times >= 1.0]
    assert np.allclose(np.hypot(*moving[:, :2].T), 0.02)
    assert np.allclose(moving[:, 2], 0.1)
    assert np.allclose(source.tip_positions[70 * 2], source.tip_positions[70 * 4])


def test_tips_must_be_known_and_pressures_fit_the_robot():
    with pytest.raises(UserError, match="tip position of row 1 is not finite"):
        SampledReference(0.1, np.zeros((2, 5)), [[0, 0, 0], [0, np.nan, 0]])
    for bad in ([[1e3, 1e3]], [[np.nan, 0, 0]], [1e3, 1e3, 1e3]):
        with pytest.raises(UserError, match="reference: pressure trajectory"):
            pressure_trajectory(LinearModel(), bad, PERIOD)


def test_a_model_that_fails_is_told_with_time_and_pressures():
    class Failing(LinearModel):
        def rollout(self, state, pressures, parameters, dt):
            states = super().rollout(state, pressures, parameters, dt)
            states[:, 5:] = np.nan
            return states

    with pytest.raises(UserError, match=r"the model fails at 0\.086 s"):
        pressure_trajectory(Failing(), np.full((20, 3), 1e3), PERIOD)


def test_csv_of_pressures_is_simulated(tmp_path):
    model, path = LinearModel(), tmp_path / "p.csv"
    path.write_text(
        "time,pressure_1,pressure_2,pressure_3\n0.5,1e3,0,0\n0.7,2e3,0,0\n1.5,2e3,1e3,0\n"
    )
    source = from_file(model, path, 0.1)
    columns = ([1e3, 2e3, 2e3], [0, 0, 1e3], [0, 0, 0])
    levels = [np.interp(np.arange(11) * 0.1, [0, 0.2, 1.0], column) for column in columns]
    expected = pressure_trajectory(model, np.stack(levels, axis=1), 0.1)
    assert np.allclose(source.states, expected.states)


def test_csv_of_tips_and_npz_of_states(tmp_path):
    model, path = LinearModel(), tmp_path / "t.csv"
    path.write_text("time, tip_x, tip_y, tip_z\n0,0,0,1\n1,2,0,1\n")
    source = from_file(model, path, 0.25)
    assert np.allclose(source.tip_positions[:, 0], [0, 0.5, 1, 1.5, 2])
    assert source.states is None
    assert len(source.tip_positions) == 5

    states = np.random.default_rng(0).standard_normal((4, 5))
    np.savez(tmp_path / "s.npz", time=np.arange(4) * 0.5, states=states)
    source = from_file(model, tmp_path / "s.npz", 0.5)
    assert np.allclose(source.states, states)
    assert np.allclose(source.tip_positions, model.tip_positions(states, None))


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("time,pressure_1\n0,1\n", "holds time, pressure_1; allowed are time and exactly one of"),
        ("time,tip_x,tip_y,tip_z\n0,1,2\n", "4 names in the header, 3 columns"),
        ("time,tip_x,tip_y,tip_z\n0,1,2,a\n", "cannot be read as a reference: .*'a'"),
        ("time,tip_x,tip_y,tip_z\n0,1,2,3\n0,1,2,3\n", "time of row 1, 0.0, must be above"),
        ("time,tip_x,tip_y,tip_z\n0,1,nan,3\n", "tip_positions of row 0 is not finite"),
        ("", "holds no rows"),
        ("time,tip_x,tip_y,tip_z\n", "holds no rows"),
    ],
)
def test_bad_csv_gets_one_clear_line(tmp_path, content, message):
    path = tmp_path / "bad.csv"
    path.write_text(content)
    with one_line(message) as caught:
        from_file(LinearModel(), path, PERIOD)
    assert str(path) in str(caught.value)


@pytest.mark.parametrize("name", ["missing.csv", "missing.npz", "reference.txt", "broken.npz"])
def test_unreadable_files_get_one_clear_line(tmp_path, name):
    (tmp_path / "broken.npz").write_bytes(b"PK not a zip")
    with one_line(name):
        from_file(LinearModel(), tmp_path / name, PERIOD)
