"""A rod that touches things: forces, balance, and steps of 5 ms against fine ones."""

import numpy as np
import pytest

from softcr_models import CosseratRod, UserError, load_robot
from softcr_models.rod import contact, evaluation
from softcr_models.rod.obstacles import ContactLaw, Plane, Sphere

ROBOT = load_robot("licher2025")
WALL = Plane(normal=(2.0, 0.0, 0.0), point=(-0.06, 0.0, 0.0))
TOWARDS = np.array([4e4, 8e3, 0.0])


def bent_towards(rod, period, duration=0.5):
    """States while the pressures rise within 50 ms and stay."""
    times = period * (np.arange(round(duration / period)) + 0.5)
    return rod.simulate(rod.rest_state(), np.minimum(times / 0.05, 1.0)[:, None] * TOWARDS, period)


@pytest.fixture(scope="module")
def walled():
    return CosseratRod(ROBOT, 5, max_substep=0.005, obstacles=[WALL])


@pytest.mark.slow  # a minute of compiling
def test_a_wall_stops_the_arm_in_steps_of_5_ms(walled):
    states = bent_towards(walled, 0.005)
    assert np.isfinite(states).all()
    assert walled.retries.candidates == 0
    free = CosseratRod(ROBOT, 5)
    assert free.tip_pose(bent_towards(free, 0.005)[-1])[0, 3] < -0.08
    assert walled.tip_pose(states[-1])[0, 3] > -0.061


@pytest.mark.slow  # a minute of compiling
@pytest.mark.parametrize(
    ("thing", "stiffness"),
    [
        (WALL, 1e4),
        (Sphere((-0.09, 0.01, 0.15), 0.03), 1e4),  # the tip slides past it
        (Sphere((-0.09, -0.01, 0.12), 0.03), 1e4),  # the body leans on it
        (Sphere((-0.085, 0.012, 0.13), 0.02), 1e5),
    ],
)
def test_bounces_and_settled_states_of_5_ms_are_those_of_fine_steps(thing, stiffness):
    """A bounce lasts 4 ms at 1e4 N/m: whole steps of 5 ms were 12 mm off behind a sphere."""
    law = ContactLaw(stiffness=stiffness)
    tips, states = {}, {}
    for step in (0.0003125, 0.005):
        rod = CosseratRod(ROBOT, 5, max_substep=step, obstacles=[thing], contact=law)
        states[step] = bent_towards(rod, step, 4.0)
        seen = states[step][round(0.01 / step) - 1 :: round(0.01 / step)]
        tips[step] = np.array([rod.tip_pose(each)[:3, 3] for each in seen])
        assert rod.retries.candidates == 0
        assert len(rod.contact_forces(states[step][-1])[0]) > 0
    away = np.linalg.norm(tips[0.005] - tips[0.0003125], axis=1)
    assert away.max() < 5e-4  # of a motion of 100 mm; most of it from before it touches
    assert away[-1] < 5e-5
    speeds = np.diff(tips[0.005], axis=0)[-20:] / 0.01
    assert np.linalg.norm(speeds, axis=1).max() < 0.02  # without friction a slow swing is left


def point_at(rod, state):
    """What the kernels know of a state without pressures, in plain numpy."""
    row = rod.nominal_parameters.astype(state.dtype)
    parts = rod.body, rod.grid, rod.fittings, rod.loads, rod.obstacles
    return evaluation.point_of(state, np.zeros(3, state.dtype), row, *parts)


def test_steps_are_divided_where_the_rod_touches_or_will():
    """Straight rods with a ball below the tip; the last node moves along the rod."""
    top = CosseratRod(ROBOT, 2).tip_pose(np.zeros(36))[2, 3] - ROBOT.tip_cap_length
    pressed = {}
    for gap in (-1e-4, 1e-3):
        ball = Sphere((0.0, 0.0, top + 0.03 + gap), 0.03)
        rod = CosseratRod(ROBOT, 2, obstacles=[ball])
        for speed in (-0.3, 0.0, 0.1, 0.3):
            state = np.zeros(rod.state_size)
            state[8] = speed
            point = point_at(rod, state)
            pressed[gap, speed] = contact.pieces(
                point.extras.contacts, point.e, point.s, point.section, rod.grid, rod.fittings,
                rod.obstacles, 0.005, 0.005,
            )  # fmt: skip
    bounce = np.sqrt(1e4 / 0.02 / (ROBOT.density * ROBOT.cross_section_area))  # [rad/s]
    many = np.ceil(0.005 * bounce / 0.5)
    assert 5 < many < 15
    expected = {(-1e-4, -0.3): many, (-1e-4, 0.0): many, (-1e-4, 0.1): many, (-1e-4, 0.3): many,
                (1e-3, -0.3): 1, (1e-3, 0.0): 1, (1e-3, 0.1): 1, (1e-3, 0.3): many}  # fmt: skip
    assert pressed == expected


@pytest.mark.slow  # a minute of compiling
def test_what_the_wall_pushes_the_base_carries(walled):
    """Newton's third law, by quantities the contact's text does not share."""
    steady = bent_towards(walled, 0.005, 4.0)[-1]
    points, forces = walled.contact_forces(steady)
    assert points.shape == forces.shape == (len(points), 3)
    assert len(points) >= 1
    assert (forces[:, 0] > 0.0).all()
    assert np.abs(forces[:, 1:]).max() < 1e-3 * forces.max()  # no friction
    robot = walled.robot
    weight = robot.gravity * (
        robot.density * robot.cross_section_area * robot.length + robot.tip_mass
    )
    carried = walled.base_wrench(steady, TOWARDS)[:3]
    assert carried == pytest.approx(forces.sum(axis=0) - [0, 0, weight], abs=0.01 * weight)


@pytest.mark.slow  # a minute of compiling
def test_contact_in_the_explicit_form_solves_the_implicit_one(walled):
    states = bent_towards(walled, 0.005)
    state = max(states, key=lambda each: np.abs(walled.contact_points(each)[1]).max())
    rate = walled.derivative(state, TOWARDS)
    largest = np.abs(walled.residual(state, 0 * rate, TOWARDS)).max()
    assert np.abs(walled.residual(state, rate, TOWARDS)).max() < 1e-11 * largest
    away = CosseratRod(ROBOT, 5)
    assert np.abs(rate - away.derivative(state, TOWARDS)).max() > 1.0


def test_the_linearisation_is_that_of_the_force():
    """Stiffness and damping of `touch` against complex steps of its force, sliding on a ball."""
    law = ContactLaw(friction=0.3, damping=0.5)
    rod = CosseratRod(ROBOT, 2, obstacles=[Sphere((0.0, 0.01, 0.16), 0.0152)], contact=law)
    state = np.zeros(rod.state_size)
    state[6:9] = 0.02, -0.03, 0.05

    def touched(state, ahead):
        point = point_at(rod, state)
        contacts = point.extras.contacts
        evaluation.touch(
            contacts, point.e, point.s, point.section, rod.grid, rod.fittings, rod.obstacles, ahead
        )
        return contacts

    found = touched(state, 1e-12)
    assert np.abs(found.force[-1]).max() > 0.1
    for axis in range(3):
        moved = state.astype(complex)
        moved[6 + axis] += 1e-30j
        expected = -touched(moved, 0.0).force[-1].imag / 1e-30
        assert found.damping[-1][:, axis] == pytest.approx(expected, rel=1e-9, abs=1e-9)
        shifted = [touched_at(rod, state, axis, way) for way in (1e-7, -1e-7)]
        slope = -(shifted[0] - shifted[1]) / 2e-7
        # the chord over a fiftieth of the smoothing depth is not quite the tangent
        assert found.stiffness[-1][:, axis] == pytest.approx(slope, rel=0.05, abs=30.0)


def touched_at(rod, state, axis, way):
    spheres = rod.obstacles.spheres.copy()
    spheres[:, axis] -= way
    moved = rod.obstacles._replace(spheres=spheres)
    forces = evaluation.contact_forces(
        state, rod.nominal_parameters, rod.body, rod.grid, rod.fittings, rod.loads, moved
    )
    return forces[-1]


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: CosseratRod(ROBOT, 2, obstacles=[Plane((0, 0, 0), (0, 0, 0))]), "normal"),
        (lambda: CosseratRod(ROBOT, 2, obstacles=[Plane((0, 0, 1), (0, 0))]), "three finite"),
        (lambda: CosseratRod(ROBOT, 2, obstacles=[Sphere((0, 0, 0), -1.0)]), "radius -1.0 m"),
        (lambda: ContactLaw(friction=-1.0), "friction: -1.0 is not allowed"),
    ],
)
def test_bad_obstacles_are_told(make, words):
    with pytest.raises(UserError, match=words):
        make()
