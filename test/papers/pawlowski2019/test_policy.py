"""Learned policies: files, the network, the controller that asks one, and a run with it."""

import json
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
import torch
from kit.loops import replayed
from kit.refusals import one_line

from softcr_control.observation import ControlContext, Observation
from softcr_control.reference.references import Reference
from softcr_models import UserError, load_robot
from softcr_models.model import nominal_parameters
from softcr_models.models import make_model
from softcr_models.plugins import absolute_place
from softcr_papers.pawlowski2019.policy.controller import PolicyController, PolicySettings
from softcr_papers.pawlowski2019.policy.network import PolicyNetwork
from softcr_papers.pawlowski2019.policy.observation import observation_of
from softcr_papers.pawlowski2019.policy.policy_file import (
    Policy,
    files_of,
    load_policy,
    save_policy,
)
from softcr_runtime.blocks.command_packets import CommandPacket
from softcr_runtime.blocks.virtual_run import Log, run_system
from softcr_runtime.settings import registry
from softcr_tools.running.run_options import SimulationOptions
from softcr_tools.running.systems import simulation_system

ROBOT = load_robot("tendon_arm")
MODEL = make_model("rod", ROBOT, {"intervals": 5})
PARAMETERS = nominal_parameters(MODEL.parameters)
TICK = 1.0 / 70.0


def network(*sizes, seed=0, activation="relu"):
    random = np.random.default_rng(seed)
    layers = [
        (random.normal(size=(b, a)) / np.sqrt(a), 0.1 * random.normal(size=b))
        for a, b in pairwise(sizes)
    ]
    return PolicyNetwork.of_layers(layers, activation)


def policy(seed=0, **told):
    of = {name: told.get(name, False) for name in ("of_goal_velocity", "of_inputs")}
    observation = observation_of(MODEL, **of)
    layers = network(observation.size, 16, 4, seed=seed)
    return Policy.of(layers, observation.layout, 0.05, "reach", {"seed": seed}, **told)


@pytest.fixture
def saved(tmp_path):
    save_policy(policy(), tmp_path / "tiny")
    return tmp_path / "tiny"


# --- network and files --------------------------------------------------------------------------


@pytest.mark.parametrize("activation", ["relu", "tanh"])
def test_the_network_computes_what_torch_does_and_its_slopes_are_torchs(activation):
    ours = network(7, 12, 9, 3, activation=activation)
    layer = torch.nn.ReLU if activation == "relu" else torch.nn.Tanh
    parts = []
    for weight, bias in zip(ours.weights, ours.biases, strict=True):
        linear = torch.nn.Linear(*weight.shape[::-1])
        linear.load_state_dict({"weight": torch.tensor(weight), "bias": torch.tensor(bias)})
        parts += [linear, layer()]
    theirs = torch.nn.Sequential(*parts[:-1], torch.nn.Tanh())
    rows = torch.randn(20, 7, generator=torch.Generator().manual_seed(1))
    actions, slopes = ours.with_slopes(rows.numpy())
    np.testing.assert_allclose(actions, theirs(rows).detach(), atol=1e-6)
    np.testing.assert_allclose(ours(rows.numpy()), actions, atol=1e-6)
    for row, slope in zip(rows, slopes, strict=True):
        exact = torch.autograd.functional.jacobian(theirs, row)
        np.testing.assert_allclose(slope, exact, atol=1e-6)


def test_a_policy_that_is_read_again_answers_the_same_to_the_bit(saved):
    again, first = load_policy(saved), policy()
    seen = np.random.default_rng(3).normal(size=(6, first.network.sizes[0]))
    assert np.array_equal(again.inputs(seen), first.inputs(seen))
    assert again.card == first.card
    assert again.layout == first.layout
    assert load_policy(f"{saved}.safetensors").card == load_policy(f"{saved}.json").card


def test_inputs_are_stretched_to_the_limits():
    low, high = np.array(MODEL.inputs.low), np.array(MODEL.inputs.high)
    size = policy().network.sizes[0]
    for bias, wanted in ((50.0, high), (-50.0, low), (0.0, 0.5 * (low + high))):
        layers = PolicyNetwork.of_layers([(np.zeros((4, size)), np.full(4, bias))])
        one = Policy.of(layers, policy().layout, 0.05, "reach", {})
        np.testing.assert_allclose(one.inputs(np.zeros((1, size)))[0], wanted)


def change_card(saved, **changes):
    sheet = files_of(saved)[1]
    content = json.loads(sheet.read_text())
    content["layout"] |= changes.pop("layout", {})
    sheet.write_text(json.dumps(content | changes))


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (lambda saved: files_of(saved)[0].write_text("no weights"), "cannot be read as weights"),
        (lambda saved: files_of(saved)[1].write_text("{"), "not a policy"),
        (lambda saved: change_card(saved, colour="blue"), "colour: unknown field"),
        (lambda saved: change_card(saved, layout={"colour": "blue"}),
         "layout of an observation: .*colour.*: not a policy"),
        (lambda saved: change_card(saved, sizes=[3, 16, 4]),
         r"sizes \[3, 16, 4\]: must begin with 27 and end with 4"),
        (lambda saved: change_card(saved, sizes=[policy().network.sizes[0], 17, 4]),
         r"layers\.0\.bias has shape \(16,\), must be \(17,\), as its card"),
    ],
)  # fmt: skip
def test_files_that_cannot_be_used_are_one_line(saved, damage, message):
    damage(saved)
    with one_line(message) as error:
        load_policy(saved)
    assert str(saved) in str(error.value)


# --- the controller -----------------------------------------------------------------------------


def context(model=MODEL, robot=ROBOT):
    return ControlContext(robot, model, TICK)


def seen(tick, state, goal, delay=1, velocity=(0.0, 0.0, 0.0)):
    tips = np.array(goal) + TICK * np.arange(8)[:, None] * np.array(velocity)
    stamp = tick * TICK
    reference = Reference(stamp, TICK, None, tips)
    return Observation(stamp, state, {}, reference, np.zeros(4), MODEL, delay)


def test_a_policy_of_another_robot_or_layout_is_refused(saved):
    settings = PolicySettings(policy=str(saved))
    other, soft = load_robot("till_tendon"), load_robot("licher2025")
    for model, robot, message in (
        (make_model("rod", other, {}), other, "trained with robot tendon_arm, must be till_tendon"),
        (make_model("rod", ROBOT.replace(length=0.2), {}), ROBOT, "was trained with lengths"),
        (make_model("constant_curvature", soft), soft, "is for rods"),
    ):
        with one_line(message):
            PolicyController(context(model, robot), settings)
    with pytest.raises(UserError, match="policy:PATH"):
        PolicyController(context(), PolicySettings())


def test_it_decides_at_its_own_period_and_once_after_a_gap(saved):
    controller = PolicyController(context(), PolicySettings(policy=str(saved)))
    random = np.random.default_rng(0)
    decided = []
    for tick in range(70):
        state = MODEL.state.scale * 0.1 * random.normal(size=MODEL.state.size)
        controller.command(seen(tick, state, (0.01, 0.0, 0.09)))
        decided.append(controller.describe()["decisions"])
    assert decided[-1] == 20  # every 50 ms of a second
    ticks = np.flatnonzero(np.diff([0, *decided])) * TICK
    assert np.abs(ticks - 0.05 * np.arange(20)).max() <= 0.5 * TICK + 1e-9
    controller.reset()
    assert controller.describe()["decisions"] == 0
    for tick in (0, 100, 101, 102, 103):  # a gap in time is no burst of decisions
        controller.command(seen(tick, state, (0.01, 0.0, 0.09)))
    assert controller.describe()["decisions"] == 2


def test_it_sees_the_state_in_which_its_answer_acts(saved):
    one = policy(of_goal_velocity=True, of_inputs=True)
    save_policy(one, saved)
    controller = PolicyController(context(), PolicySettings(policy=str(saved)))
    sent, goal, velocity = np.array([0.3, 0.1, 0.0, 0.2]), (0.02, -0.01, 0.09), (0.1, 0.0, -0.05)
    controller.take_over([CommandPacket.single(-1, sent)])
    state = MODEL.equilibrium(np.zeros(4), PARAMETERS)
    command = controller.command(seen(0, state, goal, 2, velocity))
    ahead = state[None]
    for _ in range(2):
        ahead = MODEL.step(ahead, sent[None], sent[None], PARAMETERS[None], TICK)
    observe = observation_of(MODEL, of_goal_velocity=True, of_inputs=True)
    there = np.array(goal) + 2 * TICK * np.array(velocity)
    moving = {"goal_velocities": np.array([velocity]), "inputs": sent[None]}
    wish = one.inputs(observe(ahead, there[None], **moving))[0]
    most = MODEL.inputs.rate * TICK
    np.testing.assert_allclose(command, np.clip(wish, sent - most, sent + most), atol=1e-6)
    controller.reset()
    with pytest.raises(UserError, match="tells 8 rows of tips"):
        controller.command(seen(1, state, (np.nan, 0.0, 0.1)))


def test_inputs_that_lag_are_followed_until_its_answer_acts(tmp_path):
    robot = load_robot("licher2025")
    model = make_model("rod", robot, {"intervals": 3})
    observe = observation_of(model, of_goal_velocity=False, of_inputs=True)
    layers = network(observe.size, 8, 3)
    save_policy(Policy.of(layers, observe.layout, 0.05, "reach", {}, of_inputs=True),
                tmp_path / "one")  # fmt: skip
    settings = PolicySettings(policy=str(tmp_path / "one"))
    controller = PolicyController(context(model, robot), settings)
    sent, read = np.array([6e4, 1e4, 0.0]), np.array([2e4, 3e4, 1e4])
    controller.take_over([CommandPacket.single(-1, sent)])
    row = nominal_parameters(model.parameters)
    state = model.equilibrium(read, row)
    goal = np.tile([0.02, 0.0, 0.13], (8, 1))
    told, reference = {"pressure_offset_1": 500.0}, Reference(0.0, TICK, None, goal)
    command = controller.command(Observation(0.0, state, told, reference, read, model, 2))
    # G_p(s) = 11 / (s + 10.94), Licher et al. (32), by its step response
    final = 11.0 / 10.94 * sent
    levels = [final + (read - final) * np.exp(-10.94 * k * TICK) + (500.0, 0, 0) for k in range(3)]
    ahead = state[None]
    for begin, end in pairwise(levels):
        ahead = model.step(ahead, begin[None], end[None], row[None], TICK)
    wish = load_policy(tmp_path / "one").inputs(observe(ahead, goal[:1], inputs=levels[-1][None]))
    most = model.inputs.rate * TICK
    np.testing.assert_allclose(command, np.clip(wish[0], sent - most, sent + most), rtol=1e-6)


# --- names, options and a run -------------------------------------------------------------------


def test_a_policy_is_named_with_its_controller(saved, monkeypatch):
    found = registry.resolve("controller", f"policy:{saved}")
    assert issubclass(found, PolicyController)
    assert found.Settings().policy == str(saved)
    assert registry.resolve("controller", f"policy:{saved}") is found
    assert registry.resolve("controller", "policy") is PolicyController
    assert registry.entry("controller", f"policy:{saved}").node == "policy"
    assert "policy:PATH" in registry.choices("controller")
    with pytest.raises(UserError, match=r"nempc.*must be package\.module:Class|no module nempc"):
        registry.resolve("controller", "nempc:Class")
    monkeypatch.chdir(saved.parent)
    assert absolute_place("policy:./tiny") == f"policy:{saved}"
    assert absolute_place("policy:tiny.safetensors") == f"policy:{saved}.safetensors"
    assert registry.resolve("controller", "policy:tiny").Settings().policy == str(saved)


def options_of(**given):
    return SimulationOptions.of_options({"robot": "tendon_arm", "mode": "lockstep", **given})


def test_the_file_of_a_policy_may_be_an_option(saved):
    system = simulation_system(options_of(controller=f"policy:{saved}"), "none")
    assert system.part("policy").parameters["controller"] == f"policy:{saved}"
    same = options_of(controller="policy", **{"controller.policy": str(saved)})
    assert simulation_system(same, "none").part("policy").parameters["policy"] == str(saved)


def test_a_policy_moves_the_simulated_arm_and_the_run_comes_back_to_the_bit(saved, tmp_path):
    options = options_of(
        controller=f"policy:{saved}", reference="tip_circle", duration=1.0, **{"plant.intervals": 5}
    )
    system = simulation_system(options, "none")
    parts = tuple(part for part in system.parts if part.name != "recorder")
    names = tuple(name for name in system.activation if name != "recorder")
    log = Log("pressure/sent", "simulation/truth/tip/pose")
    run_system(replace(system, parts=parts, activation=names), log, bag=tmp_path / "bag")
    commands = np.array(log.values("pressure/sent"))
    assert len(commands) >= 68
    held = (np.diff(commands, axis=0) == 0.0).all(axis=1).mean()
    assert 0.02 < np.ptp(commands, axis=0).max() <= 0.5
    assert np.abs(np.diff(commands, axis=0)).max() <= 10.0 * TICK + 1e-9  # the limiter's rate
    assert held > 0.3  # between its decisions
    told = replayed(tmp_path / "bag", "--controller")
    for counts in (told["estimates"], told["commands"]):
        assert 60 <= counts["identical"] == counts["recorded"] == counts["replayed"]
