"""The studies of Pawlowski (2019): their truths and measures, at their smallest."""

import numpy as np
import pytest

from softcr_papers.pawlowski2019.reference.implicit_motion import ImplicitMotion
from softcr_papers.pawlowski2019.reference.reference_rod import Loads, ReferenceRod
from softcr_papers.pawlowski2019.studies import dynamics, solvers, statics, work_precision
from softcr_papers.pawlowski2019.studies.robots import lying
from softcr_studies.frame.study import Cell
from softcr_studies.speed.work_precision import inputs_of


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


def test_laws_of_time_allow_the_printed_numbers_of_points():
    """(4.19) and (4.20) of 100 kPa and 1 MPa, as the thesis evaluates them; (4.21) backwards."""
    printed = 49e-6, 6.5e-6
    found = [dynamics.real_time_points(printed, size, modulus)
             for size in (0.1, 0.9) for modulus in dynamics.MODULI]  # fmt: skip
    assert found == pytest.approx([9.85, 4.91, 34.2, 18.1], rel=2e-3)
    points = dynamics.real_time_points((-2e-4, 98.7e-6), 0.05, None)
    assert -2e-4 + 98.7e-6 * points == pytest.approx(0.05)


def test_a_motion_that_fails_is_a_note():
    def fail(duration):
        motion = ImplicitMotion(ReferenceRod.of_robot(lying()), 20, 1e-4)
        return 1e-4, motion.advance(motion.rest_state(), Loads(tip_force=(5.0, 0, 0)), 100)

    assert "no step was found" in dynamics.cantilever(fail, dynamics.Settings())["note"]


def test_steps_of_tension_are_held():
    tensions = inputs_of(solvers.PULLED, 45)
    assert tensions[[0, 19, 20, 39, 40]] == pytest.approx(
        0.5 * np.array([[1, 0], [1, 0], [0.4, 0.8], [0.4, 0.8], [0, 0.2]])
    )


def test_solvers_are_sampled_at_the_ends_of_periods():
    """Steps longer and shorter than a period; against the motion itself, step by step."""
    rod = ReferenceRod.of_robot(solvers.PULLED.robot())
    tensions = inputs_of(solvers.PULLED, 24)
    for dt, rows in ((0.02, range(1, 24, 2)), (0.005, range(24))):
        motion = ImplicitMotion(rod, 7, dt)
        state, want = motion.rest_state(), []
        for row in range(24) if dt < 0.01 else range(0, 24, 2):
            loads = Loads(inputs=tensions[row])
            want.append(motion.advance(state, loads, max(1, round(0.01 / dt)))[-1])
        found_rows, tips = solvers.implicit_tips(solvers.PULLED, 24, 7, dt)
        assert found_rows.tolist() == list(rows)
        assert tips == pytest.approx(np.array(want), abs=1e-8)


def test_a_solver_that_fails_has_no_error():
    rows, tips = solvers.implicit_tips(solvers.CANTILEVER, 20, 5, 0.0025, "midpoint")
    assert len(rows) == 20
    assert np.isnan(tips).all()


def test_times_within_bounds_are_told_and_compared():
    points = ["a", "b", "c"], [2e-3, 8e-4, 2e-4], [1e-3, 2e-3, 8e-3], "note"
    found = work_precision.told(points, 1e3, 1e3, work_precision.MOVING_TIMES)
    names = work_precision.MOVING_TIMES
    assert [found.get(name) for name in names.values()] == [1.0, 2.0, 8.0, None]


@pytest.mark.slow
def test_cells_at_rest_converge():
    for case in work_precision.STILL:
        for method in work_precision.methods(case):
            _, errors, _, _ = work_precision.still(case, method)
            assert errors[-1] < 1e-3
            assert min(errors) == pytest.approx(errors[-1], abs=1e-9)
