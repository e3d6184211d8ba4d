"""Plant, filter and controller together, in plain Python: the accuracy the house promises.

The plant is not the model: 10 intervals against 5, 5 % stiffer, 10 % more tip mass, pressure lag,
0.2 mm tip noise, one cycle of delay.
"""

from dataclasses import dataclass

import numpy as np
import pytest

from softcr_control.controller_file import named_settings
from softcr_control.observation import ControlContext, Observation
from softcr_control.reference.references import at_nodes
from softcr_control.reference.settings import ReferenceSettings
from softcr_estimation import ModelEstimator
from softcr_models import CosseratRod, load_robot
from softcr_models.model import TIP
from softcr_models.prediction import RodPrediction
from softcr_runtime.settings import registry
from softcr_simulation.errors.plant_errors import PlantErrors
from softcr_simulation.plant import SimulatedPlant

ROBOT = load_robot("licher2025")
PERIOD = 1 / 70
ERRORS = PlantErrors.noiseless(bending_factor=0.95, tip_mass_factor=1.1, tip_noise=2e-4)


@dataclass(frozen=True)
class Run:
    """Errors per cycle [mm]; bending compliance relative to the truth [-]."""

    tip: np.ndarray
    estimate: np.ndarray
    compliance: np.ndarray
    commands: np.ndarray

    def after(self, seconds, values):
        return values[round(seconds / PERIOD) :]


def made_controller(name, prediction, seed):
    """The shipped controller of a name, on the filter's model."""
    context = ControlContext(ROBOT, prediction, PERIOD, seed)
    return registry.resolve("controller", name)(context, named_settings(name))


def closed_loop(kind, duration, dropout=(), seed=1, name="nempc"):
    """Simulate; `dropout` holds cycles without a tip pose."""
    plant = SimulatedPlant(ROBOT, ERRORS, seed, 10)
    prediction = RodPrediction(CosseratRod(ROBOT, 5), single_precision=name == "nempc")
    estimator = ModelEstimator(prediction)
    controller = made_controller(name, prediction, seed)
    fine = RodPrediction(CosseratRod(ROBOT, 10), substeps=3)
    motion = ReferenceSettings(kind=kind, duration=duration).source(fine, PERIOD)
    source = at_nodes(motion, fine.rod, CosseratRod(ROBOT, 5))
    tip, estimated, compliance, commands = [], [], [], []
    command = np.zeros(3)
    for cycle in range(round(duration / PERIOD)):
        stamp = (cycle + 1) * PERIOD
        if cycle:
            plant.advance(PERIOD)
        plant.follow(command)
        measured = plant.measure(round(1e9 * stamp))
        if cycle == 0:
            estimate = estimator.start(measured.pressures, stamp)
        else:
            seen = {} if cycle in dropout else {TIP: measured.tip_pose[:3, 3]}
            estimate = estimator.update(measured.pressures, seen, stamp)
        rows = source.window(cycle * PERIOD, controller.rows)
        command = controller.command(
            Observation(
                stamp, estimate.state, estimate.parameters, rows, measured.pressures, prediction
            )
        ).pressures
        true_tip = measured.true_tip_pose[:3, 3]
        tip.append(1e3 * np.linalg.norm(true_tip - rows.tip_positions[0]))
        estimated.append(1e3 * np.linalg.norm(estimate.tip_position - true_tip))
        compliance.append(
            estimate.parameters["bending_compliance"] / plant.rod.robot.bending_compliance
        )
        commands.append(command)
    return Run(*(np.array(values) for values in (tip, estimated, compliance, commands)))


@pytest.mark.parametrize("kind", ["trajectory", pytest.param("circle", marks=pytest.mark.later)])
def test_tracking_with_a_plant_that_is_not_the_model(kind):
    run = closed_loop(kind, 8.0)
    assert run.tip.mean() <= 2.0  # bound: AED <= 2.0 mm; paper, without mismatch: 2.68 mm
    assert run.estimate.mean() <= 0.5
    assert np.abs(run.after(5.0, run.compliance) - 1.0).max() <= 0.01
    low, high = ROBOT.pressure_limits.minimum, ROBOT.pressure_limits.maximum
    assert low <= run.commands.min()
    assert run.commands.max() <= high


@pytest.mark.later
def test_setpoint_is_reached():
    run = closed_loop("setpoint", 3.5)
    assert run.after(2.0, run.tip).max() <= 1.0


@pytest.mark.later
def test_the_gradient_controller_goes_below_the_evolutionary_one():
    """0.7 mm at 1.5 Hz and 0.3 mm at a setpoint must be kept."""
    run = closed_loop("trajectory", 8.0, name="rod_mpc")
    assert run.tip.mean() <= 0.7
    assert run.after(2.0, run.tip).mean() <= 0.25
    run = closed_loop("setpoint", 3.5, name="rod_mpc")
    assert run.after(2.0, run.tip).max() <= 0.3


@pytest.mark.later
def test_half_a_second_without_poses_is_predicted_through():
    dropout = range(140, 175)
    run = closed_loop("circle", 4.0, dropout)
    during = run.estimate[140:175]
    assert during.max() < 10.0
    assert run.after(3.5, run.tip).mean() < 2.0
