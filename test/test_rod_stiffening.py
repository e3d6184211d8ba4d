"""A bending stiffness that changes with the curvature: against the structural plant's beam, which
has a law and a text of its own, and against closed forms."""

import numpy as np
import pytest
from scipy.optimize import brentq, fsolve

from softcr_models import CosseratRod, UserError, load_robot
from softcr_models.chain.chain_model import ChainModel
from softcr_models.prediction import RodPrediction
from softcr_models.rod.stiffening import SOFTEST, STIFFEST
from softcr_simulation.beam.beam import Beam
from softcr_simulation.errors.plant_errors import PlantErrors
from softcr_simulation.structural_plant import StructuralPlant

ROBOT = load_robot("licher2025")
PRESSURES = np.array([60e3, 10e3, 10e3])
CHANGE = -0.2


def stiffening(intervals=5, robot=ROBOT, **options):
    return CosseratRod(robot, intervals, curvature_stiffness=True, **options)


def numbers(rod, change=CHANGE):
    return np.append(rod.nominal_parameters[:-1], change)


def random_state(rod, seed):
    random = np.random.default_rng(seed)
    scale = RodPrediction(rod).state_scale
    return random.normal(0.0, 1.0, rod.state_size) * scale


def test_a_payload_stands_before_it_and_is_nothing_by_itself():
    rod, with_payload = stiffening(), stiffening(payload=True)
    state = random_state(rod, 1)
    assert with_payload.parameter_names[-2:] == ("payload", "curvature_stiffness")
    row = np.append(with_payload.nominal_parameters[:-2], [0.0, CHANGE])
    found = with_payload.derivative(state, PRESSURES, row)
    assert found == pytest.approx(rod.derivative(state, PRESSURES, numbers(rod)), rel=1e-9)


@pytest.mark.parametrize("change", [-0.3, 0.15])
def test_pure_bending_is_a_circle(change):
    """Without weight a moment bends it to the curvature k = c (1 + change (k / 15)^2) M."""
    rod = stiffening(5, ROBOT.replace(gravity=0.0))
    state = rod.equilibrium(PRESSURES, numbers(rod, change))
    moment = np.linalg.norm((ROBOT.actuation_matrix @ PRESSURES)[3:5])
    linear = ROBOT.bending_compliance * moment
    curvature = brentq(
        lambda k: k - linear * (1.0 + change * (k / 15.0) ** 2), 0.5 * linear, 1.5 * linear
    )
    assert abs(curvature - linear) > 0.04 * linear
    angle = np.arccos(rod.tip_pose(state)[2, 2])
    # dilatation makes the rod longer, not the curvature of its material
    assert angle == pytest.approx(curvature * ROBOT.length, rel=1e-4)


def test_a_neo_hookean_rod_bends_and_stretches_by_its_energy():
    """A constant wrench without weight: the derivatives of the energy per length equal it."""
    robot = ROBOT.replace(gravity=0.0, neo_hookean=1.0)
    rod = CosseratRod(robot, 5)
    wrench = robot.actuation_matrix @ PRESSURES
    axial, bending = 1.0 / robot.dilatation_compliance, 1.0 / robot.bending_compliance

    def energy(stretch, curvature):
        phi = (1.0 + 2.0 / stretch**3) / (3.0 * stretch)
        return axial * (stretch**2 + 2.0 / stretch - 3.0) / 6.0 + bending * phi * curvature**2 / 2.0

    def left(x, step=1e-5):
        along, across = step * np.eye(2)
        slopes = [
            (energy(*(x + each * (1.0, 10.0))) - energy(*(x - each * (1.0, 10.0)))) / (2.0 * size)
            for each, size in ((along, step), (across, 10.0 * step))
        ]
        return np.array(slopes) - [wrench[2], np.linalg.norm(wrench[3:5])]

    stretch, curvature = fsolve(left, [1.05, 5.0])
    state = rod.equilibrium(PRESSURES)
    assert np.arccos(rod.tip_pose(state)[2, 2]) == pytest.approx(curvature * robot.length, rel=1e-3)
    line = rod.backbone(state, 400)[:, :3, 3]
    length = np.linalg.norm(np.diff(line, axis=0), axis=1).sum()
    assert length == pytest.approx(stretch * robot.length, rel=1e-3)
    linear = CosseratRod(robot.replace(neo_hookean=0.0), 5)
    plain = np.arccos(linear.tip_pose(linear.equilibrium(PRESSURES))[2, 2])
    assert abs(plain - curvature * robot.length) > 0.05 * plain


def test_a_robot_s_own_is_in_every_rod_and_in_the_structural_plant_s_beam():
    robot = ROBOT.replace(curvature_stiffness=CHANGE)
    rod, told = CosseratRod(robot, 5), stiffening()
    state = rod.equilibrium(PRESSURES)
    assert state == pytest.approx(told.equilibrium(PRESSURES, numbers(told)), abs=1e-12)
    plant = StructuralPlant(robot, PlantErrors(), 1, 5)
    beam = Beam(ROBOT, 5, CHANGE)
    for each in (plant._beam, beam):
        each.settle(PRESSURES)
    assert plant._beam.node_poses()[-1] == pytest.approx(beam.node_poses()[-1], abs=1e-10)
    with pytest.raises(UserError, match="curvature_stiffness: not allowed beside pressure_chain"):
        robot.replace(pressure_chain={"creep_time": 100.0})


@pytest.mark.parametrize("change", [CHANGE, 0.15])
def test_motions_become_those_of_the_beam(change):
    """Other mechanics, another integrator, and the law at every element: 0.4 s of motion."""
    times = np.linspace(0.0, 0.4, 201)
    swings = 1.0 + 0.2 * np.sin(2.0 * np.pi * times[:, None] * (3.0 + np.arange(3)))
    levels = np.array([70e3, 20e3, 5e3]) * np.minimum(times / 0.2, 1.0)[:, None] * swings
    apart = {}
    for intervals in (4, 8):
        rod, beam = stiffening(intervals), Beam(ROBOT, intervals, change)
        row, none = numbers(rod, change), np.zeros(3)
        beam.settle(none)
        plain = state = rod.equilibrium(none)
        distances, unchanged = [], []
        for begin in range(0, 200, 5):
            part = np.ascontiguousarray(levels[begin : begin + 6])
            state = rod.simulate(state, 0.5 * (part[1:] + part[:-1]), 0.002, row)[-1]
            plain = rod.simulate(plain, 0.5 * (part[1:] + part[:-1]), 0.002)[-1]
            beam.advance(part, 0.002)
            true = rod.tip_pose_from_rod_tip(beam.node_poses()[-1])[:3, 3]
            distances.append(np.linalg.norm(rod.tip_pose(state)[:3, 3] - true))
            unchanged.append(np.linalg.norm(rod.tip_pose(plain)[:3, 3] - true))
        apart[intervals] = np.mean(distances)
    # second order on both sides: a quarter at half the length
    assert apart[8] < 0.4 * apart[4]
    assert apart[8] < 0.1 * np.mean(unchanged)


def test_a_candidate_that_is_far_away_stays_sound():
    rod = stiffening()
    state = random_state(rod, 5) * 30.0
    compliances = []
    for change in (-50.0, 50.0):
        rates = rod.derivative(state, PRESSURES, numbers(rod, change))
        assert np.isfinite(rates).all()
        compliances.append(rates)
    for rates, factor in zip(compliances, (STIFFEST, SOFTEST), strict=True):
        more = rod.derivative(state, PRESSURES, numbers(rod, 60.0 * (1.0 - 2.0 * (factor < 1.0))))
        assert rates == pytest.approx(more, rel=1e-9)


def test_a_model_without_it_is_refused_in_one_line():
    robot = ROBOT.replace(pressure_chain={"curvature_stiffness": True})
    bare = RodPrediction(CosseratRod(ROBOT, 5))
    with pytest.raises(UserError, match="curvature_stiffness: RodPrediction has none"):
        ChainModel(bare, robot.pressure_chain)
