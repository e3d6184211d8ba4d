"""Steps of a rod hold, or say that they do not: right within 1 % of its length, or NaN."""

import math
import multiprocessing
import warnings

import numpy as np
import pytest

from softcr_models import CosseratRod, load_robot
from softcr_models.prediction import RodPrediction
from softcr_models.robots.robot import Robot
from softcr_models.rod import stepper
from softcr_models.rod.statics import EquilibriumError
from softcr_models.rod.stepper import Run
from softcr_studies.robustness.random_robots import random_robot_content

PERIOD = 1 / 70
FINE = 1e-4  # sub-steps of the reference [s]
GOAL, MUST = 0.003, 0.01  # of the tip, as a share of the length
SHIPPED = (
    "licher2025", "licher2025_chain", "two_segments", "tendon_arm", "four_chambers",
    "three_segments", "rao_two_segments", "till_tendon",
)  # fmt: skip


def full_ramp(robot, actuator, settling=0.1, most=40):
    """(T + 1, m) inputs from rest to the limit of one actuator at its rate, then held."""
    tendon = robot.actuators[actuator].type == "tendon"
    limits = robot.tension_limits if tendon else robot.pressure_limits
    steps = math.ceil((limits.maximum / limits.maximum_rate + settling) / PERIOD)
    times = PERIOD * np.arange(min(steps, most) + 1)
    levels = np.zeros((len(times), len(robot.actuators)))
    levels[:, actuator] = np.minimum(limits.maximum, limits.maximum_rate * times)
    return levels


def reference(rod, start, levels):
    """(T, nx) in sub-steps of 0.1 ms, each linearised, that nobody judges."""
    run = Run(
        rod.body, rod.grid, PERIOD, math.ceil(PERIOD / FINE), fresh=1, fittings=rod.fittings,
        loads=rod.loads, largest_error=1e9,
    )  # fmt: skip
    return stepper.rollout(start[None], levels[None], rod.nominal_parameters[None], run)[0]


def tips(rod, states):
    return np.array([rod.tip_pose(state)[:3, 3] for state in states])


def error(rod, states, expected):
    """Of the tip at worst, as a share of the length; NaN where a state is NaN."""
    off = np.linalg.norm(tips(rod, states) - tips(rod, expected), axis=1)
    return float(np.max(off)) / rod.robot.length


@pytest.mark.parametrize("name", SHIPPED)
def test_a_shipped_robot_goes_to_its_limit_at_its_rate(name):
    """The rod itself within the goal; what filters and controllers predict with, more coarsely."""
    robot = load_robot(name)
    rod = CosseratRod(robot, 5)
    model = RodPrediction(CosseratRod(robot, 5))
    start = rod.equilibrium(np.zeros(rod.input_size))
    numbers = rod.nominal_parameters
    first = {segment: k for k, (_, segment) in reversed(list(enumerate(robot.reaches)))}
    for actuator in first.values():
        levels = full_ramp(robot, actuator)
        expected = reference(rod, start, levels)
        ramped = rod.simulate_ramps(start, levels, PERIOD, substeps=3)
        assert error(rod, ramped, expected) < 2 * GOAL
        batch = np.repeat(levels[None], 3, axis=0)
        single = model.rollout(start, batch, numbers, PERIOD)[1].astype(float)
        assert error(rod, single, expected) < 0.03
        double = RodPrediction(rod, single_precision=False).rollout(start, batch, numbers, PERIOD)
        assert error(rod, double[1], expected) < 0.03


@pytest.mark.parametrize("seed", range(12))
def test_a_random_robot_is_right_or_refused(seed):
    robot = Robot.model_validate(random_robot_content(seed))
    rod = CosseratRod(robot, 4)
    try:
        start = rod.equilibrium(np.zeros(rod.input_size))
    except EquilibriumError:
        return  # it cannot bear its weight
    actuator = int(np.random.default_rng(seed).integers(rod.input_size))
    levels = full_ramp(robot, actuator, most=20)
    found = rod.simulate_ramps(start, levels, PERIOD, substeps=3)
    if np.isnan(found).any():
        assert np.isnan(found).all()
        assert rod.retries.reason
    else:
        assert error(rod, found, reference(rod, start, levels)) < MUST


def test_what_is_pressed_to_nothing_is_no_answer():
    """Four tendons of 1 / dilatation_compliance = 78.5 N in all: statics refuse, motions stop."""
    limits = {"minimum": 0.0, "maximum": 60.0, "maximum_rate": 1000.0}
    rod = CosseratRod(load_robot("tendon_arm").replace(tension_limits=limits), 5)
    assert rod.tip_pose(rod.equilibrium(np.full(4, 19.0)))[2, 3] > 0.0
    with pytest.raises(EquilibriumError, match="segment_1 is pressed to nothing: its stretch is -"):
        rod.equilibrium(np.full(4, 20.0))
    state = rod.equilibrium(np.full(4, 15.0))
    with pytest.warns(RuntimeWarning, match=r"CosseratRod.simulate: .*pressed to nothing"):
        states = rod.simulate(state, np.full((20, 4), 30.0), PERIOD)
    assert np.isnan(states).all()
    model = RodPrediction(rod)
    batch = np.full((9, 21, 4), 15.0)
    batch[4, 1:] = 30.0
    rolled = model.rollout(state, batch, rod.nominal_parameters, PERIOD)
    assert np.isnan(rolled[4]).all()
    assert np.isfinite(np.delete(rolled, 4, axis=0)).all()


def test_a_motion_too_fast_for_the_shortest_sub_step_says_so():
    rod = CosseratRod(load_robot("licher2025"), 5)
    state = rod.rest_state()
    state[:60] = 1e4
    with pytest.warns(RuntimeWarning, match=r"CosseratRod.step: .*too fast for sub-steps of"):
        assert np.isnan(rod.step(state, np.zeros(3), PERIOD)).all()


@pytest.mark.parametrize("turn", [1.0, 5.0, 7.0, 30.0, 300.0])
def test_a_pose_holds_at_any_angle_or_is_nan(turn):
    """A constant curvature whose interval turns by an angle [rad]: a circle."""
    robot = load_robot("licher2025").replace(gravity=0.0)
    rod = CosseratRod(robot, 5)
    state = rod.rest_state()
    curvature = 5 * turn / robot.length
    wrenches = state[30:66].reshape(6, 6)  # of the six rows
    wrenches[:, 4] = curvature / robot.bending_compliance
    pose = rod.backbone(state, 2)[-1]
    model = RodPrediction(rod).tip_poses(state[None], rod.nominal_parameters[None])[0]
    assert np.isnan(pose).any() == np.isnan(model).all() == (turn > 4 * np.pi / 2)
    if turn < 4 * np.pi / 2:
        angle = curvature * robot.length
        circle = np.array([1.0 - np.cos(angle), 0.0, np.sin(angle)]) / curvature
        circle[2] += rod.base_height
        assert pose[:3, 3] == pytest.approx(circle, abs=1e-4 * robot.length)
        assert pose[:3, :3].T @ pose[:3, :3] == pytest.approx(np.eye(3), abs=2e-4)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert np.isnan(rod.step(state, np.zeros(3), PERIOD)).all() or turn < 4 * np.pi / 2


def test_a_rod_that_its_grid_does_not_resolve_has_no_equilibrium():
    robot = load_robot("licher2025").replace(gravity=0.0)
    rod = CosseratRod(robot, 1)
    with pytest.raises(EquilibriumError, match=r"turns by .* rad in a sub-interval of its grid"):
        rod.equilibrium(np.array([1e7, 0.0, 0.0]))


def _batch_in_a_child(expected):
    rod = CosseratRod(load_robot("licher2025"), 5)
    model = RodPrediction(rod)
    levels = np.linspace(0.0, 2e4, 9 * 4 * 3).reshape(9, 4, 3)
    rolled = model.rollout(rod.rest_state(), levels, rod.nominal_parameters, PERIOD)
    tip = model.tip_poses(rolled[:, -1], rod.nominal_parameters[None])
    return rolled if expected is None else float(np.abs(rolled - expected).max() + 0.0 * tip.sum())


def test_a_forked_child_computes_batches_without_threads():
    """After a batch in the parent, GNU's OpenMP would end the child."""
    expected = _batch_in_a_child(None)
    with multiprocessing.get_context("fork").Pool(2) as pool:
        found = pool.map_async(_batch_in_a_child, [expected, expected]).get(timeout=300)
    scale = np.abs(expected).max()
    assert max(found) < 1e-4 * scale
