"""NatNet on the wire: our reading, our server, and the client of the natnet package, over UDP."""

import contextlib
import os
import socket
import struct
import time
from contextlib import contextmanager
from random import Random

import natnet
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from kit.bench import CALIBRATION, RESTING, Stage
from kit.processes import running, until

from softcr_hardware.optitrack.client import Address, NatNetClient
from softcr_hardware.optitrack.emulator import FREQUENCY, MotiveEmulator, MotiveServer
from softcr_hardware.optitrack.protocol import (
    CONNECT,
    KEEP_ALIVE,
    MODEL_REQUEST,
    Frame,
    ProtocolError,
    ServerInfo,
    read,
    request,
)
from softcr_hardware.optitrack.session import NatNetSession
from softcr_hardware.optitrack.tracking import BodyTracker, TrackingLimits
from softcr_models.errors import UserError

FUZZED = int(os.environ.get("SOFTCR_FUZZ", "3000"))  # a million once: docs/contributing.md
VERSIONS = [(3, 0), (3, 1), (4, 0), (4, 1), (4, 2)]
US = ("us", 1)


def new_server(version=(4, 1), **options):
    noise = np.random.default_rng(0)

    def tip(_):
        pose = RESTING.copy()
        pose[:3, 3] += 1e-5 * noise.standard_normal(3)
        return pose

    return MotiveServer(tip, CALIBRATION, version=version, **options)


def datagrams(version=(4, 1), **settings):
    """One of each kind that a server sends."""
    server = new_server(version)
    for name, value in settings.items():
        server.set(name.replace("_", "-"), value)
    info = server.answer(0.0, request(CONNECT), US)
    definitions = server.answer(0.0, request(MODEL_REQUEST), US)
    return info, definitions, server.frames(0.1)[0]


@pytest.mark.parametrize("version", VERSIONS)
def test_what_the_server_packs_is_read_as_it_was_meant(version):
    info, definitions, frame = datagrams(version)
    assert read(info, None) == ServerInfo("Motive", (*version, 0, 0), FREQUENCY, 1511, "")
    assert read(definitions, version) == {"tip": 1}
    seen = read(frame, version)
    assert isinstance(seen, Frame)
    assert (seen.number, seen.exposed, seen.transmitted) == (1, 0, 1_000_000)
    world = CALIBRATION.body(RESTING)
    assert np.allclose(seen.bodies[1].position, world[:3, 3], atol=1e-4)
    assert seen.bodies[1].tracked
    for mode in ("live", "recording", "edit"):  # a frame says what Motive does
        seen = read(datagrams(version, mode=mode)[2], version)
        assert (seen.recording, seen.edit) == (mode == "recording", mode == "edit")
        assert not seen.models_changed
    # stamps that the server does not have are 0
    for stamps, known in (("mid-exposure", (1, 1)), ("received", (0, 1)), ("none", (0, 0))):
        server = new_server(version)
        server.set("stamps", stamps)
        seen = read(server.frames(0.1)[-1], version)
        assert (bool(seen.exposed), bool(seen.received)) == known
        assert seen.exposed <= (seen.received or seen.exposed) <= seen.transmitted


def test_nothing_is_read_before_the_server_told_its_version_and_its_group():
    _, definitions, frame = datagrams()
    assert read(frame, None) is None
    assert read(definitions, None) is None
    assert read(request(KEEP_ALIVE), (4, 1)) is None
    server = new_server(group="239.255.42.99")
    assert read(server.answer(0.0, request(CONNECT), US), None).group == "239.255.42.99"


def cut(datagram, size):
    """The first bytes of a datagram, its header mended."""
    return datagram[:2] + struct.pack("<H", size - 4) + datagram[4:size]


@pytest.mark.parametrize("mode", ["live", "edit"])
def test_version_4_0_may_have_precision_stamps_before_the_parameters(mode):
    frame = datagrams((4, 0), mode=mode)[2]
    precise = frame[:-6] + struct.pack("<II", 0xFFFF, 0xFFFF) + frame[-6:]
    precise = precise[:2] + struct.pack("<H", len(precise) - 4) + precise[4:]
    seen = read(precise, (4, 0))
    assert (seen.edit, seen.recording) == (mode == "edit", False)
    assert seen == read(frame, (4, 0))


@pytest.mark.parametrize("version", VERSIONS)
def test_a_force_plate_beside_the_body_is_read_past(version):
    """Four corners of three numbers, as the SDK writes them, before the body."""
    _, definitions, frame = datagrams(version, force_plate="yes")
    assert read(definitions, version) == {"tip": 1}
    assert read(frame, version).bodies[1].tracked
    for size in range(4, len(definitions)):
        with pytest.raises(ProtocolError):
            read(cut(definitions, size), version)


def test_what_is_new_in_a_later_motive_is_passed_over_by_its_size():
    body = datagrams((4, 1))[1][8:]
    new = struct.pack("<II", 99, 3) + b"new"
    for content in (struct.pack("<I", 2) + new + body, struct.pack("<I", 1) + body):
        assert read(struct.pack("<HH", 5, len(content)) + content, (4, 1)) == {"tip": 1}
    without_size = struct.pack("<II", 1, 99)
    with pytest.raises(ProtocolError, match="unknown kind"):
        read(struct.pack("<HH", 5, 8) + without_size, (4, 0))


def named(version, *names):
    """Model definitions of bodies 1, 2, ..., whose names are bytes."""
    _, definitions, _ = datagrams(version)
    head = 16 if version >= (4, 1) else 12  # message, size, count, kind, size of the description
    body = definitions[definitions.index(b"tip\0", head) + len(b"tip\0") + 4 :]
    described = b""
    for number, name in enumerate(names, 1):
        content = name + b"\0" + struct.pack("<i", number) + body
        size = struct.pack("<I", len(content)) if version >= (4, 1) else b""
        described += struct.pack("<I", 1) + size + content
    content = struct.pack("<I", len(names)) + described
    return struct.pack("<HH", 5, len(content)) + content


NAMES = (
    "Körper".encode("latin-1"),
    "Körper".encode(),
    "机器人".encode("gb18030"),
    b"\xff\xfe\x81\x8d",
)


@pytest.mark.parametrize("version", [(3, 1), (4, 1)])
@pytest.mark.parametrize("other", NAMES)
def test_a_name_in_any_encoding_hides_nobody(version, other):
    bodies = read(named(version, other, b"tip"), version)
    assert bodies["tip"] == 2
    assert sorted(bodies.values()) == [1, 2]
    if b"rper" in other:
        assert bodies["Körper"] == 1


def test_what_cannot_be_read_is_told_as_such():
    stage = Stage(body="Tip")
    stage.run(1.0)
    stage.session.receive(stage.now, b"\5\0\4\0\1\0\0\0")  # one description, which is missing
    assert stage.trouble.startswith("model definitions cannot be read (message 5 cannot be read): ")
    stage.session.receive(stage.now, named((4, 1), b"tip"))
    assert stage.trouble == "no body 'Tip' at the server; there are: tip"
    info, session = bytearray(datagrams()[0]), Stage().session
    for number in range(1000):  # foreign frequencies are one reason of refusal
        info[-15:-7] = struct.pack("<Q", 10**12 + number)
        session.receive(0.0, bytes(info))
    assert session.refused == {"clock frequency out of range": 1000}


@pytest.mark.parametrize("version", VERSIONS)
def test_a_datagram_cut_anywhere_is_refused_whole(version):
    info, definitions, frame = datagrams(version)
    # the end of a frame says nothing
    for datagram, needed in ((info, 0), (definitions, 0), (frame, -4)):
        for size in range(4, len(datagram) + needed):
            with pytest.raises(ProtocolError):
                read(cut(datagram, size), version)


def test_a_count_that_no_datagram_can_hold_is_refused_at_once():
    """The parsers of the package would read four thousand million empty names."""
    head = struct.pack("<II", 1, 0) + struct.pack("<I", 0)  # one marker set
    endless = head + b"set\0" + struct.pack("<I", 0xFFFFFFFF) + b"a\0"
    plate = struct.pack("<7I", 0, 0, 0, 0, 0, 0, 1) + struct.pack("<III", 1, 1, 0xFFFFFFFF)
    frame = struct.pack("<I", 1) + plate
    for message, content in ((5, endless), (7, frame)):
        with pytest.raises(ProtocolError):
            read(struct.pack("<HH", message, len(content)) + content, (4, 0))


@given(st.binary(max_size=300), st.sampled_from([None, *VERSIONS]))
def test_any_bytes_are_read_or_refused(content, version):
    for message in range(11):
        with contextlib.suppress(ProtocolError):
            read(struct.pack("<HH", message, len(content)) + content, version)


def mutated(datagram, random):
    """A datagram with some bytes changed, perhaps cut or made longer, header right or wrong."""
    noisy = bytearray(datagram)
    kind = random.randrange(4)
    if kind == 1:
        del noisy[random.randrange(1, len(noisy)) :]
    elif kind == 2:
        noisy += random.randbytes(random.randrange(1, 40))
    for _ in range(random.randrange(1, 9)):
        noisy[random.randrange(len(noisy))] = random.randrange(256)
    if kind != 3 and len(noisy) >= 4:
        noisy[2:4] = struct.pack("<H", len(noisy) - 4)
    return bytes(noisy)


def test_fuzzed_datagrams_end_in_poses_or_in_named_refusals():
    """Mutations of real datagrams, among them real ones: no exception, no NaN, no far pose."""
    random = Random(0)
    limits = TrackingLimits(rest_tolerance=0.0, frozen_after=0.0)
    believed = refused = 0
    for number in range(FUZZED):
        if number % 1000 == 0:
            version = VERSIONS[number // 1000 % len(VERSIONS)]
            server = new_server(version)
            session = NatNetSession("tip", CALIBRATION, BodyTracker(limits))
            server.set("force-plate", "yes" if number % 2000 else "no")
            info = server.answer(0.0, request(CONNECT), US)
            definitions = server.answer(0.0, request(MODEL_REQUEST), US)
            session.receive(0.0, info)
            session.receive(0.0, definitions)
            now = 0.0
        now += 1 / 120
        frame = server.frames(now)[-1:] or [info]
        datagram = (frame[0], frame[0], definitions, info)[number % 4]
        if number % 10:
            datagram = mutated(datagram, random)
        pose = session.receive(now, datagram)
        server.answer(now, mutated(request(number % 12), random), US)
        if pose is not None:
            believed += 1
            assert np.isfinite(pose.pose).all()
            assert np.isfinite([pose.time, pose.latency]).all()
            assert np.linalg.norm(pose.pose[:3, 3]) <= limits.workspace
        refused += sum(session.refused.values()) if number % 1000 == 999 else 0
        if number % 100 == 99:  # a server that was renamed by the noise tells its name again
            session.receive(now, info)
            session.receive(now, definitions)
    print(f"{FUZZED} datagrams: {refused} refused as malformed, {believed} poses believed")
    assert believed > FUZZED / 100
    assert refused > FUZZED / 5


def served(server=None, **options):
    server = server or new_server(start=time.monotonic() - 100.0)  # up for long
    return running(MotiveEmulator(server, port=0, **options))


@contextmanager
def client_of(emulator, **address):
    """A running client; it judges leniently, for this machine is busy."""
    limits = TrackingLimits(oldest=10.0, start_over=30.0, frozen_after=0.0)
    session = NatNetSession("tip", CALIBRATION, BodyTracker(limits, RESTING))
    client = NatNetClient(session, Address(command_port=emulator.port, **address))
    client.open()
    try:
        yield client
    finally:
        client.close()


def test_the_natnet_packages_own_client_understands_our_server():
    with served() as emulator:
        client = natnet.NatNetClient(command_port=emulator.port, use_multicast=False)
        frames, described = [], []
        client.on_data_frame_received_event.handlers.append(frames.append)
        client.on_data_description_received_event.handlers.append(described.append)
        client.connect(30.0)
        try:
            client.request_modeldef()

            def heard():
                client.update_sync()
                return len(frames) > 20 and described

            until(heard, "frames and descriptions")
        finally:
            client.shutdown()
    assert client.protocol_version.components == (4, 1, 0, 0)
    (body,) = described[0].rigid_bodies
    assert (body.name, body.id_num) == ("tip", 1)
    (seen,) = frames[-1].rigid_bodies
    assert seen.tracking_valid
    assert np.allclose(seen.pos, CALIBRATION.body(RESTING)[:3, 3], atol=1e-4)
    exposure = frames[-1].suffix.stamp_transmit - frames[-1].suffix.stamp_camera_mid_exposure
    assert 0.0045 * FREQUENCY <= exposure < 0.5 * FREQUENCY  # as late as it was really sent


def multicast_port(group):
    """A free port on which a datagram to a group comes back over the loopback interface."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as tried:
        tried.bind(("", 0))
        tried.settimeout(10.0)
        here = socket.inet_aton("127.0.0.1")
        try:
            member = socket.inet_aton(group) + here
            tried.setsockopt(socket.IPPROTO_IP, socket.IP_ADD_MEMBERSHIP, member)
            tried.setsockopt(socket.IPPROTO_IP, socket.IP_MULTICAST_IF, here)
            tried.sendto(b"?", (group, tried.getsockname()[1]))
            tried.recv(1)
        except OSError as error:
            pytest.skip(f"no multicast on the loopback interface: {error}")
        return tried.getsockname()[1]


@pytest.mark.network
def test_a_multicast_stream_is_read():
    group = "239.255.42.99"
    port = multicast_port(group)
    server = new_server(group=group, start=time.monotonic())
    ours = {"local": "127.0.0.1", "multicast": True, "group": group, "data_port": port}
    with served(server, group=(group, port)) as emulator, client_of(emulator, **ours) as client:
        assert until(lambda: client.take(0.1), "a pose")


def test_malformed_and_foreign_datagrams_and_sockets_that_fail_do_not_end_the_stream():
    with served() as emulator, client_of(emulator) as client:
        until(lambda: client.take(0.1), "a pose")
        (ours,) = emulator.server.clients(time.monotonic())
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as stranger:
            stranger.bind(("127.0.0.2", 0))
            stranger.sendto(datagrams()[2], ours)
        for bad in (b"", b"\7", b"\7\0\4\0abcd", b"\5\0\2\0\xff\xff"):
            emulator._socket.sendto(bad, ours)
        until(lambda: client.session.foreign == {"127.0.0.2": 1}, "the stranger is counted")
        until(lambda: sum(client.session.refused.values()) >= 4, "the malformed ones too")
        client.forget()
        assert until(lambda: client.take(0.1), "a pose")
        assert client.restarts == 0
        due = client.session.due

        def broken(now):
            client.session.due = due
            raise OSError("no such device")

        client.session.due = broken
        until(lambda: client.restarts == 1, "new sockets")
        assert client.problem == "OSError: no such device"
        # the server knows our old socket: it is asked anew once that stays silent
        client.forget()
        until(lambda: client.take(0.1), "a pose")


def test_a_server_may_come_late_go_and_come_back():
    with served() as emulator:
        port = emulator.port
        emulator.inject("off")
        with client_of(emulator) as client:
            trouble = client.session.trouble
            until(lambda: trouble(time.monotonic()) == "server silent", "silence told")
            client.session.ignore("127.0.0.2")
            assert trouble(time.monotonic()) == (
                "server silent; datagrams came from 127.0.0.2: give that as server, or set "
                "Motive's Local Interface"
            )
            emulator.inject("ok")
            until(lambda: client.take(0.1), "a pose")
            emulator.inject("reconnect")
            until(lambda: client.session.clock.epochs == 2, "the new clock")
            client.forget()
            until(lambda: client.take(0.1), "a pose")
            assert client.session.connections >= 2
        assert port == emulator.port


@pytest.mark.parametrize(
    ("address", "says"),
    [
        ({"server": "motive"}, "server 'motive': must be an IP address"),
        ({"local": "1.2.3"}, "local '1.2.3': must be an IP address"),
        ({"multicast": True, "group": "10.0.0.1"}, "group '10.0.0.1': must be from 224.0.0.0"),
    ],
)
def test_an_address_that_is_none_is_one_line(address, says):
    with pytest.raises(UserError, match=says):
        NatNetClient(Stage().session, Address(**address))


def test_an_interface_that_is_not_ours_and_a_port_that_is_taken_are_one_line():
    client = NatNetClient(Stage().session, Address(local="192.0.2.1"))
    with pytest.raises(UserError, match=r"local 192\.0\.2\.1: cannot be listened on"):
        client.open()
    with served() as emulator, pytest.raises(UserError, match=f"port {emulator.port}: "):
        MotiveEmulator(new_server(), port=emulator.port)
