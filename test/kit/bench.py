"""Benches on virtual time: sensors that lie, cameras and safety, emergency stops."""

import math
from dataclasses import replace

import numpy as np

from softcr_hardware.emulation.actuator import EmulatedActuator
from softcr_hardware.emulation.chambers import ChamberErrors
from softcr_hardware.ethercat.driver import ValveDriver
from softcr_hardware.ethercat.memory_bus import MemoryBus
from softcr_hardware.ethercat.process_data import ProcessData
from softcr_hardware.ethercat.terminals import Sensor, Station, load_station
from softcr_hardware.optitrack.calibration import load_calibration
from softcr_hardware.optitrack.emulator import MotiveServer
from softcr_hardware.optitrack.session import RECEIVED_LATENCY, NatNetSession
from softcr_hardware.optitrack.tracking import BodyTracker, TrackingLimits
from softcr_hardware.safety.safety import Flags, Safety
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


class DrivenBench:
    """A station's driver before emulated devices, on virtual time; `peak` is the largest true
    pressure."""

    def __init__(self, station, errors=None, **of_bus):
        self.now, self.peak = 0.0, 0.0
        self.data, self.actuator = ProcessData(station), EmulatedActuator(station, errors=errors)
        self.bus = MemoryBus(station, self.data, self.actuator, lambda: self.now, **of_bus)
        self.driver = ValveDriver(station, LIMITS, self.data, self.bus, EASY)
        self.driver.open()
        self.true, self.sent, self.reasons = [], [], set()

    def live(self, seconds, command, enable=False):
        """`command` (time) -> (3,), or one number [Pa]."""
        for _ in range(round(1e3 * seconds)):
            self.now = round(self.now + DT, 6)
            if round(1e3 * self.now) % 14 == 0:
                asked = np.broadcast_to(command(self.now), 3)
                packet = CommandPacket.single(round(1e9 * self.now), asked)
                self.driver.hear("command", self.now, packet)
            if enable and not self.driver.report.decision.enabled:
                self.driver.enable()
            report = self.driver.tick(self.now)
            self.true.append(self.actuator.pressures)
            self.sent.append(report.sent)
            self.peak = max(self.peak, self.true[-1].max())
            self.reasons.add(report.decision.reason)
        return self

    @property
    def decision(self):
        """The newest of safety."""
        return self.driver.report.decision


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


CALIBRATION = load_calibration("licher2025")
CLIENT = ("client", 1)
STEP = 0.001

RESTING = np.eye(4)
RESTING[2, 3] = 0.158

HEALTHY = Flags(
    operator_pressed=True,
    operator_age=0.0,
    command_age=0.0,
    mocap_age=0.0,
    force_torque_age=0.0,
    exchange_age=0.0,
    slaves_operational=True,
    watchdog_armed=True,
    pressure_age=0.0,
    highest_pressure=0.0,
    pressure_error=0.0,
)
"""Everything else on the bench is well."""


def enabled_safety(time):
    """A safety machine, enabled at `time` [s]."""
    safety = Safety(SafetySettings(), 1e5)
    safety.update(time - 401 * STEP, replace(HEALTHY, operator_pressed=False))
    for step in range(400, 0, -1):
        safety.update(time - step * STEP, HEALTHY)
    assert safety.update(time, replace(HEALTHY, enable=True)).enabled
    return safety


class Stage:
    """What the tip does is `motion`; delays and losses of the network are its own."""

    def __init__(
        self,
        body="tip",
        version=(4, 1),
        limits=None,
        start=1000.0,
        skew=0.0,
        group="",
        stream=None,
        received_latency=None,
    ):
        self.now = start
        self.noise = np.random.default_rng(0)
        self.motion = lambda time: np.array([0.0, 0.0, 0.158])
        self.server = MotiveServer(
            self._tip, CALIBRATION, version=version, group=group, start=start
        )
        self.tracker = BodyTracker(limits or TrackingLimits(), RESTING)
        latency = RECEIVED_LATENCY if received_latency is None else received_latency
        self.session = NatNetSession(
            body, CALIBRATION, self.tracker, 8, stream=stream, received_latency=latency
        )
        self.poses = []
        self.safety = None
        self.posed = -math.inf
        self.sent = []
        self.delay = lambda: 2e-4
        self._skew, self._start = skew, start
        self._way = []

    def _tip(self, server_time):
        pose = np.eye(4)
        pose[:3, 3] = self.motion(self.local(server_time))
        pose[:3, 3] += 1e-5 * self.noise.standard_normal(3)
        return pose

    def local(self, server_time):
        """The server's clock runs fast by `skew`."""
        return self._start + (server_time - self._start) / (1.0 + self._skew)

    def run(self, duration):
        """Let time pass; returns the poses of it."""
        before = len(self.poses)
        for _ in range(round(duration / STEP)):
            self.now += STEP
            server_now = self._start + (self.now - self._start) * (1.0 + self._skew)
            for request in self.session.due(self.now):
                self.sent.append(request)
                if answer := self.server.answer(server_now, request, CLIENT):
                    self._way.append((self.now + self.delay(), answer))
            frames = self.server.frames(server_now)
            if self.server.clients(server_now):
                self._way += [(self.now + self.delay(), frame) for frame in frames]
            self._arrive()
            if self.safety is not None:
                self.safety.update(self.now, replace(HEALTHY, mocap_age=self.now - self.posed))
        return self.poses[before:]

    def _arrive(self):
        arrived = [item for item in self._way if item[0] <= self.now]
        self._way = [item for item in self._way if item[0] > self.now]
        for time, datagram in sorted(arrived, key=lambda item: item[0]):
            if pose := self.session.receive(time, datagram):
                self.poses.append(pose)
                self.posed = pose.time  # as the valves count it: from the exposure

    def started(self):
        """Poses flow and the valves are enabled."""
        assert self.run(1.0)
        self.safety = enabled_safety(self.now)
        return self

    @property
    def trouble(self):
        return self.session.trouble(self.now)


CHAIN = {
    "stop_input": {"terminal": 4, "channel": 1},
    "supply_24v_input": {"terminal": 5, "channel": 2},
    "dump_valve_output": {"terminal": 7, "channel": 3},
    "fill_time": 0.3,
}


def stopping_content(supply=1.05e5, arming_test=False):
    """As a file has it: two half bytes of inputs in one byte, and likewise two of outputs."""
    content = load_station("licher2025").model_dump(mode="json", exclude_defaults=True)
    content["terminals"] = [
        {"name": name}
        for name in ("EK1100", "EL3164", "EL4004", "EL1004", "EL1004", "EL2004", "EL2004")
    ]
    content["stop_chain"] = CHAIN
    content["flow"]["supply"] = supply
    content["arming_test"] = arming_test
    return content


def stopping_station(**changes):
    """The same, validated."""
    return Station.model_validate(stopping_content(**changes))
