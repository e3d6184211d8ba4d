"""A Motive-like server, a session and safety on one virtual clock: bytes, but no sockets."""

import math
from dataclasses import replace

import numpy as np

from softcr_hardware.optitrack.calibration import load_calibration
from softcr_hardware.optitrack.emulator import MotiveServer
from softcr_hardware.optitrack.session import RECEIVED_LATENCY, NatNetSession
from softcr_hardware.optitrack.tracking import BodyTracker, TrackingLimits
from softcr_hardware.safety.safety import Flags, Safety
from softcr_hardware.safety.settings import SafetySettings

CALIBRATION = load_calibration("licher2025")
CLIENT = ("client", 1)
STEP = 0.001

RESTING = np.eye(4)
RESTING[2, 3] = 0.158

HEALTHY = Flags(
    operator_pressed=True,
    operator_age=0.0,
    command_age=0.0,
    mocap_age=0.0,
    force_torque_age=0.0,
    exchange_age=0.0,
    slaves_operational=True,
    watchdog_armed=True,
    pressure_age=0.0,
    highest_pressure=0.0,
    pressure_error=0.0,
)
"""Everything else on the bench is well."""


def enabled_safety(time):
    """A safety machine, enabled at `time` [s]."""
    safety = Safety(SafetySettings(), 1e5)
    safety.update(time - 401 * STEP, replace(HEALTHY, operator_pressed=False))
    for step in range(400, 0, -1):
        safety.update(time - step * STEP, HEALTHY)
    assert safety.update(time, replace(HEALTHY, enable=True)).enabled
    return safety


class Stage:
    """What the tip does is `motion`; delays and losses of the network are its own."""

    def __init__(
        self,
        body="tip",
        version=(4, 1),
        limits=None,
        start=1000.0,
        skew=0.0,
        group="",
        stream=None,
        received_latency=None,
    ):
        self.now = start
        self.noise = np.random.default_rng(0)
        self.motion = lambda time: np.array([0.0, 0.0, 0.158])
        self.server = MotiveServer(
            self._tip, CALIBRATION, version=version, group=group, start=start
        )
        self.tracker = BodyTracker(limits or TrackingLimits(), RESTING)
        latency = RECEIVED_LATENCY if received_latency is None else received_latency
        self.session = NatNetSession(
            body, CALIBRATION, self.tracker, 8, stream=stream, received_latency=latency
        )
        self.poses = []
        self.safety = None
        self.posed = -math.inf
        self.sent = []
        self.delay = lambda: 2e-4
        self._skew, self._start = skew, start
        self._way = []

    def _tip(self, server_time):
        pose = np.eye(4)
        pose[:3, 3] = self.motion(self.local(server_time))
        pose[:3, 3] += 1e-5 * self.noise.standard_normal(3)
        return pose

    def local(self, server_time):
        """The server's clock runs fast by `skew`."""
        return self._start + (server_time - self._start) / (1.0 + self._skew)

    def run(self, duration):
        """Let time pass; returns the poses of it."""
        before = len(self.poses)
        for _ in range(round(duration / STEP)):
            self.now += STEP
            server_now = self._start + (self.now - self._start) * (1.0 + self._skew)
            for request in self.session.due(self.now):
                self.sent.append(request)
                if answer := self.server.answer(server_now, request, CLIENT):
                    self._way.append((self.now + self.delay(), answer))
            frames = self.server.frames(server_now)
            if self.server.clients(server_now):
                self._way += [(self.now + self.delay(), frame) for frame in frames]
            self._arrive()
            if self.safety is not None:
                self.safety.update(self.now, replace(HEALTHY, mocap_age=self.now - self.posed))
        return self.poses[before:]

    def _arrive(self):
        arrived = [item for item in self._way if item[0] <= self.now]
        self._way = [item for item in self._way if item[0] > self.now]
        for time, datagram in sorted(arrived, key=lambda item: item[0]):
            if pose := self.session.receive(time, datagram):
                self.poses.append(pose)
                self.posed = pose.time  # as the valves count it: from the exposure

    def started(self):
        """Poses flow and the valves are enabled."""
        assert self.run(1.0)
        self.safety = enabled_safety(self.now)
        return self

    @property
    def trouble(self):
        return self.session.trouble(self.now)
