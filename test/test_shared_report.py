"""The valves' report in shared memory: whole, newest, and left alone when its writer dies."""

import os
import struct

import numpy as np
import pytest

from softcr_hardware.ethercat.driver import ValveReport
from softcr_hardware.ethercat.shared_report import SharedReport
from softcr_hardware.safety.safety import Action, Decision


def report(time, reason="all clear", bus=""):
    values = time + np.arange(3.0)
    decision = Decision(Action.HOLD, True, reason, ("a", "b"))
    return ValveReport(
        time, time - 1.0, values, 2.0 * values, 3.0 * values, decision, bus, 4, False
    )


def same(one, other):
    arrays = ("pressures", "sent", "volts")
    words = ("time", "measured", "decision", "bus", "reconnects", "gave_up")
    return all(np.array_equal(getattr(one, n), getattr(other, n)) for n in arrays) and all(
        getattr(one, n) == getattr(other, n) for n in words
    )


@pytest.fixture
def ends():
    reader = SharedReport(3)
    writer = SharedReport(3, os.dup(reader.file))
    yield writer, reader
    writer.close()
    reader.close()


def test_the_newest_report_is_read_with_its_words(ends):
    writer, reader = ends
    assert reader.read() is None
    for time, reason, bus in ((1.0, "x", ""), (2.0, "x", ""), (3.0, "other", "a terminal is lost")):
        writer.write(report(time, reason, bus))
        assert same(reader.read(), report(time, reason, bus))
    writer.write(report(4.0))
    writer.write(report(5.0, "y" * 100))
    assert same(reader.read(), report(5.0, "y" * 100))
    assert reader.read() is reader.read()


def test_not_a_number_passes(ends):
    writer, reader = ends
    told = report(1.0)
    told.pressures = np.full(3, np.nan)
    writer.write(told)
    assert np.isnan(reader.read().pressures).all()


def test_a_writer_that_died_while_it_wrote_leaves_the_report_before(ends):
    writer, reader = ends
    writer.write(report(1.0))
    reader.read()
    struct.pack_into("@Q", writer._memory, 0, 3)  # odd: under way
    struct.pack_into("@d", writer._memory, 8, 99.0)
    assert same(reader.read(), report(1.0))


def test_words_too_long_for_the_memory_are_cut_where_they_can_be(ends):
    writer, reader = ends
    writer.write(report(1.0, bus="b" * 100_000))
    assert reader.read().bus.startswith("bbb")
    assert len(reader.read().bus) < 100_000
