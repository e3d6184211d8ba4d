"""Terminals as data, process data, and the pressure loop against its analytic solution."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from softcr_hardware.ethercat.pressure_loop import (
    PressureLoop,
    flow_rate,
    valve_opening,
    valve_volts,
)
from softcr_hardware.ethercat.process_data import INPUT, ProcessData, zero_volts
from softcr_hardware.ethercat.terminals import Gains, load_station
from softcr_models import load_robot
from softcr_models.errors import UserError

STATION = load_station("licher2025", load_robot("licher2025").chamber_names)
VALVE, FLOW = STATION.valve, STATION.flow
DT = 0.001
valve_volts(VALVE, valve_opening(VALVE, 5.0))  # compiled before a test of hypothesis measures time
ANY = st.floats(allow_nan=True, allow_infinity=True)


@given(hnp.arrays(float, 3, elements=st.floats(-20, 20)))
def test_outputs_round_trip_through_bytes_within_half_a_count(volts):
    packed = ProcessData(STATION).pack(volts)
    assert list(packed) == [3]
    words = np.frombuffer(packed[3], "<i2") * 10.0 / 0x7FFF
    assert np.allclose(words[:3], np.clip(volts, 0, 10), atol=0.6 * 10.0 / 0x7FFF)
    assert words[3] == 0.0  # nobody's channel rests where the watchdog would leave it


@given(hnp.arrays(float, 3, elements=st.floats(0, 1e5)))
def test_pressures_round_trip_through_bytes(pressures):
    data = ProcessData(STATION)
    words = np.zeros(4, INPUT)
    words["value"][:3] = np.rint(data.volts(pressures) / 10.0 * 0x7FFF)
    words["status"][1] |= 0x8000
    sample = data.unpack({2: words.tobytes()})
    assert np.allclose(data.pressures(sample.volts), pressures, atol=2.5e4 * 10 / 0x7FFF)
    assert not sample.broken.any()
    assert sample.toggles.tolist() == [False, True, False]


@given(st.binary(min_size=16, max_size=16))
def test_any_input_bytes_give_finite_volts_and_none_out_of_range_passes(data):
    sample = ProcessData(STATION).unpack({2: data})
    assert np.all(np.isfinite(sample.volts))
    trusted = sample.volts[~sample.broken]
    assert np.all((trusted >= 0.5) & (trusted <= 9.5))


def test_zero_calibration_takes_the_median_and_refuses_what_it_must_not_hide():
    nominal = np.ones(3)
    noise = np.random.default_rng(0).normal(0.0, 0.01, (500, 3))
    offset = np.array([0.1, -0.05, 0.0])
    assert np.allclose(zero_volts(nominal + offset + noise, nominal), nominal + offset, atol=2e-3)
    with pytest.raises(UserError, match=r"sensor 2 reads 1\.50"):
        zero_volts(nominal + np.array([0.0, 0.5, 0.0]) + noise, nominal)
    with pytest.raises(UserError, match="sensor 1 varies by"):
        zero_volts(nominal + 10 * noise, nominal)
    with pytest.raises(UserError, match="3 samples"):
        zero_volts(np.ones((3, 3)), nominal)


@given(st.floats(-1, 1).filter(lambda opening: opening == 0 or abs(opening) > 1e-6))
def test_valve_map_and_its_inverse_agree(opening):
    volts = valve_volts(VALVE, opening)
    assert valve_opening(VALVE, volts) == pytest.approx(opening, abs=1e-9)
    assert opening == 0 or abs(volts - VALVE.closed) > VALVE.dead_band


def test_valve_map_ends_middle_and_nan():
    openings = [-1.0, 0.0, 1.0, -7.0, 7.0, math.nan]
    volts = [valve_volts(VALVE, opening) for opening in openings]
    assert volts == [0.0, 5.0, 10.0, 0.0, 10.0, 5.0]
    assert valve_opening(VALVE, VALVE.when_dead) == -1.0
    assert loop_with().vent_volts.tolist() == [VALVE.exhaust] * 3 == [0.0] * 3


def rates(flow, volts, pressures):
    """Of the pressures of chambers behind valves at these voltages [Pa/s]."""
    each = zip(volts, pressures, strict=True)
    return np.array([flow_rate(flow, valve_opening(VALVE, volt), p) for volt, p in each])


def simulate(loop, setpoint, start, duration, flow=FLOW, blocked=0.0, leak=0.0):
    """Pressures every millisecond; the chambers are blocked for the first seconds, and leak."""
    pressures, trace = np.array(start, dtype=float), []
    for step in range(round(duration / DT)):
        volts = loop.volts(np.asarray(setpoint, dtype=float), pressures.copy(), DT)
        assert np.all((volts >= 0.0) & (volts <= 10.0))
        if step * DT >= blocked:
            for _ in range(4):
                pressures += (rates(flow, volts, pressures) - leak * pressures) * DT / 4
        trace.append(pressures.copy())
    return np.array(trace)


def loop_with(**gains):
    numbers = {"proportional": 10.94, "integral_limit": 5e4, **gains}
    return PressureLoop(Gains(**numbers), FLOW, VALVE, 3)


@pytest.mark.parametrize("integral", [0.0, 5.0])
@pytest.mark.parametrize(("start", "end"), [(2e4, 4e4), (6e4, 4e4)])
def test_closed_loop_is_the_first_order_lag_of_its_gain_filling_and_emptying(start, end, integral):
    loop = loop_with(integral=integral)
    loop.reset(np.full(3, start))
    trace = simulate(loop, [end] * 3, [start] * 3, 0.5)
    times = DT * np.arange(1, len(trace) + 1)
    expected = end + (start - end) * np.exp(-10.94 * times)
    assert np.abs(trace - expected[:, None]).max() < 0.01 * abs(end - start)


def test_integral_removes_what_a_wrong_flow_model_and_a_leak_leave():
    wrong = FLOW.model_copy(update={"supply": 1.2e5, "exhaust_rate": 35.0})

    def left(integral):
        loop = loop_with(integral=integral)
        return abs(simulate(loop, [4e4] * 3, [3e4] * 3, 6.0, wrong, leak=0.3)[-1, 0] - 4e4)

    assert left(0.0) > 500.0
    assert left(20.0) < 20.0


def test_anti_windup_bounds_the_overshoot_after_a_blocked_valve():
    trace = simulate(loop_with(integral=5.0), [5e4] * 3, [0.0] * 3, 8.0, blocked=4.0)
    assert trace.max() < 5e4 + 1.1 * 5e4 / 10.94  # what the bounded integral can still push
    assert trace[-1] == pytest.approx(5e4, abs=1500.0)


def test_feed_forward_follows_a_ramp_without_lag_and_alone_it_is_the_open_loop():
    setpoints = np.minimum(np.arange(400) * 100.0, 3e4)

    def worst(loop):
        pressures, errors = np.zeros(3), []
        for setpoint in setpoints:
            volts = loop.volts(np.full(3, setpoint), pressures.copy(), DT)
            pressures += rates(FLOW, volts, pressures) * DT
            errors.append(abs(pressures[0] - setpoint))
        return max(errors)

    open_loop = loop_with()
    open_loop.closed = False
    assert worst(loop_with()) > 5e3
    assert worst(loop_with(feed_forward=1.0)) < 200.0
    assert worst(open_loop) < 200.0


@given(hnp.arrays(float, (4, 2, 3), elements=ANY), st.floats(1e-4, 0.1))
def test_whatever_comes_in_volts_are_in_range(rows, dt):
    loop = loop_with(integral=5.0, derivative=0.1, feed_forward=1.0)
    for setpoint, measured in rows:
        finite = np.nan_to_num(setpoint, nan=0.0, posinf=1e5, neginf=0.0).clip(0, 1e5)
        with np.errstate(all="ignore"):
            volts = loop.volts(finite, measured, dt)
        assert np.all((volts >= 0.0) & (volts <= 10.0))
        assert np.all(volts[~np.isfinite(measured)] == VALVE.closed)
