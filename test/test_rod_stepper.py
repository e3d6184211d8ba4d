"""Time stepping: order, scalar = lanes = plain numpy, retries, the prediction protocol."""

import numpy as np
import pytest
from scipy.integrate import solve_ivp

from softcr_models import CosseratRod, UserError, load_robot
from softcr_models.prediction import RodPrediction
from softcr_models.rod import rosenbrock, stepper
from softcr_models.rod.stepper import Run

ROBOT = load_robot("licher2025")
PERIOD = 1 / 70


@pytest.fixture(scope="module")
def rod():
    return CosseratRod(ROBOT, 5)


@pytest.fixture(scope="module")
def moving(rod):
    """States of a fast motion."""
    phases = 2 * np.pi * (np.arange(60)[:, None] * PERIOD * 1.3 + np.arange(3) / 3)
    return rod.simulate(rod.rest_state(), 3.5e4 + 2e4 * np.sin(phases), PERIOD)[20:]


UNJUDGED = 1e9  # error of a step that lets every finite one pass [1/s]


def test_coefficients_fulfil_the_order_conditions_of_a_w_method():
    """Hairer & Wanner II, Table IV.7.2 with any matrix A: order 3 and stiffly accurate."""
    a, g, b = rosenbrock._ALPHA, rosenbrock._GAMMA, rosenbrock._WEIGHTS
    beta = a + g
    alpha_sum, gamma_sum = a.sum(axis=1), g.sum(axis=1)
    order_3 = (b.sum(), b @ alpha_sum, b @ alpha_sum**2, b @ a @ alpha_sum)
    assert order_3 == pytest.approx((1, 1 / 2, 1 / 3, 1 / 6), abs=1e-12)
    with_any_matrix = (b @ gamma_sum, b @ a @ gamma_sum, b @ g @ alpha_sum, b @ g @ gamma_sum)
    assert with_any_matrix == pytest.approx((0, 0, 0, 0), abs=1e-12)
    assert beta[-1] == pytest.approx(b)
    embedded = rosenbrock._EMBEDDED  # of order 2, again with any matrix, and of no higher one
    order_2 = (embedded.sum(), embedded @ alpha_sum, embedded @ gamma_sum)
    assert order_2 == pytest.approx((1, 1 / 2, 0), abs=1e-12)
    assert abs(embedded @ alpha_sum**2 - 1 / 3) > 0.01


def test_one_step_against_radau_at_tight_tolerance(rod, moving):
    pressures = np.array([5e4, 2e4, 3e4])
    exact = solve_ivp(
        lambda _, y: rod.derivative(y, pressures), (0, PERIOD), moving[0], method="Radau",
        jac=lambda _, y: rod.linearize(y, pressures)[0], rtol=1e-9, atol=1e-10,
    ).y[:, -1]  # fmt: skip
    errors = []
    for substeps in (4, 8, 16):
        fine = CosseratRod(ROBOT, 5, max_substep=PERIOD / substeps)
        fine.largest_errors = UNJUDGED, UNJUDGED
        tip = fine.tip_pose(fine.step(moving[0], pressures, PERIOD))[:3, 3]
        errors.append(np.linalg.norm(tip - rod.tip_pose(exact)[:3, 3]))
    assert errors[0] < 1e-4
    assert errors[2] < 0.5 * errors[1] < 0.25 * errors[0] + 1e-9


def test_three_sub_steps_are_within_a_tenth_of_a_millimetre_of_sixteen(rod):
    """2 s of 1 Hz three-phase pressures with a jump every step: three sub-steps against sixteen."""
    phases = 2 * np.pi * (np.arange(140)[:, None] * PERIOD + np.arange(3) / 3)
    pressures = 3e4 + 2.5e4 * np.sin(phases)
    fine = CosseratRod(ROBOT, 5, max_substep=PERIOD / 16)
    tips = [
        np.array([r.tip_pose(x)[:3, 3] for x in r.simulate(r.rest_state(), pressures, PERIOD)])
        for r in (rod, fine)
    ]
    assert np.linalg.norm(tips[0] - tips[1], axis=1).mean() < 1e-4


def test_pressures_are_held_or_go_linearly(rod, moving):
    """A step along a ramp of pressures, and the same with its first row held."""
    rows = np.array([[[4e4, 2e4, 1e4], [1e4, 3e4, 2e4]]])
    state, parameters = moving[:1], rod.nominal_parameters[None]
    eighths = np.linspace(rows[:, 0], rows[:, 1], 9, axis=1)

    def tip(levels, dt, substeps, held):
        run = Run(rod.body, rod.grid, dt, substeps, 1, held, largest_error=UNJUDGED)
        return stepper.rollout_tips(state, levels, parameters, run)[0, -1, :, 3]

    linear, held = (tip(rows, PERIOD, 8, held) for held in (0, 1))
    assert linear == pytest.approx(tip(eighths, PERIOD / 8, 1, 0), abs=1e-6)
    assert held == pytest.approx(tip(0.0 * eighths + eighths[:, :1], PERIOD / 8, 1, 0), abs=1e-6)
    assert np.linalg.norm(linear - held) > 1e-4


def test_a_long_step_is_divided(rod):
    state = rod.step(rod.rest_state(), np.array([3e4, 0.0, 0.0]), 6.0)
    steady = rod.equilibrium(np.array([3e4, 0.0, 0.0]))
    assert rod.tip_pose(state)[:3, 3] == pytest.approx(rod.tip_pose(steady)[:3, 3], abs=1e-3)


def test_prediction_is_the_rod(moving):
    """Where no step is refined; filters and the rod itself allow different errors."""
    rod = CosseratRod(ROBOT, 5)
    rod.largest_errors = UNJUDGED, UNJUDGED
    prediction, parameters = RodPrediction(rod, substeps=3), rod.nominal_parameters
    held = np.repeat([[[4e4, 2e4, 1e4]]], 5, axis=1)
    stepped = prediction.step(moving[:1], held[:, 0], held[:, 1], parameters[None], PERIOD)
    of_rod = rod.step(moving[0], held[0, 0], PERIOD)
    assert stepped[0] == pytest.approx(of_rod, rel=1e-9, abs=1e-12)
    pose = prediction.tip_poses(stepped, parameters[None])[0]
    assert pose == pytest.approx(rod.tip_pose(stepped[0])[:3], abs=1e-12)
    tips = prediction.rollout_tips(moving[0], held, parameters, PERIOD)[0]
    exact = [rod.tip_pose(x)[:3] for x in rod.simulate(moving[0], held[0, :4], PERIOD)]
    assert tips[:, :, 3] == pytest.approx(np.array(exact)[:, :, 3], abs=5e-5)


def test_parameters_reach_the_batch(rod, moving):
    """A stiffer lane is the rod of a stiffer robot; likewise mass and damping."""
    changed = ROBOT.replace(bending_compliance=45.0, tip_mass=0.08, relaxation_times=(0.0065,) * 6)
    other = CosseratRod(changed, 5)
    pressures = np.array([4e4, 2e4, 1e4])
    found = rod.step(moving[0], pressures, PERIOD, np.array([45.0, 0.08, 1.3]))
    assert found == pytest.approx(other.step(moving[0], pressures, PERIOD), rel=1e-12, abs=1e-14)


def test_wrong_shapes_are_named(rod):
    with pytest.raises(UserError, match="3 actuators"):
        rod.step(rod.rest_state(), np.zeros(4), PERIOD)
    with pytest.raises(UserError, match=r"\(72,\)"):
        rod.step(np.zeros(60), np.zeros(3), PERIOD)


@pytest.mark.parametrize("single", [False, True])
def test_many_candidates_that_do_not_hold_are_refined_together(single):
    """Step by step, each as finely as it needs: as one by one, and counted as often. One that
    cannot be done and one that is not finite are lost, as they are alone."""
    rod = CosseratRod(ROBOT, 5)
    count, steps = 2 * stepper.FLOAT64_LANES, 4
    jumps = np.zeros((count, steps + 1, 3))
    jumps[:, 1, 0] = jumps[:, 3, 1] = np.linspace(1e4, 8e4, count)
    jumps[2, 2:] = 1e9
    states = np.tile(rod.rest_state(), (count, 1))
    states[5, 3] = np.nan
    parameters = np.tile(rod.nominal_parameters, (count, 1))
    run = Run(rod.body, rod.grid, PERIOD, 1, largest_error=0.02)
    together, alone = stepper.Retries(), stepper.Retries()
    for rollout in (stepper.rollout, stepper.rollout_tips):
        many = rollout(states, jumps, parameters, run, single, together)
        each = [rollout(states[i : i + 1], jumps[i : i + 1], parameters[:1], run, retries=alone)
                for i in range(count)]  # fmt: skip
        close = 1e-5 if single else 1e-9
        assert many == pytest.approx(np.concatenate(each), rel=close, abs=close, nan_ok=True)
        assert (np.isnan(many).any(axis=tuple(range(1, many.ndim))).nonzero()[0] == [2, 5]).all()
    assert together.candidates == count + len(each) == 2 * count
    assert together.attempts > 2 * count
    assert (together.attempts, together.lost) == (alone.attempts, alone.lost)


def test_a_damped_slender_rod_is_exact_enough_without_being_done_again():
    """The shipped tentacle, pulled as fast as it may be, two sub-steps a tick against thirty-two:
    its bending waves die out, so that errors of steps do not add up."""
    rod = CosseratRod(load_robot("tentacle"), 2)
    limits = rod.robot.tension_limits
    ramp = np.minimum(limits.maximum_rate * PERIOD * np.arange(29), 0.6 * limits.maximum)
    pulls = np.stack([ramp, 0.0 * ramp], axis=1)[None]
    state = rod.equilibrium(np.zeros(2))[None]
    tips, counted = [], stepper.Retries()
    for substeps, error in ((2, rod.largest_errors[1]), (32, UNJUDGED)):
        run = Run.of(rod.body, rod.grid, PERIOD, substeps, 0, rod.fittings, rod.loads, None, error)
        row = rod.nominal_parameters[None]
        poses = stepper.rollout_tips(state, pulls, row, run, retries=counted)
        tips.append(poses[0, :, :, 3])
    off = np.linalg.norm(tips[0] - tips[1], axis=1)
    assert np.linalg.norm(np.ptp(tips[1], axis=0)) > 0.2 * rod.robot.length
    assert off.max() < 0.011 * rod.robot.length
    assert counted.attempts < len(ramp) // 4
