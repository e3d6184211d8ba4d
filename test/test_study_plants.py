"""The study of plants that are not the model: its cases and its figures of events."""

import dataclasses

import numpy as np
import pytest

from softcr_models import load_robot
from softcr_simulation.errors.plant_errors import PlantErrors, about_field
from softcr_studies.loops.closed_loop import mean_error_mm
from softcr_studies.loops.tracking_loop import FAST, reference_of, run_loop
from softcr_studies.robustness.plants import NAMED, STUDY, cases

ROBOT = load_robot("licher2025")


def test_every_drawn_field_is_an_axis():
    found = cases()
    assert len({case.name for case in found}) == len(found)
    assert {"typical", "hard", *NAMED} < {case.name for case in found}
    usual = PlantErrors(bending_factor=0.95, tip_mass_factor=1.1, tip_noise=2e-4)
    fields = PlantErrors.model_fields
    errors = [case.errors for case in found]
    varied = {n for n in fields if any(getattr(e, n) != getattr(usual, n) for e in errors)}
    drawn = {name for name in fields if about_field(name).spread is not None}
    assert drawn - varied == {"tip_force_from"}  # when it begins is no error of the model


def figures(error, event=None):
    times = np.arange(len(error)) / 70.0
    result = {"times": times, "error": 1e-3 * np.asarray(error)}
    if event is not None:
        result["event"] = event
    named = {metric.quantity: metric for metric in STUDY.metrics}
    time = "time to 0.5 mm after the event, at most to the end"
    names = ("peak after the event", time, "mean from 1.5 s after the event on")
    return [named[name].of(result) for name in names]


def test_figures_of_an_event():
    error = np.full(420, 0.1)
    assert figures(error) == [None, None, None]
    error[210:280] = 5.0  # for a second from the event on
    peak, time, later = figures(error, event=3.0)
    assert (peak, later) == pytest.approx((5.0, 0.1))
    assert time == pytest.approx(1.0, abs=1.5 / 70.0)
    error[210:] = 1.0
    assert figures(error, event=3.0)[1] == pytest.approx(3.0 - 0.2, abs=0.03)


@pytest.mark.slow
def test_the_shipped_loop_on_a_plant_of_the_same_structure():
    """Other mechanics and another integrator alone cost the loop nearly nothing."""
    case = dataclasses.replace(FAST, duration=4.0, errors=NAMED["same structure"])
    result = run_loop(ROBOT, case, reference_of(ROBOT, case), "rod_mpc", (1, 2))
    assert mean_error_mm(result, 2.0) < 0.2
