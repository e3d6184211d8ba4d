"""The real bench: the drivers of its devices, without ROS. No node may run beside it: the bus has
one master, and says whose."""

import time

import numpy as np

from softcr_hardware.ethercat.bus import EtherCatBus
from softcr_hardware.ethercat.process_data import ProcessData, Sample
from softcr_hardware.ethercat.terminals import Station
from softcr_hardware.force_torque.box import BoxError, ask_box
from softcr_hardware.force_torque.client import NetFtClient
from softcr_hardware.force_torque.driver import ForceTorqueDriver
from softcr_hardware.force_torque.readings import WrenchLimits
from softcr_hardware.optitrack.calibration import MocapCalibration, Placement
from softcr_hardware.optitrack.client import Address, NatNetClient
from softcr_hardware.optitrack.session import NatNetSession
from softcr_hardware.optitrack.tracking import BodyTracker, TrackingLimits
from softcr_runtime.blocks.cycle_timer import CycleTimer
from softcr_runtime.ros.realtime import schedule_realtime

_ANYWHERE = TrackingLimits(workspace=100.0, rest_tolerance=0.0)
"""The cameras' world is not the robot's yet."""
_PRIORITY = 80
_SENSED = 0.01  # [s] between looks at the force-torque sensor


class RealBench:
    """See `Bench`; cameras and force-torque sensor may be left out.

    Attributes:
        scheduling: why there is no real-time priority; empty where there is.
    """

    period = calm_period = 0.001
    realtime = True

    def __init__(
        self,
        station: Station,
        calibration: MocapCalibration,
        interface: str,
        cameras: Address | None,
        body: str = "tip",
        force_torque: tuple[str, int, int] | None = None,
    ) -> None:
        """Touches nothing yet.

        Args:
            station, calibration: the files that are commissioned.
            interface: of the terminals.
            cameras: where their server is.
            body: name or id of the tip's rigid body.
            force_torque: host and the two ports of the box.

        Raises:
            UserError: a device that cannot be.
        """
        self.station, self.calibration = station, calibration
        self.data = ProcessData(station)
        self._bus = EtherCatBus(interface, station, self.data)
        self._cameras: NatNetClient | None = None
        if cameras is not None:
            session = NatNetSession(
                body, MocapCalibration(base_in_world=Placement()), BodyTracker(_ANYWHERE)
            )
            self._cameras = NatNetClient(session, cameras)
        self._sensor: ForceTorqueDriver | None = None
        self._box: tuple[str, int] | None = None
        if force_torque is not None:
            client = NetFtClient(*force_torque)
            self._box = force_torque[0], force_torque[2]
            self._sensor = ForceTorqueDriver(client, WrenchLimits(), np.zeros(6))
        self._body: tuple[float, np.ndarray] | None = None
        self._wrench: tuple[float, np.ndarray] | None = None
        self.scheduling = ""
        self._timer = CycleTimer(self.period)
        self._time = time.monotonic()
        self._sensed = -np.inf

    def open(self) -> None:
        """See Bench; with real-time priority where that is allowed."""
        self.scheduling = schedule_realtime(_PRIORITY)
        self._bus.open()
        if self._cameras is not None:
            self._cameras.open()
        if self._sensor is not None:
            self._sensor.client.open(time.monotonic())
        self._timer = CycleTimer(self.period)

    def close(self) -> None:
        self._bus.close()
        if self._cameras is not None:
            self._cameras.close()
        if self._sensor is not None:
            self._sensor.client.close()

    @property
    def now(self) -> float:
        return self._time

    def exchange(self, volts: np.ndarray, period: float) -> Sample | None:
        """See Bench; its periods are all the same."""
        self._timer.wait()
        self._time = time.monotonic()
        sample = self._bus.exchange(volts)
        if self._cameras is not None:
            while (seen := self._cameras.take(0.0)) is not None:
                self._body = seen.time, seen.pose
        if self._sensor is not None and self._time - self._sensed >= _SENSED:
            self._sensed = self._time
            self._wrench = self._sensor.newest(self._time) or self._wrench
        return sample

    def check(self) -> str:
        return self._bus.check()

    def recover(self) -> None:
        if self._bus.check() and self._bus.check():  # one answer may be lost
            self._bus.open()
        self._timer = CycleTimer(self.period)
        self._time = time.monotonic()

    def silence(self, duration: float) -> Sample | None:
        time.sleep(duration)
        return self._bus.listen()

    def body(self) -> tuple[float, np.ndarray] | None:
        return self._body

    def wrench(self) -> tuple[float, np.ndarray] | None:
        return self._wrench

    def identity(self) -> dict[str, str]:
        terminals = ", ".join(terminal.name for terminal in self.station.terminals)
        if self.scheduling:
            terminals += f"; ordinary scheduling: {self.scheduling}"
        found = {"terminals": terminals, "cameras": "", "force_torque": ""}
        if self._cameras is not None:
            session = self._cameras.session
            server = session.server
            found["cameras"] = (
                f"{server.name}, NatNet {server.version}"
                if server
                else session.trouble(self._time) or "silent"
            )
        if self._box is not None:
            found["force_torque"] = _box_words(self._box)
        return found

    def problems(self) -> list[str]:
        if self._box is None:
            return []
        try:
            told = ask_box(*self._box)
        except BoxError as error:
            return [f"the force-torque box does not tell its settings: {error}"]
        if told.is_transformed:
            return [
                f"the force-torque box has a tool transform ({told.transform_words}), must be 0: "
                "set it to 0 on its page Configurations"
            ]
        return []


def _box_words(address: tuple[str, int]) -> str:
    """Who a box is."""
    try:
        told = ask_box(*address)
    except BoxError as error:
        return f"silent: {error}"
    return f"Net F/T, calibration {told.calibration_serial or 'unknown'}"
