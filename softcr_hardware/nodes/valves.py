"""The valves as a node: commands in, pressures and safety out; the 1 kHz cycle has its own process.

Configuring brings the bus up and proves its watchdog; from there to cleanup the fast cycle runs and
the valves are vented unless enabled. Activating lets messages in, `~/enable` (Trigger) closes the
handshake, deactivating vents. `~/vent` (Trigger) works in every state. The operator's signal is a
sensor_msgs/Joy on safety/operator: button 0 is the deadman's switch.
"""

import math
import sys
import threading
import time
from typing import Any

import numpy as np
from pydantic import Field
from std_srvs.srv import Trigger

from softcr_hardware.ethercat.driver import ValveReport
from softcr_hardware.ethercat.terminals import load_station
from softcr_hardware.ethercat.valve_process import ValveProcess, ValveTask
from softcr_hardware.safety import Action
from softcr_hardware.safety_settings import SafetySettings
from softcr_models.errors import UserError
from softcr_runtime.clocks import on_monotonic_clock, on_system_clock
from softcr_runtime.cycle_timer import CycleTimer
from softcr_runtime.diagnostics import (
    ERROR,
    OK,
    WARN,
    DiagnosticReport,
    diagnostics_to_message,
)
from softcr_runtime.messages import (
    MessageError,
    pose_from_message,
    pressures_from_message,
    pressures_to_message,
    wrench_from_message,
)
from softcr_runtime.node import LoopNode
from softcr_runtime.process import run
from softcr_runtime.settings import NodeSettings
from softcr_runtime.topics import TOPICS, qos

_FAST_RATE = 1000.0  # [Hz] of the fast cycle
_ANSWER_TIME = 0.5  # [s] a service waits for the fast cycle
_LEVELS = {Action.NONE: OK, Action.WARN: WARN, Action.PREDICT_ONLY: WARN, Action.HOLD: WARN}


class ValvesSettings(NodeSettings):
    """Where the valves are, how they are driven, and when they are vented."""

    rate_hz: float = Field(
        200.0, ge=1.0, le=1000.0, description="of published pressures",
        json_schema_extra={"unit": "Hz"},
    )  # fmt: skip
    interface: str = Field("eth1", min_length=1, description="network interface of the terminals")
    station: str = Field(
        "licher2025", min_length=1, description="a station of config/ethercat, or a YAML file"
    )
    closed_loop: bool = Field(True, description="whether measured pressures steer the valves")
    command_rate_hz: float = Field(
        70.0, ge=1.0, le=1000.0, description="of commands, between which the setpoint is ramped",
        json_schema_extra={"unit": "Hz"},
    )  # fmt: skip
    command_age: float = Field(
        0.0,
        ge=0.0,
        le=0.1,
        description="of a command when the pressures begin to follow it, counted from the stamp it "
        "answers; 0: at once, whenever it comes. As the controller's",
        json_schema_extra={"unit": "s"},
    )
    vent_rate: float = Field(
        2e5, gt=0.0, le=1e7, description="slope of a ramp to vent",
        json_schema_extra={"unit": "Pa/s"},
    )  # fmt: skip
    most_reconnects: int = Field(
        20, ge=0, le=1000, description="attempts to bring a lost bus up again"
    )
    safety: SafetySettings = SafetySettings()


class Valves(LoopNode):
    """Drives proportional valves and reads pressures over EtherCAT, vented unless enabled."""

    default_name = "valves"
    Settings = ValvesSettings
    settings: ValvesSettings
    _driver: ValveProcess | None = None

    def __init__(self, **node_options: Any):
        """See LoopNode; the services exist in every state."""
        super().__init__(**node_options)
        self._told: tuple[Any, ...] = ()
        # not a lifecycle publisher: what safety says is told in every state
        self._safety_state = self.create_publisher(
            TOPICS["safety/state"].message_class(), "safety/state", qos("safety/state")
        )
        self.create_service(Trigger, "~/vent", self._serve_vent)
        self.create_service(Trigger, "~/enable", self._serve_enable)
        self.create_service(Trigger, "~/reset", self._serve_reset)
        self.create_service(Trigger, "~/calibrate_zero", self._serve_calibrate_zero)

    def on_configure_node(self) -> None:
        settings = self.settings
        if settings.lockstep:
            raise UserError("parameter mode = 'lockstep': real valves keep to the wall clock")
        station = load_station(settings.station, self.robot.chamber_names)
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
            ),
            say=self.get_logger().warning,
        )
        driver.open()
        self._driver = driver
        self._pressure_state = self.advertise("pressure/state")
        self._pressure_sent = self.advertise("pressure/sent")
        self.receive("pressure/command", self._decoded_command)
        self.receive("mocap/tip/pose", lambda message: pose_from_message(message, "mocap/tip/pose"))
        self.receive(
            "force_torque/wrench",
            lambda message: wrench_from_message(message, "force_torque/wrench"),
        )
        self.receive("safety/operator", _pressed)
        self._tell_safety(self._driver.report)

    def loop(self, stop: threading.Event) -> None:
        driver, timer, told = self._driver, CycleTimer(self.settings.period), 0.0
        while driver is not None and not stop.is_set():
            self.statistics.skip(timer.wait())
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

    def on_cleanup_node(self) -> None:
        driver, self._driver = self._driver, None
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
            "sent_pa": report.sent.round(1).tolist(),
            "valve_volts": report.volts.round(3).tolist(),
            "fast_cycle": counts.cycle,
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

    def _decoded_command(self, message: Any) -> np.ndarray:
        return pressures_from_message(message, self.robot.chamber_names, "pressure/command")

    def _hand_over_messages(self, driver: ValveProcess) -> None:
        sources = {
            "pressure/command": "command",
            "safety/operator": "operator",
            "mocap/tip/pose": "mocap",
            "force_torque/wrench": "force_torque",
        }
        for letter in self.inbox.arrived():
            heard = letter.received
            stamped = on_monotonic_clock(letter.stamp, oldest=math.inf)
            if letter.topic == "mocap/tip/pose":
                # a delayed pose is as old as its exposure, whenever it comes
                heard = stamped
            due = stamped + (self.settings.command_age or -math.inf)
            driver.hear(sources[letter.topic], heard, letter.value, heard - stamped, due)

    def _tell_safety(self, report: ValveReport) -> None:
        """Publish what safety says, when it says something new."""
        decision = report.decision
        saying = (decision, report.bus)
        if saying == self._told:
            return
        self._told = saying
        level = _LEVELS.get(decision.action, ERROR)
        status = DiagnosticReport(
            name=f"{self.get_name()}: safety",
            level=level,
            message=f"{decision.action.words}: {decision.reason}",
            hardware_id=self.robot.name,
            values={
                "action": decision.action.words,
                "enabled": decision.enabled,
                "reason": decision.reason,
                "blockers": list(decision.blockers),
                "bus": report.bus or "operational",
            },
        )
        self._safety_state.publish(diagnostics_to_message([status], self.now()).status[0])

    # --- services ---------------------------------------------------------------------------

    def _serve_vent(self, _: Any, response: Any) -> Any:
        """Vents and disarms, in every state and any number of times."""
        if self._driver is None:
            response.success = True
            response.message = "no bus is open: the terminals themselves keep the exhausts open"
            return response
        response.success = _vent(self._driver)
        response.message = "vented" if response.success else "asked for; the fast cycle is late"
        return response

    def _serve_enable(self, _: Any, response: Any) -> Any:
        """Asks for the safety handshake; the answer says what is missing."""
        if not self.active or self._driver is None:
            response.message = "activate the node first"
            return response
        self._driver.enable()
        _wait(self._driver, True, 0.1)
        decision = self._driver.report.decision
        response.success = decision.enabled
        response.message = "enabled" if decision.enabled else ", ".join(decision.blockers)
        return response

    def _serve_reset(self, _: Any, response: Any) -> Any:
        """Forgets a pressure fault that vented the valves; a person has looked at it."""
        if self._driver is None:
            response.message = "configure the node first"
            return response
        self._driver.reset()
        response.success = True
        response.message = "reset; the handshake begins anew"
        return response

    def _serve_calibrate_zero(self, _: Any, response: Any) -> Any:
        """Takes the vented chambers' voltages as zero; the answer is for the station file."""
        try:
            if self._driver is None:
                raise UserError("zero calibration: configure the node first")
            zero = self._driver.calibrate_zero()
            response.success = True
            response.message = f"zero [V]: {zero.round(4).tolist()}; for the station file"
        except UserError as error:
            response.message = str(error)
        return response


def _vent(driver: ValveProcess) -> bool:
    """Vent and disarm; returns whether it is done. A cycle that reopens the bus may take seconds,
    but then the valves have been disarmed before."""
    driver.vent()
    return not driver.report.decision.enabled or _wait(driver, False, _ANSWER_TIME)


def _wait(driver: ValveProcess, enabled: bool, most: float) -> bool:
    """Whether the fast cycle reports within `most` [s] that the valves are, or are not, enabled."""
    asked = time.monotonic()
    while time.monotonic() < asked + most:
        report = driver.report
        if report.time > asked and report.decision.enabled == enabled:
            return True
        time.sleep(0.002)
    return False


def _pressed(message: Any) -> bool:
    """Whether button 0, the deadman's switch, is held."""
    if not message.buttons:
        raise MessageError("safety/operator", "buttons are missing; button 0 is the deadman's")
    return bool(message.buttons[0] == 1)


def main() -> int:
    """Entry point of `ros2 run softcr valves`."""
    return run(Valves)


if __name__ == "__main__":
    sys.exit(main())
