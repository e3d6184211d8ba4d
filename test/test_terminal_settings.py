"""CoE settings of terminals without a network: what they do, how they are mended or refused."""

import struct
from itertools import pairwise

import numpy as np
import pytest
from kit.bench import DrivenBench

from softcr_hardware.emulation.actuator import EmulatedActuator
from softcr_hardware.ethercat.emulated_objects import ObjectDictionary, delivered
from softcr_hardware.ethercat.emulated_signals import EmulatedInputs, EmulatedOutputs
from softcr_hardware.ethercat.families import PRODUCTS
from softcr_hardware.ethercat.mailbox import answer
from softcr_hardware.ethercat.memory_bus import MemoryBus
from softcr_hardware.ethercat.pressure_checks import PressureSensors
from softcr_hardware.ethercat.process_data import ProcessData, Sample
from softcr_hardware.ethercat.service_data import ServiceData
from softcr_hardware.ethercat.terminal_faults import TerminalFaults, parse_terminal_faults
from softcr_hardware.ethercat.terminal_settings import settle, wanted_settings
from softcr_hardware.ethercat.terminals import STATUS_TOGGLE, Station, Terminal, load_station
from softcr_models.errors import UserError

STATION = load_station("licher2025")
INPUTS, OUTPUTS = STATION.terminals[1:]


class Master:
    """pysoem, as far as ServiceData needs it: its errors, and a slave behind a mailbox of bytes."""

    class SdoError(Exception):
        def __init__(self, code):
            self.abort_code, self.desc = code, f"abort 0x{code:08X}"

    WkcError = type("WkcError", (Exception,), {})
    PacketError = type("PacketError", (Exception,), {})
    MailboxError = type("MailboxError", (Exception,), {})

    def __init__(self, terminal, faults=None):
        faults = faults or TerminalFaults()
        self.objects = ObjectDictionary(terminal, faults)
        self.lost, self.written = faults.lost_answers, []

    def sdo_read(self, index, subindex):
        return self._ask(0x40, index, subindex, b"")

    def sdo_write(self, index, subindex, data):
        self.written.append((index, subindex))
        self._ask(0x23 | (4 - len(data)) << 2, index, subindex, data)

    def _ask(self, command, index, subindex, data):
        request = struct.pack("<HHBBHBHB", 10, 0, 0, 0x13, 0x2000, command, index, subindex)
        reply = answer(request + data.ljust(4, b"\0"), self.objects)
        if self.lost:
            self.lost -= 1
            raise self.WkcError
        code, _, _, value = struct.unpack_from("<BHBI", reply, 8)
        if code == 0x80:
            raise self.SdoError(value)
        return reply[12 : 16 - (code >> 2 & 3)]


def settled(position, faults=None):
    """What `settle` mends of the terminal at a position, and the master that it did it with."""
    master = Master(STATION.terminals[position - 1], faults)
    objects = ServiceData(master, master, "here")
    return settle(objects, wanted_settings(STATION, position), "here"), master


@pytest.mark.parametrize("name", ["EL3064", "EL3164", "EL4004", "EL4104", "EL4102"])
def test_of_a_new_terminal_only_the_filter_of_an_el30xx_is_mended(name):
    station = STATION.model_copy(update={"terminals": (Terminal.model_validate({"name": name}),)})
    master = Master(station.terminals[0])
    wanted = wanted_settings(station, 1)
    mended = settle(ServiceData(master, master, name), wanted, name)
    if name == "EL3064":
        assert mended == ["object 0x8000:06 (Enable filter) is 1 (on), must be 0 (off)"]
        assert len(wanted) == 4 * 6 - 3  # the filter is that of the first channel
    else:
        assert (mended, master.written) == ([], [])
    # the channels' objects are those that the terminal has
    places = {(each.index, each.setting.subindex) for each in wanted}
    assert places <= set(delivered(station.terminals[0]))


WRONG_OUTPUTS = {
    "last output value": ((0x8000, 0x05), 2),
    "ramp": ((0x8010, 0x05), 1),
    "slow ramp": ((0x8010, 0x14), 1),
    "default output fills": ((0x8020, 0x13), 0x7FFF),
    "user scale": ((0x8000, 0x01), 1),
    "presentation": ((0x8030, 0x02), 1),
    "user calibration": ((0x8000, 0x07), 1),
    "no calibration": ((0x8000, 0x08), 0),
}


@pytest.mark.parametrize("restores", [True, False])
@pytest.mark.parametrize("wrong", WRONG_OUTPUTS)
def test_a_wrong_setting_is_mended_or_the_terminal_is_refused_by_its_name(wrong, restores):
    place, value = WRONG_OUTPUTS[wrong]
    index, subindex = place
    named = rf"^here: object 0x{index:04X}:{subindex:02X} \(.+\) is {value}.*, must be \d+.*"
    mended, master = settled(3, TerminalFaults(objects={place: value}, restores=restores))
    assert len(mended) == 1
    assert master.objects.setting(*place) == delivered(OUTPUTS)[place][1]
    for how, why in (("refused", "refuses it, abort 0x06010002"), ("kept", "does not keep it")):
        faults = TerminalFaults(objects={place: value}, restores=restores, **{how: (place,)})
        with pytest.raises(UserError, match=named + why):
            settled(3, faults)


def test_a_lost_answer_is_asked_for_again_and_a_silent_terminal_is_refused():
    faults = TerminalFaults(objects={(0x8000, 0x05): 2}, lost_answers=2)
    assert len(settled(3, faults)[0]) == 1
    with pytest.raises(UserError, match="no answer about object 0x8000:01 in 3 attempts"):
        settled(3, TerminalFaults(lost_answers=3))
    master = Master(INPUTS)  # an input terminal where outputs were expected
    with pytest.raises(UserError, match=r"0x8000:07 \(Enable user calibration\) is not there"):
        settle(ServiceData(master, master, "here"), wanted_settings(STATION, 3), "here")


def volts(objects, words, after=0.0, terminal=OUTPUTS):
    """Of the outputs `after` [s] without frames; 0: while frames come."""
    made = EmulatedOutputs(terminal, ObjectDictionary(terminal, TerminalFaults(objects=objects)))
    operating = made.signals(0.0, words)
    if not after:
        return operating
    made.signals(0.0, None)
    return made.signals(after, None)


FULL = [0x7FFF] * 4


def test_outputs_without_frames_do_what_their_objects_say_and_nothing_else():
    assert np.allclose(volts({}, FULL), 10.0, atol=0.003)
    assert np.allclose(volts({}, FULL, after=1e-9), 0.0)
    kept = volts({(0x8000, 0x05): 2}, FULL, after=60.0)
    assert np.allclose(kept, [10.0, 0.0, 0.0, 0.0], atol=0.003)
    fills = volts({(0x8010, 0x13): 0x6000}, [0] * 4, after=1.0)
    assert np.allclose(fills, [0.0, 7.5, 0.0, 0.0], atol=0.003)
    ramp = {(0x8020, 0x05): 1, (0x8020, 0x14): 100}  # counts per millisecond
    left = (0x7FFF - 10_000) / 0x7FFF * 10
    assert volts(ramp, FULL, after=0.1)[2] == pytest.approx(left, abs=0.01)
    assert volts(ramp, FULL, after=0.4)[2] == 0.0


def test_scale_presentation_and_calibration_change_what_comes_out():
    half = [0x4000] * 4
    scaled = volts({(0x8000, 0x01): 1, (0x8000, 0x12): 0x8000, (0x8000, 0x11): 0x1000}, half)
    assert scaled == pytest.approx([0x3000 / 0x7FFF * 10, 5.0, 5.0, 5.0], abs=0.005)
    assert volts({(0x8010, 0x02): 1}, half)[1] == pytest.approx(2.5, abs=0.005)
    assert volts({(0x8010, 0x02): 3}, [-0x4000] * 4)[:2] == pytest.approx([0.0, 5.0], abs=0.005)
    calibrated = volts({(0x8030, 0x07): 1, (0x8030, 0x15): -0x2000}, half)
    assert calibrated[3] == pytest.approx(2.5, abs=0.005)
    assert abs(volts({(0x8000, 0x08): 0}, half)[0] - 5.0) > 0.05


def test_twelve_bits_have_so_many_voltages():
    def levels(terminal):
        return len({volts({}, [word] * 4, terminal=terminal)[0] for word in range(0x1000, 0x1100)})

    assert levels(OUTPUTS) in (32, 33)  # of 8 counts each
    assert levels(Terminal.model_validate({"name": "EL4104"})) == 256


def inputs(objects):
    return EmulatedInputs(INPUTS, ObjectDictionary(INPUTS, TerminalFaults(objects=objects)))


def test_a_filter_lets_the_toggle_look_still_and_the_value_lag():
    """The toggle is read every millisecond; with a filter it has changed twice meanwhile."""
    free, synchron = inputs({(0x8000, 0x06): 1}), inputs({})
    seen = {free: [], synchron: []}
    words = {}
    for tick in range(200):
        now = 1e-3 * tick
        signal = [0.0 if now < 0.1 else 8.0] * 4
        for part in range(10):  # the loop of the emulator turns more often than frames come
            moment = now + 1e-4 * part
            if moment >= free.due:
                words[free] = free.convert(moment, signal, True)
        words[synchron] = synchron.convert(now, signal, True)
        for each, (status, count, *_) in words.items():
            seen[each].append((status & STATUS_TOGGLE, count / 0x7FFF * 10))
    changes = {k: sum(a != b for (a, _), (b, _) in pairwise(rows)) for k, rows in seen.items()}
    assert changes[synchron] == 199
    assert changes[free] < 20
    assert seen[synchron][101][1] == pytest.approx(8.0, abs=0.01)
    assert 1.0 < seen[free][110][1] < 7.0  # the mean of 20 ms
    assert seen[free][125][1] == pytest.approx(8.0, abs=0.01)


def test_inputs_say_what_their_scale_and_presentation_make_of_a_voltage():
    def count(objects, signal):
        return inputs(objects).convert(0.0, [signal] * 4, True)[1]

    assert count({}, 5.0) == pytest.approx(0x4000, abs=1)
    assert count({(0x8000, 0x02): 1}, 2.5) == pytest.approx(0x4000, abs=1)
    assert count({(0x8000, 0x01): 1, (0x8000, 0x12): 0x8000}, 5.0) == pytest.approx(0x2000, abs=1)
    assert abs(count({(0x8000, 0x0B): 0}, 5.0) - 0x4000) > 100
    states = inputs({}).convert(0.0, [11.0, -1.0, 5.0, 5.0], True)[::2]
    assert states == [0x8042, 0x8041, 0x8000, 0x8000]


def test_a_name_is_enough_for_a_known_terminal_and_what_is_written_counts():
    assert Terminal.model_validate({"name": "EL3164"}) == INPUTS
    assert Terminal.model_validate({"name": "EL4004"}) == OUTPUTS
    assert Terminal.model_validate({"name": "EL4004", "outputs": 2}).outputs == 2
    assert Terminal.model_validate({"name": "EL4024"}).unit == "mA"
    assert Terminal.model_validate({"name": "EL4102"}).first_settings == 0x8010
    assert PRODUCTS["EL4104"].code == 0x10083052  # as public drivers have it


def _of_unknown_valves(wire=0):
    """The station with valves on a terminal nobody knows, and a wire of a channel of theirs."""
    content = STATION.model_dump(mode="json")
    content["terminals"][2] |= {"name": "X1", "family": None}
    if wire:
        ends = {"output": {"terminal": 3, "channel": wire}, "input": {"terminal": 2, "channel": 4}}
        content["watchdog_wires"] = [ends]
    return Station.model_validate(content)


def test_valves_on_an_unknown_terminal_need_a_wire_that_proves_the_watchdog():
    with pytest.raises(ValueError, match="terminal 3 X1 drives valves, and nothing tells"):
        _of_unknown_valves()
    assert wanted_settings(_of_unknown_valves(wire=4), 3) == []
    with pytest.raises(ValueError, match="this channel is used twice"):
        _of_unknown_valves(wire=1)


def test_terminal_faults_are_told_in_words():
    text = "3:0x8000:05=2, 3:0x8010:05=refused,3:0x8020:13=kept, 2:lost=3, 3:control=0x24"
    text += ", 3:no-restore, 2:no-watchdog"
    faults = parse_terminal_faults(text, STATION)
    assert faults[3] == TerminalFaults(
        objects={(0x8000, 5): 2}, refused=[(0x8010, 5)], kept=[(0x8020, 0x13)],
        restores=False, output_control=0x24,
    )  # fmt: skip
    assert faults[2] == TerminalFaults(lost_answers=3, trips=False, refused=[], kept=[])
    for word in ("3:0x8000", "3:0x8000:05", "4:lost=1", "lost=1", "3:0x8000:05=often"):
        with pytest.raises(UserError, match="terminal fault"):
            parse_terminal_faults(word, STATION)


def test_inputs_that_convert_on_the_frame_are_a_cycle_late_and_the_guard_bears_it():
    now = 0.0
    data, actuator = ProcessData(STATION), EmulatedActuator(STATION)
    bus = MemoryBus(STATION, data, actuator, lambda: now, noise=0.0, converts_on_frame=True)
    full = np.full(3, STATION.valve.fill)
    for tick in range(1, 20):
        now = 1e-3 * tick
        before = actuator.pressures
        sample = bus.exchange(full)
    assert np.allclose(data.pressures(sample.volts), before, atol=10.0)
    assert before[0] > 1e4

    def steps(now):
        high = now > 2.0 and round(now / 0.98 - 0.5) % 2
        return np.array([1.0, 0.5, 0.2]) * (8e4 if high else 2e4)

    untested = STATION.model_copy(update={"arming_test": False})
    bench = DrivenBench(untested, converts_on_frame=True).live(1.0, steps, enable=True)
    bench.reasons.clear()
    bench.live(7.0, steps, enable=True)
    assert bench.decision.enabled
    assert bench.reasons == {"wrenches silent"}  # nobody has sent any
    assert np.allclose(bench.driver.report.pressures, bench.actuator.pressures, atol=1e3)
    assert bench.actuator.pressures[0] > 1e4


def test_samples_of_a_terminal_that_toggles_twice_a_cycle_are_believed_by_their_values():
    data = ProcessData(STATION)
    sensors = PressureSensors(STATION, data)
    zero, good = np.ones(3), np.zeros(3, bool)
    for cycle in range(50):
        volts = zero + 0.001 * (cycle % 3)
        sensors.see(1e-3 * cycle, Sample(volts, good, good))
    assert sensors.age(0.049) == 0.0
    assert not sensors.slow
    for cycle in range(50, 60):  # neither the toggle nor any value
        sensors.see(1e-3 * cycle, Sample(volts, good, good))
    assert sensors.slow
    assert sensors.age(0.059) == pytest.approx(0.010)
