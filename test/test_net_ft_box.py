"""What a Net F/T box says of itself: its page, the sensor's mounting, and a bias that is kept."""

import math
import socket
import threading
import time
from contextlib import contextmanager
from datetime import UTC, datetime

import numpy as np
import pinocchio as pin
import pytest
from hypothesis import given
from hypothesis import strategies as st
from kit.net_ft import LENIENT, WRENCH, bench
from kit.processes import until
from kit.refusals import one_line

from softcr_hardware.force_torque.box import BoxError, BoxSettings, BoxWatch, ask_box, read_page
from softcr_hardware.force_torque.driver import ForceTorqueDriver
from softcr_hardware.force_torque.emulator import NetFtBox
from softcr_hardware.force_torque.mounting import (
    KeptBias,
    Mounting,
    kept_bias,
    load_mounting,
    save_mounting,
)
from softcr_models.errors import UserError


def test_a_page_as_boxes_serve_it_is_read():
    page = b"""<?xml version="1.0"?><netft><runstat>0x00000000</runstat><runrate>7000</runrate>
    <cfgnam>lab</cfgnam><cfgcalsel>3</cfgcalsel><cfgcalsn>FT12345</cfgcalsn><scfgfu>N</scfgfu>
    <cfgtfx>0;0;12.5;0;0;90</cfgtfx><scfgtdu>mm</scfgtdu><scfgtau>degrees</scfgtau>
    <cfgcpf>1000000</cfgcpf><cfgcpt>999999</cfgcpt><setcfgsel>2</setcfgsel>
    <setbias>745;17;447;184;-596;-253</setbias><setuserfilter>4</setuserfilter>
    <comrdtrate>1000</comrdtrate><mfgdigsn>LOT1</mfgdigsn><mfgdigver>2.2.59</mfgdigver>
    <prodname>Net F/T</prodname></netft>"""
    seen = read_page(page)
    assert seen == BoxSettings(
        product="Net F/T", serial="LOT1", firmware="2.2.59", configuration="2 (lab)",
        calibration_serial="FT12345", counts_per_force=1e6, counts_per_moment=999999.0,
        tool_transform=(0.0, 0.0, 12.5, 0.0, 0.0, 90.0), tool_units=("mm", "degrees"),
        software_bias=(745, 17, 447, 184, -596, -253), rate=1000.0, filter=4,
    )  # fmt: skip
    assert seen.transform_words == "0 0 12.5 mm, 0 0 90 degrees"
    assert (seen.is_transformed, seen.is_biased) == (True, True)


def test_the_emulated_page_tells_what_is_set():
    box = NetFtBox(lambda time: WRENCH)
    plain = read_page(box.page())
    assert (plain.is_transformed, plain.is_biased) == (False, False)
    assert (plain.calibration_serial, plain.rate, plain.filter) == ("FT00000", 1000.0, 0)
    changes = {"serial": "FT7", "tool-transform": "1;2;3;4;5;6", "filter": "4", "name": "latin"}
    for name, value in changes.items():
        box.set(name, value)
    seen = read_page(box.page())
    assert (seen.calibration_serial, seen.filter) == ("FT7", 4)
    assert seen.tool_transform == (1, 2, 3, 4, 5, 6)
    assert seen.product == "Net F/T\xae (\xe9mul\xe9)"


def test_a_page_that_lacks_what_is_asked_is_unknown_there():
    seen = read_page(b"<netft><cfgcpf>1000000</cfgcpf><cfgtfx>0;0</cfgtfx></netft>")
    assert seen == BoxSettings(counts_per_force=1e6)
    assert seen.transform_words == "unknown"
    assert not seen.is_transformed
    with pytest.raises(BoxError, match="serves no calibration: not a Net F/T"):
        read_page(b"<html>It works!</html>")
    with pytest.raises(BoxError, match="too long"):
        read_page(b"<cfgcpf>1</cfgcpf>" + bytes(1 << 16))


@given(st.binary(max_size=400), st.data())
def test_any_page_becomes_short_texts_and_finite_numbers_or_is_refused(noise, data):
    page = bytearray(NetFtBox(lambda time: WRENCH).page())
    changes = st.tuples(st.integers(0, len(page) - 1), st.integers(0, 255))
    for place, value in data.draw(st.lists(changes, max_size=20)):
        page[place] = value
    for content in (bytes(page), noise, noise + bytes(page), bytes(page) + noise):
        try:
            seen = read_page(content)
        except BoxError:
            continue
        for text in (seen.product, seen.serial, seen.calibration_serial, *seen.tool_units):
            assert len(text) <= 64
            assert text.isprintable()
        numbers = [seen.counts_per_force, seen.rate, *(seen.tool_transform or ())]
        assert all(math.isfinite(number) for number in numbers if number is not None)
        Mounting().refusal(seen, "file")
        kept_bias(WRENCH, "rest", seen).problem(seen, "rest")


@contextmanager
def answering(answer):
    """A TCP port that says one thing to everybody."""
    with socket.create_server(("127.0.0.1", 0)) as server:

        def serve():
            while True:
                try:
                    connection, _ = server.accept()
                except OSError:
                    return
                with connection:
                    connection.recv(4096)
                    connection.sendall(answer)

        threading.Thread(target=serve, daemon=True).start()
        yield server.getsockname()[1]


@pytest.mark.parametrize(
    ("answer", "says"),
    [
        (b"HTTP/1.0 404 Not Found\r\n\r\n", "HTTP status 404: not a Net F/T"),
        (b"HTTP/1.0 200 OK\r\n\r\n<html></html>", "serves no calibration"),
        (b"HTTP/1.0 200 OK\r\n\r\n" + bytes(100_000), "too long"),
        (b"\xff\xff\xff\xff\r\n", "answers nonsense .BadStatusLine.: not a Net F/T"),
        (b"", "answers nonsense .RemoteDisconnected."),
    ],
)
def test_who_does_not_answer_as_a_box_is_told_in_a_line(answer, says):
    with answering(answer) as port, one_line(says, BoxError):
        ask_box("127.0.0.1", port)


def test_a_box_that_is_not_there_is_told_and_asked_again():
    answers = iter([BoxError("no answer"), BoxSettings(serial="1"), BoxError("gone")])

    def ask():
        answer = next(answers)
        if isinstance(answer, BoxError):
            raise answer
        return answer

    watch = BoxWatch(ask)
    assert watch.problem == "not asked yet"
    seen = []
    for _ in range(3):
        watch.look()
        seen.append((watch.problem, watch.settings and watch.settings.serial))
    assert seen == [("no answer", None), ("", "1"), ("gone", "1")]


def test_the_mounting_turns_force_and_moment_alike():
    half = math.sqrt(0.5)
    mounting = Mounting(quaternion=(0.0, 0.0, half, half))  # sensor's x is the base's y
    assert np.allclose(mounting.rotation @ [1.0, 0.0, 0.0], [0.0, 1.0, 0.0])
    oracle = pin.SE3(pin.exp3(np.array([0.0, 0.0, np.pi / 2])), np.zeros(3))
    assert np.allclose(mounting.rotation, oracle.rotation)


def test_a_mounting_is_read_back_as_it_was_written(tmp_path):
    path = tmp_path / "mine.yaml"
    box = BoxSettings(calibration_serial="FT1", software_bias=(1, 2, 3, 4, 5, 6))
    mounting = Mounting(calibration_serial="FT1", bias=kept_bias(WRENCH, "zero", box))
    save_mounting(path, mounting)
    assert load_mounting(path) == mounting
    assert mounting.bias.taken.tzinfo is not None
    with pytest.raises(UserError, match="cannot be written"):
        save_mounting(path / "mine.yaml", mounting)  # below a file


def test_a_bias_holds_for_the_box_that_it_was_taken_with():
    taken, box = datetime(2026, 11, 20, tzinfo=UTC), {"calibration_serial": "FT1"}
    bias = KeptBias(wrench=tuple(WRENCH), taken=taken, software_bias=(0,) * 6, **box)

    def problem(bias_to="rest", **says):
        return bias.problem(BoxSettings(**says), bias_to)

    same = {**box, "software_bias": (0,) * 6}
    assert problem(**same) == ""
    assert problem() == ""  # the box does not say
    says = "the bias of 2026-11-20 was taken with "
    assert problem("zero", **same) == f"{says}bias_to rest, now it is zero"
    other = same | {"calibration_serial": "FT2"}
    assert problem(**other) == f"{says}calibration FT1, the box has FT2"
    biased = same | {"software_bias": (0, 0, 5, 0, 0, 0)}
    assert problem(**biased) == f"{says}another software bias in the box"


def yawed(degrees, **options):
    half = math.radians(degrees) / 2
    return Mounting(quaternion=(0.0, 0.0, math.sin(half), math.cos(half)), **options)


@pytest.mark.parametrize("degrees", [90, -35])
def test_a_sensor_that_is_mounted_turned_reads_the_wrench_of_the_base(degrees):
    with bench(yawed(degrees), yaw=str(degrees)) as running:
        assert np.allclose(running.flows(), WRENCH, atol=0.02)
        turned = running.driver.mounting
        running.driver.mounting = Mounting()  # and would not without its rotation
        assert not np.allclose(running.flows()[:2], WRENCH[:2], atol=0.1)
        if degrees == 90:  # a bias is in the sensor's own axes
            running.driver.mounting = turned
            running.box._wrench = lambda time: WRENCH + np.array([3.0, 0, 0, 0, 0, 0])
            running.flows(800)  # longer than what a bias is the mean of
            until(lambda: np.ptp([w[0] for _, w in running.published[-100:]]) < 0.2, "rest")
            bias = running.driver.take_bias(time.monotonic())
            assert np.allclose(bias, [0.0, -3.0, 0, 0, 0, 0], atol=0.02)
            assert np.allclose(running.flows(), WRENCH, atol=0.02)


def test_a_tool_transform_is_refused_until_it_is_gone_and_other_counts_are_used_by_a_new_client():
    with bench() as running:
        running.look()
        running.flows()
        running.set("tool-transform", "0;0;10;0;0;90")
        says = "the box has a tool transform (0 0 10 mm, 0 0 90 degrees), must be 0: set it to 0"
        assert running.trouble.startswith(says)
        running.silent(says)
        assert "mine.yaml" in running.trouble
        with pytest.raises(UserError, match="the box has a tool transform"):
            running.driver.take_bias(time.monotonic() + 100.0)
        running.set("tool-transform", "0;0;0;0;0;0")
        assert running.trouble == ""
        assert np.allclose(running.flows(), WRENCH, atol=0.02)
        running.box.counts_per_force = 2e6
        assert np.allclose(running.flows()[:3], 2 * WRENCH[:3], atol=0.05)  # nobody has noticed
        running.look()
        assert running.driver.client.restarts == 1
        assert np.allclose(running.flows(100), WRENCH, atol=0.05)


def test_a_calibration_that_changes_is_told_and_the_bias_left_out():
    with bench(resting=np.zeros(6)) as running:
        running.look()
        running.flows(200)
        running.driver.take_bias(time.monotonic())
        assert np.allclose(running.flows(), 0.0, atol=0.02)
        running.set("serial", "FT2")
        driver = running.driver
        assert driver.box_change == "the box's calibration changed from FT00000 to FT2"
        assert "was taken with calibration FT00000, the box has FT2" in driver.bias_problem
        assert not driver.biased
        assert np.allclose(running.flows(), WRENCH, atol=0.02)


def test_a_kept_bias_is_used_until_the_box_forgets_its_own():
    with bench(resting=np.zeros(6)) as running:
        running.box._bias = np.array([1.0, 0, 0, 0, 0, 0])  # somebody pressed Bias in the box
        running.look()
        running.flows(200)
        running.driver.take_bias(time.monotonic())
        kept = running.driver.mounting
        assert kept.bias.software_bias == (100, 0, 0, 0, 0, 0)
        driver = ForceTorqueDriver(running.driver.client, LENIENT, np.zeros(6), mounting=kept)
        running.driver = driver
        assert np.allclose(running.flows(), 0.0, atol=0.02)
        running.emulator.inject("reconnect")  # switched off and on
        running.look()
        assert "taken with another software bias in the box" in driver.bias_problem
        assert np.allclose(running.flows(), WRENCH, atol=0.02)


def test_a_product_name_that_is_not_utf_8_does_no_harm():
    with bench(name="latin") as running:
        running.look()
        assert np.allclose(running.flows(), WRENCH, atol=0.02)
        client = running.driver.client
        assert client.health().sensor_configuration.product_name == "(not UTF-8)"
        assert client.health().receive_rate_hz > 0.0
        client.look_at_calibration()
        assert client.calibration.counts_per_force_unit == 1e6
        running.emulator.inject("off")
        running.poll(lambda: running.trouble.startswith("the box is silent"), "silence")
        running.emulator.inject("ok")
        running.flows()
