"""The arming test behind the real driver, on chambers whose wires and hoses are mixed up."""

from dataclasses import replace

import numpy as np
import pytest
from kit.bench import DT, MEASURED, WIDE, Bench, station

from softcr_hardware.ethercat.arming_check import REST
from softcr_hardware.safety.safety import Latch

EXHAUST = station().valve.exhaust
SLOWEST = 5.0 + REST
"""For three chambers, with the handshakes before and after [s]."""


class ArmingBench(Bench):
    """A bench whose station has the arming test; `valves` and `sensors` say which chamber each
    channel's wire, or hose, really leads to; a sensor may `lie`, and one of the `chambers` be
    otherwise."""

    def __init__(
        self, errors=None, supply=1.05e5, valves=(0, 1, 2), sensors=(0, 1, 2), lie=None, **chambers
    ):
        super().__init__(station(supply).model_copy(update={"arming_test": True}), errors)
        self.valves, self.sensors = list(valves), list(sensors)
        self.bus.exchange = self.exchange
        self.opened = 0
        if lie is not None:
            self.bus.lie = lie(self.bus)
        for name, (chamber, value) in chambers.items():
            self.bus.actuator.chambers[name][chamber] = value

    def exchange(self, volts):
        self.opened += bool(np.any(volts != EXHAUST))
        inner = self.bus._bus
        routed = np.empty(3)
        routed[self.valves] = volts
        sample = inner.exchange(routed)
        sample = replace(sample, volts=sample.volts[self.sensors])
        return self.bus.lie(self.bus.now, sample, self.bus.actuator.pressures)

    def ask(self, within=SLOWEST):
        """Somebody keeps asking; the last decision, and whether the valves were enabled."""
        for _ in range(round(within / DT)):
            if self.steps % 300 == 0:
                self.driver.enable()
            decision = self.run(DT, 0.0).decision
            if decision.enabled or decision.latch:
                break
        return decision


@pytest.mark.parametrize("errors", [None, WIDE, MEASURED], ids=["nominal", "wide", "measured"])
@pytest.mark.parametrize("supply", [1.05e5, 1.5e5])
def test_a_good_bench_is_tested_then_enabled(errors, supply):
    bench = ArmingBench(errors, supply=supply)
    assert bench.run(1.0, 0.0).decision.blockers == ("arming test: ask to begin it",)
    assert bench.opened == 0, "nobody has asked"
    decision = bench.ask()
    assert decision.enabled, decision
    # cycles: each channel was closed, and open for a moment
    assert 3 * 300 < bench.opened < 3 * 400
    assert bench.peak < 8e3, "true pressure of the pulses"
    # an operator's vent leaves the proof, a machine's does not
    bench.driver.vent()
    bench.run(0.5, 0.0)
    bench.driver.reset()
    opened = bench.opened
    assert bench.ask(1.0).enabled
    assert bench.opened - opened < 300
    bench.bus.check = lambda: "EL4004: SAFEOP with error"
    bench.run(0.2, 0.0)
    assert bench.driver.report.decision.latch is Latch.MACHINE
    bench.bus.check = lambda: ""
    bench.run(2.0, 0.0)
    bench.driver.reset()
    assert not bench.ask(1.0).enabled
    assert bench.ask().enabled


def lies(chamber, change):
    """A sensor whose reading is a function of the true pressure and the time."""

    def lie(bus):
        return lambda time, sample, true: bus.reading(sample, chamber, change(true[chamber], time))

    return {"lie": lie}


def noise(deviation=50.0):
    return RANDOM.normal(0.0, deviation)


RANDOM = np.random.default_rng(0)
ANSWERS = "answers a pulse of its valve"
WIRED_WRONG = [  # sensors swapped, valves swapped, all hoses one further
    ({"sensors": (1, 0, 2)}, f"the sensor of chamber_2 {ANSWERS}"),
    ({"valves": (0, 2, 1)}, f"chamber_2: the sensor of chamber_3 {ANSWERS}"),
    ({"valves": (1, 2, 0)}, f"chamber_1: the sensor of chamber_2 {ANSWERS}"),
    ({"stuck": (2, 0.0)}, f"chamber_3: no sensor {ANSWERS}"),
    ({"leak": (1, 2.0)}, "chamber_2: loses "),
    (lies(0, lambda p, t: 0.4 * p + noise()), "chamber_1: a pulse of its valve shows 1."),
    (lies(0, lambda p, t: -p + noise()), "chamber_1: its sensor falls while its chamber fills"),
    (lies(1, lambda p, t: p + 10.0 * (round(t / DT) % 2)), "chamber_2: its sensor's noise is "),
    (lies(1, lambda p, t: p + noise(400.0)), "chamber_2: "),
    (lies(2, lambda p, t: p + 3e3 + noise()), "chamber_3: reads 3.0 kPa while vented"),
]


@pytest.mark.parametrize(("wrong", "says"), WIRED_WRONG)
def test_what_is_wrong_is_named_latched_and_vented(wrong, says):
    bench = ArmingBench(**wrong)
    decision = bench.ask()
    assert decision.latch is Latch.MACHINE, decision
    assert decision.cause.startswith("arming test: ")
    assert says in decision.cause, decision.cause
    assert np.all(bench.driver.report.volts == EXHAUST)
    assert bench.peak < 8e3
    opened = bench.opened
    assert not bench.ask(3.0).enabled
    assert bench.opened == opened, "after a failure it is a person's turn"
    bench.driver.reset()
    assert bench.ask().latch is Latch.HELD, "the same cause again within ten minutes"


@pytest.mark.parametrize("interruption", ["vent", "silence", "bus"])
def test_whoever_stops_it_stops_it_in_the_middle_of_a_pulse(interruption):
    bench = ArmingBench()
    bench.run(1.0, 0.0)
    bench.driver.enable()
    while bench.bus.actuator.pressures.max() < 1e3:
        bench.run(DT, 0.0)
    if interruption == "vent":
        bench.driver.vent()
    elif interruption == "silence":
        bench.driver.hear = lambda *_: None
    else:
        bench.bus.check = lambda: "EL4004: SAFEOP with error"
        bench.bus.exchange = lambda volts: None
    decision = bench.run(0.2, 0.0).decision
    assert not decision.testing
    assert np.all(bench.driver.report.volts == EXHAUST)


def test_a_late_cycle_is_no_fault_of_the_bench_and_a_slow_one_is_named():
    bench = ArmingBench()
    bench.run(1.0, 0.0)
    bench.driver.enable()
    late = 0
    while not (decision := bench.run(DT, 0.0).decision).enabled and not decision.latch:
        if bench.steps % 300 == 0:
            bench.driver.enable()
        filling = np.any(bench.driver.report.volts > station().valve.closed + 0.1)
        if filling and late < 2:  # the cycle after the one that opens comes 80 ms late
            late += 1
            bench.steps += 80
        assert bench.peak < 13e3
        assert bench.now < 20.0
    assert decision.enabled, decision
