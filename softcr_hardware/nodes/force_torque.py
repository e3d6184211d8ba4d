"""The force-torque sensor as a node: the Net F/T's stream in, the wrench below the base out.

Configuring opens the stream and asks the box for its settings, activating lets the newest wrench
out at `rate_hz` and compares half a second of it with the resting rod. `~/bias` (Trigger) makes the
sensor read of the resting rod what the model says, or zero, and keeps that in the file that
`mounting` names by its path; it is refused unless the valves' node says that the chambers are
vented.
"""

import threading
import time
from pathlib import Path
from typing import Any

import numpy as np
from pydantic import Field
from std_srvs.srv import Trigger

from softcr_hardware.force_torque.box import BoxSettings, BoxWatch, ask_box
from softcr_hardware.force_torque.client import HTTP_PORT, RDT_PORT, NetFtClient
from softcr_hardware.force_torque.driver import ForceTorqueDriver
from softcr_hardware.force_torque.mounting import BiasTo, load_mounting, save_mounting
from softcr_hardware.force_torque.readings import SENSOR_RATE, WrenchLimits
from softcr_hardware.nodes.vented import VentedWitness, WithoutValves
from softcr_models.errors import UserError
from softcr_models.rod.cosserat_rod import CosseratRod
from softcr_runtime.blocks.cycle_timer import CycleTimer
from softcr_runtime.ros.clocks import on_system_clock
from softcr_runtime.ros.node import LoopNode
from softcr_runtime.ros.process import leave, run
from softcr_runtime.settings.node_settings import LIVE, NodeSettings
from softcr_runtime.wire.messages import wrench_to_message

_SLOW = 0.85  # of the box's rate
_LATE = 0.01  # [s]


class ForceTorqueSettings(NodeSettings):
    """Where the box is, what is published of it, and what is believed."""

    rate_hz: float = Field(
        200.0,
        ge=1.0,
        le=1000.0,
        description="rate of the published wrenches",
        json_schema_extra={"unit": "Hz", **LIVE},
    )
    host: str = Field("192.168.1.1", min_length=1, description="IP address of the Net F/T box")
    rdt_port: int = Field(RDT_PORT, ge=1, le=65535, description="UDP port of the box's records")
    http_port: int = Field(
        HTTP_PORT, ge=1, le=65535, description="TCP port of the box's calibration"
    )
    box_rate_hz: float = Field(
        1000.0,
        ge=1.0,
        le=7000.0,
        description="RDT output rate that is set in the box",
        json_schema_extra={"unit": "Hz"},
    )
    sensor_rate_hz: float = Field(
        SENSOR_RATE,
        ge=1.0,
        le=100_000.0,
        description="rate at which the sensor counts its own samples, from which the age of a "
        "reading follows",
        json_schema_extra={"unit": "Hz"},
    )
    low_pass_hz: float = Field(
        0.0,
        ge=0.0,
        le=3500.0,
        description="corner frequency of a first-order filter over all records; 0: none",
        json_schema_extra={"unit": "Hz"},
    )
    transport_delay: float = Field(
        0.0,
        ge=0.0,
        le=0.1,
        description="shortest delay from the sensor's sampling to this node, subtracted from the "
        "stamp",
        json_schema_extra={"unit": "s"},
    )
    mounting: str = Field(
        "licher2025",
        min_length=1,
        description="mounting of the sensor, and its bias: a file of config/force_torque, or a "
        "YAML file",
        json_schema_extra={"folder": "force_torque"},
    )
    bias_to: BiasTo = Field(
        "rest", description="what the vented rod reads after a bias: the model's wrench, or zero"
    )
    rest_tolerance: float = Field(
        1.0,
        gt=0.0,
        le=1e4,
        description="deviation of the resting rod's force from its expected value, at activation, "
        "beyond which the node warns",
        json_schema_extra={"unit": "N", **LIVE},
    )
    without_valves: WithoutValves = False
    most_restarts: int = Field(
        1000, ge=0, le=100_000, description="number of new clients to try while the box is silent"
    )
    limits: WrenchLimits = WrenchLimits()


class ForceTorque(LoopNode):
    """Publishes the wrench that an ATI Net F/T reads below the base."""

    default_name = "force_torque"
    Settings = ForceTorqueSettings
    settings: ForceTorqueSettings
    _driver: ForceTorqueDriver | None = None
    _box: BoxWatch | None = None
    _told = ""
    _box_told: tuple[str, str] | None = None

    def __init__(self, **node_options: Any):
        """See LoopNode; the service exists in every state."""
        super().__init__(**node_options)
        self._lock = threading.Lock()  # the driver is the loop's; the service asks it, too
        self._vented = VentedWitness(self)
        self.create_service(Trigger, "~/bias", self._serve_bias)

    def on_configure_node(self) -> None:
        settings = self.settings
        if settings.lockstep:
            raise UserError("parameter mode = 'lockstep': a real sensor keeps to the wall clock")
        mounting = load_mounting(settings.mounting)
        resting = np.zeros(6)
        if settings.bias_to == "rest":
            rod, vented = CosseratRod(self.robot), np.zeros(len(self.robot.chambers))
            resting = rod.base_wrench(rod.equilibrium(vented), vented)
        client = NetFtClient(
            settings.host,
            settings.rdt_port,
            settings.http_port,
            every=settings.low_pass_hz > 0.0,
            most_restarts=settings.most_restarts,
        )
        client.open(time.monotonic())
        self._driver = ForceTorqueDriver(
            client,
            settings.limits,
            resting,
            settings.low_pass_hz,
            settings.sensor_rate_hz,
            mounting,
            settings.bias_to,
            settings.mounting,
        )
        self._box = BoxWatch(lambda: ask_box(settings.host, settings.http_port))
        self._box.open()
        self._wrench = self.advertise("force_torque/wrench")

    def configured_with(self) -> str:
        settings, driver = self.settings, self._driver
        taken = driver.mounting.bias.taken if driver and driver.mounting.bias else None
        return (
            f"Net F/T box at {settings.host}, mounting {settings.mounting}, bias "
            f"{f'of {taken}' if taken else 'never taken'}, {settings.rate_hz:g} wrenches/s"
        )

    def on_activate_node(self) -> None:
        assert self._driver is not None  # configured
        self._told = ""
        self._driver.check_rest(time.monotonic())

    def loop(self, stop: threading.Event) -> None:
        driver, timer = self._driver, CycleTimer(self.settings.period)
        delay = self.settings.transport_delay
        while driver is not None and not stop.is_set():
            if timer.period != self.settings.period:
                timer = CycleTimer(self.settings.period)
                self.statistics.period = timer.period
            self.statistics.skip(timer.wait())
            begin = time.monotonic()
            with self._lock:
                driver.see_box(begin, self._box.settings if self._box else None)
                newest = driver.newest(begin)
            self._tell_box()
            self._tell(driver.trouble(begin))
            if newest is None:
                continue
            measured, wrench = newest
            stamp = on_system_clock(measured - delay)
            frame = self.frame("force_torque")
            self._wrench.publish(wrench_to_message(wrench, stamp, frame))
            self.statistics.add(time.monotonic() - begin)

    def on_cleanup_node(self) -> None:
        if self._driver is not None:
            self._driver.client.close()
            self._driver = None
        if self._box is not None:
            self._box.close()
            self._box = None

    def diagnostic_values(self) -> dict[str, Any]:
        if self._driver is None:
            return {}
        driver, client = self._driver, self._driver.client
        client.look_at_calibration()
        health, calibration = client.health(), client.calibration
        return {
            "trouble": driver.trouble(time.monotonic()),
            "state": health.state.value,
            "status": f"0x{driver.status:08X}",
            "box_rate_hz": health.receive_rate_hz,
            "records_lost": health.lost_count,
            "records_repeated": health.duplicate_count + health.out_of_order_count,
            "records_malformed": health.malformed_count,
            "records_too_many": health.python_queue_dropped_count if driver.delay else 0,
            "late_ms": 1e3 * driver.late,
            "readings_refused": dict(driver.judge.refused),
            "reconnects": health.reconnect_count,
            "new_clients": client.restarts,
            "calibration": str(calibration) if calibration else "unknown",
            "recalibrated": client.recalibrated,
            "biased": driver.biased,
            "bias": driver.bias.round(6).tolist(),
            "bias_taken": str(kept.taken) if (kept := driver.mounting.bias) else "never",
            "quaternion": list(driver.mounting.quaternion),
            "rest_error_n": driver.rest_error,
            "low_pass_hz": self.settings.low_pass_hz,
            "low_pass_delay_ms": 1e3 * driver.delay,
            **_told(self._box),
        }

    def diagnostic_warnings(self) -> list[str]:
        if self._driver is None:
            return []
        driver, client = self._driver, self._driver.client
        if trouble := driver.trouble(time.monotonic()):
            return [trouble]
        box = (self._box.settings if self._box else None) or BoxSettings()
        warnings = [said for said in (driver.box_change, driver.bias_problem) if said]
        if box.filter:
            warnings.append(f"the box filters (number {box.filter}): its delay is unknown")
        if driver.rest_error > self.settings.rest_tolerance:
            error = f"{driver.rest_error:.1f} N off the resting rod"
            warnings.append(f"{error}: vent, then call ~/bias")
        if driver.late > _LATE:
            warnings.append(f"readings {1e3 * driver.late:.0f} ms late")
        rate, wanted = client.health().receive_rate_hz, self.settings.box_rate_hz
        if rate < _SLOW * wanted:
            warnings.append(f"{rate:.0f} records/s, must be {wanted:.0f}")
        if client.recalibrated:
            warnings.append(f"the box's calibration changed: now {client.calibration}")
        if driver.status:
            warnings.append(f"sensor status 0x{driver.status:08X}")
        return warnings

    def _tell_box(self) -> None:
        """Log whom the wrenches come from, when that is known or has changed."""
        box = self._box.settings if self._box else None
        if box is not None and (box.product, box.serial) != self._box_told:
            self._box_told = box.product, box.serial
            name, serial = box.product or "a box", box.serial or "unknown"
            self.get_logger().info(f"connected to {name}, serial {serial}, {self.settings.host}")

    def _tell(self, trouble: str) -> None:
        """Log what is wrong when it changes."""
        if trouble != self._told:
            self._told = trouble
            self.get_logger().warning(trouble or "wrenches again")

    def _serve_bias(self, _: Any, response: Any) -> Any:
        """Makes the resting rod read what the model says, or zero (`bias_to`)."""
        try:
            if not self.active or self._driver is None:
                raise UserError("bias: activate the node first")
            self._vented.check("bias", self.settings.without_valves)
            with self._lock:
                bias = self._driver.take_bias(time.monotonic())
            kept = self._keep_bias(self._driver)
            response.success = True
            response.message = f"bias [N, N m]: {bias.round(4).tolist()}; {kept}"
        except UserError as error:
            response.message = str(error)
        return response

    def _keep_bias(self, driver: ForceTorqueDriver) -> str:
        """Write the bias to a file of the user's; returns what became of it."""
        name = self.settings.mounting
        if not name.endswith((".yaml", ".yml")):
            return "in use, not kept: mounting names no file of yours"
        save_mounting(Path(name), driver.mounting)
        self.tell_configuration()
        return f"written to {name}"


def _told(watch: BoxWatch | None) -> dict[str, Any]:
    """What the box tells of itself, for diagnostics."""
    box = (watch.settings if watch else None) or BoxSettings()
    return {
        "box": f"{box.product or 'unknown'}, serial {box.serial or 'unknown'}",
        "box_firmware": box.firmware,
        "box_configuration": box.configuration,
        "box_calibration_serial": box.calibration_serial,
        "box_tool_transform": box.transform_words,
        "box_software_bias": list(box.software_bias or ()),
        "box_filter": box.filter,
        "box_problem": watch.problem if watch else "",
    }


def main() -> int:
    """Entry point of `softcr run force_torque`."""
    return run(ForceTorque)


if __name__ == "__main__":
    leave(main())
