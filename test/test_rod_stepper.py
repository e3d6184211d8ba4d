"""Time stepping: order, scalar = lanes = plain numpy, retries, the prediction protocol."""

import numpy as np
import pytest
from scipy.integrate import solve_ivp

from softcr_models import CosseratRod, UserError, load_robot
from softcr_models.prediction import RodPrediction
from softcr_models.rod import evaluation, linear_solver, rosenbrock, stepper
from softcr_models.rod.state import RodState, intervals_of, state_size
from softcr_models.rod.stepper import Run
from softcr_models.rod_model.rows import restricted

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


def batch_of(moving, count, steps, seed=0):
    random = np.random.default_rng(seed)
    states = moving[random.integers(0, len(moving), count)]
    pressures = random.uniform(1e4, 6e4, (count, steps + 1, 3))
    nominal = np.array([ROBOT.bending_compliance, ROBOT.tip_mass, 1.0])
    parameters = nominal * random.uniform(0.8, 1.2, (count, 3))
    return states, pressures, parameters


def test_coefficients_fulfil_the_order_conditions_of_a_w_method():
    """Hairer & Wanner II, Table IV.7.2 with any matrix A: order 3 and stiffly accurate."""
    a, g, b = rosenbrock._ALPHA, rosenbrock._GAMMA, rosenbrock._WEIGHTS
    beta = a + g
    alpha_sum, gamma_sum = a.sum(axis=1), g.sum(axis=1)
    conditions = [
        (b.sum(), 1),
        (b @ alpha_sum, 1 / 2),
        (b @ gamma_sum, 0),
        (b @ alpha_sum**2, 1 / 3),
        (b @ a @ alpha_sum, 1 / 6),
        (b @ a @ gamma_sum, 0),
        (b @ g @ alpha_sum, 0),
        (b @ g @ gamma_sum, 0),
    ]
    for value, expected in conditions:
        assert value == pytest.approx(expected, abs=1e-12)
    assert beta[-1] == pytest.approx(b)
    embedded = rosenbrock._EMBEDDED  # of order 2, again with any matrix, and of no higher one
    assert embedded.sum() == pytest.approx(1.0, abs=1e-12)
    assert embedded @ alpha_sum == pytest.approx(0.5, abs=1e-12)
    assert embedded @ gamma_sum == pytest.approx(0.0, abs=1e-12)
    assert abs(embedded @ alpha_sum**2 - 1 / 3) > 0.01


def test_one_step_against_radau_at_tight_tolerance(rod, moving):
    pressures = np.array([5e4, 2e4, 3e4])
    exact = solve_ivp(
        lambda _, y: rod.derivative(y, pressures),
        (0, PERIOD),
        moving[0],
        method="Radau",
        jac=lambda _, y: rod.linearize(y, pressures)[0],
        rtol=1e-9,
        atol=1e-10,
    ).y[:, -1]
    errors = []
    for substeps in (4, 8, 16):
        fine = CosseratRod(ROBOT, 5, max_substep=PERIOD / substeps)
        fine.largest_errors = UNJUDGED, UNJUDGED
        tip = fine.tip_pose(fine.step(moving[0], pressures, PERIOD))[:3, 3]
        errors.append(np.linalg.norm(tip - rod.tip_pose(exact)[:3, 3]))
    assert errors[0] < 1e-4
    assert errors[2] < 0.5 * errors[1] < 0.25 * errors[0] + 1e-9


def test_reference_test_of_the_specification_within_a_tenth_of_a_millimetre(rod):
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


def test_the_same_text_in_plain_numpy():
    """The oracle: rosenbrock.step as Python runs it, three lanes, against the compiled one."""
    small = CosseratRod(ROBOT, 2)
    random = np.random.default_rng(5)
    lanes, n = 3, 2
    states = random.normal(size=(lanes, small.state_size)) * 0.1
    w = random.normal(size=(2, 1, 6, lanes)) * np.array([0.1, 0.1, 10, 0.2, 0.2, 0.01])[:, None]
    section, grid = section_of(small), small.grid
    parts = RodState(states)
    e = np.zeros((n + 1, 6, lanes))
    e[1:] = np.moveaxis(parts.velocities, 0, -1)
    s = np.moveaxis(parts.wrenches, 0, -1).copy()
    z = np.moveaxis(parts.base_wrench, 0, -1) - s[0]
    decay = np.exp(-0.005 / section.relaxation[0])
    check = np.zeros((rosenbrock.CHECKS, lanes))
    rosenbrock.step(e, s, z, w[0], w[1], 0.01, 2, 0, decay, section, grid, None, check)
    # pressures that make these wrenches do not exist; feed them through a square actuation
    body = small.body._replace(actuation=np.eye(6)[None], pulls=np.zeros(6, dtype=int))
    pressures = np.ascontiguousarray(np.moveaxis(w[:, 0], -1, 0))
    parameters = np.tile(small.nominal_parameters, (lanes, 1))
    run = Run(body, small.grid, 0.01, 2, largest_error=UNJUDGED)
    compiled = stepper.rollout(states, pressures, parameters, run)[:, 0]
    found = RodState(compiled)
    assert found.velocities == pytest.approx(np.moveaxis(e[1:], -1, 0), rel=1e-9, abs=1e-12)
    assert found.wrenches == pytest.approx(np.moveaxis(s, -1, 0), rel=1e-9, abs=1e-12)
    assert found.base_wrench == pytest.approx((z + s[0]).T, rel=1e-9, abs=1e-12)


def section_of(rod):
    """The section at nominal parameters."""
    return point_of(rod, rod.rest_state(), np.zeros(rod.input_size)).section


def point_of(rod, state, inputs):
    return evaluation.point_of(
        state, inputs, rod.nominal_parameters, rod.body, rod.grid, rod.fittings, rod.loads, None
    )


def test_the_structured_solver_against_a_dense_one(rod, moving):
    """(alpha A - G) d = A r with dense matrices from the implicit form; gravity is not in G."""
    weightless = CosseratRod(ROBOT.replace(gravity=0.0), 5)
    state, pressures = moving[3], np.array([4e4, 1e4, 2e4])
    n, size, alpha = 5, 66, 400.0
    grid = weightless.grid
    e, s, _, w, section, _ = point_of(weightless, state, pressures)
    rate = weightless.derivative(state, pressures)
    ds = np.ascontiguousarray(RodState(rate).wrenches)
    factors = linear_solver.Factors(
        *(np.empty((6, *shape)) for shape in [(6,), (6, 3)] + [(6, 6)] * 5)
    )
    linear_solver.linearise(e, s, ds, w, alpha, section, grid, None, factors)
    random = np.random.default_rng(0)
    e_rate, s_rate = random.normal(size=(2, n + 1, 6))
    e_rate[0] = 0.0
    d_e, d_s = np.empty((2, n + 1, 6))
    linear_solver.solve(e_rate, s_rate, alpha, section, grid, None, factors, d_e, d_s)
    jacobian = weightless.linearize(state, pressures)[0][:size, :size]
    right = np.concatenate((e_rate[1:].ravel(), s_rate.ravel()))
    # A drops out: (alpha I - A^-1 G) d = r, and A^-1 G is the Jacobian of the explicit form
    expected = np.linalg.solve(alpha * np.eye(size) - jacobian, right)
    found = np.concatenate((d_e[1:].ravel(), d_s.ravel()))
    assert found == pytest.approx(expected, rel=1e-7, abs=1e-9 * np.abs(expected).max())


def test_what_leaves_the_numbers_is_done_again_finer(rod):
    """Full pressure jumps every tick without lag: one linearisation is not enough for all."""
    random = np.random.default_rng(1)
    count, steps = 64, 60
    pressures = random.choice([0.0, 1.2e5], (count, steps + 1, 3))
    states = np.zeros((count, rod.state_size))
    parameters = np.tile(rod.nominal_parameters, (count, 1))
    out = np.empty((count, steps, rod.state_size))
    run = Run(rod.body, rod.grid, PERIOD, 1, held=1)
    no_tips = np.empty((count, 0, 12))
    checks = np.empty((count, rosenbrock.CHECKS))
    shared = stepper._shared(run)
    stepper._rollout_float64(states, pressures, parameters, *shared, out, no_tips, checks)
    assert (~np.isfinite(out[:, -1]).all(axis=1) | (checks[:, 0] > run.limits[0])).any()
    retries = stepper.Retries()
    retried = stepper.rollout(states, pressures, parameters, run, retries=retries)
    assert np.isfinite(retried).all()
    assert retries.attempts > 0
    tips = stepper.rollout_tips(states, pressures, parameters, run)
    assert np.isfinite(tips).all()


def test_a_hopeless_candidate_is_nan_and_harms_no_other(rod, moving):
    states, pressures, parameters = batch_of(moving, 9, 2)
    run = Run(rod.body, rod.grid, PERIOD, 2)
    good = stepper.rollout(states, pressures, parameters, run)
    states[4] = 1e200
    found = stepper.rollout(states, pressures, parameters, run)
    assert np.isnan(found[4]).all()
    others = np.delete(np.arange(9), 4)
    assert found[others] == pytest.approx(good[others], rel=1e-12)


def test_a_long_step_is_divided(rod):
    state = rod.step(rod.rest_state(), np.array([3e4, 0.0, 0.0]), 6.0)
    steady = rod.equilibrium(np.array([3e4, 0.0, 0.0]))
    assert rod.tip_pose(state)[:3, 3] == pytest.approx(rod.tip_pose(steady)[:3, 3], abs=1e-3)


def test_prediction_is_the_rod(moving):
    """Where no step is refined; filters and the rod itself allow different errors."""
    rod = CosseratRod(ROBOT, 5)
    rod.largest_errors = UNJUDGED, UNJUDGED
    prediction = RodPrediction(rod, substeps=3)
    pressures = np.array([[4e4, 2e4, 1e4]] * 2)
    parameters = np.tile(rod.nominal_parameters, (2, 1))
    stepped = prediction.step(moving[:2], pressures, pressures, parameters, PERIOD)
    assert stepped[0] == pytest.approx(
        rod.step(moving[0], pressures[0], PERIOD), rel=1e-9, abs=1e-12
    )
    poses = prediction.tip_poses(stepped, parameters)
    assert poses[1] == pytest.approx(rod.tip_pose(stepped[1])[:3], abs=1e-12)
    grid = np.repeat(pressures[:, None], 5, axis=1)
    rolled = prediction.rollout(moving[0], grid, parameters[0], PERIOD)
    assert rolled.shape == (2, 4, 72)
    expected = rod.simulate(moving[0], grid[0, :4], PERIOD)
    tips = prediction.tip_poses(rolled[0], parameters[:1])[:, :, 3]
    assert prediction.rollout_tips(moving[0], grid, parameters[0], PERIOD)[0, :, :, 3] == (
        pytest.approx(tips, abs=1e-6)
    )
    exact = np.array([rod.tip_pose(x)[:3, 3] for x in expected])
    assert tips == pytest.approx(exact, abs=5e-5)


def test_parameters_reach_the_batch(rod, moving):
    """A stiffer lane is the rod of a stiffer robot; likewise mass and damping."""
    changed = ROBOT.replace(bending_compliance=45.0, tip_mass=0.08, relaxation_times=(0.0065,) * 6)
    other = CosseratRod(changed, 5)
    pressures = np.array([4e4, 2e4, 1e4])
    found = rod.step(moving[0], pressures, PERIOD, np.array([45.0, 0.08, 1.3]))
    assert found == pytest.approx(other.step(moving[0], pressures, PERIOD), rel=1e-12, abs=1e-14)


def test_state_views_share_memory_and_restrict(moving):
    state = np.arange(72.0)
    view = RodState(state)
    view.velocities[0, 0] = -1.0
    assert state[0] == -1.0
    assert view.wrenches[0, 0] == 30.0
    assert view.base_wrench.tolist() == list(range(66, 72))
    assert RodState.join(view.velocities, view.wrenches, view.base_wrench).array.tolist() == (
        state.tolist()
    )
    fine = np.arange(float(state_size(10)))
    coarse = RodState(restricted(fine, (10,), (5,)))
    assert coarse.velocities.tolist() == RodState(fine).velocities[1::2].tolist()
    assert coarse.wrenches.tolist() == RodState(fine).wrenches[::2].tolist()
    with pytest.raises(UserError, match="10"):
        restricted(fine, (10,), (4,))
    with pytest.raises(UserError, match="73"):
        intervals_of(73)


def test_wrong_shapes_and_numbers_are_named(rod):
    with pytest.raises(UserError, match="3 actuators"):
        rod.step(rod.rest_state(), np.zeros(4), PERIOD)
    with pytest.raises(UserError, match=r"\(72,\)"):
        rod.step(np.zeros(60), np.zeros(3), PERIOD)
    with pytest.raises(UserError, match="intervals: 0"):
        CosseratRod(ROBOT, 0)
