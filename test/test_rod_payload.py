"""A payload that filters look for: against a rigid body of a file, and against what it must be."""

import numpy as np
import pytest
from kit.refusals import one_line

from softcr_estimation import ModelEstimator, ModelEstimatorSettings
from softcr_models import CosseratRod, UserError, load_robot
from softcr_models.models import make_model
from softcr_models.rod.point_loads import PointLoad

ROBOT = load_robot("licher2025")
PRESSURES = np.array([40e3, 20e3, 0.0])
CARRIED = 0.05
PERIOD = 1 / 70


def carrying(intervals=5):
    return CosseratRod(ROBOT, intervals, payload=True)


def numbers(rod, payload):
    return np.append(rod.nominal_parameters[:-1], payload)


def with_body(intervals, mass=CARRIED):
    """The same mass as a rigid body of the robot's file, whose kernels share nothing with it."""
    payload = {"mass": mass, "centre_of_mass": [0.0, 0.0, ROBOT.tip_cap_length]}
    return CosseratRod(ROBOT.replace(payload=payload), intervals)


def random_state(rod, seed):
    random = np.random.default_rng(seed)
    return random.normal(0.0, 0.3, rod.state_size) * make_model("rod", ROBOT).state_scale


def test_its_weight_reaches_the_base():
    rod = carrying()
    row = numbers(rod, CARRIED)
    steady = rod.equilibrium(np.zeros(3), row)
    pulled = rod.base_wrench(steady, np.zeros(3), row)[:3]
    mass = ROBOT.density * ROBOT.cross_section_area * ROBOT.length + ROBOT.tip_mass + CARRIED
    assert pulled == pytest.approx([0.0, 0.0, -9.81 * mass], abs=1e-8)


def test_shapes_at_rest_become_those_with_a_rigid_body():
    apart = []
    for intervals in (5, 10, 20):
        rod, other = carrying(intervals), with_body(intervals)
        tip = rod.tip_pose(rod.equilibrium(PRESSURES, numbers(rod, CARRIED)))[:3, 3]
        apart.append(np.linalg.norm(tip - other.tip_pose(other.equilibrium(PRESSURES))[:3, 3]))
    bare = CosseratRod(ROBOT, 20)
    sag = np.linalg.norm(tip - bare.tip_pose(bare.equilibrium(PRESSURES))[:3, 3])
    # it follows the middle of the last interval, so the distance goes with the interval's length
    assert apart[2] < 0.6 * apart[1] < 0.36 * apart[0]
    assert apart[2] < 0.02 * sag


def test_small_motions_become_those_with_a_rigid_body():
    slowest = []
    for rod, row in ((carrying(20), numbers(carrying(20), CARRIED)), (with_body(20), None)):
        jacobian, _ = rod.linearize(rod.equilibrium(PRESSURES, row), PRESSURES, row)
        values = np.linalg.eigvals(jacobian)
        bending = np.sort_complex(values[(np.abs(values) < 40.0) & (values.imag > 0.0)])
        slowest.append(bending[:2])
    assert slowest[0] == pytest.approx(slowest[1], rel=0.01)


def test_what_has_gone_is_taken_off_the_tip_mass():
    rod, gone = carrying(), 0.3 * ROBOT.tip_mass
    state = random_state(rod, 4)
    lighter = rod.nominal_parameters - np.array([0.0, gone, 0.0, 0.0])
    found = rod.derivative(state, PRESSURES, numbers(rod, -gone))
    assert found == pytest.approx(rod.derivative(state, PRESSURES, lighter), rel=1e-12)


def test_a_filter_finds_it_within_a_second_of_motion():
    robot = ROBOT.replace(estimated_payload=True)
    plant, model = with_body(10, 0.02), make_model("rod", robot)
    estimator = ModelEstimator(model, ModelEstimatorSettings())
    pressures, state = PRESSURES, plant.equilibrium(PRESSURES)
    estimator.start(pressures, 0.0)
    for tick in range(1, 141):
        time = tick * PERIOD
        pressures = 30e3 + 20e3 * np.sin(8.0 * time + np.array([0.0, 2.1, 4.2]))
        state = plant.step(state, pressures, PERIOD)
        estimate = estimator.update(pressures, {"tip": plant.tip_pose(state)}, time)
    assert estimate.parameters["payload"] == pytest.approx(0.02, abs=0.004)


def test_fittings_a_force_and_loads_are_refused_in_one_line():
    with one_line("estimated_payload: is for a rod without connectors"):
        make_model("rod", load_robot("two_segments").replace(estimated_payload=True))
    with pytest.raises(UserError, match="estimated_payload"):
        CosseratRod(ROBOT, 5, payload=True, tip_force=True)
    rod = carrying()
    with pytest.raises(UserError, match="loads are not allowed where a payload is estimated"):
        rod.derivative(rod.rest_state(), PRESSURES, loads=[PointLoad(force=(0.0, 0.0, -1.0))])


def test_a_robot_file_switches_it_on():
    with_it = make_model("rod", ROBOT.replace(estimated_payload=True))
    opened = {each.name: each.opened for each in with_it.parameters}
    assert opened["payload"] > 0.0 == opened["tip_mass"]
    payload = with_it.parameters[-1]
    assert payload.low == -0.5 * ROBOT.tip_mass
    assert payload.high == payload.scale > ROBOT.tip_mass
    assert {each.name: each.opened for each in make_model("rod", ROBOT).parameters}["tip_mass"] > 0
