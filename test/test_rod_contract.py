"""What every rod promises, whatever it is made of: both forms, derivatives, steps and lanes.

The oracles are the residual, complex steps through the kernels' text in plain numpy, scipy's Radau
and central differences.
"""

from typing import NamedTuple

import numpy as np
import pytest
from oracles.random_arms import random_file, random_inputs, random_loads
from scipy.integrate import solve_ivp

from softcr_models import CosseratRod, load_robot
from softcr_models.files.yaml_files import validated
from softcr_models.robots.robot import Robot
from softcr_models.rod import evaluation, stepper
from softcr_models.rod.point_loads import PointLoad
from softcr_models.rod.stepper import Run

PERIOD = 1 / 70
ROBOT = load_robot("licher2025")
PRESSURES = np.array([60e3, 10e3, 30e3])
LOADS = (PointLoad(force=(0.1, 0.0, -0.2), node=1), PointLoad(wrench=(0, 0.1, 0, 1e-3, 0, 0)))
PULLS = [
    {"type": "tendon", "name": "straight", "angle": 0.0, "lever_arm": 0.009},
    {"type": "tendon", "name": "helix", "angle": 0.3, "lever_arm": 0.008, "to": "proximal",
     "routing": {"kind": "helical", "pitch": 0.3}},
    {"type": "tendon", "name": "taper", "angle": 2.0, "lever_arm": 0.012,
     "routing": {"kind": "tapered", "end_lever_arm": 0.006}},
]  # fmt: skip
SIX = np.linspace(10e3, 40e3, 6)
INPUTS = np.array([1e4, 2e4, 0.0, 1.5e4, 0.0, 5e3, 1.2, 0.8, 0.5])


class Case(NamedTuple):
    """A rod, a row of its parameters, inputs, and a moving state near a steady one."""

    rod: CosseratRod
    row: np.ndarray
    inputs: np.ndarray
    state: np.ndarray

    def run(self, substeps: int, **more) -> Run:
        rod = self.rod
        return Run(rod.body, rod.grid, PERIOD, substeps, fittings=rod.fittings, loads=rod.loads,
                   **more)  # fmt: skip


def case_of(rod, inputs, **last):
    row = rod.nominal_parameters.copy()
    for name, value in last.items():
        row[rod.parameter_names.index(name)] = value
    moving = 0.02 * np.random.default_rng(2).normal(size=rod.state_size)
    moving[6 * rod.total_intervals :] *= 0.2
    return Case(rod, row, inputs, rod.equilibrium(inputs, row) + moving)


def everything(intervals=2):
    """Two segments, connector, payload, chambers of each, exact tendons of all routings."""
    robot = load_robot("two_segments")
    actuators = [each.model_dump() for each in robot.actuators] + PULLS
    limits = {"minimum": 0.0, "maximum": 10.0, "maximum_rate": 100.0}
    changed = {"actuators": actuators, "tension_limits": limits, "tendon_model": "exact"}
    robot = robot.replace(**changed, pressure_chain=None)
    rod = CosseratRod(robot, intervals, bending_of_each_segment=True, tip_force=True)
    force = {"tip_force_x": 0.05, "tip_force_y": -0.08, "tip_force_z": 0.1}
    return case_of(rod, INPUTS, tip_mass=0.01, **force)


def motors(model, intervals=2):
    """Twelve elastic tendons in pairs, some slack; with the exact model tapered ones, too."""
    robot = load_robot("asl_trunk")
    if model == "exact":
        first, *others = (each.model_dump() for each in robot.actuators)
        first["routing"] = {"kind": "tapered", "end_lever_arm": 0.015}
        robot = robot.replace(tendon_model=model, actuators=[first, *others])
    angles = np.array([0.9, -0.6, 0.3, 1.2, -0.2, 0.5])
    return case_of(CosseratRod(robot, intervals), angles)


def random_arm(seed, count, exact):
    content = random_file(seed, count, exact)
    rod = CosseratRod(validated(Robot, content, "test"), 3)
    drag = np.tile(random_loads(seed)["drag"], (count, 1))
    rod.fittings = rod.fittings._replace(drag=drag, in_fluid=1)
    return case_of(rod, random_inputs(seed, content))


def stiffening(intervals, robot=ROBOT, inputs=PRESSURES):
    rod = CosseratRod(robot, intervals, curvature_stiffness=True)
    return case_of(rod, inputs, curvature_stiffness=-0.2)


def carrying(intervals):
    return case_of(CosseratRod(ROBOT, intervals, payload=True), PRESSURES, payload=0.05)


CASES = {
    "1 interval": lambda: case_of(CosseratRod(ROBOT, 1), PRESSURES),
    "5 intervals": lambda: case_of(CosseratRod(ROBOT, 5), PRESSURES),
    "8 intervals": lambda: case_of(CosseratRod(ROBOT, 8), PRESSURES),
    "payload": lambda: carrying(4),
    "stiffening": lambda: stiffening(4),
    "stiffening, connector": lambda: stiffening(3, load_robot("two_segments"), SIX),
    "everything": everything,
    "motors": lambda: motors("constant"),
    "motors, exact tendons": lambda: motors("exact"),
    "random, exact tendons": lambda: random_arm(0, 3, True),
    "random, constant tendons": lambda: random_arm(1, 2, False),
}


@pytest.fixture(scope="module", params=CASES)
def case(request):
    return CASES[request.param]()


def test_the_explicit_form_solves_the_implicit_one(case):
    rod, row, inputs, state = case
    for loads in (LOADS, ()) if rod.fittings is not None else ((),):
        rate = rod.derivative(state, inputs, row, loads)
        at_rest = np.abs(rod.residual(state, 0 * rate, inputs, row, loads)).max()
        assert np.abs(rod.residual(state, rate, inputs, row, loads)).max() < 1e-11 * at_rest
        if loads:
            assert np.abs(rate - rod.derivative(state, inputs, row)).max() > 1.0
    for column in np.flatnonzero(row):  # every parameter counts in both
        wrong = row.copy()
        wrong[column] *= 1.01
        assert np.abs(rod.residual(state, rate, inputs, wrong)).max() > 1e-9 * at_rest


def test_jacobians_are_complex_steps(case):
    rod, row, inputs, state = case
    loads = () if rod.fittings is None else LOADS
    body, grid, fittings, acting, _ = rod._rod(loads)
    point = (state, inputs, row)
    found = (*rod.linearize(*point, loads), rod.linearize_parameters(*point, loads))
    for which, jacobian in enumerate(found):
        expected = np.empty(jacobian.shape)
        for column in range(jacobian.shape[1]):
            moved = [part.astype(complex) for part in point]
            moved[which][column] += 1e-30j
            at = evaluation.point_of(*moved, body, grid, fittings, acting, None)
            expected[:, column] = evaluation.rates_at(at, grid, rod.state_size)[0].imag / 1e-30
        scale = np.abs(expected).max(axis=0)
        assert (scale > 0.0).sum() >= len(scale) - 1  # 0 input: a chamber's derivative is not
        assert (np.abs(jacobian - expected) / np.maximum(scale, 1e-12)).max() < 1e-12


@pytest.mark.parametrize(("option", "at_the_base"), [("payload", 1e-4), ("stiffening", 5e-4)])
def test_steps_follow_the_equations(option, at_the_base):
    """Against Radau; at the base what acts is held in each sub-step."""
    rod, row, inputs, _ = {"payload": carrying, "stiffening": stiffening}[option](3)
    state = rod.equilibrium(inputs)  # it begins to sag or to straighten
    found = solve_ivp(lambda _, x: rod.derivative(x, inputs, row), (0.0, 0.1), state, "Radau",
                      rtol=1e-8, atol=1e-8).y[:, -1]  # fmt: skip
    after = rod.simulate(state, np.tile(inputs, (56, 1)), 0.1 / 56, row)[-1]
    apart = np.abs(after - found) / np.abs(found - state).max()
    assert apart[:-6].max() < 1e-4
    assert apart[-6:].max() < at_the_base


@pytest.mark.parametrize("option", ["payload", "curvature_stiffness"])
def test_an_option_is_the_last_parameter_and_nothing_by_itself(option):
    rod, bare = CosseratRod(ROBOT, 5, **{option: True}), CosseratRod(ROBOT, 5)
    assert rod.parameter_names == (*bare.parameter_names, option)
    state = case_of(bare, PRESSURES).state
    rates = bare.derivative(state, PRESSURES)
    assert rod.derivative(state, PRESSURES) == pytest.approx(rates, rel=1e-12)
    after = bare.step(state, PRESSURES, PERIOD)
    assert rod.step(state, PRESSURES, PERIOD) == pytest.approx(after, rel=1e-9, abs=1e-12)


@pytest.mark.parametrize(
    ("name", "count", "tolerance"),
    [("5 intervals", 2, 1e-12), ("5 intervals", 7, 1e-12), ("5 intervals", 8, 1e-12),
     ("5 intervals", 17, 1e-12), ("payload", 9, 1e-11), ("stiffening", 9, 1e-11),
     ("everything", 9, 1e-11), pytest.param("motors", 9, 1e-11, marks=pytest.mark.later)],
)  # fmt: skip
def test_lanes_are_scalars(name, count, tolerance):
    """Each with a state, inputs and parameters of its own, some tendons slack."""
    case, random = CASES[name](), np.random.default_rng(1)
    rod, row, inputs, state = case
    states = state + 1e-3 * random.normal(size=(count, rod.state_size))
    levels = inputs * random.uniform(0.5, 1.5, (count, 4, len(inputs)))
    levels[0, 1:, 6:] = -1.0  # slack
    rows = row * random.uniform(0.9, 1.1, (count, len(row)))
    run = case.run(2)
    lanes = stepper.rollout(states, levels, rows, run)
    single = np.concatenate(
        [stepper.rollout(*(each[i : i + 1] for each in (states, levels, rows)), run)
         for i in range(count)]
    )  # fmt: skip
    scale = np.abs(single).max(axis=(0, 1)) + 1e-6
    assert (np.abs(lanes - single) / scale).max() < tolerance
    narrow = stepper.rollout(states, levels, rows, run, single_precision=True)
    assert narrow.dtype == np.float32
    if name == "5 intervals":
        assert (np.abs(narrow - single) / scale).max() < 1e-3
    tips = stepper.rollout_tips(states, levels, rows, run)
    exact = [[rod.tip_pose(x, each)[:3] for x in steps]
             for steps, each in zip(single, rows, strict=True)]  # fmt: skip
    assert tips == pytest.approx(np.array(exact), abs=1e-12)
    narrow_tips = stepper.rollout_tips(states, levels, rows, run, single_precision=True)
    assert np.abs(narrow_tips - tips)[..., 3].max() < 2e-5


@pytest.mark.slow  # half a minute of compiling
def test_a_computed_step_has_exact_derivatives():
    """Against central differences of the compiled step: their error is all that is left."""
    case = everything()
    arm, row, inputs, state = case
    end = 1.1 * inputs + [0, 0, 1e3, 0, 1e3, 0, 0, 0, 0]
    found = arm.linearize_step(state, inputs, end, PERIOD, row)
    run = case.run(3)

    def step(x, u, v, p):
        after = stepper.rollout(x[None], np.stack((u, v))[None], p[None], run)[0, 0]
        return np.concatenate((after, arm.tip_pose(after, p)[:3].ravel()))

    point = (state, inputs, end, row)
    values = np.concatenate((found.state, found.tip.ravel()))
    assert values == pytest.approx(step(*point), rel=1e-10, abs=1e-12)
    wholes = [
        np.vstack((getattr(found, f"by_{by}"), getattr(found, f"tip_by_{by}").reshape(12, -1)))
        for by in ("state", "begin", "end", "parameters")
    ]
    for which, jacobian in enumerate(wholes):
        for column in range(0, jacobian.shape[1], 3 if which == 0 else 1):
            if which in (1, 2) and point[which][column] == 0.0:
                continue  # too small a change of a pressure to see
            size = 1e-3 * max(abs(point[which][column]), 1e-2)
            differences = []
            for length in (size, size / 2):
                ahead, behind = ([each.copy() for each in point] for _ in range(2))
                ahead[which][column] += length
                behind[which][column] -= length
                differences.append((step(*ahead) - step(*behind)) / (2 * length))
            expected = (4 * differences[1] - differences[0]) / 3
            scale = np.abs(expected).max() + 1e-12
            assert np.abs(jacobian[:, column] - expected).max() < 1e-8 * scale + 1e-9


def test_tendons_are_conservative():
    """They add stiffness, hardly any to bending, and no energy: what is lost, strains lose."""
    robot = everything().rod.robot.replace(gravity=0.0)
    rod, inputs = CosseratRod(robot, 2), np.zeros(len(INPUTS))
    inputs[6:] = 1.2, 0.0, 0.3
    steady = rod.equilibrium(inputs)
    rates = np.linalg.eigvals(rod.linearize(steady, inputs)[0])
    slowest = rates[np.argmax(rates.real)]
    assert rod.stability(steady, inputs) == "stable"
    # all strains relax in 5 ms: a mode of w rad/s loses w^2 D / 2 a second
    assert slowest.real == pytest.approx(-0.5 * 0.005 * abs(slowest) ** 2, rel=0.05)
    assert slowest.imag != 0.0
