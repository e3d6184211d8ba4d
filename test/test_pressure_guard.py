"""Pressure sensors that lie, behind the real valve driver and on one compiled channel."""

import math
import re
from dataclasses import replace

import numpy as np
import pytest
from kit.bench import DT, LIMITS, MEASURED, WIDE, Bench, station, stopping_station

from softcr_hardware.ethercat.driver import ValveDriver
from softcr_hardware.ethercat.process_data import INPUT, ProcessData
from softcr_hardware.ethercat.supply import check_supply
from softcr_models.errors import UserError

UNSEEN, SURPLUS = "air that the sensor does not show", "air that nobody let in"


def sine(time):
    return 4e4 + 2.5e4 * math.sin(2 * math.pi * time)


def stuck(bus, began):
    """The pressure stands still, the noise does not."""
    last = bus.actuator.pressures[0]
    return lambda time, sample, true: bus.reading(sample, 0, noisy(time) + last)


def swapped(bus, began):
    return lambda time, sample, true: replace(sample, volts=sample.volts[[1, 0, 2]])


def noisy(time):
    return 50.0 * np.random.default_rng(round(time / DT)).standard_normal()


def test_a_sensor_stuck_at_rest_is_found_by_pings_before_much_air_goes_in():
    bench = Bench().enable(60e3)
    bench.bus.lie = stuck(bench.bus, bench.now)
    took, reason = bench.fail(command=62e3, within=40.0)
    assert "pressure fault: chamber_1" in reason
    assert took < 1.0
    assert bench.peak <= 65e3


def bursts(bus, began):
    """A fifth of the time the slope is 70 %."""

    def lie(time, sample, true):
        return bus.reading(sample, 0, noisy(time) + true[0] * (0.7 if time % 0.5 < 0.1 else 1.0))

    return lie


@pytest.mark.parametrize(("lie", "command", "within"), [(swapped, 40e3, 6.0), (bursts, 60e3, 0.6)])
def test_faults_that_begin_where_all_seems_equal_are_found_soon(lie, command, within):
    """Hoses swapped between two chambers at the same pressure; a loose wire."""
    bench = Bench(station(1.05e5)).enable(command)
    took, reason = bench.fail(lie, command)
    assert took <= within
    assert "pressure fault: chamber_" in reason
    assert bench.peak <= command + 4e3


def test_a_valve_stuck_open_vents_but_fills_to_the_supply_which_is_why_it_must_be_low():
    """Its own exhaust is what is stuck: only the regulator, or a dump valve, bounds it."""
    peaks = {}
    for supply in (1.05e5, 1.5e5):
        bench = Bench(station(supply)).enable(60e3)
        took, reason = bench.fail(command=60e3, stuck=0.5)
        assert took <= 0.1
        assert SURPLUS in reason
        bench.run(1.0, 0.0)
        peaks[supply] = bench.peak
    assert peaks[1.05e5] <= 1.051e5
    assert peaks[1.5e5] > 1.4e5


def test_one_wild_reading_and_lost_exchanges_do_not_vent():
    bench = Bench().enable(40e3)
    random = np.random.default_rng(0)

    def lie(time, sample, true):
        chance = random.random()
        if chance < 0.02:
            return None
        return bench.bus.reading(sample, 0, 3e4) if 0.02 <= chance < 0.03 else sample

    bench.bus.lie = lie
    assert bench.run(5.0, sine).decision.enabled


def rest(time):
    return np.array([15e3, 60e3, 98e3])


def sines(time):
    return 45e3 + 35e3 * np.sin(2.0 * math.pi * np.array([0.1, 0.7, 1.5]) * time)


def steps(time, length=0.5):
    return np.random.default_rng(int(time / length)).uniform(0.0, 98e3, 3)


def jitter(time):
    return steps(time, 0.07)


MOTIONS = (rest, sines, steps, jitter)


def in_turn(time):
    """Each of them for 7 s."""
    return MOTIONS[int(time / 7.0) % 4](time)


def hour(*of):
    return pytest.param(*of, 60, marks=pytest.mark.slow)


@pytest.mark.parametrize(
    ("made", "errors", "motion", "minutes"),
    [
        (station(1.05e5, commissioned=False), WIDE, in_turn, 0.5),
        (station(1.5e5), MEASURED, in_turn, 0.5),
        hour(station(1.5e5, commissioned=False), WIDE, in_turn),
        *(hour(station(1.05e5), MEASURED, motion) for motion in MOTIONS),
    ],
)
def test_honest_sensors_are_not_vented_for(made, errors, motion, minutes):
    """Behind the real driver, with noise, lost exchanges and cycles that come 17 ms late."""
    bench, random = Bench(made, errors), np.random.default_rng(0)
    bench.enable(motion)
    bench.bus.lie = lambda time, sample, true: None if random.random() < 0.01 else sample
    for _ in range(round(60 * minutes)):
        report = bench.run(1.0, motion)
        assert report.decision.enabled, (bench.now, report.decision.reason)
        bench.steps += 16  # the machine was elsewhere


def test_the_supply_gauge_keeps_from_arming_vents_and_bounds_the_commands():
    bench = Bench(station(1.05e5, gauge=True))
    told = [1.05e5]
    bench.bus.lie = lambda time, sample, true: replace(sample, supply=told[0])
    bench.enable(98e3)
    told[0] = 0.97e5
    report = bench.run(1.0, 98e3)
    assert report.decision.enabled
    assert report.sent.max() == pytest.approx(0.97e5 - 3e3, abs=50.0)
    told[0] = 3e5
    report = bench.run(0.1, 98e3)
    assert not report.decision.enabled
    assert "supply" in report.decision.reason
    bench.enabled = False
    bench.driver.reset()
    bench.run(0.5, 0.0)
    bench.driver.enable()
    blockers = bench.run(0.01, 0.0).decision.blockers
    assert any("supply 300 kPa, must be 105 kPa within 10%" in each for each in blockers)


@pytest.mark.parametrize(
    ("spare", "silence", "says"),
    [
        ("second", {"second": np.full(3, np.nan)}, "pressure fault: chamber_2: its two .*"),
        ("gauge", {"supply": np.nan}, "pressure fault: supply gauge silent"),
    ],
)
def test_a_second_sensor_or_a_gauge_that_falls_silent_is_no_agreement(spare, silence, says):
    bench = Bench(station(1.05e5, **{spare: True})).enable(50e3)
    bench.bus.lie = lambda time, sample, true: replace(sample, **silence)
    assert re.fullmatch(says, bench.run(0.2, 50e3).decision.reason)


def test_second_sensors_and_the_gauge_are_read_from_their_inputs():
    made = station(gauge=True)
    words = np.zeros(4, INPUT)
    words["value"] = np.rint(np.array([1.0, 1.0, 1.0, 5.2]) * 3276.7)
    sample = ProcessData(made).unpack({2: words.tobytes()})
    assert sample.supply == pytest.approx(1.05e5, abs=10.0)
    assert np.isnan(sample.second).all()
    words["status"][3] = 0x0040  # its terminal calls it an error
    assert math.isnan(ProcessData(made).unpack({2: words.tobytes()}).supply)


def test_a_supply_that_a_stuck_valve_would_bring_into_a_chamber_is_refused():
    high = station(1.5e5)
    check_supply(station(1.1e5), LIMITS.maximum)
    check_supply(high, LIMITS.maximum)  # its operator has accepted it
    check_supply(stopping_station(supply=1.5e5), LIMITS.maximum)  # a dump valve allows it
    refusing = high.supply.model_copy(update={"accept_high": False})
    refused = high.model_copy(update={"supply": refusing})
    with pytest.raises(UserError, match=r"at most 110 kPa \(recommended 105\), or supply.dump"):
        ValveDriver(refused, LIMITS, ProcessData(refused), None, None)
