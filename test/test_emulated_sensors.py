"""Pressure sensors that lie as a person types it: shapes, words, what the guard makes of them."""

import struct

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from kit.bench import LIMITS, MEASURED, Bench, station
from kit.refusals import one_line

from softcr_hardware.emulation.actuator import EmulatedActuator
from softcr_hardware.emulation.chambers import ChamberErrors
from softcr_hardware.emulation.fault_shapes import SHAPES, given_fault, known_shapes
from softcr_hardware.emulation.sensors import EmulatedSensors
from softcr_hardware.emulation.virtual_channel import HELD
from softcr_hardware.emulation.virtual_devices import DeviceFigures, EmulatedBench
from softcr_hardware.ethercat import emulator
from softcr_models import load_robot
from softcr_models.errors import UserError
from softcr_runtime.blocks.command_packets import CommandPacket
from softcr_simulation.errors.plant_errors import PlantErrors
from softcr_simulation.plant import SimulatedPlant

NAMES = ("a", "b", "c")
TRUE = np.array([10e3, 20e3, 30e3])


def sensors(noise=0.0, seed=0):
    return EmulatedSensors(NAMES, noise, seed)


def read(made, time, pressures=TRUE):
    return made.read(time, np.asarray(pressures, float))[0]


def typed(made, line):
    made.type(line.split())
    return made


@pytest.mark.parametrize(
    ("line", "value", "within"),
    [
        ("stuck", 0.0, 0.0),
        ("slope 0.7 in 10 s", 0.7, 10.0),
        ("held 0.5 every 0.2 s", 0.5, 0.2),
        ("wanders 10 kPa every 10 s", 10e3, 10.0),
        ("offset -1 kPa/s", -1e3, 0.0),
        ("fades 1 s", 1.0, 0.0),
        ("quantised 500", 500.0, 0.0),
        ("valve -0.2", -0.2, 0.0),
    ],
)
def test_a_fault_is_typed_with_its_number_and_unit(line, value, within):
    found = given_fault(line.split())
    assert found.shape.name == line.split()[0]
    assert (found.value, found.time) == pytest.approx((value, within))


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ("", "must be CHAMBER FAULT, swapped CHAMBER CHAMBER or ok; CHAMBER from 1 to 3"),
        ("4 stuck", "chamber '4': must be from 1 to 3, or one of a, b, c"),
        ("1 tired", "fault 'tired': unknown; known are frozen, stopped"),
        ("1 stuck 3", "stuck takes no number"),
        ("1 slope nan", "must be a number"),
        ("1 slope 99", "must be from -10 to 10"),
        ("1 offset 3 bar", "must be offset NUMBER UNIT, UNIT Pa, kPa, Pa/s, kPa/s"),
        ("1 offset 3 kPa in -1 s", "offset takes in SECONDS"),
        ("1 held 0.5 in 3 s", "held takes every SECONDS"),
        ("swapped 1", "must be swapped CHAMBER CHAMBER"),
    ],
)
def test_what_cannot_be_typed_is_one_line_and_changes_nothing(line, says):
    made = sensors()
    with one_line(says):
        typed(made, line)
    assert not made.lying


WORDS = [*known_shapes().split(", "), "1", "2", "3", "-1", "0", "ok", "swapped", "in", "every"]


@given(st.lists(st.sampled_from([*WORDS, "s", "kPa", "kPa/s", "x", ""]), max_size=7))
def test_any_words_are_a_fault_or_one_line_and_readings_stay_finite(words):
    made = sensors(noise=50.0)
    said = ""
    try:
        made.type(words)
    except UserError as error:
        said = str(error)
    assert "\n" not in said
    for step in range(5):
        readings, renewed = made.read(0.3 * step, TRUE)
        assert np.isfinite(readings).all()
        assert renewed.shape == (3,)


def test_an_honest_sensor_says_the_pressure_with_its_noise():
    made = sensors(noise=50.0)
    readings = np.array([read(made, 1e-3 * step) for step in range(4000)])
    assert np.abs(readings.mean(axis=0) - TRUE).max() < 4 * 50.0 / np.sqrt(4000)
    assert np.allclose(readings.std(axis=0), 50.0, rtol=0.05)


@pytest.mark.parametrize(
    ("line", "at", "expected"),
    [
        ("2 slope 0.7", 1.0, 14e3),
        ("2 slope 0.5 in 2 s", 1.0, 15e3),
        ("b offset -1 kPa/s", 3.0, 17e3),
        ("2 offset -3 kPa", 1.0, 17e3),
        ("2 offset 4 kPa in 4 s", 3.0, 23e3),
        ("2 fades 2", 2.0, 20e3 / np.e),
        ("2 quantised 6 kPa", 1.0, 18e3),
        ("2 stuck", 1.0, 20e3),
    ],
)
def test_a_fault_begins_when_it_is_read_and_is_of_its_chamber_alone(line, at, expected):
    made = sensors()
    read(made, 99.0)
    typed(made, line)
    read(made, 100.0)
    assert read(made, 100.0 + at) == pytest.approx([10e3, expected, 30e3])
    typed(made, "2 ok")
    assert read(made, 110.0) == pytest.approx(TRUE)
    assert not made.lying


def test_faults_of_a_chamber_come_on_top_of_each_other_and_the_same_replaces():
    made = sensors()
    for line in ("1 slope 0.5", "1 offset 1 kPa", "1 offset 2 kPa", "3 stuck"):
        typed(made, line)
    read(made, 0.0)
    assert read(made, 1.0) == pytest.approx([7e3, 20e3, 30e3])
    assert read(made, 2.0, TRUE + 5e3) == pytest.approx([9.5e3, 25e3, 30e3])
    typed(made, "ok")
    assert read(made, 3.0) == pytest.approx(TRUE)
    typed(made, "swapped 1 c")  # each reads the other's chamber
    assert read(made, 4.0) == pytest.approx([30e3, 20e3, 10e3])
    assert made.lying
    typed(made, "swapped 1 3")
    assert read(made, 5.0) == pytest.approx(TRUE)


def test_stuck_frozen_and_held_differ_in_noise_and_in_time():
    made = sensors(noise=50.0)
    read(made, 0.0)
    for line in ("1 frozen", "2 stuck", "3 held 0.5"):
        typed(made, line)
    moving = [read(made, 0.01 * step, TRUE + 1e3 * step) for step in range(1, 101)]
    frozen, stuck, held = np.array(moving).T
    assert len(set(frozen)) == 1
    assert len(set(stuck)) == 100
    assert abs(stuck - 20e3).max() < 300.0
    first, second = held[:49] - 30e3, held[51:99] - 30e3
    assert abs(first).max() < 300.0  # the first half of each second
    assert np.allclose(second, 1e3 * np.arange(52, 100), atol=300.0)


def test_a_kinked_line_lags():
    made = sensors()
    read(made, 0.0, np.zeros(3))
    typed(made, "1 kinked 0.3")
    times = 0.01 * np.arange(1, 101)
    seen = np.array([read(made, time, np.full(3, 1e4))[0] for time in times])
    assert np.allclose(seen, 1e4 * (1.0 - np.exp(-times / 0.3)), rtol=1e-9)


def test_every_shape_is_a_course_of_the_studies():
    """One table: what an emulated sensor does at a time is what a campaign does in its cycle."""
    times = np.linspace(0.0, 3.0, 31)
    for shape in SHAPES:
        value = min(max(0.6, shape.low), shape.high)
        whole = shape.course(times, value, 1.0)
        (told,) = [values for values in vars(whole).values() if values is not None]
        for index, time in enumerate(times):
            once = shape.course(np.array([time]), value, 1.0)
            (at,) = [values for values in vars(once).values() if values is not None]
            assert at[0] == told[index]
    assert given_fault(["frozen"]).course(times).hold.tolist() == [HELD] * len(times)


def filled(errors=None, line="", seconds=0.3, volts=7.0):
    """Pressures of a bench whose valves fill."""
    made = EmulatedActuator(station(1.05e5), errors=errors)
    if line:
        made.sensors.type(line.split())
    made.advance(0.0, np.full(3, volts))
    for step in range(1, round(1e3 * seconds) + 1):
        made.advance(1e-3 * step, np.full(3, volts))
    return made


def test_faults_of_chamber_valve_and_supply_are_in_the_plant_and_end():
    honest = filled().pressures
    assert filled(line="2 leak 50").pressures[1] < 0.7 * honest[1]
    assert filled(line="2 leak 50").pressures[0] == honest[0]
    assert filled(line="3 valve -1").pressures[2] == 0.0
    assert filled(line="supply 0.5").pressures == pytest.approx(0.5 * honest)
    made = filled(line="1 valve -1")
    assert made.pressures[0] == 0.0
    made.sensors.type(["ok"])
    for step in range(301, 1500):
        made.advance(1e-3 * step, np.full(3, 7.0))
    assert made.pressures[0] == pytest.approx(1.05e5, rel=0.01)


def test_the_supply_droops_while_valves_fill_and_comes_back():
    droop = ChamberErrors(droop=0.2)
    full, half = filled(droop, volts=10.0, seconds=2.0), filled(droop, volts=6.0, seconds=0.02)
    assert full.chambers["drooped"] == pytest.approx([0.8] * 3, abs=1e-6)
    assert full.pressures == pytest.approx([0.8 * 1.05e5] * 3, rel=1e-3)
    assert 0.9 < half.chambers["drooped"][0] < 1.0
    full.advance(2.01, np.full(3, 5.0))
    full.advance(2.02, np.full(3, 5.0))
    assert full.chambers["drooped"] == pytest.approx([1.0] * 3)


def test_emulated_terminals_put_the_lie_on_the_wire(monkeypatch):
    """Bytes of the input terminal, as a frame takes them along."""
    monkeypatch.setattr(emulator, "_open", lambda interface: None)
    made = station(1.05e5, gauge=True)
    actuator = EmulatedActuator(made, sensor_noise=0.0)
    terminals = emulator.EtherCatEmulator("none", made, actuator)
    terminals._valve_volts = np.full(3, made.valve.closed)
    (slave,) = [each for each in terminals.slaves if each.terminal.inputs]

    def pressures(now):
        terminals._pressures = actuator.advance(now, terminals._valve_volts)
        slave.was_read = True
        terminals._convert(now)
        counts = struct.unpack("<HhHhHhHh", slave.input_bytes)[1::2]
        sensors = [*(chamber.sensor for chamber in made.chambers), made.supply.gauge]
        return [
            (10.0 * count / 0x7FFF - sensor.zero) * sensor.pascal_per_volt
            for count, sensor in zip(counts, sensors, strict=True)
        ]

    pressures(0.0)
    pressures(0.05)
    actuator.chambers["pressure"] = 50e3  # the valves have closed
    assert pressures(0.1) == pytest.approx([50e3, 50e3, 50e3, 105e3], abs=20.0)
    for line in ("1 slope 0.5", "2 offset -3 kPa", "3 quantised 7 kPa", "supply 0.5"):
        actuator.sensors.type(line.split())
    pressures(0.2)
    assert pressures(0.3) == pytest.approx([25e3, 47e3, 49e3, 52.5e3], abs=20.0)


def sine(time):
    return 40e3 + 25e3 * np.sin(2.0 * np.pi * time)


# typed -> slowest vent [s] at a sine of 1 Hz, and what is said; the regulator is at 105 kPa
VENTED = {
    "2 frozen": (0.1, "sensor frozen"),
    "2 stuck": (1.0, "air that"),
    "2 held 0.9": (1.0, "air that"),
    "2 fades 0.05": (0.1, "air that the sensor does not show"),
    "2 fades 1 s": (1.0, "air that the sensor does not show"),
    "2 kinked 0.3": (1.0, "air that"),
    "3 slope 0": (0.1, "air that the sensor does not show"),
    "3 slope 0.5": (1.0, "air that the sensor does not show"),
    "3 slope 1.6": (1.0, "air that nobody let in"),
    "1 offset -15 kPa": (0.1, "air that the sensor does not show"),
    "1 offset -20 kPa/s": (1.5, "air that the sensor does not show"),
    "1 offset -1 kPa/s": (40.0, "air that the sensor does not show"),
    "swapped 1 3": (10.0, "air that"),
    "1 leak 10": (0.2, "air that the sensor does not show"),
    "1 valve 0.5": (0.5, "air that nobody let in"),
    "2 valve -0.2": (1.0, "air that the sensor does not show"),
    "2 valve 0": (1.0, "air that"),
    "supply 0.01": (5.0, "air that the sensor does not show"),
    "1 quantised 5 kPa": (1.0, "sensor frozen"),
    "1 stopped": (0.1, "sensor frozen"),
    "1 wanders 20 kPa": (2.0, "air that"),
}


@pytest.mark.parametrize("line", VENTED)
def test_a_typed_fault_vents_behind_the_real_driver(line):
    within, says = VENTED[line]
    bench = Bench(station(1.05e5), MEASURED).enable(sine)
    # swapped chambers are told apart once their pressures differ
    command = (lambda time: sine(time) * np.array([1.0, 0.8, 0.6])) if "swapped" in line else sine
    bench.bus.actuator.sensors.type(line.split())
    took, reason = bench.fail(command=command, within=within)
    assert took <= within
    assert says in reason
    # a sensor that lies brings no more air in than its command and what a guard needs to see it
    lies = line.split()[1] not in ("valve", "leak", "0.01")
    assert bench.peak <= (75e3 if lies else LIMITS.maximum + 5e3 + 100.0)


# what no software need see within 6 s, and what the true pressure then is at most
RESIDUAL = {
    "3 offset -3 kPa in 2 s": 69e3,
    "3 slope 0.9 in 5 s": 66e3 / 0.9 + 2e3,
    "3 held 0.02": 67e3,
}


@pytest.mark.parametrize("line", RESIDUAL)
def test_what_hides_stays_within_its_stated_bound(line):
    bench = Bench(station(1.05e5), MEASURED).enable(sine)
    bench.bus.actuator.sensors.type(line.split())
    bench.fail(command=sine, within=6.0)
    assert bench.peak <= RESIDUAL[line] + 2e3


@pytest.mark.parametrize(("line", "says"), [("", ""), ("chamber_2 slope 0.5", "chamber_2: air")])
def test_the_bench_on_virtual_time_has_errors_and_typed_faults(line, says):
    robot = load_robot("licher2025")
    plant = SimulatedPlant(robot, PlantErrors.noiseless(), intervals=4)
    figures = DeviceFigures(pressure_noise=100.0)
    bench = EmulatedBench(robot, plant, figures, ChamberErrors(fill_gain=0.95))
    driver = bench.driver

    def run(begin, end):
        for cycle in range(begin, end):
            now = 1e-3 * cycle
            driver.hear("mocap", now)
            if cycle % 14 == 0:
                level = 30e3 + 15e3 * np.sin(2.0 * np.pi * now) if cycle > 800 else 0.0
                packet = CommandPacket.single(round(1e9 * now), np.full(3, level))
                driver.hear("command", now, packet)
            bench.cycle(now)

    run(0, 700)
    driver.enable()
    run(700, 2200)
    assert driver.report.decision.enabled, driver.report.decision
    if line:
        bench.sensors.type(line.split())
    run(2200, 3200)
    assert driver.report.decision.enabled != bool(line)
    assert says in driver.report.decision.reason


@pytest.mark.parametrize(
    ("line", "added", "within", "says"),
    [
        ("supply 0.8", "gauge", 1.0, "kPa, must be 105 kPa within 10%"),
        ("chamber_2 offset -1 kPa/s", "second", 4.0, "its two sensors differ"),
    ],
)
def test_a_gauge_or_second_sensors_tell_soon_what_they_see(line, added, within, says):
    bench = Bench(station(1.05e5, **{added: True}), MEASURED).enable(sine)
    bench.bus.actuator.sensors.type(line.split())
    took, reason = bench.fail(command=sine, within=within)
    assert took < within
    assert says in reason


@pytest.mark.parametrize(("droop", "gauge"), [(0.03, False), (0.08, False), (0.08, True)])
def test_a_supply_that_droops_vents_nobody(droop, gauge):
    errors = ChamberErrors(0.97, 1.03, -0.01, 0.015, -0.001, 0.0, 12, droop=droop)
    bench = Bench(station(1.05e5, gauge=gauge), errors).enable(sine)
    took, reason = bench.fail(command=sine, within=8.0)
    assert (took, reason) == (np.inf, "")
