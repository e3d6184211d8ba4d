"""`softcr rehearse`: `softcr up hardware` on emulated devices, over their real protocols."""

import os
import socket
from contextlib import ExitStack
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, ClassVar, Literal

from pydantic import Field, model_validator
from rich.console import Console

from softcr_hardware.emulation.bench import cable, emulation, what_a_wire_lacks
from softcr_hardware.ethercat.fast_core import CORE
from softcr_models.errors import UserError
from softcr_models.plugins import Place
from softcr_runtime.console.terminal import say, step
from softcr_runtime.settings.command_line import command
from softcr_runtime.settings.node_settings import Hertz
from softcr_runtime.settings.registry import GRADIENT_MPC
from softcr_tools.running.hardware_system import HardwareOptions
from softcr_tools.running.machine_speed import forecast
from softcr_tools.running.option_checks import refuse_others
from softcr_tools.running.run_options import PlantOptions
from softcr_tools.running.up import run_hardware, run_virtual

_CANDIDATES = 64  # of the nempc


class RehearsalOptions(HardwareOptions, PlantOptions):
    """The closed loop on the emulated bench."""

    pressures_rate: ClassVar[float | None] = 100.0
    """A pressure is published, received twice and recorded; two for each control period are enough:
    the filter interpolates between them."""

    deadman: Literal["joystick", "none"] = Field(
        "none", description="who must hold button 0 of safety/operator, or none"
    )
    mode: Literal["wall", "virtual"] = Field(
        "wall",
        description="wall: real protocols, paced by the wall clock; virtual: the emulated bench in "
        "one process, as on a machine of the given speed and as fast as it computes",
    )
    controller: Place = Field(GRADIENT_MPC, min_length=1, description="controller of the robot")
    # nothing in the loop hears these
    force_torque_records_hz: Hertz = Field(
        100.0, ge=1.0, le=7000.0, description="rate of the box's records"
    )
    force_torque_rate_hz: Hertz = Field(
        50.0, ge=1.0, le=1000.0, description="rate of the published wrenches"
    )

    @model_validator(mode="after")
    def _virtual_bench_is_one(self) -> "RehearsalOptions":
        if self.is_virtual:
            refuse_others(self, _WITHOUT_PROTOCOLS, f"mode {self.mode!r}, which has no protocols")
        return self

    @model_validator(mode="before")
    @classmethod
    def _few_candidates(cls, given: Any) -> Any:
        """Two cores play bench and loop: the nempc has few candidates unless somebody says more."""
        if isinstance(given, dict) and given.get("controller") == "nempc":
            return {"population": _CANDIDATES} | given
        return given


_DEVICES = {
    "interface", "optitrack", "optitrack_port", "local", "group", "force_torque",
    "force_torque_port", "force_torque_http_port", "state_directory",
}  # fmt: skip

_WITHOUT_PROTOCOLS = {
    "station", "calibration", "body", "mounting", "deadman", "force_torque_records_hz",
    "force_torque_rate_hz",
}  # fmt: skip
"""Options that say nothing to a bench on virtual time, whose valves are those of the robot's name,
and whose cameras see in the base frame."""


@command
def rehearse(
    options: RehearsalOptions, *, results: Path = Path("results/rehearsal"), anyway: bool = False
) -> int:
    """Run the bench's system on emulated devices.

    This is 'softcr up hardware' with real protocols and without hardware. It needs root and pysoem,
    and by default no deadman's switch. '--mode virtual' needs neither, nor a fast machine.

    Args:
        results: directory in which the run's directory is made.
        anyway: start even if the machine is too slow.

    Raises:
        UserError: a device is chosen, or the machine does not allow it.
    """
    for name in _DEVICES & options.model_fields_set:
        raise UserError(f"--{name.replace('_', '-')}: a rehearsal brings its own devices")
    if options.is_virtual:
        from softcr_tools.running.virtual_rehearsal import rehearsed

        return run_virtual(rehearsed, options, results)
    if lacking := what_a_wire_lacks():
        raise UserError(f"a rehearsal {lacking}")
    if not anyway:
        found = forecast()
        if not found.enough:
            line = f"too slow for a rehearsal: {found.words}; --anyway starts it all the same"
            raise UserError(line)
        say(Console(), found.words)
    if len(cores := os.sched_getaffinity(0)) > 1:
        os.environ.setdefault(CORE, str(max(cores)))  # of valves and terminals, which inherit it
    log = results / options.namespace / "bench.jsonl"
    log.parent.mkdir(parents=True, exist_ok=True)
    command, records, web = _free_ports()
    with cable() as (near, far), ExitStack() as devices:
        with step(Console(), "preparing the emulated bench"):
            devices.enter_context(
                emulation(
                    [
                        *("bench", "--interface", far, "--robot", options.robot),
                        *("--station", options.station, "--calibration", options.calibration),
                        *("--command-port", command, "--rdt-port", records, "--http-port", web),
                        *("--bending-compliance-factor", options.bending_compliance_factor),
                        *("--tip-mass-factor", options.tip_mass_factor),
                        *("--tip-noise-mm", options.tip_noise_mm, "--seed", options.seed),
                        *("--record-rate", options.force_torque_records_hz),
                        *("--truth", "--log", log),
                        *("--namespace", options.namespace, "--frame-prefix", options.prefix),
                    ]
                )
            )
        bench = {
            "interface": near,
            "optitrack": "127.0.0.1",
            "optitrack_port": command,
            "local": "127.0.0.1",
            "force_torque": "127.0.0.1",
            "force_torque_port": records,
            "force_torque_http_port": web,
            # latches and zeros of emulated devices are not the bench's
            "state_directory": devices.enter_context(TemporaryDirectory()),
        }
        return run_hardware(options.model_copy(update=bench), results)


def _free_ports() -> list[int]:
    """Two of UDP and one of TCP that nobody uses."""
    kinds = (socket.SOCK_DGRAM, socket.SOCK_DGRAM, socket.SOCK_STREAM)
    with ExitStack() as bound:
        sockets = [bound.enter_context(socket.socket(socket.AF_INET, kind)) for kind in kinds]
        for each in sockets:
            each.bind(("127.0.0.1", 0))
        return [each.getsockname()[1] for each in sockets]
