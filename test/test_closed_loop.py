"""Plant, filter and controller together: the accuracy the house promises.

The plant is not the model: 10 intervals against 5, 5 % stiffer, 10 % more tip mass, pressure lag,
0.2 mm tip noise, one cycle of delay.
"""

from dataclasses import replace

import numpy as np
import pytest

from softcr_control.reference.settings import ReferenceSettings
from softcr_models import load_robot
from softcr_simulation.plant import SimulatedPlant
from softcr_studies.loops.tracking_loop import Case, reference_of, run_loop

ROBOT = load_robot("licher2025")


def closed_loop(kind, duration, name="nempc"):
    """Times [s], errors of the tip and of its estimate [mm], bending compliance relative to the
    truth [-], commands [Pa]."""
    case = Case(kind, ReferenceSettings(kind=kind), duration, plant_intervals=10)
    found = run_loop(ROBOT, case, reference_of(ROBOT, case), name, (1, 1))
    estimates = 1e3 * np.linalg.norm(found["estimated"] - found["tips"], axis=1)
    compliance = found["compliance"] / found["true_compliance"]
    return found["times"], 1e3 * found["error"], estimates, compliance, found["commands"]


@pytest.mark.parametrize("kind", ["trajectory", pytest.param("circle", marks=pytest.mark.later)])
def test_tracking_with_a_plant_that_is_not_the_model(kind):
    times, tip, estimate, compliance, commands = closed_loop(kind, 8.0)
    assert tip.mean() <= 2.0  # bound: AED <= 2.0 mm; paper, without mismatch: 2.68 mm
    assert estimate.mean() <= 0.5
    assert np.abs(compliance[times >= 5.0] - 1.0).max() <= 0.01
    limits = ROBOT.pressure_limits
    assert limits.minimum <= commands.min() <= commands.max() <= limits.maximum


@pytest.mark.later
@pytest.mark.parametrize(("name", "most"), [("nempc", 1.0), ("rod_mpc", 0.3)])
def test_setpoint_is_reached(name, most):
    times, tip, *_ = closed_loop("setpoint", 3.5, name)
    assert tip[times >= 2.0].max() <= most


@pytest.mark.later
def test_the_gradient_controller_goes_below_the_evolutionary_one():
    """0.7 mm at 1.5 Hz must be kept."""
    times, tip, *_ = closed_loop("trajectory", 8.0, "rod_mpc")
    assert tip.mean() <= 0.7
    assert tip[times >= 2.0].mean() <= 0.25


@pytest.mark.later
def test_half_a_second_without_poses_is_predicted_through(monkeypatch):
    measure, cycles = SimulatedPlant.measure, []

    def blind(plant, stamp):
        cycles.append(stamp)
        found = measure(plant, stamp)
        return replace(found, tip_pose=None) if 140 <= len(cycles) - 1 < 175 else found

    monkeypatch.setattr(SimulatedPlant, "measure", blind)
    times, tip, estimate, *_ = closed_loop("circle", 4.0)
    assert estimate[140:175].max() < 10.0
    assert tip[times >= 3.5].mean() < 2.0
