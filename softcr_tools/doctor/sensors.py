"""Cameras and force-torque sensor, asked over the network: pure checks, and the questions."""

import socket
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from softcr_models.errors import UserError
from softcr_tools.doctor.finding import FAIL, WARN, Finding, judged

if TYPE_CHECKING:
    from softcr_hardware.force_torque.box import BoxSettings
    from softcr_hardware.force_torque.mounting import Mounting
    from softcr_hardware.optitrack.protocol import ServerInfo

ANSWER_TIME = 1.0
"""How long a device is given to answer [s]."""

LISTENED = 1.2
"""How long the cameras' frames are listened to [s]."""


# --- OptiTrack ----------------------------------------------------------------------------------


def optitrack(address: str, port: int | None = None) -> list[Finding]:
    """Motive, asked who it is, and its frames, listened to for a moment."""
    answer = error = ""
    server = None
    if address:
        try:
            server = _ask_motive(address, port)
            answer = f"{server.name}, NatNet {'.'.join(map(str, server.version))}"
        except (OSError, ImportError) as problem:
            error = _why(problem)
        except UserError as problem:
            error = str(problem)
    who = check_device("OptiTrack server", "--optitrack", address, answer, error)
    if server is None:
        return [who]
    return [who, check_frames(listen(address, port, server))]


def _ask_motive(address: str, port: int | None) -> "ServerInfo":
    """Raises OSError and UserError where there is no answer, or none of Motive."""
    from softcr_hardware.optitrack import protocol

    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as asking:
        asking.settimeout(ANSWER_TIME)
        asking.connect((address, protocol.COMMAND_PORT if port is None else port))
        asking.send(protocol.request(protocol.CONNECT))
        try:
            server = protocol.read(asking.recv(65536), None)
        except protocol.ProtocolError as problem:
            raise UserError(f"answers with invalid data: {problem}") from None
    if not isinstance(server, protocol.ServerInfo):
        raise UserError("answers, but does not identify itself")
    return server


@dataclass(frozen=True)
class Frames:
    """What was heard of the cameras' frames.

    Attributes:
        rate: of frames [Hz].
        mode: of Motive: live, recording or edit; empty without a frame.
        stamps: which tells when the cameras saw it; empty for none.
        bodies: names of the rigid bodies.
        way: how they are streamed.
    """

    rate: float = 0.0
    mode: str = ""
    stamps: str = ""
    bodies: tuple[str, ...] = ()
    way: str = "unicast"


def listen(address: str, port: int | None, server: "ServerInfo") -> Frames:
    """The frames of a server, in the way in which it says that it streams; nobody is disturbed."""
    from softcr_hardware.optitrack.calibration import MocapCalibration, Placement
    from softcr_hardware.optitrack.client import Address, NatNetClient
    from softcr_hardware.optitrack.protocol import COMMAND_PORT, MULTICAST_GROUP, in_a_line
    from softcr_hardware.optitrack.session import NatNetSession
    from softcr_hardware.optitrack.tracking import BodyTracker, TrackingLimits

    nowhere = MocapCalibration(base_in_world=Placement())
    session = NatNetSession("tip", nowhere, BodyTracker(TrackingLimits()))
    way = f"multicast to {server.group} port {server.data_port}" if server.group else "unicast"
    where = Address(
        socket.gethostbyname(address),
        multicast=bool(server.group),
        group=server.group or MULTICAST_GROUP,
        command_port=COMMAND_PORT if port is None else port,
        data_port=server.data_port,
    )
    try:
        client = NatNetClient(session, where)
        client.open()
    except UserError as problem:
        return Frames(way=f"{way}: {problem}")
    time.sleep(LISTENED)
    rate = session.rate(time.monotonic())
    client.close()
    bodies = tuple(sorted(map(in_a_line, session.bodies)))
    return Frames(rate, session.mode, session.stamps, bodies, way)


def check_frames(frames: Frames) -> Finding:
    """Whether the frames are of what happens now, and say when they were exposed."""
    bodies = ", ".join(frames.bodies) or "no rigid body"
    found = f"{frames.way}, {frames.rate:.0f} Hz, {frames.mode}, stamps {frames.stamps}; {bodies}"
    return judged("OptiTrack frames", found,
        (not frames.mode, FAIL, f"none within {LISTENED:g} s, {frames.way}",
         "switch Broadcast Frame Data on in Motive's streaming pane, to this machine's interface"),
        (frames.mode == "edit", FAIL, f"{found}: Motive plays a recording back",
         "switch Motive to Live"),
        (not frames.stamps, FAIL, f"{found}none: no pose can be timed", "switch Motive to Live"),
        (not frames.bodies, WARN, found,
         "make a rigid body of the tip's markers in Motive, and switch its streaming on"),
        (frames.stamps != "mid-exposure", WARN,
         f"{found}: USB cameras? poses are stamped by when Motive had the data",
         "measure the node's parameter received_latency, or use Ethernet cameras")
    )  # fmt: skip


# --- force and torque ---------------------------------------------------------------------------


def force_torque(address: str, port: int | None = None, mounting: str = "") -> list[Finding]:
    """The Net F/T box, asked for its settings, against a mounting's file."""
    from softcr_hardware.force_torque.box import BoxError, ask_box
    from softcr_hardware.force_torque.mounting import load_mounting

    box, error = None, ""
    host, told_port = host_and_port(address) if address else ("", None)
    if address:
        try:
            box = ask_box(host, port or told_port or 80, ANSWER_TIME)
        except BoxError as problem:
            error = str(problem)
    answer = box_words(box) if box else ""
    who = check_device("force-torque sensor", "--force-torque", host, answer, error)
    if box is None:
        return [who]
    try:
        kept = load_mounting(mounting) if mounting else None
    except UserError:  # told of beside its file
        kept = None
    return [who, check_box(box, kept, mounting)]


def host_and_port(address: str) -> tuple[str, int | None]:
    """The two parts of HOST or HOST:PORT; None for a port that is not given.

    Raises:
        UserError: the address is neither.
    """
    try:
        parts = urlsplit(f"//{address}")
        host, port = parts.hostname, parts.port
    except ValueError:
        host = port = None
    if not host or parts.netloc != address or "@" in address:
        raise UserError(
            f"--force-torque {address}: must be HOST or HOST:PORT, where an IPv6 host stands in "
            "brackets, as [::1]:80"
        )
    return host, port


def box_words(box: "BoxSettings") -> str:
    """A box and its sensor, in a line."""
    rate = "unknown rate" if box.rate is None else f"{box.rate:.0f} records/s"
    return (
        f"{box.product or 'Net F/T'}, serial {box.serial or 'unknown'}, "
        f"firmware {box.firmware or 'unknown'}, configuration {box.configuration or 'unknown'}, "
        f"calibration {box.calibration_serial or 'unknown'}, {rate}"
    )


def check_box(box: "BoxSettings", mounting: "Mounting | None", name: str) -> Finding:
    """Whether what the box makes of the sensor's signals is what the node expects."""
    refusal = mounting.refusal(box, name) if mounting else ""
    bias = mounting.bias if mounting else None
    spoiled = bias.problem(box, bias.to) if bias else ""
    kept = f"bias of {bias.taken:%Y-%m-%d}" if bias else "no bias kept"
    found = f"no tool transform, no software bias, no filter; {kept}"
    transform = f"tool transform {box.transform_words}"
    return judged("force-torque settings", found,
        (box.is_transformed, FAIL, f"{transform}: readings are in another frame",
         f"set it to 0 on the box's page Configurations, and how the sensor is mounted in {name}"),
        (refusal, FAIL, refusal, f"if this is the right sensor, edit calibration_serial of {name}"),
        (box.tool_transform is None, WARN, f"{transform}: the box does not report it",
         "look at its page Configurations: it must be 0"),
        (spoiled, WARN, f"{spoiled}: left out", "vent, then call /force_torque/bias"),
        (box.filter, WARN, f"low-pass filter number {box.filter}: its delay is unknown",
         "set it to none on the box's page Settings; the delay of the node's low_pass_hz is known"),
        (box.is_biased and not bias, WARN,
         f"software bias {' '.join(map(str, box.software_bias or ()))}: forgotten when it is "
         "switched off",
         "clear it on the box's page Settings, vent, then call /force_torque/bias")
    )  # fmt: skip


# --- both ---------------------------------------------------------------------------------------


def check_device(name: str, option: str, address: str, answer: str, error: str) -> Finding:
    """Whether a device answers at its address, which an option of the command line tells."""
    return judged(name, f"{address}: {answer}",
        (not address, WARN, "not asked: no address given", f"softcr doctor {option} ADDRESS"),
        (error, FAIL, f"{address}: {error}",
         f"check that it is on and its cable: ping {address}")
    )  # fmt: skip


def _why(error: Exception) -> str:
    if isinstance(error, TimeoutError) or "timed out" in str(error):
        return f"no answer within {ANSWER_TIME:g} s"
    return str(getattr(error, "strerror", None) or error)
