"""The valve driver: bus, sensors, safety, setpoint and pressure loop in one fast cycle.

`tick` is one cycle and takes the time as an argument; `run` calls it at 1 kHz, in the process of
`ValveProcess`. Everything else hands over values under a lock and returns at once. Whatever fails
in a cycle ends in vented valves: by command while the bus lives, by the slaves' own watchdog when
it does not.
"""

import contextlib
import math
import threading
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from softcr_hardware.backoff import Backoff
from softcr_hardware.ethercat.arming_check import ArmingTest
from softcr_hardware.ethercat.bus import ValveBus
from softcr_hardware.ethercat.pressure_checks import PressureSensors, furthest_pressures
from softcr_hardware.ethercat.pressure_guard.guard import PressureGuard
from softcr_hardware.ethercat.pressure_loop import PressureLoop
from softcr_hardware.ethercat.process_data import ProcessData, Sample, zero_volts
from softcr_hardware.ethercat.regulator_check import RegulatorTest
from softcr_hardware.ethercat.regulators import RegulatorGuard, RegulatorLoop
from softcr_hardware.ethercat.supply import check_supply, highest_command
from softcr_hardware.ethercat.terminals import PressureRegulator, Station
from softcr_hardware.safety.commands import CommandJudge
from softcr_hardware.safety.safety import Action, Decision, Flags, Latch, Safety, Switch
from softcr_hardware.safety.setpoint import Setpoint
from softcr_hardware.safety.settings import SafetySettings
from softcr_models.errors import UserError
from softcr_models.robots.robot import PressureLimits
from softcr_runtime.blocks.command_packets import CommandPacket, PacketPlayer
from softcr_runtime.blocks.cycle_timer import CycleTimer, TickStatistics

_LONGEST_STEP = 0.02  # [s] a late cycle integrates no more
_CHECK_PERIOD = 0.1  # [s] between looks at the slaves' states
_INCOMPLETE_WARNS = 0.01  # share of incomplete exchanges
_LATE_WARNS = 0.1  # share of cycles before which others were missed
_SMOOTHING = 0.002  # of these shares, per cycle
_SLOW_RANGE = 1.0  # [s] slow samples are told for so long
_FIRST_PAUSE, _LONGEST_PAUSE = 0.2, 5.0  # [s] between attempts to reopen the bus
_KEPT_SAMPLES = 500  # for calibration
_LONGEST_JUMP = 1.0  # [s] a single cycle further ahead, or at all back, is not followed
_FARTHEST = 30.0  # [s] from the present, a moment of a message is none
_REACTION = 1.5  # from a command to its valves: computed in one cycle, sent in the next [cycles]


@dataclass(slots=True, eq=False)  # not frozen: one is made in every fast cycle
class ValveReport:
    """How the valves are, after a cycle.

    Attributes:
        time: of the cycle [s].
        measured: mean time of the samples that the pressures are of [s].
        pressures: (m,) mean of the samples believed last [Pa]; NaN before the first.
        sent: (m,) setpoint behind the limiter [Pa].
        volts: (m,) valve commands [V].
        decision: of safety.
        bus: what is wrong with it; empty for nothing.
        reconnects: times the bus was brought up again.
        gave_up: whether it is not tried any more.
    """

    time: float
    measured: float
    pressures: np.ndarray
    sent: np.ndarray
    volts: np.ndarray
    decision: Decision
    bus: str
    reconnects: int
    gave_up: bool


class ValveDriver:
    """Owns the bus from `open` to `close`; disarmed, hence vented, until `enable` succeeds.

    Attributes:
        report: of the last cycle.
        statistics: of the cycles of `run`.
        safety: the state machine; read it, do not update it.
        commands: what is wrong with them.
        guard: whether the pressures are to be believed; read it.
    """

    def __init__(
        self,
        station: Station,
        limits: PressureLimits,
        data: ProcessData,
        bus: ValveBus,
        safety: SafetySettings,
        command_period: float = 1 / 70,
        vent_rate: float = 2e5,
        closed_loop: bool = True,
        most_reconnects: int = 20,
        period: float = 0.001,
        averaged: int = 1,
        say: Callable[[str], None] = lambda line: None,
        held: str = "",
    ):
        """Touches nothing yet.

        Args:
            station, data, bus: the valves.
            limits: of the robot's pressures.
            safety: numbers of the state machine.
            command_period: of the slow commands [s].
            vent_rate: slope of a ramp to vent [Pa/s].
            closed_loop: whether measured pressures steer the valves.
            most_reconnects: attempts to reopen the bus before it is left alone.
            period: of the cycle [s].
            averaged: samples that the reported pressures are the mean of.
            say: told, once each, what a person should know.
            held: cause of a latch that was kept until a check has passed; empty for none.

        Raises:
            UserError: the station's supply is too high for these limits.
        """
        check_supply(station, limits.maximum)
        chambers = len(station.chambers)
        self.safety = Safety(safety, limits.maximum, held)
        self.statistics = TickStatistics(period)
        self._bus, self._data, self._say, self._period = bus, data, say, period
        self._sensors = PressureSensors(station, data, averaged)
        self._sample_age = station.sample_age
        self._loop: PressureLoop | RegulatorLoop
        guard = PressureGuard
        if isinstance(station.valve, PressureRegulator):
            guard = RegulatorGuard
            self._loop = RegulatorLoop(
                station.gains, station.flow, station.valve, chambers, limits.maximum
            )
        else:
            self._loop = PressureLoop(station.gains, station.flow, station.valve, chambers)
        self._loop.closed = closed_loop
        self.guard = guard(
            tuple(chamber.name for chamber in station.chambers),
            station.guard,
            self._loop.constants,
            limits.maximum,
            station.valve.when_dead,
            closed_loop,
            tuple(chamber.second_sensor is not None for chamber in station.chambers),
            station.supply.gauge is not None,
        )
        kind = ArmingTest if station.valve.type == "flow" else RegulatorTest
        self._test = kind(station) if station.arming_test else None
        self._setpoint = Setpoint(limits, chambers, command_period, vent_rate)
        self._reaction = _REACTION * period + station.valve.lag  # until pressures follow [s]
        self._no_pressures = np.full(chambers, math.nan)
        self.commands = CommandJudge(safety, limits, chambers, command_period)
        self._lock = threading.Lock()
        self._known = Flags()
        self._heard: dict[str, float] = {}
        self._pressed = self._vent = self._reset = self._checked = False
        self._enable: int | None = None  # the generation that it was asked for
        self._commanders = self._operators = ""
        self._changed = ""  # settings of terminals, while the bus was away
        self._bad: set[str] = set()  # sources of refused samples since the last cycle
        self._player = PacketPlayer(round(1e9 * command_period))
        self._reaches = -math.inf  # when the last command of the newest packet is due [s]
        self._played: np.ndarray | None = None  # (m,) the command that the setpoint was told last
        self._volts = self._acted = self._loop.vent_volts
        self._past_volts: deque[np.ndarray] = deque(maxlen=_KEPT_SAMPLES)
        self._stopped = self._unpowered = False
        self._fill_time = (
            station.stop_chain.fill_time if station.stop_chain.dump_valve_output else 0.0
        )
        self._filled = -math.inf  # when the manifold is full, with the air on
        self._bus_trouble = "the bus is not open"
        self._exchanged = self._looked = self._ticked = self._told_time = -math.inf
        self._slow_until = -math.inf
        self._incomplete = self._late = 0.0
        self._backoff = Backoff(_FIRST_PAUSE, _LONGEST_PAUSE, most_reconnects)
        self._reconnects = 0
        self.report = self._reported(-math.inf)

    # --- from other threads -------------------------------------------------------------------

    def hear(
        self,
        source: str,
        now: float,
        value: CommandPacket | bool | None = None,
        age: float = 0.0,
    ) -> None:
        """An accepted message: `command` [Pa], `operator` (pressed), `mocap`, `force_torque`.

        Args:
            source: one of these.
            now: when it was received, on the clock of `tick` [s].
            value: of the operator; of commands, a packet whose due times are on that clock [ns].
            age: of a packet by its stamp, when it was received [s].
        """
        with self._lock:
            if abs(now - self._ticked) > _FARTHEST and math.isfinite(self._ticked):
                return  # no clock of ours
            played = isinstance(value, CommandPacket) and self._plays(value, now, age)
            if source == "command" and not played:
                self._bad.add(source)
                return  # as if it had not come
            self._heard[source] = now
            if source == "operator":
                self._pressed = bool(value)

    def enable(self, generation: int | None = None) -> None:
        """Ask once, in the next cycle; `report.decision` says what became of it.

        Args:
            generation: of `report.decision` that the asker has seen, None for that of now: a latch
                or a reset in between, and it is refused and forgotten.
        """
        with self._lock:
            self._enable = self.safety.decision.generation if generation is None else generation

    def vent(self) -> None:
        """Vent now and disarm; any thread, any state, any number of times."""
        with self._lock:
            self._vent = True

    def reset(self, checked: bool = False) -> None:
        """Forget what is latched: a person has looked at it; any thread, any state.

        Args:
            checked: whether a daily check or a commissioning has passed since.
        """
        with self._lock:
            self._reset, self._checked = True, checked

    def offered_by(self, commanders: str, operators: str) -> None:
        """Nodes that offer commands and the operator's signal, in words, where they are several;
        empty for one or none."""
        with self._lock:
            self._commanders, self._operators = commanders, operators

    def use_safety(self, settings: SafetySettings) -> None:
        """Other numbers for the state machine and the commands; only while the valves are
        disarmed, in the thread of `tick`. Whoever counted on the old ones starts again.

        Raises:
            UserError: the valves are enabled.
        """
        if self.report.decision.enabled:
            raise UserError("safety settings: the valves are enabled, vent them first")
        self.safety.use(settings)
        self.commands.use(settings)

    def calibrate_zero(self) -> np.ndarray:
        """Take the sensors' present voltages as zero pressure; valves must be disarmed, and the
        operator's switch seen released, where one is required.

        Returns:
            (m,) new zeros [V].

        Raises:
            UserError: armed, or values that no calibration may hide (`zero_volts`).
        """
        decision = self.report.decision
        if decision.enabled:
            raise UserError("zero calibration: the valves are enabled, vent them first")
        if decision.testing:
            raise UserError("zero calibration: the arming test is under way, wait for its end")
        if decision.switch not in (Switch.RELEASED, Switch.NOT_REQUIRED):
            raise UserError(
                f"zero calibration: the deadman's switch is {decision.switch}, must be released"
            )
        with self._lock:
            samples = np.array(self._past_volts)
        self._data.zero = zero_volts(samples, self._data.nominal_zero)
        if self._test is not None:
            self._test.forget()
        return self._data.zero

    # --- the thread that owns the bus ---------------------------------------------------------

    def open(self) -> None:
        """Bring the bus up. Raises UserError in one line when it is not as the station says."""
        self._bus.open()
        self._bus_trouble = ""
        self._sensors.forget()
        self.guard.forget()

    def close(self) -> None:
        """Leave the valves safe."""
        self._bus.close()
        self._bus_trouble = "the bus is not open"

    def run(self, stop: threading.Event, between: Callable[[], None] = lambda: None) -> None:
        """Cycles until `stop`, then leaves the valves safe; nothing that fails ends it earlier.

        Args:
            stop: set by `between` or another thread.
            between: called after each cycle; where it fails, too, the valves are vented.
        """
        timer = CycleTimer(self._period)
        try:
            while not stop.is_set():
                skipped = timer.wait()
                self.statistics.skip(skipped)
                self._late += _SMOOTHING * ((skipped > 0) - self._late)
                begin = time.monotonic()
                try:
                    self.tick(begin)
                    between()
                except Exception as error:
                    self.vent()
                    self._volts = self._loop.vent_volts
                    self._lose(begin, f"{type(error).__name__}: {error}")
                self.statistics.add(time.monotonic() - begin)
        finally:
            self.close()

    def tick(self, now: float) -> ValveReport:
        """One cycle at `now` [s]: exchange, judge, decide, regulate for the next one."""
        told, now = now, self._steady(now)
        dt = min(max(now - self._ticked, 1e-6), _LONGEST_STEP)
        self._ticked = now
        self._exchange(now)
        with self._lock:
            flags = self._flags(now)
            command = self._player.at(round(1e9 * (now + self._reaction)))
            self._enable, self._vent, self._reset = None, False, False
            self._bad.clear()
            self._changed = ""
        enabled = self.safety.decision.enabled
        transitions = self.safety.transition_count
        decision = self.safety.update(told, flags)
        if command is not None and command is not self._played:
            self._setpoint.command(command)
            self._played = command
        self._setpoint.ceiling = highest_command(self.guard.supply)
        filling = self._let_air_on(now, decision)
        testing = None if filling else self._tested(now, decision)
        waits = filling and decision.enabled
        sent = self._setpoint.advance(Action.HOLD if waits else decision.action, dt)
        if (decision.enabled and not enabled) or waits:
            self._loop.reset(sent)
            self.guard.arm(sent)
        if decision.action == Action.VENT_NOW or waits:
            self._volts = self._loop.vent_volts if testing is None else testing
            self._loop.reset(sent)
        else:
            openings = self._loop.openings(sent, self._sensors.pressures, dt)
            self._volts = self.guard.volts(openings, dt)
        if self.safety.transition_count != transitions:
            self._say(self.safety.transitions[-1].words)
        self.report = self._reported(now)
        return self.report

    # --- inside -------------------------------------------------------------------------------

    def _plays(self, packet: CommandPacket, now: float, age: float) -> bool:
        """Whether a packet that came at `now` [s], so old [s], will be played."""
        if not self.commands.follows(now, packet.commands, age):
            return False
        if reason := self._player.hear(packet, round(1e9 * now)):
            self.commands.refuse(reason.partition(":")[0], now)
            return False
        self._reaches = 1e-9 * packet.due[-1]
        return True

    def _command_age(self, now: float) -> float:
        """Since the last command of the newest packet was due, or since it came [s]."""
        heard = self._heard.get("command", -math.inf)
        return now - heard if now < heard else max(now - max(heard, self._reaches), 0.0)

    def _tested(self, now: float, decision: Decision) -> np.ndarray | None:
        """(m,) commands of the arming test [V], while it is under way; its proof is void where the
        machine has failed, or anything that it rests on is new."""
        test = self._test
        if test is None:
            return None
        if decision.latch >= Latch.MACHINE or self._bus_trouble:
            test.forget()
        if not decision.testing:
            test.stop()
            return None
        fresh = self._sensors.age(now) <= 0.0
        return test.step(now, self._sensors.pressures if fresh else None)

    def _steady(self, now: float) -> float:
        """The time of a cycle: one that jumps for a single cycle is not followed, or whoever
        remembers it would wait for it to come."""
        before, self._told_time = self._told_time, now
        if math.isinf(self._ticked) or 0.0 <= now - before <= _LONGEST_JUMP:
            return now
        return self._ticked + self._period

    def _let_air_on(self, now: float, decision: Decision) -> bool:
        """The dump valve's current, where there is one; whether the manifold behind it still fills,
        while the chambers stay vented."""
        on = decision.testing or (decision.enabled and decision.action < Action.VENT_NOW)
        if on and not self._data.air_on:
            self._filled = now + self._fill_time
        self._data.air_on = on
        return on and now < self._filled

    def _exchange(self, now: float) -> None:
        if self._bus_trouble:
            self._reopen(now)
            return
        sample = self._bus.exchange(self._volts)
        self._incomplete += _SMOOTHING * ((sample is None) - self._incomplete)
        if sample is None:
            self._bad.add("bus")
        else:
            self._exchanged = now
            self._stopped, self._unpowered = sample.stopped, sample.unpowered
            if self._sensors.see(now, sample):
                self._bad.add("pressures")
            with self._lock:
                self._past_volts.append(sample.volts)
        self._watch(now, sample)
        if now - self._exchanged > self.safety.settings.exchange_vent:
            self._lose(now, "no slave answers, or not all: cable, power or a terminal")
            return
        if self._sensors.slow:
            self._slow_until = now + _SLOW_RANGE
        if abs(now - self._looked) >= _CHECK_PERIOD:
            self._looked = now
            if trouble := self._bus.check():
                self._lose(now, trouble)

    def _watch(self, now: float, sample: Sample | None) -> None:
        """Let the guard see an exchange; the volts of the one before have acted until now."""
        pressures = second = self._no_pressures
        gauge = math.nan
        if sample is not None:
            pressures, gauge = self._sensors.shown, sample.supply
            second = second if sample.second is None else sample.second
        self.guard.watch(now, self._acted, sample, pressures, second, self._loop.expected, gauge)
        self._acted = self._volts

    def _lose(self, now: float, trouble: str) -> None:
        if not self._bus_trouble:
            self._say(f"bus lost: {trouble}; the slaves' watchdog vents")
            self._backoff.lost(now)
        self._bus_trouble = trouble
        self._acted = self._loop.vent_volts
        self._data.air_on = False
        with contextlib.suppress(Exception):  # who still listens need not wait for the watchdog
            self._bus.exchange(self._loop.vent_volts)

    def _reopen(self, now: float) -> None:
        """Another attempt if it is time; safety knows that the bus is down and has disarmed."""
        if not self._backoff.due(now):
            return
        try:
            self._bus.open()
        except UserError as error:
            self._bus_trouble = str(error)
            if self._backoff.given_up:
                self._say(f"bus lost: gave up after {self._backoff.attempts} attempts: {error}")
            return
        self._reconnects += 1
        self._bus_trouble = ""
        self._changed = "; ".join(getattr(self._bus, "mended", ()))  # a real one tells
        self._sensors.forget()
        self.guard.forget()
        self._exchanged = self._looked = now
        self._say("bus operational again; an operator must reset and enable the valves")

    def _flags(self, now: float) -> Flags:
        """What is known now; the same object in every cycle, for safety remembers none."""
        flags, sensors, ages = self._known, self._sensors, self._heard.get
        impaired = []
        if self._late > _LATE_WARNS:
            impaired.append("fast cycle")
        if self._incomplete > _INCOMPLETE_WARNS:
            impaired.append("bus")
        if now < self._slow_until:
            impaired.append("pressure samples")
        impaired += self.commands.impaired(now)
        operational = not self._bus_trouble
        speaks = self.safety.decision.enabled or self.guard.counts_disarmed
        flags.operator_pressed = self._pressed
        flags.operator_age = now - ages("operator", -math.inf)
        flags.command_age = self._command_age(now)
        flags.mocap_age = now - ages("mocap", -math.inf)
        flags.force_torque_age = now - ages("force_torque", -math.inf)
        flags.exchange_age = now - self._exchanged
        flags.slaves_operational = operational
        flags.watchdog_armed = operational and self._bus.watchdog_armed
        flags.pressure_age = sensors.age(now)
        flags.highest_pressure, flags.pressure_error = furthest_pressures(
            sensors.pressures, self._setpoint.pressures
        )
        flags.pressure_fault = self.guard.fault if speaks else ""
        flags.commanders, flags.operators = self._commanders, self._operators
        flags.stopped, flags.unpowered = self._stopped, self._unpowered
        flags.impaired = tuple(impaired)
        flags.bad = tuple(sorted(self._bad)) if self._bad else ()
        flags.changed = self._changed
        flags.untested = self._test is not None and not self._test.passed
        flags.test_failed = self._test.failure if self._test is not None else ""
        flags.reset, flags.checked, flags.vent = self._reset, self._checked, self._vent
        flags.enable, flags.generation = self._enable is not None, self._enable
        return flags

    def _reported(self, now: float) -> ValveReport:
        read, pressures = self._sensors.mean()
        return ValveReport(
            now,
            read - self._sample_age,
            pressures,
            self._setpoint.pressures,
            self._volts,
            self.safety.decision,
            self._bus_trouble,
            self._reconnects,
            self._backoff.given_up and bool(self._bus_trouble),
        )
