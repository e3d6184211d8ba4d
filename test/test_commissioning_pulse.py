"""The judgement of one pulse of air, against chambers whose pressures are written out by hand."""

import math

import numpy as np
import pytest

from softcr_hardware.commissioning.pulse import (
    answering_sensor,
    pulse_answer,
    pulse_of,
    pulse_problems,
    valve_volts,
)
from softcr_hardware.ethercat.terminals import Flow, ValveMap
from softcr_models.errors import UserError

FLOW = Flow(supply=1.05e5, fill_rate=25.0, exhaust_rate=20.0)
NAMES = ("chamber_1", "chamber_2", "chamber_3")
PULSE = pulse_of(4000.0, FLOW)
TIMES = np.arange(0.0, PULSE.duration, 1e-3)


def chamber(gain=1.0, leak=0.0, empties=True):
    """(T,) pressure of the chamber that is filled: rates by hand, times of the phases by hand."""
    begins, closed = PULSE.rest + PULSE.ready, PULSE.rest + PULSE.ready + PULSE.fill
    exhausts = PULSE.duration - PULSE.exhaust
    filling = 1.05e5 * (1 - np.exp(-PULSE.opening * 25.0 * gain * (TIMES - begins)))
    top = 1.05e5 * (1 - math.exp(-PULSE.opening * 25.0 * gain * PULSE.fill))
    held = top * np.exp(-leak * (TIMES - closed))
    last = top * math.exp(-leak * PULSE.hold) * np.exp(-20.0 * (TIMES - exhausts))
    last = last if empties else held
    times = TIMES
    phases = [times < begins, times < closed, times < exhausts]
    return np.select(phases, [0 * TIMES, filling, held], last)


def answer(own, other=None, channel=1):
    pressures = np.zeros((len(TIMES), 3))
    pressures[:, 1] = own
    if other is not None:
        pressures[:, 2] = other
    pressures += 50.0 * np.random.default_rng(0).standard_normal(pressures.shape)
    return pulse_answer(channel, PULSE, FLOW, TIMES, pressures)


def test_a_pulse_brings_what_it_was_made_for():
    assert PULSE.rise(FLOW) == pytest.approx(4000.0)
    assert chamber().max() == pytest.approx(4000.0, rel=0.02)
    good = answer(chamber())
    assert good.rises == pytest.approx([0.0, 4000.0, 0.0], abs=30.0)
    assert good.noise == pytest.approx([50.0] * 3, rel=0.3)
    assert answering_sensor(good) == 1
    assert pulse_problems(good, NAMES) == []


def test_valves_are_closed_between_the_pulses_of_a_phase():
    openings = [PULSE.opening_at(time) for time in TIMES]
    filled = sum(opening > 0 for opening in openings)
    assert filled == pytest.approx(PULSE.fill / 1e-3, abs=1)
    assert openings[0] == openings[-1] == -1.0
    valve = ValveMap(exhaust=0.0, closed=5.0, fill=10.0, dead_band=0.2)
    assert [valve_volts(valve, each) for each in (-1, 0, 1)] == [0.0, 5.0, 10.0]
    assert valve_volts(valve, 0.5) == pytest.approx(5.2 + 2.4)
    assert valve_volts(valve, -0.5) == pytest.approx(4.8 - 2.4)


@pytest.mark.parametrize(
    ("made", "words"),
    [
        (lambda: answer(chamber(), channel=0), "the sensor of chamber_2 answers"),
        (lambda: answer(-chamber()), "falls while its chamber fills"),
        (lambda: answer(0.0 * chamber()), "no sensor answers"),
        (lambda: answer(chamber(gain=2.0)), "shows 7.9 kPa, must be 2.0 to 6.0"),
        (lambda: answer(chamber(gain=0.4)), "shows 1.6 kPa, must be 2.0 to 6.0"),
        (lambda: answer(chamber(), 0.3 * chamber()), "chamber_3 moves by 1.2 kPa"),
        (lambda: answer(chamber(leak=1.0)), "a leak"),
        (lambda: answer(chamber(empties=False)), "left after the exhaust"),
    ],
)
def test_each_wrong_answer_is_told(made, words):
    (problem,) = pulse_problems(made(), NAMES)
    assert words in problem


def test_missing_samples_are_no_answer():
    pressures = np.zeros((len(TIMES), 3))
    pressures[280:285] = math.nan
    with pytest.raises(UserError, match="good samples"):
        pulse_answer(0, PULSE, FLOW, TIMES, pressures)
    with pytest.raises(UserError, match="must lie below the supply"):
        pulse_of(2e5, FLOW)
