"""Two clocks, on a machine that may let time pass between a look at one and at the other."""

import time
from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from softcr_runtime.ros import clocks

APART = 1_700_000_000_123_456_789  # [ns]


class Machine:
    """Clocks that stand still but for pauses [ns] between a look at one and at the other."""

    def __init__(self, *pauses):
        self.now, self._pauses = 50_000_000_000, iter(pauses)
        self.time = SimpleNamespace(
            monotonic=lambda: 1e-9 * self.now, monotonic_ns=lambda: self.now, time_ns=self._system
        )

    def _system(self):
        self.now += next(self._pauses, 0)
        return self.now + APART


@pytest.mark.parametrize("pauses", [(), (100_000_000,), (100_000_000, 3_000_000, 40_000)])
def test_who_is_stopped_between_the_looks_looks_again(monkeypatch, pauses):
    machine = Machine(*pauses)
    monkeypatch.setattr(clocks, "time", machine.time)
    moment = machine.now + APART - 2_000_000
    assert clocks.on_monotonic_clock(moment) == pytest.approx(49.998, abs=1e-6)
    machine = Machine(*pauses)
    monkeypatch.setattr(clocks, "time", machine.time)
    assert clocks.on_system_clock(49.998) == pytest.approx(49_998_000_000 + APART, abs=1000)


@given(st.floats(-3600.0, 3600.0))
def test_what_came_is_not_of_the_future_and_not_older_than_a_second(age):
    found = clocks.on_monotonic_clock(time.time_ns() - round(1e9 * age))
    now = time.monotonic()
    assert found <= now
    if age >= 1.0:
        assert found == pytest.approx(now - 1.0, abs=10.0)  # on a busy machine
