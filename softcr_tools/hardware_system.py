"""The closed loop on the bench as data: real devices, or emulated ones on their real protocols."""

from pathlib import Path
from typing import Literal

from pydantic import Field, model_validator

from softcr_runtime.settings import NodeSettings
from softcr_runtime.system import Parameters, Part, System
from softcr_tools.run_options import RunOptions
from softcr_tools.systems import loop_parts, priority

_PATIENCE = 2.5
"""For a pose that is due: 20 ms of latency, a frame at 120 Hz and some jitter [periods]."""


SENSORS, LOOP = "sensors", "loop"
"""Processes that nodes share: what one of them hands to another, or does beside it, costs less. The
valves and the recorder are alone, so that nothing of the loop can hold them up or end them."""


class HardwareOptions(RunOptions):
    """The closed loop on the bench.

    `softcr up hardware` and launch/hardware.launch.py offer every field by its name.
    """

    interface: str = Field("eth1", min_length=1, description="network interface of the terminals")
    station: str = Field(
        "licher2025", min_length=1, description="a station of config/ethercat, or a YAML file"
    )
    deadman: Literal["joystick", "none"] = Field(
        "joystick",
        description="who must be holding button 0 of safety/operator: a person at a joystick node "
        "or at softcr hold, or nobody, and then only Ctrl-C, the vent service and the air's "
        "shut-off valve stop the rod (--no-deadman-switch)",
    )
    optitrack: str = Field("127.0.0.1", min_length=1, description="IP address of Motive's machine")
    optitrack_port: int = Field(1510, ge=1, le=65535, description="its command port")
    local: str = Field(
        "0.0.0.0",
        min_length=1,
        description="IP address of our interface towards Motive; or 0.0.0.0",
    )
    group: str = Field("", description="multicast group Motive streams to; empty: unicast")
    delay_periods: int = Field(
        2,
        ge=1,
        le=4,
        description="control periods from a sample to the pressures that answer it, whatever of "
        "them cameras, filter and controller take",
    )
    body: str = Field("tip", min_length=1, description="the tip's rigid body, name or id")
    calibration: str = Field(
        "licher2025", min_length=1, description="a calibration of config/optitrack, or a YAML file"
    )
    force_torque: str = Field(
        "192.168.1.1", min_length=1, description="IP address of the Net F/T box"
    )
    force_torque_port: int = Field(49152, ge=1, le=65535, description="of its records (UDP)")
    force_torque_http_port: int = Field(80, ge=1, le=65535, description="of its calibration (TCP)")
    force_torque_records_hz: float = Field(
        1000.0,
        ge=1.0,
        le=7000.0,
        description="RDT output rate set in it",
        json_schema_extra={"unit": "Hz"},
    )
    force_torque_rate_hz: float = Field(
        200.0,
        ge=1.0,
        le=1000.0,
        description="of published wrenches",
        json_schema_extra={"unit": "Hz"},
    )

    @model_validator(mode="after")
    def _estimator_is_for_benches(self) -> "HardwareOptions":
        if self.estimator == "cc":
            raise ValueError("estimator = 'cc': runs in simulation only; must be rod, or a class")
        return self


def hardware_system(options: HardwareOptions, bag: Path) -> System:
    """Cameras, force-torque sensor, valves, estimator, reference, controller and recorder.

    The valves are configured last, so that nothing compiles beside their fast cycle, and leave
    second, after the controller: vented. The rod stands at the reference's beginning until the
    safety handshake has been accepted.
    """
    common: Parameters = {"robot": options.robot, "mode": "wall"}
    recorder, estimator, reference, controller = loop_parts(options, common, bag)
    separate: Parameters = {"sampling": "separate"}
    estimator = estimator.with_parameters(separate | {"patience": _PATIENCE})
    reference = reference.with_parameters(separate | {"start": "service"})
    rate = NodeSettings.model_fields["rate_hz"].default
    command_age: Parameters = {"command_age": options.delay_periods / rate}
    controller = controller.with_parameters(separate | command_age)
    cameras, sensor, valves = _devices(options, common)
    valves = valves.with_parameters(command_age)
    cameras, sensor = (part.in_process(SENSORS) for part in (cameras, sensor))
    estimator, reference, controller = (
        part.in_process(LOOP) for part in (estimator, reference, controller)
    )
    return System(
        name="hardware",
        parts=(recorder, cameras, sensor, estimator, reference, controller, valves),
        activation=tuple(
            node.name
            for node in (recorder, cameras, sensor, estimator, reference, controller, valves)
        ),
        duration=options.duration,
        simulated_time=False,
        controller=controller.name,
        begin=(f"{valves.name}/enable", f"{reference.name}/start"),
    )


def _devices(options: HardwareOptions, common: Parameters) -> tuple[Part, Part, Part]:
    multicast: Parameters = {"multicast": True, "group": options.group} if options.group else {}
    cameras = Part(
        "optitrack",
        "softcr_hardware.nodes.optitrack",
        common
        | {
            "server": options.optitrack,
            "command_port": options.optitrack_port,
            "local": options.local,
            "body": options.body,
            "calibration": options.calibration,
        }
        | multicast
        | priority(common, 50),
    )
    sensor = Part(
        "force_torque",
        "softcr_hardware.nodes.force_torque",
        common
        | {
            "host": options.force_torque,
            "rdt_port": options.force_torque_port,
            "http_port": options.force_torque_http_port,
            "box_rate_hz": options.force_torque_records_hz,
            "rate_hz": options.force_torque_rate_hz,
        }
        | priority(common, 15),  # nothing in the loop waits for it
    )
    valves = Part(
        "valves",
        "softcr_hardware.nodes.valves",
        common
        | {
            "interface": options.interface,
            "station": options.station,
            "safety.require_operator": options.deadman != "none",
        }
        | priority(common, 70),
    )
    return cameras, sensor, valves
