"""The valves as a node: commands in, pressures and safety out; the 1 kHz cycle has its own process.

Configuring brings the bus up and proves its watchdog; from there to cleanup the fast cycle runs and
the valves are vented unless enabled. Activating lets messages in, `~/enable` (Trigger) closes the
handshake, deactivating vents. `~/vent` (Trigger) works in every state. What a vent has latched,
`~/reset` (Trigger) forgets, and nothing else does. The operator's signal is a sensor_msgs/Joy on
safety/operator: button 0 is the deadman's switch, button 1 vents. A reset and a calibration need
the switch released. Arming needs it released and pressed again since the last vent, reset or change
of the safety settings.

One node commands, and one node gives the operator's signal. A message does not say who sent it, so
when a second node publishes either of them, the valves vent, and no command is followed. Where
controllers are exchanged, `~/hand_over` (SetParametersAtomically) names those that may publish
beside each other.
"""

import math
import threading
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from pydantic import Field
from rcl_interfaces.srv import SetParametersAtomically
from std_srvs.srv import Trigger

from softcr_hardware.ethercat.driver import ValveReport
from softcr_hardware.ethercat.station_state import StationState
from softcr_hardware.ethercat.terminals import load_station
from softcr_hardware.ethercat.valve_process import ValveProcess, ValveTask
from softcr_hardware.nodes.commander import Commander
from softcr_hardware.safety.safety import Action, Decision, Latch, Switch
from softcr_hardware.safety.settings import SafetySettings
from softcr_models.errors import UserError
from softcr_runtime.blocks.command_packets import CommandPacket
from softcr_runtime.blocks.cycle_timer import CycleTimer
from softcr_runtime.ros.clocks import on_monotonic_clock, on_system_clock
from softcr_runtime.ros.node import LoopNode
from softcr_runtime.ros.process import leave, run
from softcr_runtime.settings.node_settings import NodeSettings
from softcr_runtime.wire.diagnostics import (
    ERROR,
    OK,
    WARN,
    DiagnosticReport,
    diagnostics_to_message,
)
from softcr_runtime.wire.messages import (
    MessageError,
    plan_from_message,
    pose_from_message,
    pressures_from_message,
    pressures_to_message,
    wrench_from_message,
)
from softcr_runtime.wire.safety_state import SafetyState
from softcr_runtime.wire.topics import TOPICS, qos

_FAST_RATE = 1000.0  # [Hz] of the fast cycle
_ANSWER_TIME = 0.5  # [s] a service waits for the fast cycle
_MOST_NAMES = 20  # of those whose commands were ignored
_COUNTS_PERIOD = 0.1  # [s] between two words on how far a handshake is
_LEVELS = {Action.NONE: OK, Action.WARN: WARN, Action.PREDICT_ONLY: WARN, Action.HOLD: WARN}


class ValvesSettings(NodeSettings):
    """Where the valves are, how they are driven, and when they are vented."""

    rate_hz: float = Field(
        200.0, ge=1.0, le=1000.0, description="rate of the published pressures",
        json_schema_extra={"unit": "Hz"},
    )  # fmt: skip
    interface: str = Field("eth1", min_length=1, description="network interface of the terminals")
    station: str = Field(
        "licher2025",
        min_length=1,
        description="a station of config/ethercat, or a YAML file",
        json_schema_extra={"folder": "ethercat"},
    )
    closed_loop: bool = Field(
        True, description="whether measured pressures are fed back to the valves"
    )
    command_rate_hz: float = Field(
        70.0, ge=1.0, le=1000.0, description="period of the commands, between which the setpoint "
        "is ramped",
        json_schema_extra={"unit": "Hz"},
    )  # fmt: skip
    vent_rate: float = Field(
        2e5, gt=0.0, le=1e7, description="slope of a ramp to vent",
        json_schema_extra={"unit": "Pa/s"},
    )  # fmt: skip
    most_reconnects: int = Field(
        20, ge=0, le=1000, description="number of attempts to reconnect a lost bus"
    )
    state_directory: str = Field(
        "",
        description="directory in which held latches and calibrated zeros are kept; empty: "
        "$ROS_HOME/softcr, or ~/.ros/softcr",
    )
    safety: SafetySettings = SafetySettings()


class Operator(NamedTuple):
    """What an operator's signal says: whether the deadman's switch is held, and whether to vent."""

    pressed: bool
    vents: bool


class Valves(LoopNode):
    """Drives proportional valves and reads pressures over EtherCAT, vented unless enabled."""

    default_name = "valves"
    Settings = ValvesSettings
    settings: ValvesSettings
    _driver: ValveProcess | None = None

    def __init__(self, **node_options: Any):
        """See LoopNode; the services exist in every state."""
        super().__init__(**node_options)
        self._told: SafetyState | None = None
        self._seen: tuple[Decision, str, str] | None = None  # what it was made of: and owner, bus
        self._commander: Commander | None = None
        self._operators: Commander | None = None
        self._ignored: Counter[str] = Counter()  # commands of a node that was not claimed
        self._held = ""  # cause of the latch that is kept
        self._told_at = -math.inf  # when safety/state was published [s]
        # not a lifecycle publisher: what safety says is told in every state
        self._safety_state = self.create_publisher(
            TOPICS["safety/state"].message_class(), "safety/state", qos("safety/state")
        )
        self.create_service(Trigger, "~/vent", self._serve_vent)
        self.create_service(Trigger, "~/enable", self._serve_enable)
        self.create_service(Trigger, "~/reset", self._serve_reset)
        self.create_service(Trigger, "~/calibrate_zero", self._serve_calibrate_zero)
        self.create_service(SetParametersAtomically, "~/hand_over", self._serve_hand_over)

    def on_configure_node(self) -> None:
        settings = self.settings
        if settings.lockstep:
            raise UserError("parameter mode = 'lockstep': real valves keep to the wall clock")
        station = load_station(settings.station, self.robot.chamber_names)
        self._kept = StationState(settings.station, settings.state_directory)
        self._nominal_zero = np.array([each.sensor.zero for each in station.chambers])
        zero, line = self._kept.zero(self._nominal_zero)
        if line:
            self.get_logger().info(line)
        self._held = self._kept.held()
        options = {
            "command_period": 1.0 / settings.command_rate_hz,
            "vent_rate": settings.vent_rate,
            "closed_loop": settings.closed_loop,
            "most_reconnects": settings.most_reconnects,
            "averaged": max(round(_FAST_RATE / settings.rate_hz), 1),
        }
        driver = ValveProcess(
            ValveTask(
                station,
                self.robot.pressure_limits,
                settings.interface,
                settings.safety,
                options,
                settings.realtime_priority,
                self._held,
                zero,
            ),
            say=self.get_logger().warning,
        )
        driver.open()
        self._driver = driver
        self._pressure_state = self.advertise("pressure/state")
        self._pressure_sent = self.advertise("pressure/sent")
        self._commander = Commander(
            self,
            [
                self.receive("pressure/plan", self._decoded_plan),
                self.receive("pressure/command", self._decoded_command),
            ],
        )
        self.receive("mocap/tip/pose", lambda message: pose_from_message(message, "mocap/tip/pose"))
        self.receive(
            "force_torque/wrench",
            lambda message: wrench_from_message(message, "force_torque/wrench"),
        )
        self._operators = Commander(self, [self.receive("safety/operator", _operator)])
        self._tell_safety(self._driver.report)

    def loop(self, stop: threading.Event) -> None:
        driver, timer, told = self._driver, CycleTimer(self.settings.period), 0.0
        while driver is not None and not stop.is_set():
            self.statistics.skip(timer.wait())
            self.notice_time()
            begin = time.monotonic()
            self._hand_over_messages(driver)
            report = driver.report
            # the same samples are not told twice: their stamp would be old, or newer by rounding
            if report.measured > told and np.all(np.isfinite(report.pressures)):
                told = report.measured
                stamp, chambers = on_system_clock(report.measured), self.robot.chamber_names
                self._pressure_state.publish(
                    pressures_to_message(report.pressures, chambers, stamp)
                )
                sent = pressures_to_message(report.sent, chambers, on_system_clock(report.time))
                self._pressure_sent.publish(sent)
            self._tell_safety(driver.report)
            self.statistics.add(time.monotonic() - begin)

    def on_deactivate_node(self) -> None:
        if self._driver is not None:
            _vent(self._driver)
            self._tell_safety(self._driver.report)

    def accept_settings(self, candidate: NodeSettings) -> None:
        assert isinstance(candidate, ValvesSettings)
        if self._driver is not None and candidate.safety != self.settings.safety:
            try:
                self._driver.use_safety(candidate.safety)
            except UserError as error:
                name = self.get_fully_qualified_name().lstrip("/")
                raise UserError(f"{error}: softcr call {name}/vent") from None

    def named_files(self) -> list[tuple[str, str, Path]]:
        kept = self._kept.zero_file
        zero = [("state_directory", self.settings.state_directory, kept)] * kept.is_file()
        return [*super().named_files(), *zero]

    def on_time_jump(self, seconds: float) -> str:
        """Ages of poses, commands and of the operator's switch are told by stamps of the clock that
        was set: for a moment nobody knows them, and estimator and controller begin anew."""
        driver = self._driver
        if driver is None or not driver.report.decision.enabled:
            return "the valves were not enabled"
        driver.vent()
        return "vented, for ages of messages are not known"

    def configured_with(self) -> str:
        settings = self.settings
        who = "required" if settings.safety.require_operator else "not required"
        return (
            f"station {settings.station} on {settings.interface} for {settings.robot}, the bus is "
            f"up; a deadman's switch is {who}; kept state in {self._kept.zero_file.parent}"
        )

    def on_cleanup_node(self) -> None:
        driver, self._driver = self._driver, None
        self._commander = self._operators = None
        if driver is not None:
            driver.close()

    def diagnostic_values(self) -> dict[str, Any]:
        if self._driver is None:
            return {}
        report, counts = self._driver.report, self._driver.counts
        return {
            "safety": report.decision.action.words,
            "safety_reason": report.decision.reason,
            "enabled": report.decision.enabled,
            "blockers": list(report.decision.blockers),
            "bus": report.bus or "operational",
            "reconnects": report.reconnects,
            "commands_refused": counts.refused,
            "commands_ignored": dict(self._ignored),
            "not_permitted": list(counts.not_permitted),
            "sent_pa": report.sent.round(1).tolist(),
            "valve_volts": report.volts.round(3).tolist(),
            "fast_cycle": counts.cycle,
            "pressure_guard": counts.guard,
            "transitions": [
                {"time": round(change.time, 3), "what": change.words}
                for change in counts.transitions
            ],
        }

    def diagnostic_warnings(self) -> list[str]:
        if self._driver is None:
            return []
        report = self._driver.report
        warnings = [f"bus: {report.bus}"] if report.bus else []
        if report.decision.action != Action.NONE:
            warnings.append(f"{report.decision.action.words}: {report.decision.reason}")
        return warnings

    # --- messages ---------------------------------------------------------------------------

    def _decoded_plan(self, message: Any) -> CommandPacket:
        return plan_from_message(message, self.robot.chamber_names, "pressure/plan")

    def _decoded_command(self, message: Any) -> np.ndarray:
        return pressures_from_message(message, self.robot.chamber_names, "pressure/command")

    def _hand_over_messages(self, driver: ValveProcess) -> None:
        sources = {
            "pressure/plan": "command",
            "pressure/command": "command",
            "safety/operator": "operator",
            "mocap/tip/pose": "mocap",
            "force_torque/wrench": "force_torque",
        }
        letters = self.inbox.arrived()
        # publishers are counted after the inbox was read: so each message has a known publisher
        several = self._several(driver)
        for letter in letters:
            heard, value = letter.received, letter.value
            stamped = on_monotonic_clock(letter.stamp, oldest=math.inf)
            if letter.topic == "mocap/tip/pose":
                # a delayed pose is as old as its exposure, whenever it comes
                heard = stamped
            elif letter.topic == "safety/operator":
                # and a switch was held when that was said
                heard, value = min(heard, stamped), value.pressed
                if letter.value.vents:
                    self.get_logger().info(
                        "the operator's button requests a vent", throttle_duration_sec=1.0
                    )
                    driver.vent()
            elif several and sources[letter.topic] == "command":
                known = several in self._ignored or len(self._ignored) < _MOST_NAMES
                self._ignored[several if known else "others"] += 1
                continue
            elif letter.topic == "pressure/plan":
                shift = round(1e9 * stamped) - letter.stamp
                value = CommandPacket(tuple(due + shift for due in value.due), value.commands)
            elif letter.topic == "pressure/command":
                value = CommandPacket.single(round(1e9 * heard), value)
            driver.hear(sources[letter.topic], heard, value, heard - stamped)

    def _several(self, driver: ValveProcess) -> str:
        """Who commands, where nobody can know whose a command is: then none is followed. The
        driver is told that, and who else gives the operator's signal."""
        commander, operators = self._commander, self._operators
        if commander is None or operators is None:
            return ""
        now, enabled = time.monotonic(), driver.report.decision.enabled
        found = [each for each in (commander, operators) if each.look(now, enabled)]
        if found:
            driver.offered_by(commander.several, operators.several)
        if commander in found and commander.several:
            self.get_logger().warning(f"commands of {commander.several}; none is followed")
        if operators in found and operators.several:
            self.get_logger().warning(f"operator's signal of {operators.several}; end all but one")
        return commander.several

    def _tell_safety(self, report: ValveReport) -> None:
        """Publish what safety says, when it says something new."""
        decision = report.decision
        owner, bus = self._commander.owner if self._commander else "", report.bus or "operational"
        if (decision, owner, bus) == self._seen:  # nearly always: nothing is made anew for it
            return
        self._keep_latch(report)
        state = SafetyState(
            action=decision.action.words,
            enabled=decision.enabled,
            reason=decision.reason,
            latch=decision.latch.letter,
            cause=decision.cause,
            generation=decision.generation,
            blockers=decision.blockers,
            counts={name: (count, needed) for name, count, needed in decision.counts},
            testing=decision.testing,
            switch=decision.switch,
            owner=owner,
            bus=bus,
        )
        if self._only_counts(state):
            return
        self._seen = decision, owner, bus
        if state == self._told:
            return
        self._log_safety(self._told, state)
        self._told, self._told_at = state, time.monotonic()
        level = _LEVELS.get(decision.action, ERROR)
        status = DiagnosticReport(
            name=f"{self.qualified(self.get_name())}: safety",
            level=level,
            message=f"{decision.action.words}: {decision.reason}",
            hardware_id=self.qualified(self.robot.name),
            values=state.values(),
        )
        self._safety_state.publish(diagnostics_to_message([status], self.now()).status[0])

    def _log_safety(self, before: SafetyState | None, now: SafetyState) -> None:
        """The story of arming and venting, in the log."""
        log = self.get_logger()
        if now.enabled and not (before and before.enabled):
            switch = "held" if self.settings.safety.require_operator else "not required"
            commander = now.owner or "nobody yet"
            log.info(f"armed: the deadman's switch is {switch}, commands are of {commander}")
        elif before and before.enabled and not now.enabled:
            latched = f"; {now.latched}" if now.latched else ""
            log.warning(f"vented: {now.reason}{latched}")
        elif before and before.latch and not now.latch:
            log.info("reset: nothing is latched any more")
        elif before and now.testing and not before.testing:
            log.info("the arming test begins")
        elif before and now.enabled and now.action != before.action:
            log.info(f"{now.action}: {now.reason}", throttle_duration_sec=1.0)

    def _only_counts(self, state: SafetyState) -> bool:
        """Whether counts alone have changed, which is told ten times a second."""
        told = self._told
        if told is None or told.model_copy(update={"counts": state.counts}) != state:
            return False
        return time.monotonic() - self._told_at < _COUNTS_PERIOD

    def _keep_latch(self, report: ValveReport) -> None:
        """A held latch outlives this process and the machine's being switched off."""
        cause = report.decision.cause if report.decision.latch is Latch.HELD else ""
        if cause == self._held or not cause:
            self._held = cause
            return
        self._held = cause
        try:
            self._kept.hold(cause)
        except UserError as error:
            self.get_logger().error(f"the latch is not kept: {error}")

    # --- services ---------------------------------------------------------------------------

    def _serve_vent(self, _: Any, response: Any) -> Any:
        """Vents and disarms, in every state and any number of times."""
        if self._driver is None:
            response.success = True
            response.message = "no bus is open: the terminals themselves keep the exhausts open"
            return response
        self.get_logger().info("the service vent requests a vent")
        response.success = _vent(self._driver)
        response.message = "vented" if response.success else "asked for; the fast cycle is late"
        return response

    def _serve_enable(self, _: Any, response: Any) -> Any:
        """Requests the safety handshake once. The answer says what is missing, or that the arming
        test has begun; after the test, the service must be called again."""
        if not self.active or self._driver is None:
            response.message = "activate the node first"
            return response
        self._driver.enable()
        _wait(self._driver, lambda now: now.enabled, 0.1)
        decision = self._driver.report.decision
        response.success = decision.enabled
        response.message = "enabled" if decision.enabled else ", ".join(decision.blockers)
        return response

    def _serve_reset(self, _: Any, response: Any) -> Any:
        """Clears the latch of a vent, once a person has looked for its cause and has let go of the
        deadman's switch; the handshake starts again. A latch that is held until a check has passed
        stays until then."""
        if self._driver is None:
            response.message = "configure the node first"
            return response
        decision = self._driver.report.decision
        if decision.enabled:
            response.message = "the valves are enabled: there is nothing to reset"
            return response
        held = decision.latch is Latch.HELD
        if held and self._kept.held():
            response.message = (
                f"{decision.cause}: a check must pass first (softcr commission), which removes "
                f"{self._kept.latch_file}"
            )
            return response
        self._driver.reset(checked=held)
        driver, before = self._driver, decision.generation
        response.success = _wait(driver, lambda now: now.generation != before, _ANSWER_TIME)
        switch = driver.report.decision.switch
        if response.success:
            response.message = "reset; the handshake starts again"
        elif switch in (Switch.RELEASED, Switch.NOT_REQUIRED):
            response.message = "asked for; the fast cycle is late"
        else:
            response.message = f"not reset: the deadman's switch is {switch}, let go of it first"
        return response

    def _serve_hand_over(self, request: Any, response: Any) -> Any:
        """Allows the nodes in its parameter `commanders` (full names, the commanding one first) to
        publish commands at the same time; with an empty list only one."""
        result = response.result
        given = {each.name: each.value.string_array_value for each in request.parameters}
        if self._commander is None:
            result.reason = "configure the node first"
        elif set(given) - {"commanders"}:
            result.reason = "must have one parameter: commanders, a list of full names of nodes"
        elif not given:  # somebody asks whether anybody is there
            result.successful = True
        else:
            self._commander.permit(given["commanders"])
            shown = " and ".join(given["commanders"]) or "one node alone"
            self.get_logger().info(f"commands may be those of {shown}")
            result.successful = True
        return response

    def _serve_calibrate_zero(self, _: Any, response: Any) -> Any:
        """Takes the vented chambers' voltages as zero, from now on and after a restart."""
        try:
            if self._driver is None:
                raise UserError("zero calibration: configure the node first")
            zero = self._driver.calibrate_zero()
            self._kept.keep_zero(zero, self._nominal_zero)
            self.tell_configuration()
            response.success = True
            kept = f"kept in {self._kept.zero_file}"
            response.message = f"zero [V]: {zero.round(4).tolist()}; {kept}"
        except UserError as error:
            response.message = str(error)
        return response


def _vent(driver: ValveProcess) -> bool:
    """Vent and disarm; returns whether it is done. A cycle that reopens the bus may take seconds,
    but then the valves have been disarmed before."""
    driver.vent()
    return not driver.report.decision.enabled or _wait(
        driver, lambda now: not now.enabled, _ANSWER_TIME
    )


def _wait(driver: ValveProcess, condition: Callable[[Decision], bool], most: float) -> bool:
    """Whether the fast cycle reports within `most` [s] a decision for which a condition holds."""
    asked = time.monotonic()
    while time.monotonic() < asked + most:
        report = driver.report
        if report.time > asked and condition(report.decision):
            return True
        time.sleep(0.002)
    return False


def _operator(message: Any) -> Operator:
    """Buttons 0, the deadman's switch, and 1, which vents; it may be absent."""
    if not message.buttons:
        raise MessageError("safety/operator", "buttons are missing; button 0 is the deadman's")
    return Operator(message.buttons[0] == 1, any(button == 1 for button in message.buttons[1:2]))


def main() -> int:
    """Entry point of `softcr run valves`."""
    return run(Valves)


if __name__ == "__main__":
    leave(main())
