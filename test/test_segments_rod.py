"""Rods of several segments against the dense reference and the boundary value problems."""

import numpy as np
import pytest
from oracles import cases
from oracles.dynamics import Equations, Grid, State, rest, tip_pose
from oracles.files import arm_of
from oracles.random_arms import random_file, random_inputs, random_loads, random_state
from oracles.robot_files import FILES, tendon, two_segments, with_intervals

from softcr_models import CosseratRod, load_robot
from softcr_models.arguments import ArgumentError
from softcr_models.files.yaml_files import validated
from softcr_models.robots.robot import Robot
from softcr_models.rod.point_loads import PointLoad
from softcr_models.rod.state import RodState

KPA = 1e3


def robot_of(content):
    return validated(Robot, content, "test")


def rod_of(content, counts, **more):
    """A rod whose segments have these numbers of intervals."""
    rod = CosseratRod(robot_of(with_intervals(content, counts)), sum(counts) // len(counts), **more)
    assert (np.diff(rod.grid.first_row) - 1).tolist() == list(counts)
    return rod


def parts(rod, vector):
    found = RodState(vector, rod.segments)
    return State(found.velocities, found.wrenches, found.base_wrench)


def tip(rod, state):
    return rod.tip_pose(state)[:3, 3]


def close(found, expected, tolerance):
    """Whether states agree, each coordinate measured by its largest value along the rod."""
    for ours, theirs in zip(vars(found).values(), vars(expected).values(), strict=True):
        scale = np.abs(theirs).max(axis=0) if theirs.ndim == 2 else np.abs(theirs)
        # forces of all axes share a scale, moments too
        scale = np.repeat([scale[:3].max(), scale[3:].max()], 3)
        assert (np.abs(ours - theirs) / scale).max() < tolerance


def loaded(seed, counts, exact=True):
    """A random arm with every load: rod, inputs, loads, and the same for the reference."""
    content, external = random_file(seed, len(counts), exact), random_loads(seed)
    inputs = random_inputs(seed, content)
    rod = rod_of(content, counts)
    drag = np.tile(external["drag"], (len(counts), 1))
    rod.fittings = rod.fittings._replace(drag=drag, in_fluid=1)
    loads = [PointLoad(force=external["dead_force"], wrench=external["follower"])]
    return rod, inputs, loads, arm_of(content, inputs, **external)


@pytest.mark.parametrize("counts", [(4,), (4, 2), (2, 3, 4)])
@pytest.mark.parametrize("exact", [True, False])
def test_rates_are_those_of_the_dense_reference(counts, exact):
    for seed in range(4):
        rod, inputs, loads, arm = loaded(seed, counts, exact)
        state = random_state(seed, Grid(counts), len(counts))
        equations = Equations(arm, Grid(counts), state)
        expected = equations.rates()
        found = rod.derivative(state.vector(), inputs, loads=loads)
        close(parts(rod, found), expected, 1e-9)
        gained, taken, brought = equations.powers(parts(rod, found))
        assert gained + taken == pytest.approx(brought, abs=1e-11 * (abs(gained) + taken))
        wrench = rod.base_wrench(state.vector(), inputs, loads=loads)
        assert wrench == pytest.approx(equations.base_wrench(expected), rel=1e-9, abs=1e-9)
        pose = tip_pose(arm, Grid(counts), state.wrenches)
        assert rod.tip_pose(state.vector()) == pytest.approx(pose, abs=1e-9)


def loads_of(name):
    return [PointLoad(force=cases.ARMS[name].dead_force)] if name == "D" else []


@pytest.mark.parametrize("name", cases.COLLOCATION_ERRORS)
def test_equilibria_converge_to_the_continuum_with_the_known_errors(name):
    content, inputs = FILES[name]
    want = cases.SOLUTIONS[name]
    for counts, size in cases.COLLOCATION_ERRORS[name].items():
        if counts[0] != counts[1]:
            continue  # such a grid is the oracle's alone
        rod = rod_of(content, counts)
        steady = rod.equilibrium(inputs, loads=loads_of(name))
        assert 1e3 * np.linalg.norm(tip(rod, steady) - want.tip) == pytest.approx(size, rel=0.03)
        # the scheme's base wrench is the weight only to second order
        wrench = rod.base_wrench(steady, inputs, loads=loads_of(name))
        coarse = {"A": (5.2e-4, 2.2e-4), "B": (4.5e-4, 3.4e-5), "C": (9.4e-4, 2.9e-5),
                  "D": (3.2e-3, 6.4e-4), "E": (2.4e-4, 9.4e-5)}[name]  # fmt: skip
        share = (5 / min(counts)) ** 2 * 1.05
        assert np.abs(wrench[:3] - want.force).max() < coarse[0] * share
        assert np.abs(wrench[3:] - want.moment).max() < coarse[1] * share


@pytest.mark.parametrize("name", ["A", "B", "C", "D"])
def test_arms_at_rest_are_stable(name):
    content, inputs = FILES[name]
    rod = rod_of(content, (4, 4))
    steady = rod.equilibrium(inputs, loads=loads_of(name))
    assert rod.stability(steady, inputs, loads=loads_of(name)) == "stable"


@pytest.mark.parametrize("name", ["B", "D"])
def test_an_equilibrium_is_that_of_the_dense_reference(name):
    content, inputs = FILES[name]
    rod = rod_of(content, (4, 2))
    found = parts(rod, rod.equilibrium(inputs, loads=loads_of(name)))
    close(found_or(found), found_or(rest(cases.ARMS[name], Grid((4, 2)))), 1e-8)


def found_or(state):
    """Without the velocities, which are zero."""
    return State(np.ones((1, 6)), state.wrenches, state.base)


@pytest.mark.parametrize("name", [name for name in FILES if name not in cases.COLLOCATION_ERRORS])
def test_equilibria_of_tendons_alone(name):
    content, inputs = FILES[name]
    want, count = cases.SOLUTIONS[name], len(content["segments"])
    errors = []
    for n in (4, 8, 16):
        rod = rod_of(content, (n,) * count)
        errors.append(np.linalg.norm(tip(rod, rod.equilibrium(inputs)) - want.tip))
    if name.startswith("Till"):  # gravity bends it
        assert errors[1] / errors[2] == pytest.approx(4.0, rel=0.05)
        assert errors[2] < 2e-3
    else:  # constant strain: no refinement is needed
        assert max(errors) < 6e-8


def test_equilibria_of_vacuum_alone():
    content, _ = FILES["A"]
    limits = {"pressure_limits": {"minimum": -5e4, "maximum": 0.0, "maximum_rate": 1e6}}
    inputs = KPA * np.array([-30.0, 0, -10, 0, -20, 0])
    rod = rod_of(content | limits, (4, 2))
    expected = rest(arm_of(content, inputs), Grid((4, 2)))
    close(found_or(parts(rod, rod.equilibrium(inputs))), found_or(expected), 1e-8)


def test_two_halves_are_one_rod():
    whole = load_robot("licher2025")
    half = whole.segments[0].model_dump() | {"length": 0.5 * whole.length}
    halves = [half | {"name": "lower"}, half | {"name": "upper"}]
    robot = whole.replace(segments=halves, tip_mass_fraction=2.0 * whole.tip_mass_fraction)
    one, two = CosseratRod(whole, 10), CosseratRod(robot, 5)
    pressures = np.array([3e4, 1e4, 5e4])
    for seed in range(3):
        state = random_state(seed, Grid((10,)), 1)
        twice = np.insert(state.wrenches, 5, state.wrenches[5], axis=0)
        expected = parts(one, one.derivative(state.vector(), pressures))
        split = State(state.velocities, twice, state.base).vector()
        found = parts(two, two.derivative(split, pressures))
        apart = np.abs(found.wrenches[5] - found.wrenches[6]).max()
        assert apart < 1e-13 * np.abs(expected.wrenches).max()
        merged = State(found.velocities, np.delete(found.wrenches, 6, axis=0), found.base)
        close(merged, expected, 1e-13)
        levels = pressures * np.linspace(0.5, 1.0, 20)[:, None]
        ends = [rod.simulate(x, levels, 1 / 70)[-1]
                for rod, x in ((one, one.rest_state()), (two, two.rest_state()))]  # fmt: skip
        assert tip(two, ends[1]) == pytest.approx(tip(one, ends[0]), abs=1e-10)


# -- motion ---------------------------------------------------------------------------------------

TILTED = (np.pi, 0.4, 0.0)
BEFORE = KPA * np.array([20.0, 10, 5, 35, 15, 5])
AFTER = KPA * np.array([31.7499, 14.8786, 5, 27.4636, 15, 5])


UNJUDGED = 1e9, 1e9  # errors of steps are measured here, and not held


def after_a_jump(counts, substep, duration):
    """Tip [m] of the two-segment arm at rest under BEFORE whose pressures become AFTER."""
    rod = rod_of(two_segments(TILTED, relaxation=(0.005, 0.003)), counts, max_substep=substep)
    rod.largest_errors = UNJUDGED
    steps = round(duration / substep)
    state = rod.simulate(rod.equilibrium(BEFORE), np.tile(AFTER, (steps, 1)), duration / steps)[-1]
    return tip(rod, state)


def test_refinement_in_space_of_a_motion_is_of_second_order():
    """With point masses on connector and tip."""
    known = {2: (0.003400, -0.012794, 0.200673), 4: (0.003162, -0.012708, 0.200670),
             8: (0.003104, -0.012685, 0.200673), 16: (0.003089, -0.012679, 0.200673)}  # fmt: skip
    found = {n: after_a_jump((n, n), 0.0025, 0.25) for n in known}
    for n, expected in known.items():
        assert found[n] == pytest.approx(expected, abs=1e-6)
    changes = [np.linalg.norm(found[2 * n] - found[n]) for n in (2, 4, 8)]
    assert changes[0] / changes[1] == pytest.approx(4.06, abs=0.1)
    assert changes[1] / changes[2] == pytest.approx(4.02, abs=0.1)


def test_errors_of_the_time_step_are_the_known_ones():
    fine = after_a_jump((3, 3), 0.2 / 1280, 0.2)
    errors = [1e3 * np.linalg.norm(after_a_jump((3, 3), step, 0.2) - fine)
              for step in (0.2 / 14, 0.01, 0.005, 0.0025)]  # fmt: skip
    assert errors == pytest.approx([0.032, 0.018, 0.0052, 0.0013], rel=0.1)


THREE = [tendon(f"t{i}", a, 0.009, "distal") for i, a in enumerate(np.radians([0, 120, 240]))]
ONE = tendon("s", np.pi / 2, 0.016, "proximal")


@pytest.mark.parametrize("share", [0.06, 0.25, 0.45])
def test_tendons_left_out_of_the_linearisation_keep_steps_stable(share):
    """Tensions of this share of kGA of the distal segment, all at once from rest."""
    content = two_segments(TILTED, True, [*THREE, ONE], (0.005, 0.003))
    inputs = np.concatenate((np.zeros(6), share / 0.036 * np.array([0.4, 0.2, 0.1, 0.3])))

    def after(step, duration):
        rod = rod_of(content, (3, 3), max_substep=step)
        rod.largest_errors = UNJUDGED
        steps = round(duration / step)
        return rod, rod.simulate(rod.rest_state(), np.tile(inputs, (steps, 1)), step)[-1]

    fine = tip(*after(0.2 / 640, 0.2))
    errors = [1e3 * np.linalg.norm(tip(*after(step, 0.2)) - fine) for step in (0.01, 0.005, 0.0025)]
    assert errors[0] > 4.0 * errors[1] > 16.0 * errors[2]
    assert errors[1] < 0.05 * share / 0.45
    rod, settled = after(0.01, 60.0)
    assert tip(rod, settled) == pytest.approx(tip(rod, rod.equilibrium(inputs)), abs=1e-5)


@pytest.mark.parametrize("name", ["states", "inputs", "parameters"])
def test_batches_with_rows_of_another_length_are_refused(name):
    """Compiled code would read beyond them."""
    rod = CosseratRod(load_robot("licher2025"), 3)
    rows = {
        "states": np.tile(rod.rest_state(), (4, 1)),
        "inputs": np.zeros((4, rod.input_size)),
        "parameters": np.tile(rod.nominal_parameters, (4, 1)),
    }
    assert rod.base_wrenches(**rows).shape == (4, 6)
    for wrong in (rows[name][:, :-1], rows[name][0]):
        with pytest.raises(ArgumentError, match=f"base_wrenches: {name} of shape"):
            rod.base_wrenches(**{**rows, name: wrong})
    if name != "inputs":
        chosen = {**rows, name: rows[name][:, :-1]}
        with pytest.raises(ArgumentError, match=f"poses_at: {name} of shape"):
            rod.poses_at(chosen["states"], 0, 0.5, chosen["parameters"])
