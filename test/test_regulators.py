"""Pressure regulators: the shipped example in closed loop on virtual devices, and what may fail."""

import math

import numpy as np
import pytest
from kit.bench import DrivenBench

from softcr_hardware.emulation.chambers import ChamberErrors
from softcr_hardware.ethercat.process_data import ProcessData
from softcr_hardware.ethercat.terminal_settings import wanted_settings
from softcr_hardware.ethercat.terminals import Station, load_station
from softcr_hardware.safety.safety import Action
from softcr_models import load_robot
from softcr_models.errors import UserError

STATION = load_station("regulators", load_robot("licher2025").chamber_names)
UNTESTED = STATION.model_copy(update={"arming_test": False})
POLE = STATION.gains.proportional


def shown(bench, changed):
    """From now on the sensors show other voltages than those of the pressures."""
    honest = bench.bus.exchange

    def exchange(volts):
        sample = honest(volts)
        sample.volts = np.array(changed(sample.volts))
        return sample

    bench.bus.exchange = exchange


def wave(now):
    return 4e4 + 2.5e4 * np.sin(2.0 * math.pi * 0.5 * now + np.array([0.0, 2.0, 4.0]))


def test_the_chambers_follow_their_setpoint_with_the_pole_of_the_station_file():
    bench = DrivenBench(UNTESTED).live(2.0, wave, enable=True)
    assert bench.decision.enabled
    bench.true.clear(), bench.sent.clear()
    bench.live(8.0, wave)
    assert bench.decision.enabled
    assert not any("fault" in reason for reason in bench.reasons)
    sent, true = np.array(bench.sent), np.array(bench.true)
    expected = np.empty_like(sent)
    expected[0] = true[0]
    for step in range(1, len(sent)):  # the lag, on its own
        expected[step] = expected[step - 1] + POLE * 1e-3 * (sent[step] - expected[step - 1])
    assert np.abs(true - expected)[1000:].max() < 600.0
    assert np.ptp(true[:, 0]) > 3e4


@pytest.mark.parametrize(
    "errors", [{"fill_gain": 1.03}, {"fill_gain": 0.97, "lag": 0.02}, {"leak": 0.3}]
)
def test_regulators_that_are_a_little_wrong_do_not_vent(errors):
    bench = DrivenBench(UNTESTED, ChamberErrors(**errors)).live(10.0, wave, enable=True)
    assert bench.decision.enabled
    assert not any("fault" in reason for reason in bench.reasons)


FAULTS = {
    "sticks open": {"stuck": 1.0},
    "sticks closed": {"stuck": 0.0},
    "gives 30 % too much": {"fill_gain": 1.3},
    "hose off": {"leak": 200.0},
}


@pytest.mark.parametrize("fault", FAULTS)
def test_a_regulator_that_fails_is_seen_and_the_air_goes_off(fault):
    bench = DrivenBench(UNTESTED).live(3.0, wave, enable=True)
    assert bench.decision.enabled
    for name, value in FAULTS[fault].items():
        bench.actuator.chambers[name][0] = value
    bench.live(2.0, wave)
    assert not bench.decision.enabled
    seen = "pressure fault: chamber_1: pressure does not follow"
    assert bench.decision.cause in (seen, *(["pressures not believable"] * (fault == "hose off")))
    bench.live(0.5, wave)
    assert bench.actuator.pressures.max() < 500.0  # one that sticks is emptied by the dump valve
    assert bench.peak < 1.06e5


@pytest.mark.parametrize(
    ("slope", "offset", "cause"),
    [
        (0.0, 0.0, "chamber_1: "),
        (0.7, 0.0, "chamber_1: pressure does not follow"),
        (1.0, 0.5, "chamber_1: pressure does not follow"),
    ],
)
def test_a_sensor_that_lies_moves_no_air_and_is_seen(slope, offset, cause):
    bench = DrivenBench(UNTESTED).live(3.0, lambda now: 6e4, enable=True)
    assert bench.decision.enabled
    shown(bench, lambda volts: [1.0 + slope * (volts[0] - 1.0) + offset, *volts[1:]])
    bench.live(0.6, lambda now: 6e4)
    assert not bench.decision.enabled
    assert cause in bench.decision.cause
    assert bench.peak < 6.1e4


def test_an_emergency_stop_vents_regulators():
    bench = DrivenBench(UNTESTED).live(3.0, wave, enable=True)
    bench.bus.stopped = True
    bench.live(0.3, wave)
    assert bench.decision.action == Action.VENT_NOW
    assert np.allclose(bench.driver.report.volts, 4.0)
    assert bench.actuator.pressures.max() < 1e3


def _station(**changes):
    content = STATION.model_dump(mode="json", exclude_defaults=True)
    content["valve"] = content["valve"] | changes
    return Station.model_validate(content)


def test_the_default_output_of_a_current_terminal_is_that_of_the_empty_regulator():
    wanted = wanted_settings(STATION, 3)
    assert {each.value for each in wanted if each.setting.subindex == 0x13} == {0}
    assert ProcessData(STATION).pack(np.array([4.0, 12.0, 20.0]))[3].hex() == "00000040ff7f0000"


def test_a_regulator_that_would_stay_full_or_is_out_of_range_is_refused():
    with pytest.raises(ValueError, match=r"when_dead 12.0 commands 60000 Pa"):
        _station(when_dead=12.0)
    with pytest.raises(ValueError, match=r"empty and full are both 20.0"):
        _station(empty=20.0, when_dead=4.0)
    content = STATION.model_dump(mode="json", exclude_defaults=True)
    content["terminals"][2] = {"name": "EL4004"}
    with pytest.raises(ValueError, match=r"20.0 lies beyond the 10 V of EL4004"):
        Station.model_validate(content)
    line = "valve.range 80 kPa is below the highest command, 100 kPa"
    with pytest.raises(UserError, match=line):
        DrivenBench(_station(range=8e4))
    with pytest.raises(UserError, match="its valves are pressure regulators"):
        _ = STATION.flow_valve


def asked(bench):
    """Until it is enabled, or a fault is latched."""
    for _ in range(120):
        bench.live(0.1, lambda now: 0.0, enable=True)
        if bench.decision.enabled or bench.decision.latch:
            break
    return bench.decision


def test_the_arming_test_commands_each_regulator_and_then_it_is_enabled():
    bench = DrivenBench(STATION)
    assert asked(bench).enabled
    peaks = np.array(bench.true).max(axis=0)
    assert ((peaks > 3e3) & (peaks < 5e3)).all()  # each chamber had its 4 kPa
    bench.live(2.0, wave)
    assert bench.decision.enabled


@pytest.mark.parametrize(("wrong", "named"), [("sensors swapped", 1), ("sticks closed", 3)])
def test_the_arming_test_names_what_does_not_answer(wrong, named):
    bench = DrivenBench(STATION)
    if wrong == "sensors swapped":
        shown(bench, lambda volts: volts[[1, 0, 2]])
    else:
        bench.actuator.chambers["stuck"][2] = 0.0
    decision = asked(bench)
    assert not decision.enabled
    assert decision.cause.startswith(f"arming test: chamber_{named}: reads ")
    assert decision.cause.endswith("kPa of a command of 4.0 kPa, must be 2.0 to 6.0 kPa")
    assert bench.peak < 6e3
