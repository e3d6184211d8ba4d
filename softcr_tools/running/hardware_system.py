"""The closed loop on the bench as data: real devices, or emulated ones on their real protocols."""

from pathlib import Path
from typing import ClassVar, Literal

from pydantic import Field, model_validator

from softcr_runtime.blocks.system import Parameters, Part, System
from softcr_runtime.settings import registry
from softcr_runtime.settings.node_settings import Hertz
from softcr_tools.running.option_checks import NOBODY
from softcr_tools.running.run_options import RunOptions
from softcr_tools.running.systems import loop_parts, priority

_PATIENCE = 2.5
"""For a pose that is due: 20 ms of latency, a frame at 120 Hz and some jitter [periods]."""


SENSORS, LOOP = "sensors", "loop"
"""Processes that nodes share: what one of them hands to another, or does beside it, costs less. The
valves and the recorder are alone, so that nothing of the loop can hold them up or end them, and so
is the reference that plans while the loop runs."""


class HardwareOptions(RunOptions):
    """The closed loop on the bench."""

    interface: str = Field("eth1", min_length=1, description="network interface of the terminals")
    station: str = Field(
        "licher2025", min_length=1, description="a station of config/ethercat, or a YAML file"
    )
    state_directory: str = Field(
        "",
        description="directory in which held latches and calibrated zeros are kept; empty: "
        "$ROS_HOME/softcr, or ~/.ros/softcr",
    )
    deadman: Literal["joystick", "none"] = Field(
        "joystick",
        description="who must hold button 0 of safety/operator: a person at a joystick node or at "
        "softcr hold; or none (--no-deadman-switch), and then only Ctrl-C, the vent "
        "service and the shut-off valve of the air stop the rod",
    )
    optitrack: str = Field(
        "127.0.0.1",
        min_length=1,
        description="IP address of Motive's machine; none: a node of your own publishes the poses",
    )
    optitrack_port: int = Field(1510, ge=1, le=65535, description="command port of Motive")
    local: str = Field(
        "0.0.0.0",
        min_length=1,
        description="IP address of this machine's interface towards Motive, or 0.0.0.0",
    )
    group: str = Field("", description="multicast group that Motive streams to; empty: unicast")
    body: str = Field("tip", min_length=1, description="name or id of the tip's rigid body")
    calibration: str = Field(
        "licher2025", min_length=1, description="a calibration of config/optitrack, or a YAML file"
    )
    force_torque: str = Field(
        "192.168.1.1",
        min_length=1,
        description="IP address of the Net F/T box; none: a node of your own publishes the "
        "wrenches",
    )
    force_torque_port: int = Field(
        49152, ge=1, le=65535, description="UDP port of the box's records"
    )
    force_torque_http_port: int = Field(
        80, ge=1, le=65535, description="TCP port of the box's calibration"
    )
    mounting: str = Field(
        "licher2025",
        min_length=1,
        description="mounting of the sensor: a file of config/force_torque, or a YAML file",
    )
    force_torque_records_hz: Hertz = Field(
        1000.0, ge=1.0, le=7000.0, description="RDT output rate that is set in the box"
    )
    force_torque_rate_hz: Hertz = Field(
        200.0, ge=1.0, le=1000.0, description="rate of the published wrenches"
    )

    pressures_rate: ClassVar[float | None] = None
    """Of published pressures [Hz]; None: the node's own."""

    @model_validator(mode="after")
    def _estimator_is_for_benches(self) -> "HardwareOptions":
        if self.estimator == "cc":
            raise ValueError("estimator = 'cc': runs in simulation only; must be rod, or a class")
        return self


def _patience(options: HardwareOptions) -> float:
    """Of the estimator [periods]."""
    given = options.plugin_settings.get("estimator", {})
    return float(given.get("patience", _PATIENCE))


def hardware_system(options: HardwareOptions, bag: Path) -> System:
    """Cameras, force-torque sensor, valves, estimator, reference, controller and recorder.

    The valves are configured last, so that nothing compiles beside their fast cycle, and leave
    second, after the controller: vented. The rod stands at the reference's beginning until the
    safety handshake has been accepted.
    """
    common: Parameters = options.of_every_node | {"mode": "wall"}
    separate: Parameters = {"sampling": "separate"}
    recorder, estimator, reference, controller = loop_parts(options, common, bag)
    assert estimator is not None  # of a rod
    assert reference is not None
    loop = [
        estimator.with_parameters(separate | {"patience": _patience(options)}),
        reference.with_parameters(separate | {"start": "service"}),
    ]
    if controller is not None:
        loop.append(controller.with_parameters(separate))
    valves = _valves(options, common)
    parts = (
        recorder,
        *(part.in_process(SENSORS) for part in _sensors(options, common)),
        *(part if part.name == registry.GOAL else part.in_process(LOOP) for part in loop),
        valves,
    )
    return System(
        name="hardware",
        parts=parts,
        activation=tuple(part.name for part in parts),
        duration=options.duration,
        simulated_time=False,
        controller=controller.name if controller else valves.name,
        begin=(f"{valves.name}/enable", f"{reference.name}/start"),
        namespace=options.namespace,
        actuators=valves.name,
    )


def _sensors(options: HardwareOptions, common: Parameters) -> list[Part]:
    """Of the devices that a node of ours drives."""
    multicast: Parameters = {"multicast": True, "group": options.group} if options.group else {}
    cameras: Parameters = {
        "server": options.optitrack,
        "command_port": options.optitrack_port,
        "local": options.local,
        "body": options.body,
        "calibration": options.calibration,
    }
    force_torque: Parameters = {
        "host": options.force_torque,
        "rdt_port": options.force_torque_port,
        "http_port": options.force_torque_http_port,
        "mounting": options.mounting,
        "box_rate_hz": options.force_torque_records_hz,
        "rate_hz": options.force_torque_rate_hz,
    }
    parts = (
        (
            options.optitrack,
            Part(
                "optitrack",
                "softcr_hardware.nodes.optitrack",
                common | cameras | multicast | priority(common, 50),
            ),
        ),
        (
            options.force_torque,
            Part(
                "force_torque",
                "softcr_hardware.nodes.force_torque",
                common | force_torque | priority(common, 15),  # nothing in the loop waits for it
            ),
        ),
    )
    return [part for address, part in parts if address != NOBODY]


def _valves(options: HardwareOptions, common: Parameters) -> Part:
    told: Parameters = {
        "interface": options.interface,
        "station": options.station,
        "state_directory": options.state_directory,
        "safety.require_operator": options.deadman != "none",
    }
    if options.pressures_rate is not None:
        told["rate_hz"] = options.pressures_rate
    return Part("valves", "softcr_hardware.nodes.valves", common | told | priority(common, 70))
