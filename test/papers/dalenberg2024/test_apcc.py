"""A-PCC (Dalenberg): Algorithm 2, laws (14) to (16), Lyapunov function (18) to (20), bounds."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.linalg import logm, null_space
from scipy.signal import savgol_coeffs

from softcr_models import UserError
from softcr_papers.constant_curvature.kinematics import ConstantCurvatureChain, coverage_of
from softcr_papers.dalenberg2024.apcc import (
    Apcc,
    ApccSettings,
    InferenceSettings,
    infer,
    zero_state,
)
from softcr_papers.dalenberg2024.apcc.adaptation import AdaptationSettings, adapted
from softcr_papers.dalenberg2024.apcc.controller import WindowVelocity
from softcr_papers.dalenberg2024.apcc.inverse_kinematics import (
    elongation_cost,
    elongation_descent,
    limited,
    task_rate,
)
from softcr_papers.dalenberg2024.tendons import Tendons

HANGING = np.diag([1.0, -1.0, -1.0, 1.0])
CHAIN = ConstantCurvatureChain(3, base=HANGING)
TRUE_LENGTHS = np.array([0.105, 0.255, 0.24])
FIRST_LENGTHS = np.array([0.12, 0.28, 0.27])
SENSORS = np.array([0.105, 0.36, 0.60])
TENDONS = Tendons.of_racks(SENSORS, 0.03, np.deg2rad([[0, 120, 240]] * 3))


def shape(seed: int, sections: int, bend: float = 0.5) -> np.ndarray:
    """q (3 n,) of bends and elongations of a few centimetres."""
    scale = np.tile([bend, bend, 0.02], sections)
    return np.random.default_rng(seed).uniform(-1.0, 1.0, 3 * sections) * scale


def seen(q, lengths, chain=CHAIN):
    """(3, 4, 4) poses of the sensors."""
    return chain.pose(q, lengths, coverage_of(SENSORS, lengths))


def inferred(poses, lengths, told, begin=None):
    begin = np.zeros(9) if begin is None else begin
    return infer(CHAIN, lengths, coverage_of(SENSORS, lengths), poses, begin, told)


# -- Algorithm 2 ----------------------------------------------------------------------------------


@given(st.integers(0, 10**6), st.integers(1, 5), st.integers(0, 2))
@settings(deadline=None, max_examples=30)
def test_poses_give_the_configuration_back(seed, sections, more):
    """Any number of sections, sensors anywhere as long as each section has one at its end."""
    lengths = np.random.default_rng(seed).uniform(0.1, 0.3, sections)
    chain, q = ConstantCurvatureChain(sections, base=HANGING), shape(seed, sections)
    between = np.random.default_rng(seed).uniform(0.0, lengths.sum(), more)
    coverage = coverage_of(np.sort(np.r_[np.cumsum(lengths), between]), lengths)
    limits = InferenceSettings(
        iterations=50, linear_threshold=1e-9, angular_threshold=1e-8, shortest_step=0.0
    )
    found = infer(chain, lengths, coverage, chain.pose(q, lengths, coverage), 0.0 * q, limits)
    assert found.converged
    np.testing.assert_allclose(found.configuration, q, atol=1e-6)


def test_two_sensors_are_enough_for_three_sections():
    """A sensor has six numbers, a section three unknowns."""
    q, coverage = shape(1, 3), coverage_of(np.array([0.2, 0.6]), TRUE_LENGTHS)
    poses = CHAIN.pose(q, TRUE_LENGTHS, coverage)
    limits = InferenceSettings(iterations=50, linear_threshold=1e-8, angular_threshold=1e-8)
    found = infer(CHAIN, TRUE_LENGTHS, coverage, poses, 0.5 * q, limits)
    np.testing.assert_allclose(found.configuration, q, atol=1e-5)


def test_positions_alone_leave_the_orientation_open():
    """As Table I, run 8: the arm has more sections than the model, which meets all positions and
    still is another shape; with poses it gives up some of them to be turned better."""
    q = np.tile([1.0, 0.2, 0.0, -0.9, 0.5, 0.0], 3)
    poses = seen(q, np.full(6, 0.1), ConstantCurvatureChain(6, base=HANGING))
    both = InferenceSettings(iterations=100, linear_threshold=1e-7)
    alone = both.model_copy(update={"feedback": "position"})
    by_position, by_pose = (inferred(poses, TRUE_LENGTHS, each) for each in (alone, both))
    assert by_position.linear.max() < 1e-7
    assert by_position.angular.max() > 0.3
    assert by_pose.linear.max() > 1e-3
    assert by_pose.angular.max() < 0.5 * by_position.angular.max()


def test_the_loop_ends_as_it_should():
    poses = seen(shape(4, 3), TRUE_LENGTHS)

    def run(**changes):
        return inferred(poses, TRUE_LENGTHS, InferenceSettings(**changes))

    assert run(iterations=2).iterations == 2
    both, either = run(), run(stop="either", angular_threshold=10.0)
    assert both.converged
    assert both.linear.max() <= 1e-4
    assert both.angular.max() <= 5e-3
    # the printed `&`: one error is small at once, so nothing happens
    assert (either.converged, either.iterations) == (True, 0)
    assert run(longest_step=1e-3, iterations=3).configuration.max() <= 3e-3 + 1e-12
    # lengths that no configuration explains: it stops where it comes no nearer
    search = InferenceSettings(iterations=100)
    stuck = inferred(poses, FIRST_LENGTHS, search)
    assert not stuck.converged
    assert stuck.iterations < 50
    further = inferred(poses, FIRST_LENGTHS, search, stuck.configuration)
    np.testing.assert_allclose(further.configuration, stuck.configuration, atol=3e-6)


def as_twists(matrices: list[np.ndarray]) -> np.ndarray:
    """(k, 6) of elements (4, 4) of se(3), linear first."""
    return np.array([[*m[:3, 3], m[2, 1], m[0, 2], m[1, 0]] for m in matrices])


@pytest.mark.parametrize("feedback", ["pose", "position"])
def test_an_update_is_the_printed_one(feedback):
    """(27) to (32): logm and differences of poses instead of closed forms, lstsq as the inverse."""
    q, poses = shape(5, 3), seen(shape(6, 3), TRUE_LENGTHS)
    now = seen(q, FIRST_LENGTHS)

    def moved(change):
        """The error that would be seen if the arm, not the model, moved: J_b or J_p times it."""
        after = seen(q + change, FIRST_LENGTHS)
        if feedback == "position":
            return (after - now)[:, :3, 3]
        return as_twists(np.linalg.solve(now, after))

    errors = (poses - now)[:, :3, 3]
    if feedback == "pose":
        errors = as_twists([logm(each).real for each in np.linalg.solve(now, poses)])
    jacobian = np.array([moved(1e-7 * e).ravel() / 1e-7 for e in np.eye(9)]).T
    step = np.linalg.lstsq(jacobian, errors.ravel(), rcond=None)[0]
    once = InferenceSettings(feedback=feedback, iterations=1, damping=0.0, longest_step=1e3)
    found = inferred(poses, FIRST_LENGTHS, once, q)
    np.testing.assert_allclose(found.configuration - q, step, atol=2e-5 * np.abs(step).max())
    # what it says it left is what is left, of every sensor
    left = seen(found.configuration, FIRST_LENGTHS)
    np.testing.assert_allclose(found.linear, np.linalg.norm((poses - left)[:, :3, 3], axis=1))
    turns = np.einsum("sij,sij->s", left[:, :3, :3], poses[:, :3, :3])  # trace of R^T R'
    np.testing.assert_allclose(found.angular, np.arccos(0.5 * (turns - 1.0)), rtol=1e-6)


# -- rates ----------------------------------------------------------------------------------------


def test_rates_are_those_of_savitzky_and_golay():
    window, order, dt = 7, 2, 0.02
    series = np.cumsum(np.random.default_rng(0).normal(size=(20, 9)), axis=0)
    filtered = WindowVelocity(window, order)
    rates = np.array([filtered.add(3.0 + dt * i, each) for i, each in enumerate(series)])
    weights = savgol_coeffs(window, order, deriv=1, delta=dt, pos=window - 1, use="dot")
    assert not rates[: window - 1].any()
    for i in range(window - 1, len(series)):
        np.testing.assert_allclose(rates[i], weights @ series[i - window + 1 : i + 1], rtol=1e-9)


def test_rates_of_a_polynomial_are_exact_at_uneven_stamps():
    stamps = np.cumsum(np.random.default_rng(1).uniform(0.01, 0.05, 10))
    filtered = WindowVelocity(5, 2)
    for stamp in stamps:
        rate = filtered.add(stamp, np.array([1.0 + 2.0 * stamp - 3.0 * stamp**2]))
    np.testing.assert_allclose(rate, [2.0 - 6.0 * stamps[-1]], rtol=1e-9)
    filtered.forget()
    assert not filtered.add(1.0, np.ones(1)).any()


def test_task_and_secondary_objective_do_not_disturb_each_other():
    q = shape(5, 3)
    jacobian = CHAIN.position_jacobian(q, TRUE_LENGTHS)
    velocity = np.array([0.1, -0.2, 0.05])
    descent = elongation_descent(q, 1.0, "squared")
    rate = task_rate(jacobian, velocity, descent)
    np.testing.assert_allclose(jacobian @ rate, velocity, atol=1e-12)
    free = task_rate(jacobian, np.zeros(3), descent)
    np.testing.assert_allclose(jacobian @ free, 0.0, atol=1e-12)
    assert elongation_cost(q + 1e-3 * free) < elongation_cost(q)
    # of all rates with this tip velocity, the nearest to what the objective asks for
    least = task_rate(jacobian, velocity - jacobian @ descent, np.zeros(9))
    np.testing.assert_allclose(rate - descent, least, atol=1e-12)
    # (14), the pseudo-inverse told by what it is: nothing of it lies in the null space
    alone = task_rate(jacobian, velocity, np.zeros(9))
    np.testing.assert_allclose(jacobian @ alone, velocity, atol=1e-14)
    np.testing.assert_allclose(null_space(jacobian).T @ alone, 0.0, atol=1e-14)


@pytest.mark.parametrize("objective", ["squared", "norm"])
def test_the_secondary_objective_goes_down_its_gradient(objective):
    q, step = shape(6, 3), 1e-7

    def cost(q):
        return 0.5 * elongation_cost(q) ** 2 if objective == "squared" else elongation_cost(q)

    gradient = [(cost(q + e) - cost(q - e)) / (2 * step) for e in step * np.eye(9)]
    found = elongation_descent(q, 2.0, objective)
    np.testing.assert_allclose(found, -2.0 * np.array(gradient), atol=1e-7)
    assert not elongation_descent(np.zeros(9), 2.0, objective).any()


def test_a_limit_keeps_the_direction():
    np.testing.assert_allclose(limited(np.array([2.0, -4.0]), 1.0), [0.5, -1.0])
    np.testing.assert_allclose(limited(np.array([0.2, -0.4]), 1.0), [0.2, -0.4])


# -- adaptation -----------------------------------------------------------------------------------

Y = np.array([[0.1, -0.2, 0.3], [0.0, 0.4, -0.1], [0.2, 0.1, 0.0]])
ERROR = np.array([0.01, -0.02, 0.005])


def step_of(**changes):
    changes = {"gains": (90.0, 42.5, 35.0)} | changes
    return adapted(TRUE_LENGTHS, Y, ERROR, 0.02, AdaptationSettings(**changes))


def test_a_step_is_the_printed_law():
    expected = TRUE_LENGTHS - 0.02 * np.diag([90.0, 42.5, 35.0]) @ Y.T @ ERROR
    free = step_of()
    np.testing.assert_allclose(free.rest_lengths, expected, atol=1e-15)
    assert (free.projected, free.slowed) == (False, False)
    same = adapted(TRUE_LENGTHS, Y, ERROR, 0.02, AdaptationSettings(gains=(5.0,)))
    np.testing.assert_allclose(same.rest_lengths, TRUE_LENGTHS - 0.1 * Y.T @ ERROR)


def test_bounds_hold_and_say_so():
    near = step_of(shortest=0.104, longest=0.25)
    assert near.projected
    np.testing.assert_allclose(near.rest_lengths[0], max(0.104, step_of().rest_lengths[0]))
    assert near.rest_lengths[1] == 0.25
    slow = step_of(fastest=0.01)
    assert slow.slowed
    assert np.abs(slow.rest_lengths - TRUE_LENGTHS).max() <= 0.02 * 0.01 + 1e-15
    still = step_of(dead_zone=0.1)
    np.testing.assert_array_equal(still.rest_lengths, TRUE_LENGTHS)
    assert step_of(keep_sum=True).rest_lengths.sum() == pytest.approx(TRUE_LENGTHS.sum())
    with pytest.raises(ValueError, match="must be below longest"):
        AdaptationSettings(shortest=0.3, longest=0.2)


# -- the loop -------------------------------------------------------------------------------------


def target(t):
    """The trajectory (51) and its velocity."""
    centre, amplitude = np.array([0.0, 0.0, -0.5]), np.array([0.5, 0.3, 0.1])
    phase = 0.2 * np.pi * t
    velocity = 0.2 * np.pi * amplitude * np.cos(phase)
    return centre + amplitude * np.sin(phase), velocity


def kinematic_run(controller, dt, seconds):
    """The arm goes where it is told; errors (T, 3) and lengths (T, 3) before each step."""
    q = np.tile([0.0, 0.0, -0.1 / 3.0], 3)
    controller.start(q)
    errors, lengths = [], []
    for t in dt * np.arange(round(seconds / dt) + 1):
        lengths.append(controller.rest_lengths.copy())
        command = controller.tick(t, seen(q, TRUE_LENGTHS), *target(t), true_configuration=q)
        q = q + dt * command.rate
        errors.append(command.error)
    return np.array(errors), np.array(lengths)


GAMMA = np.array([90.0, 42.5, 35.0])


def known_state_controller(**changes):
    adaptation = AdaptationSettings(gains=tuple(GAMMA), longest=np.inf)
    law = {"gain": 1.0, "jacobian_state": "true", "adaptation": adaptation}
    return Apcc(CHAIN, FIRST_LENGTHS, SENSORS, TENDONS, ApccSettings(**(law | changes)))


def lyapunov(errors, lengths):
    """(18) [m^2], the lengths' share in units of the error's."""
    return 0.5 * (errors**2).sum(axis=1) + 0.5 * ((TRUE_LENGTHS - lengths) ** 2 / GAMMA).sum(axis=1)


def test_the_lyapunov_function_falls_as_proved():
    """(18), (20) with q known: V' = -e^T K e, to the first order of the step."""
    gaps = []
    for dt in (2e-3, 1e-3):
        errors, lengths = kinematic_run(known_state_controller(), dt, 4.0)
        value = lyapunov(errors, lengths)
        dissipated = dt * np.cumsum((errors[:-1] ** 2).sum(axis=1))
        gaps.append(np.abs(value[1:] - value[0] + dissipated).max() / value[0])
        assert np.diff(value).max() < 60.0 * dt**2 * value[0]
        assert value[-1] < 0.2 * value[0]
    assert gaps[0] < 0.1
    assert gaps[1] < 0.6 * gaps[0]  # a discretisation error: it halves with the step


def test_adaptation_beats_the_fixed_rival_without_knowing_the_state():
    law = known_state_controller().settings.model_copy(update={"jacobian_state": "commanded"})
    rms = []
    for told in (law, law.without_adaptation()):
        controller = Apcc(CHAIN, FIRST_LENGTHS, SENSORS, TENDONS, told)
        errors, lengths = kinematic_run(controller, 0.01, 15.0)
        rms.append(np.sqrt((errors[-500:] ** 2).sum(axis=1).mean()))
    assert rms[0] < 0.1 * rms[1]
    np.testing.assert_array_equal(lengths, np.tile(FIRST_LENGTHS, (len(lengths), 1)))


def test_a_tick_tells_tendons_by_the_newest_lengths():
    controller = known_state_controller(jacobian_state="commanded")
    q, goal = shape(7, 3), np.array([0.1, 0.1, -0.5])
    controller.start(q)
    poses = seen(q, TRUE_LENGTHS)
    first = controller.tick(1.0, poses, goal)
    np.testing.assert_array_equal(first.configuration, q)  # it only looks
    for stamp in 1.0 + 0.02 * np.arange(1, 12):
        command = controller.tick(stamp, poses, goal)
    expected = TENDONS.actuation(command.rest_lengths).T @ command.configuration
    np.testing.assert_allclose(command.tendons, expected, atol=1e-15)
    assert np.abs(command.configuration - q).max() > 1e-3


def test_the_models_tip_can_stand_in_for_the_sensor():
    controller = known_state_controller(jacobian_state="inferred", tip_source="model")
    q = shape(8, 3)
    controller.start(q)
    command = controller.tick(0.0, seen(q, FIRST_LENGTHS), np.zeros(3))
    np.testing.assert_allclose(command.error, -CHAIN.position(q, FIRST_LENGTHS), atol=1e-9)


def test_what_does_not_fit_is_refused_in_one_line():
    with pytest.raises(UserError, match=r"rest_lengths: \[0.1\] m: must be 3 above 0"):
        Apcc(CHAIN, [0.1], SENSORS, TENDONS)
    gains = AdaptationSettings(gains=(1.0, 2.0))
    with pytest.raises(UserError, match="adaptation gains: 2 given: must be 1 or 3"):
        Apcc(CHAIN, FIRST_LENGTHS, SENSORS, TENDONS, ApccSettings(adaptation=gains))
    with pytest.raises(ValueError, match="window 3 must be above order 3"):
        ApccSettings(window=3, order=3)
    with pytest.raises(UserError, match="needs the true configuration at every tick"):
        known_state_controller().tick(0.0, seen(np.zeros(9), TRUE_LENGTHS), np.zeros(3))


# -- zero state -----------------------------------------------------------------------------------


def test_the_zero_state_is_found_from_a_straight_arm_alone():
    base = CHAIN.base @ np.array([[0, -1, 0, 0.2], [1, 0, 0, -0.1], [0, 0, 1, 0.3], [0, 0, 0, 1]])
    arm, random = ConstantCurvatureChain(3, base=base), np.random.default_rng(0)
    frames = [seen(1e-3 * random.normal(size=9), TRUE_LENGTHS, arm) for _ in range(200)]
    found = zero_state(np.array(frames), base)
    np.testing.assert_allclose(found.places, SENSORS, atol=5e-4)
    np.testing.assert_allclose(found.rest_lengths, TRUE_LENGTHS, atol=5e-4)
    bent, straight = (seen(np.tile([bend, 0.0, 0.0], 3), TRUE_LENGTHS) for bend in (0.3, 0.0))
    with pytest.raises(UserError, match=r"zero state: sensor 3 is 0\.\d+ m aside"):
        zero_state(bent[None], HANGING)
    with pytest.raises(UserError, match="each must be farther out than the one before"):
        zero_state(straight[None, ::-1], HANGING)
