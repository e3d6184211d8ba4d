"""The closed loop on the bench as data: real devices, or emulated ones on their real protocols."""

from collections.abc import Mapping
from pathlib import Path
from typing import ClassVar, Literal

from pydantic import Field, model_validator

from softcr_runtime.blocks.system import Parameters, Part, System
from softcr_runtime.settings import registry
from softcr_tools.running.roles import NOBODY, OPEN_LOOP
from softcr_tools.running.run_options import RunOptions
from softcr_tools.running.systems import LOOP, loop_parts, priority

_PATIENCE = 2.5
"""For a pose that is due: 20 ms of latency, a frame at 120 Hz and some jitter [periods]."""


SENSORS = "sensors"
"""Processes that nodes share: what one of them hands to another, or does beside it, costs less. The
valves and the recorder are alone, so that nothing of the loop can hold them up or end them, and so
is the reference that plans while the loop runs."""


class HardwareOptions(RunOptions):
    """The closed loop on the bench."""

    nodes: ClassVar[Mapping[str, str]] = {
        "valves": "softcr_hardware.nodes.valves:ValvesSettings",
        "optitrack": "softcr_hardware.nodes.optitrack:OptitrackSettings",
        "force_torque": "softcr_hardware.nodes.force_torque:ForceTorqueSettings",
        **RunOptions.nodes,
    }
    usual: ClassVar[Mapping[str, Parameters]] = {
        "estimator": {"patience": _PATIENCE},
        "optitrack": {"calibration": "licher2025"},
    }
    """What the system says of itself, by role."""

    optitrack: Literal["node", "none"] = Field(
        "node", description="node: of softcr; none: a node of your own publishes the poses"
    )
    force_torque: Literal["node", "none"] = Field(
        "node", description="node: of softcr; none: a node of your own publishes the wrenches"
    )

    def of(self, role: str) -> Parameters:
        """See RunOptions."""
        return {**self.usual.get(role, {}), **super().of(role)}

    @model_validator(mode="after")
    def _estimator_is_for_benches(self) -> "HardwareOptions":
        if self.estimator == OPEN_LOOP:
            raise ValueError("estimator = 'cc': runs in simulation only; must be rod, or a class")
        return self


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
        estimator.with_parameters(separate),
        reference.with_parameters(separate | {"start": "service"}),
    ]
    if controller is not None:
        loop.append(controller.with_parameters(separate))
    valves = _node(options, "valves", common, 70)
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
    # nothing in the loop waits for wrenches
    priorities = {"optitrack": 50, "force_torque": 15}
    driven = {name: value for name, value in priorities.items() if getattr(options, name) != NOBODY}
    return [_node(options, name, common, value) for name, value in driven.items()]


def _node(options: HardwareOptions, name: str, common: Parameters, value: int) -> Part:
    told = common | priority(common, value) | options.of(name)
    return Part(name, f"softcr_hardware.nodes.{name}", told)
