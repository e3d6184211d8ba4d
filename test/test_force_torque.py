"""The Net F/T: units, judgement, bias and filter on virtual time; the wire and faults over UDP."""

import math
import os
import struct
import time
from dataclasses import replace
from itertools import pairwise
from random import Random

import numpy as np
import pynetft
import pytest
from hypothesis import given
from hypothesis import strategies as st
from kit.bench import HEALTHY, enabled_safety
from kit.net_ft import LENIENT, bench
from kit.net_ft import WRENCH as RESTING
from kit.refusals import one_line

from softcr_hardware.emulation.faults import FAULT_KINDS
from softcr_hardware.force_torque.client import NetFtClient
from softcr_hardware.force_torque.driver import ForceTorqueDriver
from softcr_hardware.force_torque.emulator import OVERLOAD, NetFtBox, NetFtEmulator
from softcr_hardware.force_torque.readings import SENSOR_RATE, Readings, WrenchJudge, WrenchLimits
from softcr_hardware.safety.safety import Action
from softcr_models.errors import UserError

FUZZED = int(os.environ.get("SOFTCR_FUZZ", "3000"))  # a million once: docs/contributing.md
FIVE_NEWTONS = np.array([5.0, 0, 0, 0, 0, 0])
US = ("us", 1)


class Played:
    """A client whose readings the test writes."""

    def __init__(self):
        self.waiting = []

    def take(self, now):
        taken, self.waiting = self.waiting, []
        return block(*taken)

    def trouble(self, now):
        return ""


def some(time, wrench=RESTING, number=None):
    """A record: time, count of the sensor, counts of its axes, wrench."""
    counts = (round(1e6 * time) if number is None else number, 0, 0, 0, 0, 0)
    return time, round(SENSOR_RATE * np.nan_to_num(time)), counts, wrench


def block(*records):
    times, sequences, counts, wrenches = zip(*records, strict=True) if records else [()] * 4
    return Readings(
        np.array(times, dtype=float),
        np.array(sequences, dtype=np.int64),
        np.array(counts, dtype=np.int64).reshape(-1, 6),
        np.array(wrenches, dtype=float).reshape(-1, 6),
        np.zeros(len(times), dtype=np.int64),
    )


def played(driver, seconds, wrench=lambda time: RESTING, begin=0.0, rate=1000):
    """Readings one by one, each taken as it comes; the wrenches published."""
    published = []
    for moment in begin + np.arange(1, round(rate * seconds) + 1) / rate:
        driver.client.waiting.append(some(moment, wrench(moment)))
        if newest := driver.newest(moment):
            published.append(newest[1])
    return np.array(published)


def new_driver(low_pass_hz=0.0, limits=None):
    return ForceTorqueDriver(Played(), limits or WrenchLimits(), RESTING, low_pass_hz)


FORCES = {"N": 1.0, "kN": 1e3, "lbf": 4.448222, "klbf": 4448.222, "kgf": 9.80665}
MOMENTS = {"N-m": 1.0, "N-mm": 1e-3, "kN-m": 1e3}
MOMENTS |= {"lbf-in": 0.1129848, "lbf-ft": 1.3558179, "kgf-cm": 0.0980665}


@pytest.mark.parametrize("force_unit", FORCES)
@pytest.mark.parametrize("moment_unit", MOMENTS)
def test_every_unit_a_sensor_may_be_calibrated_in_becomes_si(force_unit, moment_unit):
    numbers = {"rdt_sequence": 1, "ft_sequence": 2, "status": 0, "configuration_revision": 1}
    numbers |= {"raw_wrench": (1, 2, 3, 4, 5, 6), "received_at_ns": 1_500_000_000}
    wrench = {"force": (1.0, 2.0, 3.0), "force_unit": pynetft.ForceUnit(force_unit)}
    wrench |= {"torque": (4.0, 5.0, 6.0), "torque_unit": pynetft.TorqueUnit(moment_unit)}
    sample = pynetft.Sample(**numbers, **wrench)
    seen = Readings.of([sample])
    assert seen.times == 1.5
    units = np.repeat([FORCES[force_unit], MOMENTS[moment_unit]], 3)
    assert np.allclose(seen.wrenches, units * np.arange(1, 7), rtol=1e-6)
    unknown = Readings.of([replace(sample, force_unit=pynetft.ForceUnit.UNKNOWN)])
    judge = WrenchJudge(WrenchLimits(force=1e6, moment=1e6))
    assert not judge.believes(1.5, unknown)
    assert judge.trouble == "not finite, or a unit that is not known"


def test_every_reason_of_refusal_is_named_and_counted():
    judge = WrenchJudge(WrenchLimits(force=100.0, moment=10.0, frozen_after=0.2))
    nan = math.nan
    cases = [
        (1.0, some(1.0), ""),
        (1.0, some(1.0), "not newer"),
        (1.2, some(1.1), "too old"),
        (1.2, some(1e9), "stamp in the future"),
        (1.2, some(nan, number=0), "not newer"),
        (1.4, some(1.4, (nan, 0, 0, 0, 0, 0)), "not finite, or a unit that is not known"),
        (1.5, some(1.5, (0, 0, -101, 0, 0, 0)), "overload"),
        (1.6, some(1.6, (0, 0, 0, 0, 11, 0)), "overload"),
        (2.0, some(2.0, number=7), ""),
        (2.1, some(2.1, number=7), ""),
        (2.2, some(2.2, number=7), "frozen"),
        (2.3, some(2.3), ""),
    ]
    for now, seen, says in cases:
        assert judge.believes(now, block(seen)) == (says == "")
        assert judge.trouble == says
    assert sum(judge.refused.values()) == sum(bool(says) for _, _, says in cases)


RECORDS = st.tuples(
    st.floats(0.9, 1.1) | st.sampled_from([math.nan, 1e9, -1e9]),
    st.sampled_from([0.0, 5.0, 200.0, math.nan, math.inf]),
    st.integers(0, 1),
)


@given(st.lists(RECORDS, max_size=12), st.lists(st.integers(0, 12), max_size=3))
def test_a_block_is_judged_as_its_readings_one_by_one(records, cuts):
    seen = [some(time, (value, 0, 0, 0, 0, 0), number) for time, value, number in records]
    limits = WrenchLimits(frozen_after=0.02)
    one_by_one, in_blocks = WrenchJudge(limits), WrenchJudge(limits)
    expected = [bool(one_by_one.believes(1.0, block(record))[0]) for record in seen]
    edges = [0, *sorted(cuts), len(seen)]
    believed = []
    for first, last in pairwise(edges):
        believed += in_blocks.believes(1.0, block(*seen[first:last])).tolist()
    assert believed == expected
    assert in_blocks.refused == one_by_one.refused
    assert in_blocks.trouble == one_by_one.trouble


def test_a_bias_makes_the_resting_rod_read_as_the_models():
    offset = np.array([12.0, -7.0, 3.0, 0.5, 0.1, -0.2])
    noise = np.random.default_rng(0)

    def wrench(time):
        return RESTING + offset + 0.01 * noise.standard_normal(6)

    driver = new_driver()
    with pytest.raises(UserError, match="0 readings, must be 20: wait half a second"):
        driver.take_bias(0.0)
    driver.check_rest(0.0)
    played(driver, 1.0, wrench)
    assert driver.rest_error == pytest.approx(12.0, abs=0.01)
    assert np.allclose(driver.take_bias(1.0), offset, atol=2e-3)
    assert driver.rest_error == 0.0
    published = played(driver, 1.0, wrench, begin=1.0)
    assert np.allclose(published.mean(axis=0), RESTING, atol=2e-3)
    # a sensor that is wrong by 5 N when the valves are enabled the next time
    driver.check_rest(2.0)
    played(driver, 1.0, lambda time: wrench(time) + FIVE_NEWTONS, begin=2.0)
    assert driver.rest_error == pytest.approx(5.0, abs=0.01)
    moving = new_driver()
    played(moving, 1.0, lambda time: RESTING + 3.0 * np.sin(20.0 * time))
    with one_line(r"vary by \d+\.\d+ N and .*: vent the valves"):
        moving.take_bias(1.0)
    assert not moving.biased


def test_the_newest_of_many_is_published_and_none_twice():
    driver = new_driver()
    driver.client.waiting = [some(1.0 + 1e-4 * k, RESTING + k) for k in range(5)]
    published, wrench = driver.newest(1.001)
    assert published == pytest.approx(1.0004)
    assert np.allclose(wrench, RESTING + 4)
    assert driver.newest(1.002) is None
    # records that come while others are taken are not of the future
    driver = new_driver(low_pass_hz=50.0)
    driver.client.waiting = [some(1.0 + 0.002 * k) for k in range(60)]  # 0.12 s on a busy machine
    assert driver.newest(1.0)[0] == pytest.approx(1.118)
    assert not driver.judge.refused["stamp in the future"]


def test_the_declared_filter_is_that_of_first_order_for_blocks_as_for_single_readings():
    """Also where records were lost, and the step between two is longer."""
    driver = new_driver(low_pass_hz=5.0)
    assert driver.delay == pytest.approx(1 / (10 * math.pi))
    step = RESTING + FIVE_NEWTONS
    played(driver, 1.0)
    after = played(driver, 0.2, lambda time: step, begin=1.0)[:, 0] - RESTING[0]
    times = np.arange(1, 201) / 1000
    assert np.allclose(after, 5.0 * (1.0 - np.exp(-times / driver.delay)), atol=1e-9)
    random = np.random.default_rng(0)
    times = 1.0 + np.cumsum(random.choice([1e-3, 2e-3, 9e-3], 200))
    readings = [some(time, RESTING + random.standard_normal(6)) for time in times]
    single, whole = new_driver(20.0, LENIENT), new_driver(20.0, LENIENT)
    for record in readings:
        single.client.waiting = [record]
        one = single.newest(record[0])
    for first in range(0, 200, 25):
        whole.client.waiting = readings[first : first + 25]
        block_wise = whole.newest(times[first + 24])
    assert one[0] == block_wise[0]
    assert np.allclose(one[1], block_wise[1], atol=1e-12)


class Way:
    """A box on virtual time, and its records' way to the driver, which takes the newest."""

    def __init__(self, drift=0.0, rate=1000.0):
        self.driver = ForceTorqueDriver(Played(), WrenchLimits(), RESTING)
        self.box = NetFtBox(lambda time: RESTING, rate)
        self.box.client = US
        self.now, self.jitter = 5e-4, np.random.default_rng(0)
        self._drift, self._scale = drift, np.repeat(1e6, 6)

    def run(self, seconds):
        """The wrenches published meanwhile, with the times they are of."""
        published = []
        for _ in range(round(200 * seconds)):
            self.now += 0.005
            for record in self.box.records(self.now)[-1:]:
                _, sequence, _, *counts = struct.unpack(">III6i", record)
                came = self.now + self.jitter.exponential(1e-4)
                count = round(sequence * (1.0 + self._drift))
                self.driver.client.waiting = [(came, count, counts, counts / self._scale)]
            if newest := self.driver.newest(self.now + 2e-3):
                published.append(newest)
        return published


@pytest.mark.parametrize("drift", [0.0, 3e-3, -3e-3])
def test_delayed_readings_are_told_by_the_sensors_own_count_and_refused(drift):
    way = Way(drift)
    assert math.isnan(way.driver.late)  # nobody can know yet
    published = way.run(11.0)
    assert len(published) == 2200
    if drift == 0.0:  # a reading is of the moment its count tells, not of its arrival
        times = np.array([time for time, _ in published[1600:1800]])
        assert np.abs(np.diff(times) - 0.005).max() < 2e-5  # the way's jitter is ten times that
    assert way.driver.late == pytest.approx(0.0, abs=5e-4)
    way.box.inject("delayed")
    way.run(0.1)
    assert way.run(1.0) == []
    assert way.driver.late == pytest.approx(0.05, abs=2e-3)
    assert way.driver.trouble(way.now) == END_STATES["delayed"]
    assert safety_after(1.1).reason == "wrenches silent"
    way.box.inject("ok")
    assert len(way.run(1.0)) > 190
    assert way.driver.late == pytest.approx(0.0, abs=5e-4)


@pytest.mark.parametrize("drift", [0.13, -0.13])  # a sensor that counts 7910 Hz, or 6090
def test_a_count_of_another_rate_is_not_believed(drift):
    way = Way(drift)
    assert len(way.run(8.0)) == 1600
    assert math.isnan(way.driver.late)


def test_fuzzed_records_end_in_wrenches_or_in_named_refusals():
    """Any numbers in a reading, any bytes at the box: no exception, no NaN, all in range."""
    random, driver = Random(0), new_driver(low_pass_hz=50.0)
    specials = (math.nan, math.inf, -math.inf, 1e308, -1e308, 0.0, 99.0, 101.0)
    box = NetFtBox(lambda time: RESTING)
    request = struct.pack(">HHI", 0x1234, 2, 0)
    believed = 0
    for number in range(FUZZED):
        now = 1e-3 * number + 1.0
        wrench = [random.uniform(-9, 9) for _ in range(6)]
        if random.random() < 0.7:
            wrench[random.randrange(6)] = random.choice(specials)
        time = now + (random.choice((0.0, 0.0, 0.0, -0.04, 0.04, -1.0, 1e9, math.nan)))
        driver.client.waiting.append((time, number, (number,) * 6, wrench))
        newest = driver.newest(now)
        if newest is not None:
            believed += 1
            assert np.isfinite(newest[1]).all()
            assert np.abs(newest[1][:3]).max() <= 100.0
        noisy = bytearray(request)
        noisy[random.randrange(8)] = random.randrange(256)
        box.answer(bytes(noisy[: random.randrange(1, 9)]), US)
        for record in box.records(now):
            assert len(record) == 36
    print(f"{FUZZED} readings: {dict(driver.judge.refused)} refused, {believed} believed")
    reasons = ("not newer", "stamp in the future", "overload")
    assert min(believed, *map(driver.judge.refused.get, reasons)) > FUZZED / 100
    assert sum(driver.judge.refused.values()) + believed == FUZZED


def safety_after(age):
    """What safety does about wrenches of an age, everything else being well."""
    safety = enabled_safety(1.0)
    return safety.update(1.001, replace(HEALTHY, force_torque_age=age))


# fault -> what the driver says when nothing is published any more; None: wrenches are published.
# "delayed" has its test on virtual time, above: this machine is busy
END_STATES = dict.fromkeys(("ok", "wrong", "slow", "intermittent", "reconnect")) | {
    "off": "the box is silent", "stuck": "frozen", "garbage": "overload", "delayed": "too old",
}  # fmt: skip


@pytest.mark.parametrize("kind", [kind for kind in FAULT_KINDS if kind != "delayed"])
def test_each_fault_of_the_sensor_has_a_named_end_state(kind):
    with bench() as running:
        running.flows()
        running.emulator.inject(kind)
        said = END_STATES[kind]
        if said is None:
            goal = time.monotonic() + 0.3  # beyond what was on its way
            running.poll(lambda: time.monotonic() > goal, "the fault's own records")
            wrench = running.flows()
            assert safety_after(0.02).action == Action.NONE
            wrong = FIVE_NEWTONS if kind == "wrong" else 0.0
            assert np.allclose(wrench, RESTING + wrong, atol=0.05)
        else:
            running.silent(said)
            decision = safety_after(1.0)
            assert (decision.action, decision.enabled) == (Action.WARN, True)
            assert decision.reason == "wrenches silent"
        client = running.driver.client
        if kind == "intermittent":
            assert client.health().lost_count > 0
        if kind == "slow":
            running.poll(lambda: client.health().receive_rate_hz < 100, "a slow rate")
        if kind == "garbage":
            assert client.health().malformed_count > 0
        running.emulator.inject("ok")
        running.flows()
        assert running.trouble == ""


def test_a_sensor_that_is_overloaded_or_whose_count_stands_still_is_named_and_comes_back():
    with bench() as running:
        running.flows()
        running.box.status = OVERLOAD
        running.silent("sensor status 0x80020000: overload or fault")
        running.box.status = 0
        running.flows()
        running.box.frozen = True
        running.silent("the box streams no new samples")
        running.poll(lambda: running.driver.client.restarts > 0, "a new client")
        running.box.frozen = False
        running.flows(60)
        running.driver.take_bias(time.monotonic())
        running.emulator.inject("reconnect")  # the bias is ours: a power cycle keeps it
        wrench = running.flows(80)
        assert running.driver.biased
        assert np.allclose(wrench, RESTING, atol=0.01)


def test_a_box_that_counts_from_the_beginning_again_is_heard_at_once():
    """Up for 3 s only, pynetft says that it streams and waits until the old number is passed."""
    with bench(uptime=3.0) as running:
        running.flows()
        running.box._began = time.monotonic()  # rebooted so fast that nobody noticed
        running.flows()
        assert running.driver.client.restarts == 1


def test_another_calibration_is_applied_and_told():
    with bench() as running:
        client, box = running.driver.client, running.box
        running.flows()
        client.look_at_calibration()
        box.counts_per_force, box.moment_unit, box.counts_per_moment = 1e5, "Nmm", 1e6 / 1e3
        running.emulator.inject("reconnect")
        running.flows()
        client.look_at_calibration()
        assert client.recalibrated == 1
        assert client.calibration.torque_unit == pynetft.TorqueUnit.NEWTON_MILLIMETER
        wrench = running.flows(60)
        # the emulated sensor puts out counts per unit of the numbers it is given: N m read as N mm
        assert np.allclose(wrench[:3], RESTING[:3], atol=0.02)
        assert np.allclose(wrench[3:], RESTING[3:] * 1e-3, atol=1e-3)


def test_with_a_filter_every_record_is_drained():
    with bench(rate=500.0, low_pass_hz=30.0) as running:
        running.flows(100)
        assert running.driver.client.health().python_queue_dropped_count == 0
        assert np.allclose(running.published[-1][1], RESTING, atol=0.02)


def test_an_address_that_cannot_be_and_a_port_that_is_taken_are_one_line():
    for host, port in (("", 49152), ("127.0.0.1", 0)):
        with one_line(f"force-torque sensor {host}"):
            NetFtClient(host, port)
    with bench() as running:
        port = running.emulator.rdt_port
        with pytest.raises(UserError, match=rf"ports {port} \(UDP\) and 0 \(TCP\)"):
            NetFtEmulator(running.box, rdt_port=port, http_port=0)
