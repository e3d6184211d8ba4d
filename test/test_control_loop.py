"""For when answers are planned, and when they are sent, in the simulator's way and the bench's."""

import pytest

from softcr_control.control_loop import ControlLoop, RodMpcControllerSettings
from softcr_models import load_robot

PERIOD = 1 / 70
WAITED = 2 * PERIOD


@pytest.fixture(scope="module")
def loops():
    robot = load_robot("licher2025")
    bench = {"sampling": "separate", "command_age": WAITED}
    return {
        name: ControlLoop(robot, RodMpcControllerSettings(intervals=2, **settings))
        for name, settings in {
            "simulator": {},
            "waiting valves": bench,
            "hasty valves": bench | {"command_age": 0.0},
        }.items()
    }


def delay_after(loop, *latencies):
    """[ticks] In periods the latencies of 15 answers, those named last."""
    loop.forget()
    for latency in [latencies[0]] * (15 - len(latencies)) + list(latencies):
        loop.answered(latency * PERIOD)
        loop._delay = loop.expected_delay  # as the next answer is planned
    return loop.expected_delay


def test_the_simulator_follows_from_the_next_tick_on(loops):
    loop = loops["simulator"]
    assert (delay_after(loop, 0.5), loop.age_to_send) == (1, 0.0)
    assert (delay_after(loop, 1.2), loop.age_to_send) == (2, 0.0)
    assert delay_after(loop, 0.5, 1.9) == 1


def test_a_late_first_answer_changes_no_plan(loops):
    loop = loops["simulator"]
    loop.forget()
    planned = []
    for latency in (1.1, *[0.8] * 14):
        loop.answered(latency * PERIOD)
        planned.append(loop.expected_delay)
    assert set(planned) == {1}


def test_a_plan_for_later_ends_with_the_answers_that_asked_for_it(loops):
    loop = loops["simulator"]
    assert delay_after(loop, 1.2) == 2
    for _ in range(15):
        loop.answered(0.8 * PERIOD)
    assert loop.expected_delay == 1


def test_waiting_valves_get_answers_at_once_and_follow_all_at_one_age(loops):
    loop = loops["waiting valves"]
    assert (delay_after(loop, 0.3), loop.age_to_send) == (2, 0.0)
    assert (delay_after(loop, 1.6), loop.age_to_send) == (2, 0.0)
    assert delay_after(loop, 1.6, 2.4) == 2  # one that was late


def test_answers_too_late_for_that_are_held_back_to_a_later_tick(loops):
    loop = loops["waiting valves"]
    assert delay_after(loop, 1.6, 2.1, 2.1) == 3
    assert 2 * PERIOD < loop.age_to_send < 3 * PERIOD
    assert delay_after(loop, 9.0) == 4


def test_hasty_valves_get_answers_just_before_the_tick_they_are_planned_for(loops):
    loop = loops["hasty valves"]
    assert delay_after(loop, 1.2) == 2
    assert 1.5 * PERIOD < loop.age_to_send < 2 * PERIOD
