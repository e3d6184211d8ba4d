"""`softcr rehearse`: `softcr up hardware` on emulated devices, over their real protocols."""

import os
import socket
from collections.abc import Mapping
from contextlib import ExitStack
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import ClassVar, Literal

from pydantic import BaseModel, ConfigDict, Field
from rich.console import Console

from softcr_hardware.emulation.bench import cable, emulation, what_a_wire_lacks
from softcr_hardware.ethercat.fast_core import CORE
from softcr_models.errors import UserError
from softcr_models.plugins import Place
from softcr_runtime.blocks.system import Parameters
from softcr_runtime.console.terminal import say, step
from softcr_runtime.settings.command_line import command
from softcr_runtime.settings.registry import GRADIENT_MPC, NEMPC
from softcr_tools.running.hardware_system import HardwareOptions
from softcr_tools.running.machine_speed import forecast
from softcr_tools.running.run_options import PlantOptions
from softcr_tools.running.up import run_hardware, run_virtual

_ERRORS = "bending_factor=0.95,tip_mass_factor=1.1,tip_noise=2e-4"


class EmulatedPlant(BaseModel):
    """The rod between the emulated devices."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    errors: str = Field(_ERRORS, description="plant errors, separated by commas: NAME=VALUE")


class RehearsalOptions(HardwareOptions, PlantOptions):
    """The closed loop on the emulated bench."""

    nodes: ClassVar[Mapping[str, str]] = {
        **HardwareOptions.nodes,
        "plant": "softcr_tools.running.rehearse:EmulatedPlant",
    }
    usual: ClassVar[Mapping[str, Parameters]] = {
        **HardwareOptions.usual,
        # a pressure is published, received twice and recorded; two for each control period are
        # enough: the filter interpolates between them
        "valves": {"safety.require_operator": False, "rate_hz": 100.0},
        # the unscented filter takes 0.14 more of the two cores that play bench and loop
        "estimator": {**HardwareOptions.usual["estimator"], "filter": "ekf"},
        # nothing in the loop hears these
        "force_torque": {"box_rate_hz": 100.0, "rate_hz": 50.0},
        "plant": {"errors": _ERRORS},
    }

    mode: Literal["wall", "virtual"] = Field(
        "wall",
        description="wall: real protocols, paced by the wall clock; virtual: the emulated bench in "
        "one process, as on a machine of the given speed and as fast as it computes",
    )
    controller: Place = Field(GRADIENT_MPC, min_length=1, description="controller of the robot")

    def of(self, role: str) -> Parameters:
        """See RunOptions; two cores play bench and loop, so the nempc has few candidates."""
        few: Parameters = {"population": 64}
        fewer = few if role == "controller" and self.controller == NEMPC else {}
        return fewer | super().of(role)


_DEVICES = {
    "valves": {"interface", "state_directory"},
    "optitrack": {"server", "command_port", "local", "multicast", "group"},
    "force_torque": {"host", "rdt_port", "http_port"},
}
"""What a rehearsal tells its devices itself."""


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
    for device, own in _DEVICES.items():
        told = options.roles.get(device, {})
        replaced = [device] if getattr(options, device, "node") == "none" else []
        for name in (*replaced, *(f"{device}.{each}" for each in own & told.keys())):
            raise UserError(f"option {name}: a rehearsal brings its own devices")
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
        bench: dict[str, Parameters] = {
            # latches and zeros of emulated devices are not the bench's
            "valves": {
                "interface": near,
                "state_directory": devices.enter_context(TemporaryDirectory()),
            },
            "optitrack": {"server": "127.0.0.1", "command_port": command, "local": "127.0.0.1"},
            "force_torque": {"host": "127.0.0.1", "rdt_port": records, "http_port": web},
        }
        for device, told_here in bench.items():
            options = options.told(device, told_here)
        with step(Console(), "preparing the emulated bench"):
            station = options.of("valves").get("station", "licher2025")
            devices.enter_context(
                emulation(
                    [
                        *("bench", "--interface", far, "--robot", options.robot),
                        *("--station", station),
                        *("--calibration", options.of("optitrack")["calibration"]),
                        *("--command-port", command, "--rdt-port", records, "--http-port", web),
                        *("--errors", options.of("plant")["errors"], "--seed", options.seed),
                        *("--record-rate", options.of("force_torque")["box_rate_hz"]),
                        *("--truth", "--log", log),
                        *("--namespace", options.namespace, "--frame-prefix", options.prefix),
                    ]
                )
            )
        return run_hardware(options, results)


def _free_ports() -> list[int]:
    """Two of UDP and one of TCP that nobody uses."""
    kinds = (socket.SOCK_DGRAM, socket.SOCK_DGRAM, socket.SOCK_STREAM)
    with ExitStack() as bound:
        sockets = [bound.enter_context(socket.socket(socket.AF_INET, kind)) for kind in kinds]
        for each in sockets:
            each.bind(("127.0.0.1", 0))
        return [each.getsockname()[1] for each in sockets]
