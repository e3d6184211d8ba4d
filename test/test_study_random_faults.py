"""Study `robustness/random-faults`: what goes wrong at random, and what bounds it."""

import numpy as np
import pytest

from softcr_hardware.ethercat.pressure_guard.detectors import PressureFault
from softcr_studies.frame.study import Cell
from softcr_studies.robustness.pressure_faults import COLUMNS, LOW, station_of
from softcr_studies.robustness.random_faults import (
    STUDY,
    WRONG,
    Settings,
    random_course,
    random_setpoint,
    sequence,
)

T = np.arange(1000) * 1e-3


def test_each_thing_that_can_go_wrong_does():
    random, seen = np.random.default_rng(0), set()
    for _ in range(200):
        told = {k: v for k, v in vars(random_course(T, random)).items() if v is not None}
        assert 1 <= len(told) <= 4
        for name, values in told.items():
            honest = WRONG[name][0]
            assert np.isfinite(values).all() or name == "stuck"
            if not np.array_equal(values, np.full(len(T), honest), equal_nan=True):
                seen.add(name)
    assert seen == set(WRONG)


def test_setpoints_stay_within_the_limits():
    random = np.random.default_rng(1)
    for _ in range(200):
        setpoint = random_setpoint(T, 1e5, random)
        assert setpoint.shape == T.shape
        assert -1.0 <= setpoint.min() <= setpoint.max() <= 0.981e5


@pytest.mark.parametrize("column", COLUMNS, ids=lambda column: column.name)
def test_no_sequence_passes_what_the_supply_gives_and_most_are_vented(column):
    random, station = np.random.default_rng(2), station_of(column)
    found = [sequence(column, station, 1e5, 1.0, random) for _ in range(300)]
    assert max(each.peak for each in found) <= column.supply + 100.0
    assert np.mean([each.fault != PressureFault.NONE for each in found]) > 0.7


def test_a_cell_counts_its_sequences_and_the_bound_is_a_must():
    result = STUDY.run(Cell("any of them", LOW.name, 0, Settings(sequences=20)))
    assert result["sequences"] == 20
    assert result["peak"] <= 105.1
    [must] = STUDY.musts
    assert (must.bound, must.method) == (105.1, LOW.name)
