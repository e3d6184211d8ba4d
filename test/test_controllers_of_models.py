"""Predictive controllers of models that are no rods: other inputs, other limits, no lag."""

from dataclasses import replace

import numpy as np
import pytest
from kit.models import LAG, PERIOD, LinearModel, TendonModel, ask, circle, context
from kit.steering import standing, steered

from softcr_control import GaussNewtonMpc, Nempc
from softcr_control.costs import CostSettings
from softcr_control.costs.rollout import tips_of
from softcr_control.observation import Observation
from softcr_control.predictive.horizon import Horizon, HorizonSettings
from softcr_control.reference.references import Reference, setpoint
from softcr_control.reference.settings import ReferenceSettings
from softcr_models import load_robot
from softcr_models.chain.pressure import PressureLag
from softcr_models.errors import UserError
from softcr_models.model import nominal_parameters
from softcr_papers.dalenberg2024.arm import load_arm
from softcr_papers.dalenberg2024.arm_model import ArmModel
from softcr_papers.mehl2024.section_model import ConstantCurvatureSection

KINDS = pytest.mark.parametrize("kind", [Nempc, GaussNewtonMpc])


@KINDS
def test_states_are_followed_by_the_names_of_their_groups(kind):
    model, goal = TendonModel(), np.array([0.015, 0.06])
    costs = CostSettings(state={"bend": 1e3}, tip_position=0.0, input_rate=1e-3)
    numbers = {"population": 200} if kind is Nempc else {}
    controller = kind(context(model), kind.Settings(costs=costs, **numbers))
    felt = np.array([0.0, 0.02])
    begin = model.equilibrium(felt, None)
    states, _ = steered(controller, model, standing(np.zeros(3), goal), 70, begin, felt)
    assert states[-1] == pytest.approx(goal, abs=2e-4)
    with pytest.raises(UserError, match=r"costs\.state\.velocity: the model has none of that name"):
        kind(context(model), kind.Settings(costs=CostSettings(state={"velocity": 1.0})))


@KINDS
def test_sensors_of_inputs_have_the_names_of_their_quantity(kind):
    model = TendonModel()
    controller = kind(context(model), kind.Settings())
    reference = Reference(0.0, PERIOD, None, np.zeros((controller.rows, 3)))
    read = np.array([0.01, 0.05])
    told = {"tendon_length_gain_2": 1.1, "tendon_length_offset_1": 0.001, "stiffness": 90.0}
    ask(controller, np.zeros(2), reference, read, told)
    with pytest.raises(UserError, match="pressure_offset_1: unknown; allowed are stiffness, tend"):
        ask(controller, np.zeros(2), reference, read, {"pressure_offset_1": 1.0})


def seen(stamp, reading, delay=1):
    reference = circle(stamp, 20)
    return Observation(stamp, np.zeros(5), {}, reference, reading, LinearModel(), delay)


def test_a_problem_is_built_without_learning_anything():
    horizon = Horizon(context(LinearModel()), HorizonSettings(tip_offset_gain=0.1))
    for k in range(3):
        now = seen(k * PERIOD, np.full(3, 1e4 * k))
        horizon.observe(now)
        first, second = horizon.problem(now), horizon.problem(now)
        for name in ("approach", "free_inputs", "input_response", "previous_command"):
            assert np.array_equal(getattr(first, name), getattr(second, name))
        horizon.remember(np.full((2, 3), 3e4))


@pytest.mark.parametrize("missed", [0.0, 0.1, 0.3])
@pytest.mark.parametrize("delay", [1, 2])
def test_missed_ticks_do_not_disturb_the_lag(missed, delay):
    """In a tick without an answer what was planned for it is played, then the plan's last one."""
    truth = PressureLag(13.0, 13.0)
    horizon = Horizon(context(LinearModel()), HorizonSettings())
    draw, reading = np.random.default_rng(0), np.full(3, 3e4)
    coming = np.full((delay, 3), 3e4)  # from the present tick on
    for k in range(300):
        if k == 0 or draw.random() >= missed:
            horizon.observe(seen(k * PERIOD, reading, delay))
            phase = 1.5 * k * PERIOD + np.arange(3) / 3 + 0.2 * np.arange(2)[:, None]
            sent = 3e4 + 2e4 * np.sin(2 * np.pi * phase)
            horizon.remember(sent)
            coming = np.vstack((coming[:delay], sent))
        coming = np.vstack((coming, coming[-1:]))
        reading = truth.step(reading, coming[0], PERIOD)
        coming = coming[1:]
    assert horizon.lag.pole == pytest.approx(13.0, rel=1e-3)


def test_without_a_lag_a_command_is_felt_at_the_end_of_its_tick():
    model = LinearModel()
    model.inputs = replace(model.inputs, lag=None)
    horizon = Horizon(context(model, ramped=True), HorizonSettings(horizon=4))
    horizon.observe(seen(0.0, np.full(3, 1e4), 2))
    problem = horizon.problem(seen(0.0, np.full(3, 1e4), 2))
    assert np.array_equal(problem.approach, np.full((3, 3), 1e4))
    commands = np.arange(12.0).reshape(1, 4, 3)
    assert np.array_equal(problem.rollout(commands).inputs[0, 1:], commands[0])
    assert np.array_equal(problem.rollout(commands).inputs[0, 0], np.full(3, 1e4))
    assert horizon.lag is None
    assert LAG.pole == LinearModel.inputs.lag.pole


def test_references_are_made_of_any_inputs(tmp_path):
    model = TendonModel()
    low, span = model.inputs.low, model.inputs.range
    for kind in ("circle", "trajectory"):
        chosen = ReferenceSettings(kind=kind, duration=2.0)
        samples = chosen.input_samples(PERIOD, model.inputs)
        assert np.array_equal(samples[0], [0.0, 0.02])  # as close to nothing as is allowed
        moving = (samples[70:] - low) / span
        assert 0.14 < moving.min() < moving.max() < 0.56
        assert chosen.source(model, PERIOD).states.shape == (141, 2)
    with pytest.raises(UserError, match=r"inputs \[0.01\] m of the setpoint: must be 2"):
        ReferenceSettings(kind="setpoint", inputs=(0.01,)).source(model, PERIOD)
    evenly = ReferenceSettings(kind="setpoint").source(model, PERIOD)
    assert (evenly.states[0] - low) / span == pytest.approx([0.45, 0.15])
    held = ReferenceSettings(kind="setpoint", inputs=(0.01, 0.1)).source(model, PERIOD)
    assert held.states[0] == pytest.approx([0.01, 0.1])
    path = tmp_path / "tendons.csv"
    path.write_text("time,tendon_length_1,tendon_length_2\n0,0.0,0.03\n1,0.01,0.05\n")
    source = ReferenceSettings(kind="file", file=str(path)).source(model, 0.1)
    assert source.states[0] == pytest.approx([0.0, 0.03])


@KINDS
@pytest.mark.parametrize("body", ["section", "arm"])
def test_the_models_of_constant_curvature_reach_a_setpoint(body, kind):
    """An arm has more tendons than its tip has coordinates: what the tip leaves open is damped."""
    numbers = {"population": 200} if kind is Nempc else {}
    if body == "section":
        model = ConstantCurvatureSection.of_robot(load_robot("licher2025"))
        held = np.array([45e3, 25e3, 15e3])
    else:
        model = ArmModel.of_robot(load_arm("dalenberg_robot1"))
        held = 0.03 * np.sin(np.arange(model.inputs.size)) * model.inputs.range
        numbers = numbers or {"damping": 1e-3}
    nominal = nominal_parameters(model.parameters)
    costs = CostSettings(tip_position=1e4, input_rate=0.01 if body == "section" else 1.0)
    controller = kind(context(model), kind.Settings(costs=costs, **numbers))
    felt, source = np.zeros(model.inputs.size), setpoint(model, held, PERIOD)
    begin = model.equilibrium(felt, nominal)
    states, answers = steered(controller, model, source.window, 50, begin, felt)
    tips = tips_of(model, states[:-1], np.tile(nominal, (50, 1)))[:, :, 3]
    errors = np.linalg.norm(tips - source.tip_positions[0], axis=1)
    assert not any(each.fallback for each in answers)
    assert errors[0] > 5e-3
    assert errors[-1] < 0.02 * errors[0]
