"""Identification: exact where the model is the robot, honest about what was not excited."""

import numpy as np
import pytest
from kit.studies import rows_of

from softcr_models import CosseratRod, load_robot
from softcr_models.identification.identifiable import names_of, parameters_of, with_parameters
from softcr_models.identification.measured_groups import TIP_POSITION, groups_of
from softcr_models.identification.rod_identification import (
    Recording,
    at_rest,
    identify_lag,
    identify_motion,
    identify_static,
    in_motion,
    stacked,
    static_configurations,
    static_cost,
)
from softcr_models.model import TIP
from softcr_models.rod.cosserat_rod import EquilibriumError
from softcr_models.rod.description import BASE_WRENCH
from softcr_papers.licher2025.studies import identification
from softcr_papers.licher2025.studies.identification import NAMES, hidden_robot
from softcr_studies.frame.particle_swarm import particle_swarm

ROBOT = load_robot("licher2025")
INTERVALS = 3
STATIC_PARAMETERS, LAG_PARAMETERS = names_of(ROBOT, "rest"), names_of(ROBOT, "lag")
(DAMPING,) = names_of(ROBOT, "motion")
FEW = static_configurations(ROBOT, levels=2)


def fitted(robot):
    """Tip position, base force and base moment."""
    return [each for each in groups_of(robot) if each.output in (TIP, BASE_WRENCH) and each.fitted]


def noisy(robot, outputs, noise, seed=0):
    """Outputs by name, with noise on the tip [m] (times 100 on force [N], 2 on moment [N m])."""
    values = stacked(fitted(robot), outputs)
    levels = noise * np.array([1.0, 100.0, 2.0])[None, :, None]
    values = values + levels * np.random.default_rng(seed).standard_normal(values.shape)
    return {each.name: values[:, k] for k, each in enumerate(fitted(robot))}


def recorded(robot, pressures, noise=0.0, seed=0):
    outputs, _ = at_rest(robot, pressures, fitted(robot), INTERVALS)
    return Recording(pressures, noisy(robot, outputs, noise, seed))


def moved(robot, pressures, noise=0.0):
    outputs = in_motion(robot, Recording(pressures, {}, 1 / 70), fitted(robot), INTERVALS)
    return Recording(pressures, noisy(robot, outputs, noise), 1 / 70)


def test_the_configurations_are_the_papers_42():
    configurations = static_configurations(ROBOT)
    assert configurations.shape == (42, 3)
    assert len(np.unique(configurations, axis=0)) == 42
    counts = [(configurations > 0).sum(axis=1).tolist().count(n) for n in (1, 2, 3)]
    assert counts == [18, 18, 6]


def test_names_and_values_go_round():
    truth = hidden_robot(ROBOT)
    values = parameters_of(truth, NAMES)
    assert with_parameters(ROBOT, NAMES, values.tolist()) == truth
    factors = [1.01, 1.10, 0.93, 1.06, 1.30, 0.95, 0.95]
    assert values / parameters_of(ROBOT, NAMES) == pytest.approx(factors)


def test_statics_without_noise_give_the_truth_and_what_is_not_excited_is_told():
    """At rest without pressure an upright rod hardly bends: its bending says nothing."""
    truth = hidden_robot(ROBOT)
    fit = identify_static(ROBOT, recorded(truth, FEW), INTERVALS)
    assert fit.values == pytest.approx(parameters_of(truth, STATIC_PARAMETERS), rel=1e-6)
    assert fit.robot.length == pytest.approx(truth.length)
    assert fit.evaluations < 30
    assert fit.not_excited == ()
    still = recorded(ROBOT, np.zeros((6, 3)), noise=1e-4)
    assert "bending_compliance" in identify_static(ROBOT, still, INTERVALS).not_excited


ARM = load_robot("two_segments")


def two_compliances(robot):
    """The robot whose segments bend about x as about y, but may be found not to."""
    parts = [
        {**each.model_dump(), "bending_compliance": list(each.bending_compliances)}
        for each in robot.segments
    ]
    return robot.replace(segments=parts)


def test_names_tell_the_segment_and_the_axis_of_bending():
    of_arm = names_of(two_compliances(ARM), "rest", "motion")
    assert of_arm == (
        "length_1", "length_2", "payload_mass",
        "bending_compliance_1_x", "bending_compliance_1_y",
        "bending_compliance_2_x", "bending_compliance_2_y",
        "dilatation_compliance_1", "dilatation_compliance_2",
        "bending_relaxation_time_1", "bending_relaxation_time_2",
    )  # fmt: skip
    assert "tip_mass" not in names_of(load_robot("tendon_arm"))
    assert names_of(load_robot("tendon_arm"), "lag") == ()


def test_values_of_an_arm_go_where_they_belong():
    names = ("length_2", "payload_mass", "bending_compliance_2", "bending_relaxation_time_1")
    found = with_parameters(ARM, names, (0.09, 0.06, 111.0, 0.004))
    first, second = found.segments
    assert (second.length, second.bending_compliance) == (0.09, 111.0)
    assert first.relaxation_times == (0.005, 0.005, 0.005, 0.004, 0.004, 0.005)
    assert found.payload.mass == 0.06
    assert found.payload.inertia == pytest.approx([6e-6, 6e-6, 9.6e-6])
    assert (first.length, first.connector) == (0.10, ARM.segments[0].connector)
    assert parameters_of(found, names) == pytest.approx((0.09, 0.06, 111.0, 0.004))


def test_both_segments_and_both_axes_are_found_within_their_stated_errors():
    guess = two_compliances(ARM)
    names = names_of(guess, "rest")[2:]  # lengths are measured by a ruler
    truth = parameters_of(guess, names) * (1.1, 0.93, 1.06, 1.05, 0.95, 1.08, 0.97)
    robot = with_parameters(guess, names, truth.tolist())
    pressures = static_configurations(guess, levels=1)
    fit = identify_static(guess, recorded(robot, pressures, noise=2e-4), INTERVALS, names)
    assert fit.not_excited == ()
    off = np.abs(fit.values / truth - 1.0)
    assert (off < 1.5 * fit.intervals).all()  # 3 standard deviations
    assert off.max() < 0.05
    assert fit.robot.segments[0].intervals is None  # the grid of the fit is not the robot's
    assert fit.robot.segment_names == ARM.segment_names


@pytest.mark.slow  # half a minute of simulations
def test_damping_of_each_segment_from_a_motion():
    names = names_of(ARM, "motion")
    truth = with_parameters(ARM, names, (0.0065, 0.004))
    times = np.arange(50)[:, None] / 70
    pressures = 2.5e4 + 2e4 * np.sin(2 * np.pi * (2.0 * times + np.arange(6) / 6))
    pressures[30:] = 0.0
    fit = identify_motion(ARM, moved(truth, pressures, noise=2e-4), INTERVALS)
    off = np.abs(fit.values / (0.0065, 0.004) - 1.0)
    assert fit.names == names
    assert (off < 1.5 * fit.intervals).all()
    assert fit.intervals.max() < 0.2


def test_a_tendon_arm_is_identified_by_its_tensions():
    arm = load_robot("tendon_arm")
    names = ("bending_compliance",)
    truth = with_parameters(arm, names, (1900.0,))
    tensions = static_configurations(arm, levels=1)
    assert tensions.shape == (11, 4)
    assert tensions.max() == pytest.approx(0.6 * arm.tension_limits.maximum)
    fit = identify_static(arm, recorded(truth, tensions, noise=1e-4), INTERVALS, names)
    assert fit.values[0] == pytest.approx(1900.0, rel=1.5 * fit.intervals[0])
    assert fit.intervals[0] < 0.05


def test_intervals_hold_the_truth_about_as_often_as_they_say():
    truth = parameters_of(hidden_robot(ROBOT), STATIC_PARAMETERS)
    inside = []
    for seed in range(6):
        recording = recorded(hidden_robot(ROBOT), FEW, noise=2e-4, seed=seed)
        fit = identify_static(ROBOT, recording, INTERVALS)
        inside += (np.abs(fit.values / truth - 1.0) < fit.intervals).tolist()
    assert np.mean(inside) > 0.75  # of 24; 95 % is promised


def test_damping_from_a_motion():
    truth = with_parameters(ROBOT, (DAMPING,), (0.0065,))
    times = np.arange(60)[:, None] / 70
    pressures = 3e4 + 2e4 * np.sin(2 * np.pi * (2.0 * times + np.arange(3) / 3))
    pressures[45:] = 0.0
    fit = identify_motion(ROBOT, moved(truth, pressures), INTERVALS)
    assert fit.values[0] == pytest.approx(0.0065, rel=1e-4)
    assert fit.robot.relaxation_times[3:5] == pytest.approx((0.0065, 0.0065), rel=1e-4)
    assert fit.robot.relaxation_times[:3] == ROBOT.relaxation_times[:3]


def lag_of(gain, pole):
    """What is identified of commands and the pressures that follow them."""
    truth = with_parameters(ROBOT, LAG_PARAMETERS, (gain, pole))
    commands = np.random.default_rng(0).uniform(0.0, 1e5, (40, 3)).repeat(5, axis=0)
    pressures = truth.pressure_lag.trajectory(np.zeros(3), commands[None], 1 / 70)[0]
    return identify_lag(ROBOT, commands, pressures, 1 / 70)


def test_a_lag_is_found_but_not_called_so_where_it_runs_to_the_farthest_allowed():
    assert lag_of(9.5, 10.1).values == pytest.approx([9.5, 10.1], rel=1e-6)
    fit = lag_of(88.0, 88.0)
    assert fit.values.max() == pytest.approx(4.0 * 11.0, rel=0.02)
    assert fit.not_excited


def test_the_cost_is_least_at_the_truth_and_infinite_without_a_steady_state(monkeypatch):
    truth = hidden_robot(ROBOT)
    cost = static_cost(ROBOT, recorded(truth, FEW[:3]), INTERVALS)
    best = np.log(parameters_of(truth, STATIC_PARAMETERS))
    assert cost(best) == pytest.approx(0.0, abs=1e-12)
    assert cost(best + 0.05) > 1e-3

    def buckles(rod, pressures):
        raise EquilibriumError("no steady state")

    monkeypatch.setattr(CosseratRod, "equilibrium", buckles)
    assert cost(best) == np.inf


def test_a_swarm_finds_a_minimum_and_is_the_same_for_a_seed():
    def bowl(x):
        return float(np.sum((x - [0.3, -0.2]) ** 2)) if x[0] < 0.9 else np.nan

    low, high = np.full(2, -1.0), np.full(2, 1.0)
    found, cost = particle_swarm(bowl, low, high, 20, 60, seed=4)
    assert found == pytest.approx([0.3, -0.2], abs=1e-3)
    assert cost == bowl(found)
    again, _ = particle_swarm(bowl, low, high, 20, 60, seed=4)
    assert np.array_equal(found, again)


@pytest.mark.later
def test_a_short_run_is_within_two_per_cent(tmp_path, monkeypatch):
    monkeypatch.setattr(identification, "SWARM", (2, 1))
    found, directory = rows_of(identification.STUDY.name, tmp_path, seeds=1)
    rows = found.values()
    errors = {r.case: r.mean for r in rows if (r.method, r.quantity) == ("least squares", "error")}
    assert set(errors) == set(NAMES)
    assert max(errors.values()) <= 2.0
    swarm = [r.case for r in rows if (r.method, r.quantity) == ("particle swarm", "error")]
    assert swarm == list(STATIC_PARAMETERS)
    identified = next(r for r in rows if (r.case, r.method) == ("unseen motion", "identified"))
    assert identified.mean <= identified.published["bench"] == 1.8  # the paper's, % of the length
    robot = load_robot(directory / "shared" / "identified.yaml")
    assert CosseratRod(robot, 5).state_size == 72


def test_sensors_of_a_seed_and_of_both_motions_differ():
    truth = hidden_robot(ROBOT)
    cells = [identification.Cell("c", "m", seed, None) for seed in (0, 1)]
    first, second = (identification.statics(truth, cell).outputs[TIP_POSITION] for cell in cells)
    assert not np.array_equal(first, second)
    assert np.abs(first - second).max() < 1e-3
    seeds = {cell.stream(name) for cell in cells for name in ("motion", "unseen motion")}
    assert len(seeds) == 4
