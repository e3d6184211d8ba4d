"""The seams between models, filters and controllers: every one on every other, on virtual time."""

import pytest

from softcr_studies.control.any_model import CASES, LIMIT_MM, METHODS, RADIUS, STUDY, system_of
from softcr_studies.frame.cell import Cell
from softcr_studies.loops.closed_loop import tracked

pytestmark = pytest.mark.usefixtures("one_thread")


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_every_controller_and_filter_tracks_on_every_model(case, method):
    cell = Cell(case, method, 1, STUDY.settings())
    errors = tracked(cell, system_of(cell, duration=2.5))["error"]
    assert len(errors) >= 2.5 * case.rate_hz
    assert 1e3 * errors.mean() < LIMIT_MM
    # the circle was entered, not waited for
    assert 1e3 * errors[-20:].mean() < LIMIT_MM < 1e3 * RADIUS
