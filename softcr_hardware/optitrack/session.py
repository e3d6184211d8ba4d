"""A conversation with a NatNet server, without sockets and without a clock: bytes in, bytes out.

CONNECT until the server says who it is, then once a second a keep-alive, without which a unicast
server forgets us, and a request for its model definitions, which tell when a body is renamed. A
server that sends no more frames is asked to CONNECT again, further and further apart. Frames of a
recording that Motive plays back (Edit mode) are refused: what they show is not what happens now.
"""

import math
from collections import Counter, deque
from dataclasses import dataclass

import numpy as np

from softcr_hardware.backoff import Backoff
from softcr_hardware.clock import ServerClock
from softcr_hardware.optitrack.calibration import MocapCalibration, pose_matrix
from softcr_hardware.optitrack.protocol import (
    CONNECT,
    DATA_PORT,
    KEEP_ALIVE,
    MODEL_DEFINITIONS,
    MODEL_REQUEST,
    MULTICAST_GROUP,
    OLDEST_VERSION,
    Definitions,
    Frame,
    ProtocolError,
    ServerInfo,
    in_a_line,
    is_finite,
    message_of,
    read,
    request,
)
from softcr_hardware.optitrack.tracking import BodyTracker

MID_EXPOSURE, DATA_RECEIVED = "mid-exposure", "data received"
"""Which of a server's stamps tells when the cameras saw a frame."""

RECEIVED_LATENCY = 1 / 120
"""From the middle of an exposure until Motive has the data, where no stamp tells [s]: a period of
120 Hz, in which a USB camera sends its data. Nobody has measured it."""

SILENCE = 1.0
"""A server that says nothing for so long is asked for anew [s]."""

_ALIVE = 1.0  # [s] between keep-alives and requests for definitions
_FIRST_PAUSE, _LONGEST_PAUSE = 0.25, 5.0  # [s] between attempts to connect
_RATE_WINDOW = 1.0  # [s] over which the frame rate is counted
_PATIENCE = 0.1  # [s] without a pose before its absence is told: a lost frame is no trouble
_MOST_NAMES = 10  # of bodies that are listed
_KEPT = 1.0  # [s] of raw poses for calibration


@dataclass(frozen=True)
class Stream:
    """How frames are to come.

    Attributes:
        multicast: whether to a group, otherwise to whoever asked.
        group, port: of that group.
    """

    multicast: bool = False
    group: str = MULTICAST_GROUP
    port: int = DATA_PORT

    def difference(self, server: ServerInfo) -> str:
        """What the server does otherwise, in a line; empty if nothing."""
        if not self.multicast:
            if server.group:
                return f"Motive sends multicast to {server.group}, the node waits for unicast"
            return ""
        ours = f"the node waits for multicast to {self.group} port {self.port}"
        if not server.group:
            return f"Motive sends unicast, {ours}"
        if (server.group, server.data_port) != (self.group, self.port):
            return f"Motive sends multicast to {server.group} port {server.data_port}, {ours}"
        return ""


@dataclass(frozen=True, eq=False)
class TipPose:
    """A believed pose.

    Attributes:
        time: middle of the exposure, on our clock [s]; where the server does not tell it, from when
            it had the cameras' data.
        pose: (4, 4) tip in the base frame [m].
        latency: from the exposure to the server's sending it [s].
    """

    time: float
    pose: np.ndarray
    latency: float


class NatNetSession:
    """What is known of a server and its bodies.

    Attributes:
        calibration: in use; replace it at will.
        clock, tracker: read them.
        server: None before it has answered.
        bodies: id of each body by name, as last told.
        body_id: of the body that is followed; None while there is none of its name.
        refused: datagrams and frames, by reason, without those of the tracker.
        foreign: datagrams of other addresses than the server's, which nobody read, by address.
        connections: times the server answered CONNECT after it was unknown or sent no frames.
        renamed: times the body's name went to another id, or away.
        models_changed: times Motive said that its tracked models changed.
        latency: of the newest frame, exposure to sending [s].
        stamps: MID_EXPOSURE or DATA_RECEIVED, which the newest frame was timed by; empty for none.
        frame: the newest; None before it.
    """

    def __init__(
        self,
        body: str,
        calibration: MocapCalibration,
        tracker: BodyTracker,
        most_attempts: int = 1000,
        stream: Stream | None = None,
        received_latency: float = RECEIVED_LATENCY,
    ):
        """Nothing said yet.

        Args:
            body: name of the tip's rigid body, or its id as digits.
            calibration: of cameras and body.
            tracker: judges its poses.
            most_attempts: to connect, before the server is left alone.
            stream: how frames are to come, which the server's words are compared with.
            received_latency: from the middle of an exposure until the server has the cameras' data,
                where it does not tell the exposure [s].
        """
        self.calibration, self.tracker = calibration, tracker
        self.clock = ServerClock()
        self.server: ServerInfo | None = None
        self.bodies: Definitions = {}
        self.body_id = int(body) if body.isdigit() else None
        self.refused: Counter[str] = Counter()
        self.foreign: Counter[str] = Counter()
        self.connections = self.renamed = self.models_changed = 0
        self.latency = math.nan
        self.stamps = ""
        self.frame: Frame | None = None
        self._body = body
        self._stream = stream
        self._received_latency = received_latency
        self._refusal = ""  # of the newest frame, before its bodies are looked at
        self._unread = ""  # why the newest model definitions were not read
        self._heard = -math.inf  # a frame, or who the server is
        self._framed = -math.inf  # a frame
        self._waiting: float | None = None  # since the server's first answer without a frame
        self._answered = self._alive = self._believed = -math.inf
        self._connected = False
        self._backoff = Backoff(_FIRST_PAUSE, _LONGEST_PAUSE, most_attempts)
        self._times: deque[float] = deque()  # frames received
        self._raw: deque[tuple[float, Frame]] = deque()

    # --- out ----------------------------------------------------------------------------------

    def due(self, now: float) -> list[bytes]:
        """Datagrams to send at `now` [s]."""
        if self._connected and now - self._heard > SILENCE:
            self._connected = False
            self._backoff.lost(now - _FIRST_PAUSE)
        if not self._connected:
            return [request(CONNECT)] if self._backoff.due(now) else []
        if now - self._alive < _ALIVE:
            return []
        self._alive = now
        return [request(KEEP_ALIVE), request(MODEL_REQUEST)]

    # --- in -----------------------------------------------------------------------------------

    def receive(self, now: float, datagram: bytes) -> TipPose | None:
        """A datagram of the server at `now` [s]; a pose if it brought one that is believed."""
        try:
            said = read(datagram, self.server.version if self.server else None)
        except ProtocolError as error:
            self.refused[str(error)] += 1
            if message_of(datagram) == MODEL_DEFINITIONS:
                self._unread = str(error)
            return None
        if isinstance(said, ServerInfo):
            self._meet(now, said)
        elif isinstance(said, dict):
            self._answered = now
            self._learn(said)
        elif said is not None:
            return self._see(now, said)
        return None

    def ignore(self, source: str) -> None:
        """A datagram came from another address than the server's."""
        known = source in self.foreign or len(self.foreign) < _MOST_NAMES
        self.foreign[source if known else "others"] += 1

    def _meet(self, now: float, server: ServerInfo) -> None:
        if server.version[:2] < OLDEST_VERSION:
            self.refused["protocol older than 3.0"] += 1
            return
        if self.server is not None and server.frequency != self.server.frequency:
            self.clock.forget()
        self.server = server
        self._heard = self._answered = now
        self._waiting = now if self._waiting is None else self._waiting
        if not self._connected:
            self._connected = True
            self._alive = -math.inf
            self.connections += 1

    def _learn(self, bodies: Definitions) -> None:
        self.bodies, self._unread = bodies, ""
        if self._body.isdigit():
            return
        before, self.body_id = self.body_id, bodies.get(self._body)
        self.renamed += before is not None and self.body_id != before

    def _see(self, now: float, frame: Frame) -> TipPose | None:
        assert self.server is not None  # frames are not read before the server is known
        sent = frame.transmitted / self.server.frequency
        if not self.clock.see(sent, now):
            return self._refuse("another clock")
        self._heard = self._framed = now
        self._connected, self._waiting = True, None
        self._note(frame)
        self._times.append(now)
        self._let_go(now)
        exposed = self._exposed(frame, self.server.frequency)
        if frame.edit:
            return self._refuse("Motive is in Edit mode: it plays a recording back")
        if exposed is None:
            return self._refuse("no stamp: neither mid-exposure nor data received")
        if exposed > sent:
            return self._refuse("exposed after it was sent")
        self._refusal = ""
        self.latency = sent - exposed
        time = self.clock.local(exposed)
        self._raw.append((now, frame))
        body = None if self.body_id is None else frame.bodies.get(self.body_id)
        pose = self.tracker.see(time, now - time, body, self.calibration)
        if pose is None:
            return None
        self._believed = now
        return TipPose(time, pose, self.latency)

    def _refuse(self, reason: str) -> TipPose | None:
        self.refused[reason] += 1
        self._refusal = reason
        return None

    def _note(self, frame: Frame) -> None:
        """What a frame says of Motive; when its models change they are asked for at once."""
        if frame.models_changed and not (self.frame is not None and self.frame.models_changed):
            self.models_changed += 1
            self._alive = -math.inf
        self.frame = frame

    def _exposed(self, frame: Frame, frequency: float) -> float | None:
        """Middle of the exposure on the server's clock [s]; None if no stamp tells."""
        self.stamps = MID_EXPOSURE if frame.exposed else DATA_RECEIVED if frame.received else ""
        if frame.exposed:
            return frame.exposed / frequency
        return frame.received / frequency - self._received_latency if frame.received else None

    def _let_go(self, now: float) -> None:
        while self._times and self._times[0] < now - _RATE_WINDOW:
            self._times.popleft()
        while self._raw and self._raw[0][0] < now - _KEPT:
            self._raw.popleft()

    # --- what a person should know ------------------------------------------------------------

    def rate(self, now: float) -> float:
        """Frames per second, of the last second [Hz]."""
        return sum(time > now - _RATE_WINDOW for time in list(self._times)) / _RATE_WINDOW

    def trouble(self, now: float) -> str:
        """Why there are no poses, in a line; empty if there are."""
        waiting = self._waiting is not None and now - self._waiting <= SILENCE
        if now - self._framed > SILENCE and not waiting:
            if now - self._answered <= 2 * SILENCE:
                return f"no frames, but the server answers{self._why(': ')}{self._whose()}"
            gave_up = f", gave up after {self._backoff.attempts} attempts"
            return f"server silent{gave_up if self._backoff.given_up else ''}{self._whose()}"
        if self._refusal and now - self._believed > _PATIENCE:
            return self._refusal
        if self.body_id is None and self._unread:
            return (
                f"model definitions cannot be read ({self._unread}): give the body by its id, with "
                f"which Motive lists it, instead of {self._body!r}"
            )
        if self.body_id is None:
            names = sorted(map(in_a_line, self.bodies))
            known = ", ".join(names[:_MOST_NAMES]) or "none"
            more = f", and {len(names) - _MOST_NAMES} more" if len(names) > _MOST_NAMES else ""
            return f"no body {self._body!r} at the server; there are: {known}{more}"
        return self.tracker.trouble if now - self._believed > _PATIENCE else ""

    @property
    def mode(self) -> str:
        """Motive's: live, recording or edit; empty while unknown."""
        if self.frame is None:
            return ""
        return "edit" if self.frame.edit else "recording" if self.frame.recording else "live"

    @property
    def difference(self) -> str:
        """How the server streams otherwise than we listen, in a line; empty if it does not."""
        if self.server is None or self._stream is None:
            return ""
        return self._stream.difference(self.server)

    def _why(self, before: str) -> str:
        return before + self.difference if self.difference else ""

    def _whose(self) -> str:
        """Who else has sent something; without how much, for each new line is logged."""
        if not self.foreign:
            return ""
        (source, _), *_ = self.foreign.most_common(1)
        return (
            f"; datagrams came from {source}: give that as server, or set Motive's Local Interface"
        )

    def recent(self, body: str) -> np.ndarray:
        """(N, 4, 4) poses of a body in the cameras' world during the last second, unjudged but for
        being tracked poses."""
        number = int(body) if body.isdigit() else self.bodies.get(body)
        seen = [frame.bodies[number] for _, frame in list(self._raw) if number in frame.bodies]
        poses = [
            pose_matrix(one.position, one.quaternion)
            for one in seen
            if one.tracked and is_finite(one) and any(one.quaternion)
        ]
        return np.array(poses).reshape(-1, 4, 4)
