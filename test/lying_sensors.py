"""The real valve driver on virtual time, on a bus in memory whose sensors and chambers can fail."""

from dataclasses import replace

import numpy as np

from softcr_hardware.emulation.actuator import EmulatedActuator
from softcr_hardware.emulation.chambers import ChamberErrors
from softcr_hardware.ethercat.driver import ValveDriver
from softcr_hardware.ethercat.memory_bus import MemoryBus
from softcr_hardware.ethercat.process_data import ProcessData
from softcr_hardware.ethercat.terminals import Sensor, load_station
from softcr_hardware.safety.settings import SafetySettings
from softcr_models import load_robot
from softcr_runtime.blocks.command_packets import CommandPacket

LIMITS = load_robot("licher2025").pressure_limits
STATION = load_station("licher2025").model_copy(update={"arming_test": False})
EASY = SafetySettings(require_operator=False, require_mocap=False, command_frozen=0.0)
DT = 0.001


SPARE = Sensor(terminal=2, channel=4, zero=1.0, pascal_per_volt=2.5e4)


def station(supply=1.5e5, commissioned=True, gauge=False, second=False):
    """The shipped station with another supply, as its operator has accepted it; the spare input
    takes the supply's gauge, or a second sensor of the second chamber."""
    sensor = SPARE if gauge else None
    chambers = list(STATION.chambers)
    if second:
        chambers[1] = chambers[1].model_copy(update={"second_sensor": SPARE})
    return STATION.model_copy(
        update={
            "chambers": tuple(chambers),
            "flow": STATION.flow.model_copy(update={"supply": supply}),
            "supply": STATION.supply.model_copy(update={"accept_high": True, "gauge": sensor}),
            "guard": STATION.guard.model_copy(update={"commissioned": commissioned}),
        }
    )


class LyingBus:
    """A bus whose samples pass `lie` on their way: (time, sample, true pressures) -> sample."""

    watchdog_armed = True

    def __init__(self, data, made, errors, seed):
        self.now, self.data = 0.0, data
        self.actuator = EmulatedActuator(made, errors=errors)
        self._bus = MemoryBus(made, data, self.actuator, lambda: self.now, seed=seed)
        self.lie = lambda time, sample, true: sample

    open = close = check = lambda self: ""

    def exchange(self, volts):
        return self.lie(self.now, self._bus.exchange(volts), self.actuator.pressures)

    def reading(self, sample, chamber, pressure):
        """A sample with another pressure of one chamber."""
        volts = sample.volts.copy()
        told = self.data.volts(np.full(len(volts), pressure))[chamber]
        volts[chamber] = np.rint(told * 3276.7) / 3276.7
        return replace(sample, volts=volts)


class Bench:
    """Driver, bus and commands; `peak` is the largest true pressure since `lie` was given."""

    def __init__(self, made=None, errors=None, seed=0):
        made = made or station()
        data = ProcessData(made)
        self.bus = LyingBus(data, made, errors, seed)
        self.driver = ValveDriver(made, LIMITS, data, self.bus, EASY)
        self.driver.open()
        self.steps, self.peak = 0, 0.0

    @property
    def now(self):
        return self.steps * DT

    def run(self, duration, command):
        """Cycles until the valves are vented, or `duration` [s] is over; `command` of the time."""
        for _ in range(round(duration / DT)):
            self.steps += 1
            self.bus.now = self.now
            if self.steps % 14 == 0:
                wanted = command(self.now) if callable(command) else command
                asked = np.broadcast_to(wanted, 3)
                packet = CommandPacket.single(round(1e9 * self.now), asked)
                self.driver.hear("command", self.now, packet)
            report = self.driver.tick(self.now)
            self.peak = max(self.peak, self.bus.actuator.pressures.max())
            if not report.decision.enabled and self.enabled:
                break
        return report

    enabled = False

    def enable(self, command, settle=2.0):
        """Enabled, and for `settle` [s] at a command."""
        self.run(0.6, 0.0)
        self.driver.enable()
        assert self.run(0.002, 0.0).decision.enabled, self.driver.report.decision
        self.enabled = True
        if settle:
            assert self.run(settle, command).decision.enabled, self.driver.report.decision
        self.peak = 0.0
        return self

    def fail(self, lie=None, command=0.0, within=10.0, **chamber):
        """Begin a fault and go on: how long until the vent [s], infinite for none; and why."""
        began = self.now
        if lie is not None:
            self.bus.lie = lie(self.bus, began)
        for name, value in chamber.items():
            self.bus.actuator.chambers[name] = value
        report = self.run(within, command)
        if report.decision.enabled:
            return np.inf, ""
        took, self.enabled = self.now - began, False
        self.run(0.05, 0.0)  # what goes on while the valves move
        return took, report.decision.reason


WIDE = ChamberErrors(1.1, 0.9, 0.03, 0.015, 0.001, 0.0, 12)
"""A plant of the class before commissioning: gains 10 % off, dead band 30 mV, lag 1 ms."""
MEASURED = ChamberErrors(0.93, 1.07, -0.01, 0.015, -0.001, 0.0, 12)
"""One of the class after it."""
