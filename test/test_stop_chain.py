"""Emergency stop, 24 V monitor and dump valve on digital terminals, on virtual time."""

import numpy as np
import pytest
from kit.bench import DrivenBench, stopping_content, stopping_station

from softcr_hardware.ethercat.process_data import ProcessData
from softcr_hardware.ethercat.terminals import Station
from softcr_hardware.safety.safety import Action, Latch


class Bench(DrivenBench):
    """A driver behind a stop chain, commanded to one pressure."""

    def __init__(self, **changes):
        super().__init__(stopping_station(**changes))

    def live(self, seconds, enable=False):
        return super().live(seconds, lambda now: 4e4, enable)

    @property
    def manifold(self):
        return self.actuator.chambers["end_pressure"][0]


def test_the_air_is_let_on_by_arming_and_the_chambers_wait_until_the_manifold_is_full():
    bench = Bench().live(0.2)
    assert bench.manifold < 0.02 * 1.05e5  # nobody has armed it
    bench.live(0.3, enable=True)
    assert bench.decision.enabled
    assert bench.data.air_on
    began = bench.now
    while bench.actuator.pressures.max() < 2e3:
        bench.live(0.01)
        assert bench.now < began + 1.0
    assert bench.manifold > 0.95 * 1.05e5
    bench.live(2.0)
    assert bench.decision.enabled
    assert np.allclose(bench.actuator.pressures, 4e4, atol=1e3)
    assert not any("fault" in reason for reason in bench.reasons)


def test_the_arming_test_waits_for_the_air_and_finds_every_channel():
    bench = Bench(arming_test=True).live(0.5)
    assert not bench.data.air_on
    began = bench.now
    while not bench.decision.enabled:
        bench.live(0.1, enable=True)
        assert bench.now < began + 15.0, bench.decision
        if bench.decision.testing:
            assert bench.data.air_on
    bench.live(2.0)
    assert np.allclose(bench.actuator.pressures, 4e4, atol=1e3)


@pytest.mark.parametrize(
    ("what", "reason", "latch"),
    [("stopped", "emergency stop", Latch.OPERATOR), ("unpowered", "24 V missing", Latch.MACHINE)],
)
def test_an_open_chain_vents_latches_and_takes_the_air_away(what, reason, latch):
    bench = Bench().live(3.0, enable=True)
    assert bench.actuator.pressures.min() > 3e4
    setattr(bench.bus, what, True)
    bench.live(0.003)
    assert (bench.decision.action, bench.decision.enabled) == (Action.VENT_NOW, False)
    assert (bench.decision.cause, bench.decision.latch) == (reason, latch)
    assert not bench.data.air_on
    bench.live(0.3)
    assert bench.manifold < 0.01 * 1.05e5
    assert bench.actuator.pressures.max() < 100.0
    setattr(bench.bus, what, False)
    bench.live(1.0, enable=True)
    assert not bench.decision.enabled  # latched
    assert bench.manifold < 100.0
    bench.driver.reset()
    bench.live(1.0, enable=True)
    assert bench.decision.enabled


@pytest.mark.parametrize("how", ["vent", "close", "silent"])
def test_every_vent_takes_the_air_away(how):
    bench = Bench().live(1.5, enable=True)
    assert bench.data.air_on
    if how == "vent":
        bench.driver.vent()
        bench.live(0.002)
    elif how == "close":
        bench.driver.close()
        bench.data.air_on = False  # the real bus does so before its last exchange
    else:
        bench.bus.exchange = lambda volts: None
        bench.live(0.2)
    assert not bench.data.air_on


def test_a_valve_that_sticks_open_is_emptied_through_the_manifold():
    bench = Bench().live(2.0, enable=True)
    bench.actuator.chambers["stuck"] = 1.0
    bench.live(1.0)
    assert not bench.decision.enabled
    assert bench.actuator.pressures.max() < 1e3


def test_channels_that_share_a_byte_have_their_own_bits():
    data = ProcessData(stopping_station())
    analog = bytes(16)
    both = {2: analog, 4: b"\x21", 5: b"\x21"}  # channel 1 of the first, 2 of the second
    sample = data.unpack(both)
    assert (sample.stopped, sample.unpowered) == (False, False)
    sample = data.unpack(both | {4: b"\x20"})
    assert (sample.stopped, sample.unpowered) == (True, False)
    sample = data.unpack(both | {5: b"\x01"})
    assert (sample.stopped, sample.unpowered) == (False, True)
    assert data.pack(np.zeros(3))[7] == b"\x00"
    data.air_on = True
    assert data.pack(np.zeros(3))[7] == b"\x40"  # channel 3 of the second
    assert data.input_positions == (2, 4, 5)


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"stop_input": {"terminal": 2, "channel": 4}}, "EL3164 has 0 digital inputs"),
        ({"dump_valve_output": {"terminal": 4, "channel": 1}}, "EL1004 has 0 digital outputs"),
        ({"stop_input": {"terminal": 4, "channel": 5}}, "EL1004 has 4 digital inputs"),
        ({"supply_24v_input": {"terminal": 4, "channel": 1}}, "this channel is used twice"),
    ],
)
def test_a_stop_chain_that_is_wired_wrongly_is_refused(change, says):
    content = stopping_content()
    content["stop_chain"] = content["stop_chain"] | change
    with pytest.raises(ValueError, match=says):
        Station.model_validate(content)


def test_valves_on_a_digital_terminal_and_bits_in_two_bytes_are_refused():
    content = stopping_content()
    content["chambers"][0]["valve"]["terminal"] = 7
    with pytest.raises(ValueError, match="EL2004 has 0 outputs"):
        Station.model_validate(content)
    content = stopping_content()
    content["terminals"].insert(4, {"name": "EL1002"})
    content["stop_chain"] = {}
    with pytest.raises(ValueError, match="EL1004: its 4 inputs would lie in two bytes"):
        Station.model_validate(content)
