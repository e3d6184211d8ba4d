"""When a run is over, and when one in lock-step has come to a standstill: never because a machine
is slow or was suspended."""

from types import SimpleNamespace

import pytest

from softcr_runtime.ros.executor import progress
from softcr_runtime.ros.executor.progress import STALL_TIMEOUT, RunProgress
from softcr_runtime.ros.executor.run_record import RunFailure


@pytest.fixture
def run(monkeypatch):
    """A run in lock-step on a clock that is moved by hand."""
    clock = SimpleNamespace(now=100.0)
    monkeypatch.setattr(progress.time, "monotonic", lambda: clock.now)
    heard = SimpleNamespace(
        simulated_time=0.0, disarmed="", vented="", finished=False, refused={}, unusable={}
    )
    system = SimpleNamespace(simulated_time=True, duration=10.0)
    state = SimpleNamespace(heard=heard, computes=True)
    made = RunProgress(heard, system, lambda t: None, lambda: state.computes)

    def look(seconds, step=0.1):
        for _ in range(round(seconds / step)):
            clock.now += step
            made.look()

    state.look = look
    return state


def test_a_node_that_computes_and_a_suspended_machine_are_waited_for_however_long(run):
    run.look(10 * STALL_TIMEOUT, step=1.0)
    run.computes = False
    run.look(5 * 3600.0, step=3600.0)


def test_where_nobody_computes_the_run_ends_in_one_line(run):
    run.computes = False
    run.heard.simulated_time = 0.5
    run.look(STALL_TIMEOUT - 1.0)
    run.heard.simulated_time = 1.0  # the cycle was answered
    run.look(STALL_TIMEOUT - 1.0)
    with pytest.raises(RunFailure, match=r"simulated time stands still at 1\.000 s: a node does"):
        run.look(2.0)


def test_a_node_that_raised_and_does_not_answer_is_named_soon(run):
    run.computes = False
    run.heard.refused = {"estimator": "Mine.tick: ValueError: no idea"}
    with pytest.raises(RunFailure, match=r"still at 0\.000 s: estimator: Mine\.tick: ValueError"):
        run.look(0.2 * STALL_TIMEOUT)


def test_a_node_without_usable_answers_ends_the_run(run):
    run.heard.unusable = {"controller": "Mine.tick: ValueError: no idea"}
    with pytest.raises(RunFailure, match=r"controller gives no usable answer: Mine\.tick"):
        run.look(0.1)
