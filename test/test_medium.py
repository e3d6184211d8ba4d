"""The fluid around a rod: buoyancy, drag and flow against what mechanics says of them."""

import numpy as np
import pytest
from kit.refusals import one_line

from softcr_models import CosseratRod, load_robot
from softcr_models.rod.state import RodState

ARM = load_robot("tendon_arm")  # solid, hence all of it displaces fluid
STRAIGHT = ARM.replace(
    base_orientation=[0.0, np.pi / 2, 0.0], tip_cap_length=0.0, sensor_to_base_cap=0.0,
    base_cap_length=0.0,
)  # fmt: skip
STILL = np.zeros(4)
AREA = np.pi / 4 * ARM.outer_diameter**2
WATER = {"density": 1000.0}


def in_medium(medium, robot=STRAIGHT, intervals=3):
    return CosseratRod(robot.replace(medium=medium), intervals)


def random_state(rod, seed=3):
    random = np.random.default_rng(seed)
    velocities = random.normal(scale=0.3, size=(rod.total_intervals, 6))
    wrenches = random.normal(scale=[0.05] * 3 + [1e-4] * 3, size=(rod.total_intervals + 1, 6))
    return RodState.join(velocities, wrenches, wrenches[0], 1).array


def power(rod, state):
    """Rate of the kinetic and elastic energy [W], as the scheme has it: by mean velocities."""
    parts = RodState(state, 1), RodState(rod.derivative(state, STILL), 1)
    velocities, accelerations = (np.vstack((np.zeros(6), part.velocities)) for part in parts)
    line = rod.robot.density * AREA
    inertia = ARM.outer_diameter**2 / 16.0  # I / A of a disc
    mass = line * np.array([1, 1, 1, inertia, inertia, 2 * inertia])
    means = [0.5 * (each[1:] + each[:-1]) for each in (velocities, accelerations)]
    h = rod.robot.length / rod.total_intervals
    kinetic = h * (means[0] * mass * means[1]).sum()
    stresses = [0.5 * (part.wrenches[1:] + part.wrenches[:-1]) for part in parts]
    compliance = rod.robot.compliances
    return kinetic + h * (stresses[0] * compliance * stresses[1]).sum(), means[0], h


# --- buoyancy -----------------------------------------------------------------------------------


def test_a_rod_of_the_fluids_density_is_weightless():
    """Horizontal and yet straight, and its base carries nothing."""
    rod = in_medium(WATER)
    steady = rod.equilibrium(STILL)
    assert np.abs(steady).max() < 1e-10
    assert np.abs(rod.base_wrench(steady, STILL)).max() < 1e-9
    sagging = CosseratRod(STRAIGHT, 3)
    assert abs(sagging.tip_pose(sagging.equilibrium(STILL))[0, 3]) > 0.01


@pytest.mark.parametrize("density", [600.0, 1400.0])
def test_the_base_carries_weight_less_buoyancy(density):
    rod = in_medium(WATER, ARM.replace(density=density))
    base = rod.base_wrench(rod.equilibrium(STILL), STILL)
    # hanging: what pulls down points along the base's z
    wanted = (density - WATER["density"]) * AREA * ARM.length * ARM.gravity
    assert base[2] == pytest.approx(wanted, rel=1e-9)
    assert np.abs(base[[0, 1, 3, 4, 5]]).max() < 1e-9


def test_chambers_displace_fluid_and_the_hole_does_not():
    robot = load_robot("licher2025")
    rod = CosseratRod(robot.replace(medium={"density": 1025.0}), 3)
    annulus = np.pi / 4 * (robot.outer_diameter**2 - robot.inner_diameter**2)
    assert rod.fittings.displaced == pytest.approx([1025.0 * annulus])


# --- drag ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "medium",
    [
        {"linear_drag": [0.4, 0.3, 0.1, 1e-4, 2e-4, 5e-5]},
        {"normal_drag": 1.1, "tangential_drag": 0.01},
        {"normal_drag": 1.1, "tangential_drag": 0.01, "flow": [0.0, 0.0, 0.0]},
    ],
)
def test_drag_takes_the_power_that_its_law_says(medium):
    """Energy balance: against a fluid of no drag, its rate is less by drag times velocity."""
    rod, quiet = in_medium(WATER | medium), in_medium(WATER)
    state = random_state(rod)
    rate, mean, h = power(rod, state)
    before, _, _ = power(quiet, state)
    linear = np.array(medium.get("linear_drag", np.zeros(6)))
    taken = (linear * mean**2).sum(axis=1)
    pressed = 0.5 * WATER["density"] * ARM.outer_diameter
    across = np.hypot(mean[:, 0], mean[:, 1])
    taken += pressed * medium.get("normal_drag", 0.0) * across**3
    taken += pressed * np.pi * medium.get("tangential_drag", 0.0) * np.abs(mean[:, 2]) ** 3
    assert before - rate == pytest.approx(h * taken.sum(), rel=1e-4)
    assert h * taken.sum() > 1e-4


@pytest.mark.parametrize("flow", [(0.3, 0.0, 0.0), (0.0, -0.2, 0.0), (0.2, 0.1, 0.4)])
def test_a_stiff_rod_in_a_flow_bears_the_drag_of_a_cylinder(flow):
    stiff = STRAIGHT.replace(
        bending_compliance=1e-3, shear_compliance=1e-6, dilatation_compliance=1e-6,
        torsion_compliance=1e-3,
    )  # fmt: skip
    rod = in_medium(WATER | {"normal_drag": 1.2, "tangential_drag": 0.02, "flow": flow}, stiff)
    base = rod.base_wrench(rod.equilibrium(STILL), STILL)
    x, y, z = flow
    pressed = 0.5 * WATER["density"] * ARM.outer_diameter * ARM.length
    across = 1.2 * pressed * np.hypot(x, y)
    wanted = np.array([across * x, across * y, 0.02 * np.pi * pressed * abs(z) * z])
    assert base[:3] == pytest.approx(wanted, rel=1e-3, abs=1e-6)
    middle = np.array([0.0, 0.0, 0.5 * ARM.length])
    assert base[3:] == pytest.approx(np.cross(middle, wanted), rel=1e-3, abs=1e-7)


def test_motion_in_a_fluid_comes_to_the_equilibrium_of_its_flow():
    """The drag of the steps is that of the statics, and its sign lets velocities reach those of the
    fluid and not go beyond."""
    rod = in_medium(WATER | {"normal_drag": 1.1, "tangential_drag": 0.01, "flow": [0.15, 0, 0]})
    states = rod.simulate(rod.rest_state(), np.tile(STILL, (400, 1)), 0.01)
    steady = rod.equilibrium(STILL)
    tips = [rod.tip_pose(state)[:3, 3] for state in (states[-1], steady)]
    assert tips[1][0] > 0.003
    assert tips[0] == pytest.approx(tips[1], abs=2e-4)
    speeds = [np.abs(RodState(state, 1).velocities[:, :3]).max() for state in states]
    assert max(speeds) < 0.15 * 1.2


def test_no_medium_is_as_before():
    robot = load_robot("licher2025")
    assert CosseratRod(robot, 3).fittings is None
    assert "medium" not in robot.model_dump()
    wet = robot.replace(medium=WATER | {"normal_drag": 1.0})
    assert wet.model_dump()["medium"]["normal_drag"] == 1.0
    assert wet.replace(name="again").medium == wet.medium


@pytest.mark.parametrize(
    ("medium", "line"),
    [
        ({}, "medium.density: missing"),
        ({"density": 0.0}, "medium.density: 0.0 is not allowed"),
        ({"density": "water"}, "medium.density: 'water' is not allowed"),
        (WATER | {"normal_drag": -1.0}, "medium.normal_drag: -1.0 is not allowed"),
        (WATER | {"normal_drag": float("nan")}, "medium.normal_drag: nan is not allowed"),
        (WATER | {"linear_drag": [1.0, 1.0]}, "medium.linear_drag: "),
        (WATER | {"flow": [1.0, 0.0, 0.0]}, "acts by drag alone"),
        (WATER | {"flow": [1, 0, 0], "linear_drag": [1] * 6}, "is that of a still fluid"),
        (WATER | {"added_mass": 1.0}, "medium.added_mass: unknown field"),
    ],
)
def test_a_mistake_in_a_medium_is_one_line(medium, line):
    with one_line(says=line):
        ARM.replace(medium=medium)
