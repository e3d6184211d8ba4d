"""The seams between models, filters and controllers: every one on every other, on virtual time."""

import pytest
import torch

from softcr_tools.experiments.any_model import (
    CASES,
    CONTROLLERS,
    FILTERS,
    LIMIT_MM,
    RADIUS,
    system_of,
    tip_errors,
)


@pytest.fixture(autouse=True)
def one_thread():
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.mark.parametrize("controller", CONTROLLERS)
@pytest.mark.parametrize("filter_name", FILTERS)
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.model)
def test_every_controller_and_filter_tracks_on_every_model(case, filter_name, controller):
    errors = tip_errors(system_of(case, filter_name, controller, seed=1, duration=2.5))
    assert len(errors) >= 2.5 * case.rate_hz
    assert 1e3 * errors.mean() < LIMIT_MM
    # the circle was entered, not waited for
    assert 1e3 * errors[-20:].mean() < LIMIT_MM < 1e3 * RADIUS
