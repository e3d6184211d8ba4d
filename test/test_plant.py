"""The simulated plant against the rod integrated finely, its valves and its sensors."""

import numpy as np
import pytest
from scipy.integrate import solve_ivp

from softcr_models import CosseratRod, load_robot
from softcr_simulation.errors.plant_errors import PlantErrors
from softcr_simulation.plant import SimulatedPlant

ROBOT = load_robot("licher2025")
PERIOD = 1 / 70


def moved(plant, cycles):
    for cycle in range(cycles):
        phase = 2 * np.pi * (1.5 * cycle * PERIOD + np.arange(3) / 3)
        plant.follow(3e4 + 2.5e4 * np.sin(phase))
        plant.advance(PERIOD)
    return plant.measure(1)


def test_a_plant_of_tendons_follows_tensions_at_once_and_within_its_limits():
    arm = load_robot("tendon_arm")
    plant = SimulatedPlant(
        arm, PlantErrors.noiseless(pressure_noise=1e3, tension_noise=0.01), intervals=4
    )
    plant.follow(np.array([0.3, -1.0, 0.0, 2.0]))
    assert plant.command.tolist() == [0.3, 0.0, 0.0, 0.5]
    plant.follow(np.array([0.3, 0.0, 0.0, 0.0]))
    for _ in range(5):
        plant.advance(PERIOD)
    measured = plant.measure(1)
    assert measured.true_pressures.tolist() == [0.3, 0.0, 0.0, 0.0]
    noise = np.abs(measured.pressures - measured.true_pressures)
    assert 0.0 < noise.max() < 0.1
    rod = CosseratRod(arm, 4)
    levels = np.array([[0.0, 0, 0, 0], *[[0.3, 0, 0, 0]] * 5])  # evenly within the first period
    states = rod.simulate_ramps(rod.equilibrium(levels[0]), levels, PERIOD, substeps=20)
    expected = rod.tip_pose(states[-1])[:3, 3]
    assert expected[0] > 1e-3  # towards the tendon on the x axis
    assert measured.true_tip_pose[:3, 3] == pytest.approx(expected, abs=0.01 * expected[0])
    plant.vent()
    plant.advance(PERIOD)
    assert plant.pressures.tolist() == [0.0] * 4


def test_motion_and_base_wrench_are_those_of_the_equations():
    """Lag and rod together, by scipy's Radau at a tight tolerance, on a small grid."""
    plant = SimulatedPlant(ROBOT, PlantErrors.noiseless(), intervals=4)
    rod, lag = CosseratRod(ROBOT, 4), ROBOT.pressure_lag
    state, pressures = rod.equilibrium(np.zeros(3)), np.zeros(3)
    for cycle in range(10):
        command = 3e4 + 2.5e4 * np.sin(2 * np.pi * (1.5 * cycle * PERIOD + np.arange(3) / 3))

        def rate(time, x, begin=pressures, command=command):
            return rod.derivative(x, lag.step(begin, command, time))

        found = solve_ivp(rate, (0.0, PERIOD), state, method="Radau", rtol=1e-8, atol=1e-9)
        state, pressures = found.y[:, -1], lag.step(pressures, command, PERIOD)
    measured = moved(plant, 10)
    assert measured.true_pressures == pytest.approx(pressures)
    tip = rod.tip_pose(state)[:3, 3]
    assert measured.true_tip_pose[:3, 3] == pytest.approx(tip, abs=3e-5)
    expected = rod.base_wrench(state, pressures)
    assert measured.wrench[:3] == pytest.approx(expected[:3], abs=0.03)
    assert measured.wrench[3:] == pytest.approx(expected[3:], abs=2e-3)


def test_valves_keep_their_limits_and_vent():
    plant = SimulatedPlant(ROBOT, PlantErrors.noiseless(), intervals=3)
    plant.follow(np.array([1e9, -1e9, 2e4]))
    assert plant.command.tolist() == [ROBOT.pressure_limits.maximum, 0.0, 2e4]
    for _ in range(20):
        plant.advance(PERIOD)
    full = plant.pressures.copy()
    plant.vent()
    for _ in range(35):
        plant.advance(PERIOD)
    assert plant.pressures.max() < 0.01 * full.max()


def test_a_late_camera_shows_the_past():
    plant = SimulatedPlant(ROBOT, PlantErrors.noiseless(), intervals=3, mocap_latency=2)
    seen, true = [], []
    for stamp in range(1, 6):
        plant.follow(np.array([5e4, 0.0, 0.0]))
        plant.advance(PERIOD)
        measured = plant.measure(stamp)
        seen.append(measured)
        true.append(measured.true_tip_pose)
    assert [m.tip_pose is None for m in seen] == [True, True, False, False, False]
    assert [m.tip_stamp for m in seen[2:]] == [1, 2, 3]
    assert np.array_equal(seen[-1].tip_pose, true[2])


def test_imposed_pressures_are_there_at_once():
    plant = SimulatedPlant(ROBOT, PlantErrors.noiseless(), intervals=3)
    plant.impose(0.0, 4.0, np.zeros(1), np.array([[2e4, 1e4, 0.0]]))
    steady = plant.rod.tip_pose(plant.rod.equilibrium(np.array([2e4, 1e4, 0.0])))
    assert plant.measure(1).true_tip_pose[:3, 3] == pytest.approx(steady[:3, 3], abs=2e-3)
