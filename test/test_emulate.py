"""`softcr emulate`: all devices on one actuator, as a process and piece by piece."""

import json
import signal
import struct
import subprocess
import sys
import time
from contextlib import contextmanager

import numpy as np
import pytest
from kit.bench import CALIBRATION
from kit.processes import free_port, until

from softcr_hardware.emulation.actuator import EmulatedActuator
from softcr_hardware.emulation.chambers import ChamberErrors
from softcr_hardware.emulation.command import _Bench, _inject
from softcr_hardware.emulation.sensors import EmulatedSensors
from softcr_hardware.ethercat.terminals import load_station
from softcr_hardware.force_torque.box import ask_box
from softcr_hardware.force_torque.client import NetFtClient
from softcr_hardware.force_torque.emulator import NetFtBox
from softcr_hardware.optitrack.client import Address, NatNetClient
from softcr_hardware.optitrack.emulator import MotiveServer
from softcr_hardware.optitrack.protocol import read
from softcr_hardware.optitrack.session import NatNetSession
from softcr_hardware.optitrack.tracking import BodyTracker, TrackingLimits
from softcr_models import load_robot
from softcr_models.errors import UserError
from softcr_simulation.errors.plant_errors import PlantErrors
from softcr_simulation.plant import SimulatedPlant

STATION = load_station("licher2025")
SOFTCR = [sys.executable, "-c", "import sys, softcr_tools.cli as cli; sys.exit(cli.main())"]


def test_what_the_valves_do_the_cameras_see_and_the_sensor_feels():
    plant = SimulatedPlant(load_robot("licher2025"), PlantErrors.noiseless(), intervals=4)
    actuator = EmulatedActuator(STATION, plant)
    actuator.see(0.0)
    server = MotiveServer(lambda time: actuator.see(time).tip_pose, CALIBRATION)
    box = NetFtBox(lambda time: actuator.seen.wrench, rate=100.0)
    box.client = ("us", 1)
    tips, wrenches = [], []
    for step in range(400):
        now = 0.005 * step
        actuator.advance(now, np.array([6.0, 5.0, 5.0] if step < 40 else [5.0] * 3))
        for frame in server.frames(now):
            body = read(frame, (4, 1)).bodies[1]
            tips.append(np.linalg.inv(CALIBRATION.base_in_world.pose) @ [*body.position, 1.0])
        wrenches += [struct.unpack(">III6i", record)[3:] for record in box.records(now)]
    assert actuator.pressures[0] > 1e4
    assert np.abs(tips[0][:2]).max() < 1e-4  # straight, as Motive's bytes have it
    assert np.abs(tips[-1][:2]).max() > 5e-3  # bent
    assert np.allclose(tips[-1][:3], actuator.seen.true_tip_pose[:3, 3], atol=2e-3)
    moment = np.array(wrenches)[:, 3:] * 1e-6
    assert np.linalg.norm(moment[-1]) > np.linalg.norm(moment[0]) + 5e-3
    assert np.allclose(moment[-1], actuator.seen.wrench[3:], atol=3e-3)


def cameras_at(port):
    session = NatNetSession("tip", CALIBRATION, BodyTracker(TrackingLimits(oldest=10.0)))
    return NatNetClient(session, Address(command_port=port))


class Noted:
    """A device that notes its faults."""

    def __init__(self):
        self.kinds, self.settings = [], {}
        self.inject = self.kinds.append
        self.set = self.settings.__setitem__


def test_options_of_the_chambers_become_errors_of_the_plant():
    given = _Bench(fill_gain=0.9, dead_band_error=0.01, supply_droop=0.05, leak=0.2)
    errors = ChamberErrors(fill_gain=0.9, dead_band=0.01, droop=0.05, leak=0.2)
    assert given.chamber_errors() == errors


def test_faults_of_pressures_are_typed_behind_their_word():
    sensors = EmulatedSensors(("left", "right"))
    devices = {"optitrack": Noted(), "force-torque": Noted()}
    typed = {"pressure": sensors.type}
    for line in ("pressure 2 stuck", "pressure left offset -1 kPa/s", "pressure swapped 1 2"):
        _inject(devices, line.split(), typed)
    assert sensors.lying
    _inject(devices, ["pressure", "ok"], typed)
    assert not sensors.lying
    with pytest.raises(UserError, match="fault 'tired': unknown; known are frozen, stopped"):
        _inject(devices, ["pressure", "1", "tired"], typed)
    with pytest.raises(UserError, match="DEVICE optitrack, force-torque, pressure"):
        _inject(devices, ["camera", "off"], typed)


def test_faults_are_typed_with_the_device_where_there_are_several():
    one = {"optitrack": Noted()}
    _inject(one, ["off"], {})
    _inject(one, ["optitrack", "ok"], {})
    assert one["optitrack"].kinds == ["off", "ok"]
    two = {"optitrack": Noted(), "force-torque": Noted()}
    _inject(two, ["force-torque", "slow"], {})
    assert two["force-torque"].kinds == ["slow"]
    _inject(one, ["mode", "edit"], {})
    _inject(two, ["optitrack", "mode", "live"], {})
    assert one["optitrack"].settings == {"mode": "edit"}
    assert two["optitrack"].settings == {"mode": "live"}
    for words in (["slow"], ["ethercat", "slow"], ["optitrack"], ["optitrack", *"abc"]):
        with pytest.raises(UserError, match="FAULT or DEVICE SETTING VALUE, DEVICE optitrack, for"):
            _inject(two, words, {})
    del two["optitrack"].set
    with pytest.raises(UserError, match="'optitrack mode edit': optitrack has no settings"):
        _inject(two, ["optitrack", "mode", "edit"], {})


def test_motive_may_be_emulated_as_it_is_with_usb_cameras_or_in_edit_mode():
    port = free_port()
    options = ["--stamps", "received", "--force-plate"]
    cameras = cameras_at(port)
    with command("optitrack", "--command-port", port, *options) as process:
        cameras.open()
        try:
            until(lambda: cameras.take(0.1), "a pose")
            assert cameras.session.stamps == "data received"
            print("mode edit", file=process.stdin, flush=True)
            until(lambda: cameras.session.mode == "edit", "Edit mode")
        finally:
            cameras.close()


def test_a_box_may_be_emulated_turned_transformed_and_with_any_name():
    records, page = free_port(), free_port()
    options = ["--tool-transform", "0;0;5;0;0;0", "--calibration-serial", "FT9"]
    options += ["--product-name", "latin", "--sensor-yaw", 90]
    with command("force-torque", "--rdt-port", records, "--http-port", page, *options) as process:
        told = ask_box("127.0.0.1", page)
        assert (told.calibration_serial, told.is_transformed) == ("FT9", True)
        assert not told.product.isascii()
        print("serial FT10", file=process.stdin, flush=True)
        until(lambda: ask_box("127.0.0.1", page).calibration_serial == "FT10", "another serial")


@contextmanager
def command(*arguments):
    """`softcr emulate ...` as a process that has begun."""
    words, pipe = [*SOFTCR, "emulate", *map(str, arguments)], subprocess.PIPE
    process = subprocess.Popen(words, stdin=pipe, stderr=pipe, text=True)
    try:
        said = [process.stderr.readline()]
        while said[-1] and "emulating" not in said[-1]:
            said.append(process.stderr.readline())
        assert said[-1], said
        yield process
    finally:
        process.kill()
        process.wait()
        process.stdin.close()
        process.stderr.close()


def test_the_bench_without_valves_serves_both_sensors_faults_and_a_log(tmp_path):
    commands, records, page = free_port(), free_port(), free_port()
    log = tmp_path / "bench.jsonl"
    ports = ["--command-port", commands, "--rdt-port", records, "--http-port", page]
    cameras, sensor = cameras_at(commands), NetFtClient("127.0.0.1", records, page)
    with command("bench", *ports, "--log", log) as process:
        cameras.open()
        sensor.open(time.monotonic())
        try:
            seen = until(lambda: cameras.take(0.1), "a pose")
            felt = until(lambda: sensor.take(time.monotonic()), "a wrench")
            print("optitrack off", file=process.stdin, flush=True)
            until(lambda: cameras.session.trouble(time.monotonic()) == "server silent", "silence")
            assert until(lambda: sensor.take(time.monotonic()), "more wrenches")
        finally:
            cameras.close()
            sensor.close()
        process.send_signal(signal.SIGHUP)  # its terminal was closed
        assert process.wait(30.0) == 0
    assert seen.pose[2, 3] == pytest.approx(0.158, abs=2e-3)
    assert felt.wrenches[-1, 2] < -1.0  # the rod's weight
    events = [json.loads(line) for line in log.read_text().splitlines()]
    assert {"clients", "client", "rod", "fault"} <= {event["event"] for event in events}
