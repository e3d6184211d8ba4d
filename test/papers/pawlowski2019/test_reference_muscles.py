"""Muscles bonded in a rod, lines of a part of it, drag: reference solvers."""

from dataclasses import replace

import numpy as np
import pytest

from softcr_models import UserError, load_robot
from softcr_papers.pawlowski2019.lie import se3
from softcr_papers.pawlowski2019.reference import pseudospectral
from softcr_papers.pawlowski2019.reference.actuator_lines import Line
from softcr_papers.pawlowski2019.reference.explicit_motion import ExplicitMotion
from softcr_papers.pawlowski2019.reference.implicit_motion import ImplicitMotion
from softcr_papers.pawlowski2019.reference.muscles import Muscle, beside
from softcr_papers.pawlowski2019.reference.reference_rod import Loads, ReferenceRod
from softcr_papers.pawlowski2019.reference.statics import equilibrium

FLOATING = load_robot("tendon_arm").replace(gravity=0.0)
LYING = load_robot("tendon_arm").replace(base_orientation=(0.3, -1.2, 0.4))
OFFSET = np.array([3e-3, 1e-3, 0.0])


def bare(robot=LYING):
    return replace(ReferenceRod.of_robot(robot), lines=())


def parallel(places):
    return np.tile(np.stack((OFFSET, np.zeros(3))), (len(places), 1, 1))


def coiled(places):
    """A helix of 20 rad/m: its place and slope."""
    turn = 20.0 * places
    place = 3e-3 * np.stack((np.cos(turn), np.sin(turn), 0 * turn), axis=-1)
    slope = 6e-2 * np.stack((-np.sin(turn), np.cos(turn), 0 * turn), axis=-1)
    return np.stack((place, slope), axis=1)


def pulling(q, strains):
    """A local law of stretch and twist that is not linear [N, N m]."""
    out = np.zeros_like(strains)
    out[:, 2] = q * (1.0 - 3.0 * (strains[:, 2] - 1.0) + 20.0 * (strains[:, 2] - 1.0) ** 2)
    out[:, 5] = 1e-4 * q * (1.0 + 0.01 * strains[:, 3])
    return out


def of(rod, share, frame, **law):
    return Muscle("m", frame, share * rod.stiffness, **law)


# -- statics --------------------------------------------------------------------------------------


@pytest.mark.parametrize("method", ["implicit_midpoint", "pseudospectral"])
def test_a_muscle_in_the_middle_adds_its_stiffness(method):
    """T = 1: K + K_a; (2.64) as printed gives K - K_a."""
    rod = bare()
    with_muscle = rod.with_muscles([of(rod, 0.5, beside(lambda s: 0.0 * parallel(s)))])
    want = equilibrium(replace(rod, stiffness=1.5 * rod.stiffness), None, method, 11)
    printed = equilibrium(replace(rod, stiffness=0.5 * rod.stiffness), None, method, 11)
    found = equilibrium(with_muscle, None, method, 11)
    assert found.poses == pytest.approx(want.poses, abs=1e-10)
    assert np.abs(found.tip - printed.tip).max() > 1e-3


def test_a_muscle_beside_the_middle_is_a_rod_there():
    """A muscle that is nearly all of the rod bends as that rod alone does, in its place."""
    rod, share = bare(FLOATING), 1e-5
    bonded = replace(rod, stiffness=share * rod.stiffness)
    bonded = bonded.with_muscles([of(rod, 1.0, beside(parallel))])
    force = np.array([0.03, -0.02, 0.05])
    # a force at the muscle's end, as a wrench on the rod's
    loads = Loads(tip_wrench=np.concatenate((force, np.cross(OFFSET, force))))
    found = equilibrium(bonded, loads, points=15)
    want = equilibrium(rod, Loads(tip_wrench=np.concatenate((force, np.zeros(3)))), points=15)
    places = found.poses[:, :3, :3] @ OFFSET + found.poses[:, :3, 3]
    assert places == pytest.approx(want.poses[:, :3, 3] + OFFSET, abs=1e-6)


def rates_of(values, places):
    """Derivative by arc length of values (P, ...) at Chebyshev's places, rising."""
    _, matrix = pseudospectral.chebyshev(len(places) - 1)
    return np.tensordot(matrix[::-1, ::-1], values, 1) * 2.0 / places[-1]


def lift(matrices, vectors):
    return (matrices @ vectors[..., None])[..., 0]


@pytest.fixture(scope="module")
def contracted():
    """A coiled muscle with a law contracts a lying rod; and its frame there."""
    rod = bare()
    muscle = of(rod, 0.3, beside(coiled), law=pulling)
    found = equilibrium(rod.with_muscles([muscle]), Loads(muscles=[0.3]), "pseudospectral", 25)
    return rod, muscle, found, *muscle.frame(found.arc_lengths)


def test_rod_and_muscle_balance_as_the_thesis_writes_it(contracted):
    """(2.64) with the sign of a reaction and Ad(T)^-T, pointwise; as printed it does not hold."""
    rod, muscle, found, poses, rates = contracted
    into = np.linalg.inv(se3.adjoint(poses))
    seen = lift(into, found.strains) + rates  # (2.59)
    rest = lift(into, np.tile(rod.rest_strain, (25, 1))) + rates
    elastic = muscle.stiffness * (seen - rest)
    generated = muscle.law(0.3, seen)

    def divergence(wrench, strain):
        moved = lift(np.swapaxes(se3.ad(strain), -1, -2), wrench)
        return rates_of(wrench, found.arc_lengths) - moved

    load = divergence(generated, seen)  # W_gen of (2.63)
    of_muscle = divergence(elastic, seen) + load
    of_rod = divergence(rod.stiffness * (found.strains - rod.rest_strain), found.strains)
    weight = np.zeros((25, 6))
    weight[:, :3] = np.einsum("jki,k->ji", found.poses[:, :3, :3], rod.weight)
    ours = of_rod + lift(np.swapaxes(into, -1, -2), of_muscle) + weight
    assert ours == pytest.approx(np.zeros((25, 6)), abs=1e-6)
    back = np.swapaxes(se3.adjoint(poses), -1, -2)
    assert np.abs(of_rod - lift(back, of_muscle) + weight).max() > 0.1
    # at the free end nothing is left
    total = rod.stiffness * (found.strains - rod.rest_strain)
    total = total + lift(np.swapaxes(into, -1, -2), elastic + generated)
    assert total[-1] == pytest.approx(np.zeros(6), abs=1e-9)


def test_rate_of_the_muscles_strain(contracted):
    """(2.62), simplified: xi_a' = Ad(T)^-1 xi' - ad(xi_T) Ad(T)^-1 xi + xi_T'."""
    _, _, found, poses, rates = contracted
    into = np.linalg.inv(se3.adjoint(poses))
    moved = lift(into, found.strains)
    want = lift(into, rates_of(found.strains, found.arc_lengths))
    want = want - lift(se3.ad(rates), moved) + rates_of(rates, found.arc_lengths)
    found_rates = rates_of(moved + rates, found.arc_lengths)
    assert found_rates == pytest.approx(want, abs=1e-5 * np.abs(want).max())


@pytest.mark.parametrize("cut", [0, 8])
def test_what_a_muscle_puts_on_the_rod_is_what_a_cut_shows(contracted, cut):
    """Its load along the rod and that at the end, transported to the cut: its wrench there."""
    _, muscle, found, poses, rates = contracted
    into = np.linalg.inv(se3.adjoint(poses))
    out = np.swapaxes(into, -1, -2)
    inside = lift(out, muscle.law(0.3, lift(into, found.strains) + rates))
    moved = lift(np.swapaxes(se3.ad(found.strains), -1, -2), inside)
    load = rates_of(inside, found.arc_lengths) - moved
    away = se3.inverse(found.poses[cut]) @ found.poses
    back = np.linalg.inv(np.swapaxes(se3.adjoint(away), -1, -2))
    carried = lift(back, load)
    # integral from the cut to the end, of the polynomial through all points
    coefficients = np.polynomial.chebyshev.chebfit(20.0 * found.arc_lengths - 1.0, carried, 24)
    whole = np.polynomial.chebyshev.chebint(coefficients, axis=0) / 20.0
    ends = np.array([20.0 * found.arc_lengths[cut] - 1.0, 1.0])
    (along,) = np.diff(np.polynomial.chebyshev.chebval(ends, whole)).T
    assert along - back[-1] @ inside[-1] == pytest.approx(-inside[cut], abs=1e-8)


def test_schemes_agree_on_a_contracted_rod(contracted):
    rod, muscle, want, _, _ = contracted
    about = rod.with_muscles([muscle]), Loads(muscles=[0.3]), "implicit_midpoint"
    errors = [np.linalg.norm(equilibrium(*about, points).tip - want.tip) for points in (11, 21)]
    assert errors[0] / errors[1] == pytest.approx(4.0, rel=0.1)
    assert errors[1] < 1e-5


# -- motion ---------------------------------------------------------------------------------------


def swung(rod, space="euler", points=15, count=30, dt=0.02):
    motion = ImplicitMotion(rod, points, dt, space)
    state = motion.rest_state()
    tips = motion.advance(state, Loads(), count)
    return tips, motion.poses(state)


@pytest.mark.parametrize("space", ["euler", "midpoint"])
def test_a_muscle_in_the_middle_moves_with_the_rod(space):
    """(3.16) to (3.20) with T = 1: stiffness, inertia and weight add up."""
    rod = bare()
    muscle = Muscle("m", beside(lambda s: 0.0 * parallel(s)), 0.5 * rod.stiffness,
                    0.25 * rod.inertia)  # fmt: skip
    want = replace(rod, stiffness=1.5 * rod.stiffness, inertia=1.25 * rod.inertia,
                   weight=1.25 * rod.weight)  # fmt: skip
    found = swung(rod.with_muscles([muscle]), space)[0]
    assert found == pytest.approx(swung(want, space)[0], abs=1e-8)
    # (3.17) without the minus of a reaction takes the muscle's part away
    printed = replace(rod, stiffness=0.5 * rod.stiffness, inertia=0.75 * rod.inertia)
    assert np.abs(found - swung(printed, space)[0]).max() > 1e-3


def test_a_muscle_beside_the_middle_moves_as_a_rod_there():
    """Nearly all stiffness, mass and weight are the muscle's: it swings as that rod alone does."""
    rod, share = replace(bare(), viscosity=np.zeros(6)), 1e-3
    light = replace(rod, stiffness=share * rod.stiffness, inertia=share * rod.inertia,
                    weight=share * rod.weight)  # fmt: skip
    muscle = Muscle("m", beside(parallel), rod.stiffness, rod.inertia)
    about = {"space": "midpoint", "points": 21, "count": 3, "dt": 0.05}
    poses = swung(light.with_muscles([muscle]), **about)[1]
    want = swung(rod, **about)[1]
    places = poses[:, :3, :3] @ OFFSET + poses[:, :3, 3]
    moved = np.abs(want[:, :3, 3] - [0, 0, 1] * want[:, 2:3, 3]).max()
    assert moved > 0.01
    assert places == pytest.approx(want[:, :3, 3] + OFFSET, abs=0.01 * moved)


def test_a_motion_with_a_muscle_ends_where_its_statics_are():
    rod = replace(bare(), viscosity=0.03 * bare().stiffness)
    bonded = rod.with_muscles([of(rod, 0.3, beside(coiled), law=pulling)])
    loads = Loads(muscles=[0.3])
    rest = equilibrium(bonded, loads, "explicit_midpoint", 11)
    motion = ImplicitMotion(bonded, 11, 0.02, "midpoint")
    state = motion.rest_state()
    for _ in range(250):  # the law is made linear about each state
        last = motion.advance(state, loads, 1)
    tip = 0.5 * (last[0] + motion.advance(state, loads, 1)[0])
    assert tip == pytest.approx(rest.tip, abs=2e-5)


# -- space by the midpoint rule -------------------------------------------------------------------


@pytest.mark.parametrize(
    ("space", "points", "ratio"), [("midpoint", (11, 21, 41), 4.0), ("euler", (41, 81, 161), 2.0)]
)
def test_the_midpoint_rule_is_of_second_order_in_space(space, points, ratio):
    coarse, middle, fine = (swung(bare(), space, count, 15)[0][-1] for count in points)
    found = np.linalg.norm(coarse - middle) / np.linalg.norm(middle - fine)
    assert found == pytest.approx(ratio, rel=0.25)


# -- lines of a part of the rod -------------------------------------------------------------------


def partial(span):
    return bare(FLOATING).with_lines([Line("half", parallel, span=span)], 5e-3)


@pytest.mark.parametrize("method", ["explicit_euler", "implicit_midpoint"])
def test_a_cable_bends_the_rod_as_far_as_it_runs(method):
    found = equilibrium(partial((0.0, 0.06)), Loads(inputs=[0.5]), method, 11)
    rod, (x, y, _) = bare(FLOATING), OFFSET
    bent = rod.rest_strain - 0.5 / rod.stiffness * np.array([0, 0, 1.0, y, -x, 0])
    arc = se3.exp(0.06 * bent)
    straight = arc @ se3.exp(0.04 * rod.rest_strain)
    assert found.strains[:6] == pytest.approx(np.tile(bent, (6, 1)), abs=1e-9)
    assert found.strains[6:] == pytest.approx(np.tile(rod.rest_strain, (5, 1)), abs=1e-12)
    assert found.tip == pytest.approx(straight[:3, 3], abs=1e-9)


def test_a_cable_may_begin_before_its_part():
    whole = equilibrium(partial((0.0, np.inf)), Loads(inputs=[0.5]), points=11)
    halves = [Line("a", parallel, span=(0.0, 0.05)), Line("b", parallel, span=(0.05, 0.1))]
    rod = bare(FLOATING).with_lines(halves, 5e-3)
    found = equilibrium(rod, Loads(inputs=[0.5, 0.5]), points=11)
    assert found.poses == pytest.approx(whole.poses, abs=1e-12)


def test_motions_know_partial_cables():
    rod = replace(partial((0.0, 0.05)), viscosity=0.03 * bare().stiffness)
    rest = equilibrium(rod, Loads(inputs=[0.5]), "explicit_euler", 11)
    motion = ImplicitMotion(rod, 11, 0.02)
    tips = motion.advance(motion.rest_state(), Loads(inputs=[0.5]), 300)
    assert 0.5 * (tips[-1] + tips[-2]) == pytest.approx(rest.tip, abs=1e-8)


# -- drag -----------------------------------------------------------------------------------------


def test_quadratic_drag_takes_the_energy_that_its_power_says():
    """(3.12): what a slow start with many steps loses is the time integral of D |v| v . v."""
    water = FLOATING.replace(medium={"density": 1000.0, "normal_drag": 1.1})
    rod = replace(ReferenceRod.of_robot(water), viscosity=np.zeros(6))
    assert rod.drag[1] == pytest.approx([5.5, 5.5, 0.0, 0, 0, 0])
    motion = ExplicitMotion(rod, 8, dt=5e-6)
    state = motion.rest_state()
    state.velocities[1:, 0] = 0.5 * np.linspace(0.0, 1.0, 8)[1:]
    state.momenta[:] = rod.inertia * state.velocities
    begin, lost = motion.energy(state), 0.0
    for _ in range(150):
        speed = np.linalg.norm(state.velocities[:, :3], axis=1)
        drag = rod.drag[1] * speed[:, None] * state.velocities
        motion.advance(state, Loads(), 1)
        # (3.29): what loads a node does its work at the next
        lost += motion.dt * motion.interval * np.sum(drag[:-1] * state.velocities[1:])
    found = begin - motion.energy(state)
    assert lost > 0.005 * begin
    assert found == pytest.approx(lost, rel=0.05)


# -- bad input ------------------------------------------------------------------------------------


def test_what_is_not_allowed_gets_one_line():
    rod = bare()
    bonded = rod.with_muscles([of(rod, 0.5, beside(parallel))])
    with pytest.raises(UserError, match=r"^muscles of shape \(2,\): this rod has 1 muscles$"):
        equilibrium(bonded, Loads(muscles=[1.0, 2.0]))
    with pytest.raises(UserError, match=r"^muscles: are for statics and the implicit integrator$"):
        ExplicitMotion(bonded)
    with pytest.raises(UserError, match=r"^method 'pseudospectral': strains jump where a line"):
        equilibrium(partial((0.0, 0.05)), Loads(inputs=[0.1]), "pseudospectral")
    with pytest.raises(UserError, match=r"half runs from 0\.2 to inf m: not along a rod$"):
        partial((0.2, np.inf))
    with pytest.raises(UserError, match=r"^space 'rk4': must be one of euler, midpoint$"):
        ImplicitMotion(rod, 20, 0.05, "rk4")
    flowing = LYING.replace(medium={"density": 1.0, "normal_drag": 1.0, "flow": (0.1, 0.0, 0.0)})
    with pytest.raises(UserError, match=r"this robot has a flow$"):
        ReferenceRod.of_robot(flowing)
