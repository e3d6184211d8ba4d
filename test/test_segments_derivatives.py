"""Derivatives, lanes and steps of an arm with everything a rod can have, against each other.

The oracles are complex steps through the same text in plain numpy, and central differences.
"""

import numpy as np
import pytest

from softcr_models.robots.robot import load_robot
from softcr_models.rod import evaluation, stepper
from softcr_models.rod.cosserat_rod import CosseratRod
from softcr_models.rod.point_loads import PointLoad
from softcr_models.rod.stepper import Run

PERIOD = 1 / 70
PULLS = [{"type": "tendon", "name": "straight", "angle": 0.0, "lever_arm": 0.009}]
PULLS += [
    {"type": "tendon", "name": "helix", "angle": 0.3, "lever_arm": 0.008, "to": "proximal",
     "routing": {"kind": "helical", "pitch": 0.3}},
    {"type": "tendon", "name": "taper", "angle": 2.0, "lever_arm": 0.012,
     "routing": {"kind": "tapered", "end_lever_arm": 0.006}},
]  # fmt: skip
INPUTS = np.array([1e4, 2e4, 0.0, 1.5e4, 0.0, 5e3, 1.2, 0.8, 0.5])


@pytest.fixture(scope="module")
def arm():
    """Two segments, connector, payload, chambers of each, exact tendons of all routings."""
    robot = load_robot("two_segments")
    actuators = [each.model_dump() for each in robot.actuators] + PULLS
    limits = {"minimum": 0.0, "maximum": 10.0, "maximum_rate": 100.0}
    robot = robot.replace(actuators=actuators, tension_limits=limits, tendon_model="exact")
    return CosseratRod(robot, 2, bending_of_each_segment=True, tip_force=True)


@pytest.fixture(scope="module")
def parameters(arm):
    numbers = arm.nominal_parameters.copy()
    numbers[2] = 0.01  # kg of a tip cap
    numbers[-3:] = [0.05, -0.08, 0.1]
    return numbers


@pytest.fixture(scope="module")
def state(arm, parameters):
    """A moving state near a steady one."""
    random = np.random.default_rng(2)
    moving = 0.02 * random.normal(size=arm.state_size)
    moving[6 * arm.total_intervals :] *= 0.2
    return arm.equilibrium(INPUTS, parameters) + moving


def complex_rates(arm, state, inputs, parameters):
    numbers = [each.astype(complex) for each in (state, inputs, parameters)]
    point = evaluation.point_of(*numbers, arm.body, arm.grid, arm.fittings, arm.loads, None)
    return evaluation.rates_at(point, arm.grid, arm.state_size)[0]


def test_jacobians_of_everything_against_complex_step(arm, state, parameters):
    point = (state, INPUTS, parameters)
    found = (*arm.linearize(*point), arm.linearize_parameters(*point))
    for which, jacobian in enumerate(found):
        expected = np.empty(jacobian.shape)
        for column in range(jacobian.shape[1]):
            moved = [part.astype(complex) for part in point]
            moved[which][column] += 1e-30j
            expected[:, column] = complex_rates(arm, *moved).imag / 1e-30
        scale = np.abs(expected).max(axis=0)
        assert (scale > 0.0).sum() >= len(scale) - 1  # 0 input: a chamber's derivative is not
        assert (np.abs(jacobian - expected) / np.maximum(scale, 1e-12)).max() < 1e-12


def test_the_explicit_form_solves_the_implicit_one(arm, state, parameters):
    loads = (PointLoad(force=(0.1, 0.0, -0.2), node=1), PointLoad(wrench=(0, 0.1, 0, 1e-3, 0, 0)))
    rate = arm.derivative(state, INPUTS, parameters, loads)
    at_rest = np.abs(arm.residual(state, 0 * rate, INPUTS, parameters, loads)).max()
    assert np.abs(arm.residual(state, rate, INPUTS, parameters, loads)).max() < 1e-11 * at_rest
    assert np.abs(rate - arm.derivative(state, INPUTS, parameters)).max() > 1.0


def test_lanes_are_scalars_with_everything_fitted(arm, state, parameters):
    random = np.random.default_rng(1)
    count = 9
    states = state + 1e-3 * random.normal(size=(count, arm.state_size))
    levels = INPUTS * random.uniform(0.5, 1.5, (count, 4, len(INPUTS)))
    levels[0, 1:, 6:] = -1.0  # slack
    rows = parameters * random.uniform(0.9, 1.1, (count, len(parameters)))
    run = Run(arm.body, arm.grid, PERIOD, 2, fittings=arm.fittings, loads=arm.loads)
    lanes = stepper.rollout(states, levels, rows, run)
    single = np.concatenate(
        [stepper.rollout(*(each[i : i + 1] for each in (states, levels, rows)), run)
         for i in range(count)]
    )  # fmt: skip
    scale = np.abs(single).max(axis=(0, 1)) + 1e-6
    assert (np.abs(lanes - single) / scale).max() < 1e-11
    narrow = stepper.rollout_tips(states, levels, rows, run, single_precision=True)
    wide = stepper.rollout_tips(states, levels, rows, run)
    assert np.abs(narrow - wide)[..., 3].max() < 2e-5
    for i in range(count):
        expected = arm.tip_pose(single[i, -1], rows[i])[:3]
        assert wide[i, -1] == pytest.approx(expected, abs=1e-12)


@pytest.mark.slow  # half a minute of compiling
def test_a_computed_step_has_exact_derivatives(arm, state, parameters):
    """Against central differences of the compiled step: their error is all that is left."""
    end = 1.1 * INPUTS + [0, 0, 1e3, 0, 1e3, 0, 0, 0, 0]
    found = arm.linearize_step(state, INPUTS, end, PERIOD, parameters)
    run = Run(arm.body, arm.grid, PERIOD, 3, fittings=arm.fittings, loads=arm.loads)

    def step(x, u, v, p):
        levels = np.stack((u, v))[None]
        after = stepper.rollout(x[None], levels, p[None], run)[0, 0]
        return np.concatenate((after, arm.tip_pose(after, p)[:3].ravel()))

    point = (state, INPUTS, end, parameters)
    values = np.concatenate((found.state, found.tip.ravel()))
    assert values == pytest.approx(step(*point), rel=1e-10, abs=1e-12)
    wholes = [
        np.vstack((by, tip.reshape(12, -1)))
        for by, tip in (
            (found.by_state, found.tip_by_state),
            (found.by_begin, found.tip_by_begin),
            (found.by_end, found.tip_by_end),
            (found.by_parameters, found.tip_by_parameters),
        )
    ]
    for which, jacobian in enumerate(wholes):
        for column in range(0, jacobian.shape[1], 3 if which == 0 else 1):
            size = 1e-3 * max(abs(point[which][column]), 1e-2)
            differences = []
            for length in (size, size / 2):
                ahead, behind = ([each.copy() for each in point] for _ in range(2))
                ahead[which][column] += length
                behind[which][column] -= length
                differences.append((step(*ahead) - step(*behind)) / (2 * length))
            expected = (4 * differences[1] - differences[0]) / 3
            scale = np.abs(expected).max() + 1e-12
            if which in (1, 2) and point[which][column] == 0.0:
                continue  # too small a change of a pressure to see
            assert np.abs(jacobian[:, column] - expected).max() < 1e-8 * scale + 1e-9


def test_tendons_are_conservative(arm):
    """They add stiffness, hardly any to bending, and no energy: what is lost, strains lose."""
    weightless = CosseratRod(arm.robot.replace(gravity=0.0), 2)
    inputs = np.zeros(len(INPUTS))
    inputs[6:] = 1.2, 0.0, 0.3
    steady = weightless.equilibrium(inputs)
    rates = np.linalg.eigvals(weightless.linearize(steady, inputs)[0])
    slowest = rates[np.argmax(rates.real)]
    assert weightless.stability(steady, inputs) == "stable"
    # all strains relax in 5 ms: a mode of w rad/s loses w^2 D / 2 a second
    assert slowest.real == pytest.approx(-0.5 * 0.005 * abs(slowest) ** 2, rel=0.05)
    assert slowest.imag != 0.0
