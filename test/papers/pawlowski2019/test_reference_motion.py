"""Reference integrators of a rod in motion: prototypes, energy, the rod of the house, misprints."""

from dataclasses import replace
from functools import cache

import numpy as np
import pytest
from kit.refused_calls import refused

from softcr_models import CosseratRod, load_robot
from softcr_papers.pawlowski2019.lie import se3
from softcr_papers.pawlowski2019.reference import implicit_motion
from softcr_papers.pawlowski2019.reference.explicit_motion import ExplicitMotion
from softcr_papers.pawlowski2019.reference.growth import growth_rate
from softcr_papers.pawlowski2019.reference.implicit_motion import ImplicitMotion, StepFailed
from softcr_papers.pawlowski2019.reference.reference_rod import Loads, ReferenceRod
from softcr_papers.pawlowski2019.reference.statics import equilibrium

PULL = Loads(inputs=[0.5, 0, 0, 0])
NO_LOADS = Loads()


@cache
def lying():
    return load_robot("tendon_arm").replace(base_orientation=(0.0, -np.pi / 2, 0.0))


@cache
def floating():
    return load_robot("tendon_arm").replace(gravity=0.0)


def undamped(robot):
    return replace(ReferenceRod.of_robot(robot), viscosity=np.zeros(6))


def explicit_tips(rod, points, loads, duration, **options):
    motion = ExplicitMotion(rod, points, **options)
    return motion.advance(motion.rest_state(), loads, round(duration / motion.dt))


def implicit_tips(rod, points, loads, duration, dt):
    motion = ImplicitMotion(rod, points, dt)
    return motion.advance(motion.rest_state(), loads, round(duration / dt))


def peak(tips, dt):
    """Largest x [mm] and when [s]."""
    return 1e3 * tips[:, 0].max(), dt * (1 + tips[:, 0].argmax())


# -- prototypes -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("points", "lowest"),
    [(5, -47.6), (10, -42.3), pytest.param(20, -39.9, marks=pytest.mark.slow),
     pytest.param(40, -38.7, marks=pytest.mark.slow)],
)  # fmt: skip
def test_amplitude_of_the_undamped_cantilever(points, lowest):
    tips = explicit_tips(undamped(lying()), points, NO_LOADS, 1.0)
    assert 1e3 * tips[:, 0].min() == pytest.approx(lowest, abs=0.06)


@pytest.mark.parametrize(("points", "dt", "lowest"), [(20, 0.05, -41.1), (100, 0.02, -38.4)])
def test_amplitude_of_the_implicit_cantilever(points, dt, lowest):
    tips = implicit_tips(undamped(lying()), points, NO_LOADS, 1.0, dt)
    assert 1e3 * tips[:, 0].min() == pytest.approx(lowest, abs=0.06)


def test_kirchhoff_answers_as_fast_as_cosserat():
    """The thesis's Fig. 3.6 has it much quicker, as the naive restriction is."""
    rod = ReferenceRod.of_robot(floating())
    cosserat = peak(implicit_tips(rod, 100, PULL, 0.2, 0.01), 0.01)
    kirchhoff = peak(implicit_tips(rod.kirchhoff(), 100, PULL, 0.2, 0.01), 0.01)
    assert cosserat == pytest.approx((36.47, 0.11), abs=0.01)
    assert kirchhoff == pytest.approx((36.67, 0.11), abs=0.01)
    dt = ExplicitMotion(rod, 20, "kirchhoff_naive").dt
    naive = explicit_tips(rod, 20, PULL, 0.2, kind="kirchhoff_naive")
    assert peak(naive, dt)[1] == pytest.approx(0.007, abs=0.001)


@pytest.mark.slow  # a long motion in small steps
def test_explicit_restriction_holds_shear_and_stretch_by_a_force():
    """As far from the explicit Cosserat rod as the implicit ones are from each other: 0.2 mm."""
    rod = ReferenceRod.of_robot(floating())
    peaks = {}
    for kind in ("cosserat", "kirchhoff"):
        motion = ExplicitMotion(rod, 10, kind)
        state = motion.rest_state()
        tips = motion.advance(state, PULL, round(0.15 / motion.dt))
        peaks[kind] = peak(tips, motion.dt)
    assert peaks["kirchhoff"][0] - peaks["cosserat"][0] == pytest.approx(0.2, abs=0.15)
    assert np.abs(state.strains[:, :3] - [0, 0, 1]).max() < 1e-10
    # the force balances weight and inertia: at the tip's interval only the last node's
    assert np.abs(state.forces).max() > 1e-2


def test_weight_bends_the_restriction_that_has_its_force_and_not_the_naive_one():
    rod = ReferenceRod.of_robot(lying())
    kinds = {"kind": "kirchhoff"}, {}
    tip, want = (explicit_tips(rod, 8, NO_LOADS, 0.1, **of)[-1] for of in kinds)
    assert tip == pytest.approx(want, abs=1e-3)
    naive = ExplicitMotion(rod, 10, "kirchhoff_naive")
    tips = naive.advance(naive.rest_state(), NO_LOADS, 2000)
    assert tips == pytest.approx(np.tile([0.0, 0.0, 0.1], (2000, 1)), abs=1e-12)


def test_statics_of_the_restricted_rod_keep_its_length():
    rest = equilibrium(ReferenceRod.of_robot(lying()).kirchhoff(), method="pseudospectral")
    assert rest.strains[:, :3] == pytest.approx(np.tile([0, 0, 1.0], (21, 1)), abs=1e-8)
    assert rest.base_wrench[0] == pytest.approx(-0.07704756, abs=1e-7)


# -- properties -----------------------------------------------------------------------------------


def test_energy_of_the_explicit_scheme_stays_bounded():
    motion = ExplicitMotion(undamped(lying()), 5)
    state = motion.rest_state()
    energies = [motion.energy(state)]
    weight = 0.02 * 9.81 * 0.1 * 0.0785  # its weight at the static deflection
    for _ in range(60):
        motion.advance(state, NO_LOADS, 1000)
        energies.append(motion.energy(state))
    assert np.abs(np.array(energies) - energies[0]).max() < 0.02 * weight


def test_viscosity_takes_energy_away_and_damps_the_first_mode():
    rod = ReferenceRod.of_robot(floating())
    motion = ImplicitMotion(rod, 60, 0.01)
    state = motion.rest_state()
    motion.advance(state, PULL, 100)
    tips = motion.advance(state, NO_LOADS, 200)[:, 0]
    peaks = [k for k in range(1, 199) if tips[k - 1] < tips[k] >= tips[k + 1] and tips[k] > 0]
    rates = np.log(tips[peaks[0]] / tips[peaks[-1]]) / (len(peaks) - 1)
    assert rates / (2 * np.pi) == pytest.approx(0.0125, rel=0.15)  # damping ratio of linear theory
    frequency = (len(peaks) - 1) / (0.01 * (peaks[-1] - peaks[0]))
    assert frequency == pytest.approx(4.41, rel=0.03)


def test_velocities_are_those_of_the_poses():
    motion = ExplicitMotion(ReferenceRod.of_robot(lying()), 8)
    state = motion.rest_state()
    motion.advance(state, PULL, 3000)
    before = motion.poses(state)
    velocities = state.velocities.copy()
    motion.advance(state, PULL, 1)
    found = se3.log(se3.inverse(before) @ motion.poses(state)) / motion.dt
    assert found == pytest.approx(velocities, abs=1e-9)
    turns = motion.poses(state)[:, :3, :3]
    assert np.abs(np.linalg.det(turns) - 1.0).max() < 1e-14


@pytest.mark.parametrize("tendons", ["constant", "exact"])
def test_the_motion_ends_in_the_equilibrium(tendons):
    robot = lying().replace(tendon_model=tendons, relaxation_times=(0.03,) * 6)
    rod = ReferenceRod.of_robot(robot)
    rest = equilibrium(rod, PULL, "explicit_euler", 20)
    motion = ImplicitMotion(rod, 20, 0.02)
    state = motion.rest_state()
    # what is damped much within a step changes its sign from step to step, and decays slowly
    last = motion.advance(state, PULL, 300)[-1]
    wrench = state.base_wrench.copy()
    tip = 0.5 * (last + motion.advance(state, PULL, 1)[0])
    assert tip == pytest.approx(rest.tip, abs=1e-9)
    assert 0.5 * (wrench + state.base_wrench) == pytest.approx(rest.base_wrench, abs=1e-6)


# -- the rod of the house -------------------------------------------------------------------------


@pytest.mark.parametrize(
    "case",
    [pytest.param("weight", marks=pytest.mark.slow), "step of tension", "no shear and stretch"],
)
def test_explicit_motion_converges_to_the_rod_of_the_house(case):
    """First order in space and time: the extrapolation of two grids, against the house's fine one.

    Half a period of the first mode with viscosity, sampled every 5 ms.
    """
    robot, loads = (lying(), NO_LOADS) if case == "weight" else (floating(), PULL)
    inputs = np.zeros(4) if case == "weight" else np.array([0.5, 0, 0, 0])
    kind, bodied = "cosserat", robot
    if case == "no shear and stretch":  # the house's rod has a thousandth of them
        kind = "kirchhoff"
        bodied = robot.replace(shear_compliance=3.86e-5, dilatation_compliance=1.27e-5)
    house = CosseratRod(bodied, 20, max_substep=5e-4)
    states = house.simulate(house.rest_state(), np.tile(inputs, (24, 1)), 0.005)
    want = np.array([house.backbone(state, 2)[-1][:3, 3] for state in states])
    tips = []
    for points in (11, 21):
        motion = ExplicitMotion(ReferenceRod.of_robot(robot), points, kind)
        found = motion.advance(motion.rest_state(), loads, round(0.12 / motion.dt) + 2)
        times = motion.dt * np.arange(1, len(found) + 1)
        sampled = [np.interp(0.005 * np.arange(1, 25), times, found[:, k]) for k in range(3)]
        tips.append(np.array(sampled).T)
    coarse, fine = (np.abs(each - want).max() for each in tips)
    extrapolated = np.abs(2 * tips[1] - tips[0] - want).max()
    assert fine < 0.6 * coarse
    assert extrapolated < 0.3 * fine
    assert extrapolated < 6e-4


# -- what the thesis prints -----------------------------------------------------------------------


def test_variation_of_a_discrete_velocity_needs_the_inverse_tangent_map():
    """(3.34): d eta = dexp^-1(dt eta) (-dh_i + Ad dh_(i+1)) / dt; the thesis prints dexp."""
    dt, step = 0.3, 1e-6
    eta = np.array([0.4, -0.2, 0.5, 1.0, -2.0, 0.7])
    first = np.array([0.3, 0.1, -0.2, 0.5, 0.4, -0.6])
    second = np.array([0.2, 0, 0.3, -1, 0.2, 0.4])

    def velocity(size):
        begin, end = se3.exp(size * first), se3.exp(dt * eta) @ se3.exp(size * second)
        return se3.log(se3.inverse(begin) @ end) / dt

    found = (velocity(step) - velocity(-step)) / (2 * step)
    moved = -first + se3.adjoint(se3.exp(dt * eta)) @ second
    assert found == pytest.approx(se3.dexp_inverse(dt * eta) @ moved / dt, abs=1e-8)
    assert np.abs(found - se3.dexp(dt * eta) @ moved / dt).max() > 0.1


def test_a_varied_velocity_has_the_rate_of_the_variation():
    """(3.6): d eta = (dh)' + ad(eta) dh, as (1.32); printed without the dot."""
    eta, size = np.array([0.3, -0.2, 0.5, 1.0, -2.0, 0.7]), 1e-5
    first, rate = np.array([0.1, 0.2, -0.1, 0.4, 0.3, -0.5]), np.array([1.0, 0, 0.5, -1, 2, 0.3])

    def moved(t, part):  # g exp(part (dh + t dh')) with g = exp(t eta)
        return se3.exp(t * eta) @ se3.exp(part * (first + t * rate))

    def velocity(part):
        return se3.log(se3.inverse(moved(-size, part)) @ moved(size, part)) / (2 * size)

    found = (velocity(1e-4) - velocity(-1e-4)) / 2e-4
    assert found == pytest.approx(rate + se3.ad(eta) @ first, abs=1e-5)
    assert np.abs(found - (first + se3.ad(eta) @ first)).max() > 0.1


def test_viscosity_as_a_load_would_push_a_rod_that_stretches_evenly():
    """(3.10) is a wrench per length by its place, N s by its unit: it is a wrench inside the rod.

    As such it does nothing to a stretch that is even, wherever the base is; as a load it pushes.
    """
    rod = replace(ReferenceRod.of_robot(floating()), stiffness=1e-9 * np.ones(6))
    motion = ExplicitMotion(rod, 6, dt=1e-6)
    state = motion.rest_state()
    state.velocities[:, 2] = np.linspace(0.0, 1e-3, 6)
    state.momenta[:] = rod.inertia * state.velocities
    before = state.momenta.copy()
    motion.advance(state, NO_LOADS, 1)
    changes = state.momenta - before
    push = rod.viscosity[2] * 1e-3 / rod.length  # (3.10) for this rate of strain [N]
    assert np.abs(changes[1:-1]).max() < 1e-6 * abs(changes[-1, 2])  # the end alone is pulled
    assert changes[-1, 2] * motion.interval / 1e-6 == pytest.approx(-push, rel=1e-2)


# -- bad input ------------------------------------------------------------------------------------


def test_steps_and_grids_that_are_not_allowed():
    rod, viscous = undamped(lying()), ReferenceRod.of_robot(lying())
    waves = r"dt: 0.001 s is not allowed: with 20 points waves bound "
    refused(
        (lambda: ExplicitMotion(rod, 20, dt=1e-3), waves),
        (lambda: ExplicitMotion(viscous, 20, dt=5e-5), r"diffusion bound it by 1.54e-05 s$"),
        (lambda: ImplicitMotion(rod, 2), "points: 2 is not allowed: at least 3"),
        (lambda: ImplicitMotion(rod, 20, -0.1), r"dt: -0\.1 s is not allowed"),
    )
    told = r"^dt 0.01 s, 20 points: no step was found at 1.* s: this"  # below the scheme's bound
    with pytest.raises(StepFailed, match=told):
        implicit_tips(rod, 20, NO_LOADS, 10.0, 0.01)


def test_bounds_of_the_explicit_step_are_the_thesis_formulas():
    bounds, h = ExplicitMotion(ReferenceRod.of_robot(lying()), 20).bounds, 0.1 / 19
    assert bounds.waves == pytest.approx(h * np.sqrt(1000.0 / 1e6), rel=1e-6)
    assert bounds.diffusion == pytest.approx(h**2 * 1000.0 / (2 * 3 * 300.0), rel=1e-4)


@pytest.mark.parametrize("viscous", [False, True])
def test_sections_that_turn_bound_the_step_of_coarse_grids(viscous):
    """Above the bound the motion grows beyond numbers, though (3.43) would allow the step."""
    robot = floating()
    rod = ReferenceRod.of_robot(robot) if viscous else undamped(robot)
    motion = ExplicitMotion(rod, 6)
    bound = motion.bounds.diffusion if viscous else motion.bounds.waves
    assert bound < 0.02 * np.sqrt(1000.0 / 1e6)
    for share, fine in ((0.9, True), (1.15, False)):
        motion.dt = share * bound
        with np.errstate(all="ignore"):
            tips = motion.advance(motion.rest_state(), PULL, 5000)
        assert (np.abs(tips[-500:]).max() < 0.2) == fine


# -- growth of disturbances in the implicit scheme ------------------------------------------------


def step_matrix(motion, size=1e-6):
    """(12 P, 12 P) one step about the straight rod, by differences of the integrator itself."""
    rows, rod = len(motion.places), motion.rod

    def after(x):
        state = motion.rest_state()
        state.strains[:] += x[: 6 * rows].reshape(rows, 6)
        state.velocities[:] += x[6 * rows :].reshape(rows, 6)
        motion.advance(state, NO_LOADS, 1)
        return np.concatenate(((state.strains - rod.rest_strain).ravel(), state.velocities.ravel()))

    steps = size * np.eye(12 * rows)
    return np.array([(after(step) - after(-step)) / (2 * size) for step in steps]).T


@pytest.mark.parametrize("space", ["euler", "midpoint"])
@pytest.mark.parametrize("viscous", [False, True])
def test_growth_is_that_of_the_integrator(space, viscous, monkeypatch):
    monkeypatch.setattr(implicit_motion, "TOLERANCE", 1e-13)
    rod = ReferenceRod.of_robot(floating()) if viscous else undamped(floating())
    motion = ImplicitMotion(rod, 7, 0.02, space)
    found = np.abs(np.linalg.eigvals(step_matrix(motion))).max()
    assert growth_rate(rod, 7, 0.02, space) == pytest.approx(np.log(found) / 0.02, rel=1e-4)


def test_short_steps_and_coarse_grids_grow_and_viscosity_holds_them():
    """The thesis's bound, 0.04 s with 20 points: below it undamped motion grows within 10 s."""
    rod, viscous = undamped(floating()), ReferenceRod.of_robot(floating())
    assert growth_rate(rod, 20, 0.01) > 2.0 > growth_rate(rod, 20, 0.03) > 0.3
    assert growth_rate(rod, 100, 0.01) > 0.9  # e^9 in 10 s: what is known until 9.99 s has grown
    assert growth_rate(viscous, 100, 0.01) < 0.03
