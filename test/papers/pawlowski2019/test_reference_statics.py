"""Reference solvers of the statics: known solutions, orders, the rod of the house, misprints."""

from functools import cache

import numpy as np
import pytest
from kit.refused_calls import refused

from softcr_models import CosseratRod, load_robot
from softcr_models.rod.point_loads import PointLoad
from softcr_papers.pawlowski2019.lie import se3
from softcr_papers.pawlowski2019.reference import pseudospectral
from softcr_papers.pawlowski2019.reference.actuator_lines import (
    Line,
    distributed_wrench,
    end_wrench,
    restoring_moment,
    section_wrench,
)
from softcr_papers.pawlowski2019.reference.reference_rod import Loads, ReferenceRod
from softcr_papers.pawlowski2019.reference.statics import METHODS, NoEquilibrium, equilibrium

# Of another integrator, DOP853 at 1e-12, on the rod of Table 2.1 under gravity along -x.
CANTILEVER_TIP = (-0.0191893040, 0.0, 0.0978886453)
CANTILEVER_BASE = (-0.07704756, 0.0, 0.0, 0.0, -3.795076e-3, 0.0)
CLAMPED_BASE = (0.110113361, 0.0, 0.447002955, 0.0, 3.270653e-3, 0.0)
ERRORS = {
    "explicit_euler": {5: 1.29e-2, 10: 5.69e-3, 15: 3.63e-3, 20: 2.66e-3, 50: 1.02e-3,
                       100: 5.05e-4},
    "implicit_euler": {5: 1.13e-2, 10: 5.34e-3, 15: 3.48e-3, 20: 2.58e-3, 50: 1.01e-3,
                       100: 5.02e-4},
    "explicit_midpoint": {5: 1.23e-3, 10: 2.44e-4, 15: 1.01e-4, 20: 5.48e-5, 50: 8.24e-6,
                          100: 2.02e-6},
    "implicit_midpoint": {5: 3.4e-5, 10: 6.7e-6, 15: 2.8e-6, 20: 1.5e-6, 50: 2.3e-7, 100: 5.6e-8},
    "pseudospectral": {5: 1.4e-4, 7: 2.6e-6, 9: 2.1e-8, 11: 1.2e-9},
}  # fmt: skip
"""Of a prototype: method -> points -> distance of the tip from the exact one [m]."""
ORDERS = {"explicit_euler": 1, "implicit_euler": 1, "explicit_midpoint": 2, "implicit_midpoint": 2}
LYING = (0.0, -np.pi / 2, 0.0)  # base orientation: gravity along -x
HELIX = {"type": "tendon", "name": "t1", "angle": 0.0, "lever_arm": 0.004,
         "routing": {"kind": "helical", "pitch": 2 * np.pi / 10}}  # fmt: skip
TAPER = {"type": "tendon", "name": "t2", "angle": 2.0, "lever_arm": 0.004,
         "routing": {"kind": "tapered", "end_lever_arm": 0.002}}  # fmt: skip


@cache
def robot(orientation=LYING, gravity=9.81, actuators=()):
    given = load_robot("tendon_arm")
    chosen = [each.model_dump() for each in given.actuators]
    chosen = [dict(HELIX), dict(TAPER)] if actuators == "bent" else chosen
    return given.replace(
        tendon_model="exact", base_orientation=orientation, gravity=gravity, actuators=chosen
    )


@cache
def rod(orientation=LYING, gravity=9.81, actuators=()):
    return ReferenceRod.of_robot(robot(orientation, gravity, actuators))


@cache
def cantilever(method, points):
    return equilibrium(rod(), method=method, points=points)


def tip_error(method, points):
    return np.linalg.norm(cantilever(method, points).tip - CANTILEVER_TIP)


# -- known solutions ------------------------------------------------------------------------------


@pytest.mark.parametrize("method", METHODS)
def test_errors_of_the_cantilever_are_those_of_the_prototype_and_fall_by_the_order(method):
    for points, error in ERRORS[method].items():
        assert tip_error(method, points) == pytest.approx(error, rel=0.05)
    for points in (5, 20, 100) if method in ORDERS else (5, 20):
        assert cantilever(method, points).determinant_error < 1e-15
    if method in ORDERS:
        order = np.log2(tip_error(method, 51) / tip_error(method, 101))
        assert order == pytest.approx(ORDERS[method], abs=0.05)
    else:
        errors = [tip_error(method, points) for points in (5, 7, 9, 11)]
        assert np.divide(errors[:-1], errors[1:]).min() > 15.0
        # of any fixed order below eight the ratio would be less
        assert errors[0] / errors[-1] > (10 / 4) ** 8


def test_wrench_at_the_base_of_the_cantilever():
    found = cantilever("pseudospectral", 15)
    assert found.base_wrench == pytest.approx(CANTILEVER_BASE, abs=1e-8)
    assert found.strains[0] == pytest.approx([-2.97272727e-3, 0, 1, 0, -7.73126534, 0], abs=1e-7)
    weight = rod().weight * rod().length
    assert found.base_wrench[:3] == pytest.approx(weight, abs=1e-11)


@pytest.mark.parametrize(("method", "off"), [("implicit_midpoint", 1e-3), ("pseudospectral", 1e-8)])
def test_rod_clamped_at_both_ends(method, off):
    goal = np.eye(4)
    goal[:3, 3] = 0.01, 0.0, 0.1
    points = 16 if method == "pseudospectral" else 60
    found = equilibrium(rod(gravity=0.0), method=method, points=points, tip_pose=goal)
    assert found.base_wrench == pytest.approx(CLAMPED_BASE, rel=off, abs=1e-9)
    assert found.poses[-1] == pytest.approx(goal, abs=1e-12)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize(
    ("tension", "tip"), [(0.5, (0.01996366, 0, 0.09663698)), (2.0, (0.06331972, 0, 0.05969286))]
)
def test_a_straight_cable_bends_the_rod_to_an_arc(method, tension, tip):
    found = equilibrium(rod(gravity=0.0), Loads(inputs=[tension, 0, 0, 0]), method, 6)
    assert found.tip == pytest.approx(tip, abs=5.1e-9)
    assert np.ptp(found.strains, axis=0) == pytest.approx(np.zeros(6), abs=1e-10)


def test_a_helical_cable():
    helix = ReferenceRod.of_robot(robot(gravity=0.0).replace(actuators=[HELIX]))
    found = equilibrium(helix, Loads(inputs=[0.5]), "pseudospectral", 13)
    assert found.tip == pytest.approx((0.01844463, 0.00615704, 0.09676363), abs=5.1e-9)


@pytest.mark.parametrize("method", METHODS)
def test_solutions_of_constant_twist(method):
    """(2.68), (2.69): under W = ad^T K (xi - xi*) and K (xi - xi*) at the end, g = exp(s xi)."""
    bare = rod(gravity=0.0)
    twist = bare.rest_strain + np.array([2e-3, -3e-3, 0.01, 6.0, -4.0, 5.0])
    wrench = bare.stiffness * (twist - bare.rest_strain)
    loads = Loads(tip_wrench=wrench, body_wrench=se3.ad(twist).T @ wrench)
    found = equilibrium(bare, loads, method, 9)
    assert found.poses == pytest.approx(se3.exp(found.arc_lengths[:, None] * twist), abs=1e-11)
    assert found.strains == pytest.approx(np.tile(twist, (9, 1)), abs=1e-9)


# -- loads ----------------------------------------------------------------------------------------

STRAINS = np.array(  # of a smooth rod in space: xi(s) = rows @ (1, s, s^2)
    [[0.02, -0.3, 2.0], [-0.01, 0.4, 1.0], [1.02, -0.2, 3.0], [5.0, -80.0, 300.0],
     [-7.0, 90.0, 200.0], [4.0, 60.0, -500.0]]
)  # fmt: skip


def smooth_strain(s):
    """Strain (..., 6) and its derivative at arc lengths (...,)."""
    s = np.asarray(s)[..., None]
    a, b, c = STRAINS.T
    return a + b * s + c * s * s, b + 2 * c * s


def smooth_poses(begin, ends, steps=10):
    """Poses (J, 4, 4) at rising arc lengths (J,) in the frame at `begin`."""
    poses, g, s = [], np.eye(4), begin
    for end in ends:
        h = (end - s) / steps
        for k in range(steps):  # fourth order (Magnus)
            early, _ = smooth_strain(s + (k + 0.5 - np.sqrt(3) / 6) * h)
            late, _ = smooth_strain(s + (k + 0.5 + np.sqrt(3) / 6) * h)
            turn = np.sqrt(3) / 12 * h * h * se3.ad(early) @ late
            g = g @ se3.exp(0.5 * h * (early + late) + turn)
        poses.append(g)
        s = end
    return np.array(poses)


def sinuous(s):
    """A cable of any routing: place and slope (J, 2, 3)."""
    s = np.asarray(s)
    place = np.stack((3e-3 * np.cos(20 * s), 2e-3 * np.sin(30 * s), 0 * s), axis=-1)
    slope = np.stack((-0.06 * np.sin(20 * s), 0.06 * np.cos(30 * s), 0 * s), axis=-1)
    return np.stack((place, slope), axis=1)


def sinuous_curving(s):
    return np.stack((-1.2 * np.cos(20 * s), -1.8 * np.sin(30 * s), 0 * s), axis=-1)


def straight(s):
    return np.tile([[3e-3, -2e-3, 0.0], [0.0, 0.0, 0.0]], (len(s), 1, 1))


@pytest.mark.parametrize("routing", ["straight", "sinuous"])
@pytest.mark.parametrize("cut", [0.0, 0.03])
def test_what_a_line_puts_on_the_rod_is_what_a_cut_shows(routing, cut):
    """Distributed and end wrench, transported to the cut, are the wrench inside the line there."""
    offset = straight if routing == "straight" else sinuous
    nodes, weights = np.polynomial.legendre.leggauss(24)
    length = 0.1 - cut
    places = cut + 0.5 * length * (1.0 + nodes)
    curving = sinuous_curving(places) if routing == "sinuous" else np.zeros((24, 3))
    poses = smooth_poses(cut, [*places, 0.1])
    strain, rate = smooth_strain(places)
    along = distributed_wrench(offset(places), curving, strain, rate)
    at_end = end_wrench(offset(np.array([0.1]))[0], smooth_strain(0.1)[0])
    back = np.linalg.inv(np.swapaxes(se3.adjoint(poses), -1, -2))
    total = back[-1] @ at_end + np.einsum("j,jab,jb->a", 0.5 * length * weights, back[:-1], along)
    want = section_wrench(offset(np.array([cut]))[0], smooth_strain(cut)[0])
    assert total == pytest.approx(want, abs=1e-10)
    # with one sign for both, as (2.45) and (2.46) are printed
    printed = back[-1] @ at_end - np.einsum("j,jab,jb->a", 0.5 * length * weights, back[:-1], along)
    assert np.abs(printed - want).max() > 0.05


def test_solution_fulfils_the_balance_as_the_thesis_writes_it():
    """(2.34) with actuators as distributed loads, of gravity and bent cables in space."""
    bent = rod((0.3, -1.2, 0.4), 9.81, "bent")
    tensions, points = (0.4, 0.3), 21
    found = equilibrium(bent, Loads(inputs=tensions), "pseudospectral", points)
    x, matrix = pseudospectral.chebyshev(points - 1)
    assert found.arc_lengths[::-1] == pytest.approx(0.05 * (1 + x), abs=1e-15)
    rate = (matrix @ found.strains[::-1])[::-1] / 0.05
    load = np.zeros((points, 6))
    rotations = found.poses[:, :3, :3]
    load[:, :3] = np.einsum("jki,k->ji", rotations, bent.weight)
    for tension, line in zip(tensions, bent.lines, strict=True):
        offset = line.offset(found.arc_lengths)
        curving = (matrix @ offset[::-1, 1])[::-1] / 0.05
        load += tension * distributed_wrench(offset, curving, found.strains, rate)
    stress = bent.stiffness * (found.strains - bent.rest_strain)
    moved = np.einsum("jba,jb->ja", se3.ad(found.strains), stress)
    balance = load - moved + bent.stiffness * rate
    assert balance == pytest.approx(np.zeros((points, 6)), abs=1e-8)
    ends = sum(
        tension * end_wrench(line.offset(np.array([0.1]))[0], found.strains[-1])
        for tension, line in zip(tensions, bent.lines, strict=True)
    )
    assert stress[-1] == pytest.approx(ends, abs=1e-12)


def pressed(chambers, pressure=2e4, area=1e-5, **changes):
    chamber = {"type": "chamber", "name": "c", "angle": 0.3, "area": area, "lever_arm": 2.5e-3}
    limits = {"minimum": 0.0, "maximum": 1e5, "maximum_rate": 1e6}
    content = {k: v for k, v in robot().model_dump().items() if k != "tension_limits"}
    sensors = [each for each in content["sensors"] if each["type"] != "tension"]
    given = type(robot()).model_validate(
        content | {"actuators": [chamber], "pressure_limits": limits, "pressure_lag":
        {"pole": 10.0, "gain": 10.0}, "sensors": [*sensors, {"type": "pressure", "noise": 0.0}]}
        | changes
    )  # fmt: skip
    return given, ReferenceRod.of_robot(given, chambers), Loads(inputs=[pressure])


def test_a_chamber_along_its_tangent_is_a_cable_that_pushes():
    _, chamber, loads = pressed("tangent")
    found = equilibrium(chamber, loads)
    offset = chamber.lines[0].offset
    cable = chamber.with_lines([Line("c", offset, -1.0)], 5e-3)
    want = equilibrium(cable, Loads(inputs=[2e4 * 1e-5]))
    assert found.poses == pytest.approx(want.poses, abs=1e-12)


def test_the_cap_of_a_chamber_alone_leaves_out_what_the_bent_chamber_does():
    """(2.52) alone: at a cut the material bears the cap's push, transported there from the end."""
    _, tangent, loads = pressed("tangent", gravity=0.0)
    _, tip, _ = pressed("tip", gravity=0.0)
    along, found = equilibrium(tangent, loads, points=81), equilibrium(tip, loads, points=81)
    offset = tip.lines[0].offset(np.array([0.1]))[0]
    push = -2e4 * 1e-5 * end_wrench(offset, found.strains[-1])
    assert found.wrenches[-1] == pytest.approx(push, abs=1e-12)
    away = se3.inverse(found.poses[0]) @ found.poses[-1]
    cut = np.linalg.solve(se3.adjoint(away).T, push)
    assert found.wrenches[0] == pytest.approx(cut, abs=1e-7)
    inside = 2e4 * 1e-5 * section_wrench(offset, along.strains[0])
    material = tangent.stiffness * (along.strains[0] - tangent.rest_strain)
    assert material == pytest.approx(-inside, abs=1e-12)
    assert np.abs(cut + inside).max() > 1e-2 * np.abs(inside).max()


def test_restoring_moment_is_the_integral_that_the_thesis_prints():
    """(2.49) with the normal fixed in space, by quadrature, in the section's frame."""
    turn = se3.exp(np.array([0, 0, 0, 0.5, -0.3, 0.8]))[:3, :3]
    angles = np.linspace(0.0, 2 * np.pi, 64, endpoint=False)
    normals = np.stack((np.cos(angles), np.sin(angles), 0 * angles), axis=-1)
    radius = 2e-3
    places = radius * normals @ turn.T  # relative to the section's centre
    fixed = np.cross(places, normals).mean(axis=0) * 2 * np.pi * radius
    moment = np.pi * radius**2 * restoring_moment(turn)[3:]
    assert turn.T @ fixed == pytest.approx(moment, abs=1e-18)
    turned = np.cross(places, normals @ turn.T).mean(axis=0)
    assert turned == pytest.approx(np.zeros(3), abs=1e-18)


def test_restoring_moment_is_a_switch_and_buoyancy_takes_weight_away():
    _, tip, loads = pressed("tip")
    _, thesis, _ = pressed("thesis")
    without, with_it = equilibrium(tip, loads), equilibrium(thesis, loads)
    assert np.linalg.norm(without.tip - with_it.tip) > 1e-6
    wet = ReferenceRod.of_robot(robot().replace(medium={"density": 400.0}))
    assert wet.weight == pytest.approx(0.6 * rod().weight, rel=1e-12)
    assert wet.inertia == pytest.approx(rod().inertia)


def test_a_force_that_changes_along_the_cable_acts_at_the_cable():
    """(2.45): the lever of F' is r_a, not -p, which depends on where the base lies."""
    s, step = 0.06, 1e-6

    def offset(s):
        return sinuous(np.array([s]))[0]

    def force(s):  # of a cable with friction [N]
        return 0.5 * np.exp(-8.0 * s)

    def inside(s):  # F [e; r x e]
        return -force(s) * section_wrench(offset(s), smooth_strain(s)[0])

    slope = (inside(s + step) - inside(s - step)) / (2 * step)
    strain, rate = smooth_strain(s)
    want = slope - se3.ad(strain).T @ inside(s)  # as seen from the turning section
    curving = sinuous_curving(np.array([s]))[0]
    along = force(s) * distributed_wrench(offset(s), curving, strain, rate)
    direction = -section_wrench(offset(s), strain)[:3]
    ours, printed = (
        along - 8.0 * force(s) * np.concatenate((direction, np.cross(lever, direction)))
        for lever in (offset(s)[0], -smooth_poses(0.0, [s])[0, :3, 3])
    )
    assert ours == pytest.approx(want, abs=1e-7)
    assert np.abs(printed - want).max() > 0.01


# -- the rod of the house -------------------------------------------------------------------------


@pytest.mark.parametrize(
    "case",
    [
        *("bent cables", "chamber"),
        *(pytest.param(n, marks=pytest.mark.slow) for n in ("cables", "constant cables")),
    ],
)
def test_agrees_with_the_rod_of_the_house(case):
    """Other equations and another grid: the difference shrinks with the square of the house's."""
    lying, inputs = (0.3, -1.2, 0.4), np.array([0.4, 0.0, 0.1, 0.3])
    force, wrench = (0.02, -0.03, 0.05), (0.01, 0.02, -0.1, 1e-3, -5e-4, 4e-4)
    given = robot(lying)
    if case == "chamber":
        given, _, _ = pressed("section", base_orientation=lying)
        inputs = np.array([2e4])
    elif case == "bent cables":
        given, inputs = robot(lying, 9.81, "bent"), np.array([0.4, 0.3])
    elif case == "constant cables":
        given = given.replace(tendon_model="constant")
    given = given.replace(sensor_to_base_cap=0.02, tip_cap_length=0.01)
    ours = ReferenceRod.of_robot(given)
    loads = Loads(inputs=inputs, tip_force=force, tip_wrench=wrench)
    found = equilibrium(ours, loads, "pseudospectral", 17)
    errors = []
    for intervals in (10, 20):
        house = CosseratRod(given, intervals)
        state = house.equilibrium(inputs, loads=[PointLoad(force=force, wrench=wrench)])
        tip = house.backbone(state, 2)[-1]
        errors.append(np.linalg.norm(tip[:3, 3] - found.tip))
    assert errors[1] < 8e-5
    assert errors[0] / errors[1] == pytest.approx(4.0, rel=0.15)


# -- what the thesis prints -----------------------------------------------------------------------


def test_collocation_of_the_chart_needs_half_the_length():
    """(2.104) has no factor L / 2 on its right side; (2.103) has it."""
    found = cantilever("pseudospectral", 15)
    _, matrix = pseudospectral.chebyshev(14)
    theta = se3.log(found.poses)[::-1]
    rates = np.einsum("jab,jb->ja", se3.dexp_inverse(-theta), found.strains[::-1])
    ours, printed = matrix @ theta - 0.05 * rates, matrix @ theta - rates
    assert np.abs(ours[:-1]).max() < 1e-12
    assert np.abs(printed[:-1]).max() > 0.5


def test_implicit_midpoint_takes_the_mean_of_the_strains():
    """(2.91) has Delta s / 2 for 1 / 2 before the sum of the strains."""
    found, bare = cantilever("implicit_midpoint", 20), rod()
    h = 0.1 / 19

    def residual(middle):
        turn = found.poses[0] @ se3.exp(0.5 * h * (found.strains[0] + found.strains[1]) / 2)
        load = np.concatenate((turn[:3, :3].T @ bare.weight, np.zeros(3)))
        stress = bare.stiffness * (middle - bare.rest_strain)
        slope = (se3.ad(middle).T @ stress - load) / bare.stiffness
        return np.abs(found.strains[1] - found.strains[0] - h * slope).max()

    total = found.strains[0] + found.strains[1]
    assert residual(0.5 * total) < 1e-12
    assert residual(0.5 * h * total) > 0.5


def test_stresses_as_printed_do_not_give_the_stiffness():
    """(2.20) to (2.25) give GA / 4 of shear and 2 EA of stretch, where (2.28) has GA and EA."""
    shear, stretch, young, rigidity = 0.01, 0.02, 1e6, 0.33e6
    area, stiffness = np.pi / 4 * 0.01**2, rod().stiffness
    printed = rigidity / 2 * (shear / 2) * (shear / 2) * area, young * stretch**2 * area
    right = 0.5 * 2 * 2 * rigidity * (shear / 2) ** 2 * area, 0.5 * young * stretch**2 * area
    ours = 0.5 * stiffness[0] * shear**2, 0.5 * stiffness[2] * stretch**2
    assert ours == pytest.approx(right, rel=1e-6)
    assert np.divide(printed, ours) == pytest.approx([0.25, 2.0], rel=1e-6)


def test_boundary_term_of_the_virtual_work_has_a_minus():
    """-d/de U = -<dh, K dxi>| + int <dh, (K dxi)' - ad^T K dxi>, (2.31); (3.7) prints a plus."""
    nodes, weights = np.polynomial.legendre.leggauss(20)
    places, weights = 0.05 * (1 + nodes), 0.05 * weights
    k, rest = rod().stiffness, rod().rest_strain
    field = np.array([1e-3, -2e-3, 1e-3, 0.3, 0.2, -0.1])
    strain, rate = smooth_strain(places)
    move, move_rate = np.outer(1 + 10 * places, field), np.tile(10 * field, (20, 1))
    stress = k * (strain - rest)
    change = move_rate + np.einsum("jab,jb->ja", se3.ad(strain), move)  # (2.29)
    work = -weights @ np.sum(change * stress, axis=1)
    force = k * rate - np.einsum("jba,jb->ja", se3.ad(strain), stress)
    inside = weights @ np.sum(move * force, axis=1)
    begin, end = ((1 + 10 * s) * field @ (k * (smooth_strain(s)[0] - rest)) for s in (0.0, 0.1))
    assert work == pytest.approx(inside - (end - begin), rel=1e-10)
    assert abs(work - (inside + end - begin)) > 0.1 * abs(work)


# -- bad input ------------------------------------------------------------------------------------


def test_what_is_not_allowed_gets_one_line():
    for loads, line in (
        (Loads(inputs=[-0.1, 0, 0, 0]), "inputs: t1: tension -0.1 N: a cable cannot push"),
        (Loads(inputs=[0.1]), r"inputs of shape \(1,\): this rod has 4 actuators"),
        (Loads(inputs=[np.nan, 0, 0, 0]), "inputs .*: must be finite"),
        (Loads(tip_force=(1.0, 2.0)), r"tip_force of shape \(2,\): must have 3 numbers"),
        (Loads(body_wrench="much"), "body_wrench 'much': must be numbers"),
    ):
        refused((lambda loads=loads: equilibrium(rod(), loads), f"^{line}$"))
    wide = Line("wide", lambda s: np.tile([[0.006, 0.0, 0.0], [0.0, 0.0, 0.0]], (len(s), 1, 1)))
    heavy = robot().replace(tip_mass=0.01)
    refused(
        (lambda: rod().with_lines([wide], 5e-3), r"wide runs 0.006 m .* radius of 0.005 m"),
        (lambda: ReferenceRod.of_robot(heavy), r"this robot has a tip mass of 0\.01 kg"),
        (lambda: ReferenceRod.of_robot(load_robot("two_segments")), "this robot has 2 segments"),
        (lambda: equilibrium(rod(), points=1), "points: 1 is not allowed"),
        (lambda: equilibrium(rod(), method="rk4"), "method 'rk4': must be one of explicit_euler"),
    )


def test_a_chart_ends_where_the_rod_has_turned_once():
    turned = Loads(tip_wrench=(0, 0, 0, 1.1 * 2 * np.pi / 0.1 * rod().stiffness[3], 0, 0))
    assert equilibrium(rod(gravity=0.0), turned).residual < 1e-9
    with pytest.raises(NoEquilibrium, match="pseudospectral, 9 points: no steady state found"):
        equilibrium(rod(gravity=0.0), turned, "pseudospectral", 9)
