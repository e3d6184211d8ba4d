"""The studies of Pawlowski (2019): their truths and measures, at their smallest."""

import numpy as np
import pytest

from softcr_models.reference.implicit_motion import ImplicitMotion
from softcr_models.reference.reference_rod import Loads, ReferenceRod
from softcr_studies.pawlowski2019 import dynamics, statics
from softcr_studies.pawlowski2019.robots import lying
from softcr_studies.study import Cell


def test_truth_is_that_of_another_integrator():
    base = np.array([-0.07704756, 0, 0, 0, -3.795076e-3, 0])
    _, tip, wrench = statics.march(ReferenceRod.of_robot(lying()), base)
    assert tip == pytest.approx([-0.0191893040, 0, 0.0978886453], abs=1e-8)
    assert wrench == pytest.approx(np.zeros(6), abs=1e-8)


@pytest.mark.slow
def test_a_cell_of_the_statics():
    cell = Cell(statics.WEIGHT, "implicit_midpoint", 0, statics.Settings(repeats=1))
    found = statics.run(cell)
    assert found["10 points"] == pytest.approx(6.7e-3, rel=0.05)
    assert found["order"] == pytest.approx(2.0, abs=0.05)
    assert found["determinant"] < 1e-15


def test_measures_of_a_motion():
    def swing(duration):
        times = 0.01 * np.arange(1, round(100 * duration) + 1)
        return 0.01, np.outer(-np.sin(2 * np.pi * times / 0.25) - 1.0, [0.02, 0, 0])

    found = dynamics.cantilever(swing, dynamics.Settings(duration=3.0))
    assert found["lowest"] == pytest.approx(-40.0, abs=0.1)
    assert found["lowest at the end"] == pytest.approx(-40.0, abs=0.1)
    assert found["period"] == pytest.approx(0.25, abs=0.003)


def test_a_motion_that_fails_is_a_note():
    def fail(duration):
        motion = ImplicitMotion(ReferenceRod.of_robot(lying()), 20, 1e-4)
        return 1e-4, motion.advance(motion.rest_state(), Loads(tip_force=(5.0, 0, 0)), 100)

    assert "no step was found" in dynamics.cantilever(fail, dynamics.Settings())["note"]
