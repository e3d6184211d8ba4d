"""The cameras as a node: Motive's stream in, poses of the tip in the base frame out.

Configuring opens the sockets; from there to cleanup the conversation with the server goes on, and
activating lets believed poses out, stamped with the middle of their exposure. `~/calibrate_base`
(Trigger) finds where the base stands, uses it at once and writes it to the file that `calibration`
names by its path; it is refused unless the valves' node says that the chambers are vented.
"""

import threading
import time
from pathlib import Path
from typing import Any

import numpy as np
from pydantic import Field
from std_srvs.srv import Trigger

from softcr_hardware.nodes.vented import VentedWitness, WithoutValves
from softcr_hardware.optitrack.calibration import (
    calibrated_by_base,
    calibrated_by_tip,
    load_calibration,
    save_calibration,
)
from softcr_hardware.optitrack.client import Address, NatNetClient
from softcr_hardware.optitrack.protocol import COMMAND_PORT, DATA_PORT, MULTICAST_GROUP
from softcr_hardware.optitrack.session import (
    DATA_RECEIVED,
    RECEIVED_LATENCY,
    NatNetSession,
    Stream,
)
from softcr_hardware.optitrack.tracking import BodyTracker, TrackingLimits
from softcr_models.errors import UserError
from softcr_models.rod.cosserat_rod import CosseratRod
from softcr_runtime.ros.clocks import on_system_clock
from softcr_runtime.ros.node import LoopNode
from softcr_runtime.ros.process import leave, run
from softcr_runtime.settings.node_settings import LIVE, NodeSettings
from softcr_runtime.wire.messages import pose_to_message

_WAIT = 0.05  # [s] for a pose before looking at the rest again
_SLOW = 0.85  # of the frame rate
_SPREAD = 0.001  # [m] a resting body may move


class OptitrackSettings(NodeSettings):
    """Where the cameras' server is, which body is the tip, and what is believed of it."""

    rate_hz: float = Field(
        120.0,
        ge=1.0,
        le=1000.0,
        description="frame rate of the cameras below which the node warns",
        json_schema_extra={"unit": "Hz", **LIVE},
    )
    server: str = Field("127.0.0.1", description="IP address of the machine that runs Motive")
    local: str = Field(
        "0.0.0.0", description="IP address of this machine's interface; 0.0.0.0: any"
    )
    multicast: bool = Field(False, description="whether Motive streams to a multicast group")
    group: str = Field(MULTICAST_GROUP, description="the multicast group")
    command_port: int = Field(
        COMMAND_PORT, ge=1, le=65535, description="command port of the server"
    )
    data_port: int = Field(DATA_PORT, ge=1, le=65535, description="port of the multicast group")
    body: str = Field(
        "tip", min_length=1, description="name or id of the tip's rigid body in Motive"
    )
    base_body: str = Field(
        "",
        description="a rigid body fixed to the base, for calibration; empty: calibration uses the "
        "resting tip",
    )
    calibration: str = Field(
        "licher2025",
        min_length=1,
        description="a calibration of config/optitrack, or a YAML file",
        json_schema_extra={"folder": "optitrack"},
    )
    latency_warning: float = Field(
        0.03,
        gt=0.0,
        le=10.0,
        description="time from exposure to the server's sending beyond which the node warns",
        json_schema_extra={"unit": "s", **LIVE},
    )
    received_latency: float = Field(
        RECEIVED_LATENCY,
        ge=0.0,
        le=0.1,
        description="time from the middle of an exposure until Motive has the cameras' data; used "
        "if frames do not carry their exposure (USB cameras)",
        json_schema_extra={"unit": "s"},
    )
    most_reconnects: int = Field(
        1000, ge=0, le=100_000, description="number of attempts to reach a silent server"
    )
    without_valves: WithoutValves = False
    limits: TrackingLimits = TrackingLimits()


class Optitrack(LoopNode):
    """Publishes the tip's pose as OptiTrack's cameras see it, in the base frame."""

    default_name = "optitrack"
    Settings = OptitrackSettings
    settings: OptitrackSettings
    _client: NatNetClient | None = None
    _told = _server_told = ""
    _stamps_told = False

    def __init__(self, **node_options: Any):
        """See LoopNode; the service exists in every state."""
        super().__init__(**node_options)
        self._vented = VentedWitness(self)
        self.create_service(Trigger, "~/calibrate_base", self._serve_calibrate_base)

    def on_configure_node(self) -> None:
        settings = self.settings
        if settings.lockstep:
            raise UserError("parameter mode = 'lockstep': real cameras keep to the wall clock")
        calibration = load_calibration(settings.calibration)
        rod = CosseratRod(self.robot)
        self._resting_tip = rod.tip_pose(rod.equilibrium(np.zeros(len(self.robot.chambers))))
        session = NatNetSession(
            settings.body,
            calibration,
            BodyTracker(settings.limits, self._resting_tip),
            settings.most_reconnects,
            Stream(settings.multicast, settings.group, settings.data_port),
            settings.received_latency,
        )
        client = NatNetClient(
            session,
            Address(
                settings.server,
                settings.local,
                settings.multicast,
                settings.group,
                settings.command_port,
                settings.data_port,
            ),
        )
        client.open()
        self._client = client
        self._pose = self.advertise("mocap/tip/pose")

    def configured_with(self) -> str:
        settings = self.settings
        way = f"multicast group {settings.group}" if settings.multicast else "unicast"
        return (
            f"Motive at {settings.server}:{settings.command_port} ({way}), tip's body "
            f"{settings.body!r}, calibration {settings.calibration}"
        )

    def on_activate_node(self) -> None:
        assert self._client is not None  # configured
        self._client.forget()
        self._told, self._server_told, self._stamps_told = "", "", False

    def loop(self, stop: threading.Event) -> None:
        while (client := self._client) is not None and not stop.is_set():
            seen = client.take(_WAIT)
            self._tell_server(client.session)
            self._tell(client.session.trouble(time.monotonic()))
            if seen is None:
                continue
            self._tell_stamps(client.session.stamps)
            begin, stamp = time.monotonic(), on_system_clock(seen.time)
            self._pose.publish(pose_to_message(seen.pose, stamp, self.frame("base")))
            self.finish_tick(begin, stamp)

    def on_cleanup_node(self) -> None:
        if self._client is not None:
            self._client.close()
            self._client = None

    def diagnostic_values(self) -> dict[str, Any]:
        if self._client is None:
            return {}
        client, session, now = self._client, self._client.session, time.monotonic()
        server = session.server
        return {
            "trouble": session.trouble(now),
            "server": f"{server.name}, NatNet {server.version}" if server else "unknown",
            "motive_mode": session.mode or "unknown",
            "stamps": self._stamps(session),
            "streams_otherwise": session.difference,
            "models_changed": session.models_changed,
            "body_id": session.body_id,
            "frame_rate_hz": session.rate(now),
            "latency_ms": round(1e3 * session.latency, 3),
            "clock_offset_s": session.clock.offset,
            "clock_drift_ppm": round(1e6 * session.clock.drift, 2),
            "clock_epochs": session.clock.epochs,
            "connections": session.connections,
            "renamed": session.renamed,
            "frames_refused": dict(session.tracker.refused),
            "datagrams_refused": dict(session.refused),
            "foreign_datagrams": dict(session.foreign),
            "socket_restarts": client.restarts,
            "socket_problem": client.problem,
            "calibration": session.calibration.model_dump(mode="json"),
        }

    def diagnostic_warnings(self) -> list[str]:
        if self._client is None:
            return []
        session, now = self._client.session, time.monotonic()
        if trouble := session.trouble(now):
            return [trouble]
        warnings = [session.difference] if session.difference else []
        if (rate := session.rate(now)) < _SLOW * self.settings.rate_hz:
            warnings.append(f"{rate:.0f} frames/s, must be {self.settings.rate_hz:.0f}")
        if session.latency > self.settings.latency_warning:
            warnings.append(f"latency {1e3 * session.latency:.0f} ms")
        return warnings

    def _tell_server(self, session: NatNetSession) -> None:
        """Log whom the poses come from, when that is known or has changed."""
        server = session.server
        said = f"{server.name}, NatNet {server.version}" if server else ""
        if said and said != self._server_told:
            self._server_told = said
            self.get_logger().info(f"connected to {said} at {self.settings.server}")

    def _tell(self, trouble: str) -> None:
        """Log what is wrong when it changes."""
        if trouble != self._told:
            self._told = trouble
            self.get_logger().warning(trouble or "poses again")

    def _stamps(self, session: NatNetSession) -> str:
        """What times the poses."""
        if session.stamps != DATA_RECEIVED:
            return session.stamps or "unknown"
        return f"{DATA_RECEIVED}, less {1e3 * self.settings.received_latency:.1f} ms"

    def _tell_stamps(self, stamps: str) -> None:
        """Log once that poses are timed by what the server does not measure."""
        if stamps == DATA_RECEIVED and not self._stamps_told:
            self._stamps_told = True
            late = 1e3 * self.settings.received_latency
            self.get_logger().warning(
                "Motive does not send the times of exposures (USB cameras?): poses are stamped "
                f"{late:.1f} ms before it had their data (parameter received_latency)"
            )

    def _serve_calibrate_base(self, _: Any, response: Any) -> Any:
        """Finds the base from the resting tip, and writes it to the calibration file."""
        try:
            response.message = self._calibrate_base()
            response.success = True
        except UserError as error:
            response.message = str(error)
        return response

    def _calibrate_base(self) -> str:
        if self._client is None:
            raise UserError("calibration: configure the node first")
        session, settings = self._client.session, self.settings
        self._vented.check("calibration", settings.without_valves)
        if settings.base_body:
            seen = session.recent(settings.base_body)
            found = calibrated_by_base(session.calibration, seen, _SPREAD)
        else:
            seen = session.recent(settings.body)
            found = calibrated_by_tip(session.calibration, seen, self._resting_tip, _SPREAD)
        # a pose that jumps by it is refused, and the tip then believed where a resting one is
        session.calibration = found
        base = found.base_in_world
        numbers = (
            f"base_in_world: position {list(base.position)}, quaternion {list(base.quaternion)}"
        )
        if not settings.calibration.endswith((".yaml", ".yml")):
            return f"{numbers}; in use, not kept: calibration names no file of yours"
        save_calibration(Path(settings.calibration), found)
        self.tell_configuration()
        return f"{numbers}; written to {settings.calibration}"


def main() -> int:
    """Entry point of `softcr run optitrack`."""
    return run(Optitrack)


if __name__ == "__main__":
    leave(main())
