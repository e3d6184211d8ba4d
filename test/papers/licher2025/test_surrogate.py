"""The DD-PINN: ansatz, coordinates, physics residual, files, prediction."""

import copy
import json
import shutil

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from kit.refusals import one_line
from kit.surrogates import SMALL, quick_fits, small_network
from safetensors.torch import load, save

from softcr_models import CosseratRod, load_robot
from softcr_models.errors import UserError
from softcr_models.model import counts_and_warnings
from softcr_models.prediction import RodPrediction
from softcr_models.rod.state import RodState
from softcr_models.surrogate import files
from softcr_models.surrogate.ansatz import basis, basis_rate
from softcr_models.surrogate.architecture import PUBLISHED, Architecture
from softcr_models.surrogate.coordinates import (
    Coordinates,
    modes_of_motion,
    quantity_scale,
    scaled_states,
)
from softcr_models.surrogate.ddpinn import DDPINN
from softcr_models.surrogate.folded import FoldedNetwork
from softcr_models.surrogate.prediction import SurrogatePrediction
from softcr_papers.licher2025.training.initial_network import blank_network
from softcr_papers.licher2025.training.losses import loop_error
from softcr_papers.licher2025.training.rod_residual import RodResidual
from softcr_papers.licher2025.training.sampling import draw_inputs, simulate
from softcr_papers.licher2025.training.signals import Signal
from softcr_papers.licher2025.training.training import _compiled_loop, stage_at, train
from softcr_papers.licher2025.training.training_settings import Stage, published_settings
from softcr_papers.licher2025.training.verification import Verification

PERIOD = 1 / 70


pytestmark = pytest.mark.usefixtures("one_thread")


numbers = st.floats(-3.0, 3.0, allow_nan=False)


def rods(intervals=5):
    return CosseratRod(load_robot("licher2025"), intervals)


def small_model():
    return SurrogatePrediction(load_robot("licher2025"), *small_network()[:2], "cpu")


# --- the ansatz, (34) ---------------------------------------------------------------------------


@given(st.floats(0, 200), numbers, st.floats(0, 300))
def test_ansatz_begins_at_zero_and_never_grows(frequency, phase, damping):
    shape = [torch.tensor(v, dtype=torch.float64) for v in (frequency, phase, damping)]
    times = torch.linspace(0.0, 10.0, 200, dtype=torch.float64)
    assert basis(*shape, times[0]) == 0.0
    assert basis(*shape, times).abs().max() <= 2.0 + 1e-12


@given(st.floats(0, 200), numbers, st.floats(0, 300), st.floats(0, 0.02))
def test_rate_of_the_ansatz_is_its_derivative(frequency, phase, damping, time):
    shape = [torch.tensor(v, dtype=torch.float64) for v in (frequency, phase, damping)]
    at = torch.tensor(time, dtype=torch.float64, requires_grad=True)
    (derivative,) = torch.autograd.grad(basis(*shape, at), at)
    assert float(basis_rate(*shape, at.detach())) == pytest.approx(float(derivative), abs=1e-9)


# --- coordinates ---------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["modes", "states"])
def test_coordinates_there_and_back(kind):
    rng = np.random.default_rng(0)
    mixed = rng.standard_normal((500, 72)) @ rng.standard_normal((72, 72))
    mixed[:, [60, 65]] = 0.0  # states that never move
    made = scaled_states(mixed) if kind == "states" else modes_of_motion(mixed, 0.003)
    there = (mixed - made.mean) @ made.encode.T
    np.testing.assert_allclose(made.mean + there @ made.decode.T, mixed, atol=1e-9)
    assert np.isfinite(made.encode).all()
    if kind == "modes":  # their rounding is not seen
        assert (made.encode[:, [60, 65]] == 0.0).all()
        assert (made.encode[:, 61] != 0.0).any()


def test_weighted_errors_of_modes_are_errors_of_scaled_states():
    rng = np.random.default_rng(1)
    states = rng.standard_normal((400, 72)) * rng.uniform(0.1, 10.0, 72)
    made = modes_of_motion(states, 0.003)
    error = rng.standard_normal(72)
    in_modes = np.linalg.norm((made.encode @ error) * made.weight)
    scaled = np.linalg.norm(error / quantity_scale(states.std(axis=0)))
    assert in_modes == pytest.approx(scaled, rel=1e-9)


# --- the equations in torch, against the kernel's text --------------------------------------------


@pytest.mark.parametrize("intervals", [1, 5, 8])
def test_residual_in_torch_is_the_rods(intervals):
    rod = rods(intervals)
    residual = RodResidual(rod, torch.float64)
    rng = np.random.default_rng(intervals)
    for _ in range(5):
        state = 0.3 * rng.standard_normal(rod.state_size)
        rate = 3.0 * rng.standard_normal(rod.state_size)
        pressures = rng.uniform(0, 1e5, 3)
        parameters = rod.nominal_parameters * rng.uniform(0.7, 1.4, 3)
        rows = (torch.tensor(v)[None] for v in (state, rate, pressures, parameters))
        expected = rod.residual(state, rate, pressures, parameters)
        ours = residual(*rows)[0].numpy()
        np.testing.assert_allclose(ours, expected, atol=1e-10 * np.abs(expected).max())


# --- what it learns from -------------------------------------------------------------------------


def test_unknown_signal_and_parameter_are_named():
    rod, rng = rods(), np.random.default_rng(0)
    signal = Signal.of(rod.robot, 10, PERIOD)
    for weights, ranges, message in (
        ({"sawtooth": 1.0}, {}, "signals: 'sawtooth' unknown; known are smooth"),
        ({"smooth": 0.0}, {}, r"signals: weights .* must have a positive sum"),
        ({"smooth": 1.0}, {"colour": None}, "parameters: 'colour' unknown; known are bending"),
    ):
        with one_line(message):
            draw_inputs(rod, signal, weights, ranges, 2, rng)


def test_samples_are_the_rods_motion():
    """Against `CosseratRod.simulate` in one go, held pressures, fine steps."""
    rod = CosseratRod(load_robot("licher2025"), 5, max_substep=0.001)
    signal = Signal.of(rod.robot, 20, PERIOD, 6e4)
    random = np.random.default_rng(5)
    levels, parameters = draw_inputs(rod, signal, {"raw_steps": 1.0}, {}, 2, random)
    motions = simulate(rod, levels, parameters, PERIOD)
    prediction = RodPrediction(rod)
    for row in range(2):
        expected = rod.simulate(rod.rest_state(), levels[0, row], PERIOD)
        tips = [
            prediction.tip_poses(states.astype(float), parameters[:1])[:, :, 3]
            for states in (motions.states[row, 1:], expected)
        ]
        assert 1e3 * np.abs(tips[0] - tips[1]).max() < 0.15  # mm, after jumps


def test_motions_that_leave_the_numbers_are_left_out():
    rod = rods()
    signal = Signal.of(rod.robot, 8, PERIOD, 6e4)
    levels, parameters = draw_inputs(rod, signal, {"smooth": 1.0}, {}, 5, np.random.default_rng(0))
    whole = simulate(rod, levels, parameters, PERIOD)
    broken = levels.copy()
    broken[:, [1, 3], 4:] = np.nan
    kept = simulate(rod, broken, parameters, PERIOD)
    for name in ("states", "inner", "parameters"):
        np.testing.assert_array_equal(getattr(kept, name), getattr(whole, name)[[0, 2, 4]])
    np.testing.assert_array_equal(kept.levels, levels[:, [0, 2, 4]])


# --- a small network, trained for a few seconds ---------------------------------------------------


def test_training_learns():
    network, card, _ = small_network()
    blank = blank_network(rods(), SMALL)
    assert blank.spectral_radius() == pytest.approx(1.0)  # nothing fitted yet
    assert network.spectral_radius() < 1.0
    verification = Verification(rods(), network, count=3, ticks=60)
    motions = verification.motions("smooth 70 %")
    ours = verification.inside_step(motions)
    network_without = DDPINN(network.architecture, network.inputs, network.state_size)
    state = network.state_dict() | {"linear": torch.zeros_like(network.linear)}
    state["last.weight"] = torch.zeros_like(network.last.weight)
    state["last.bias"] = torch.zeros_like(network.last.bias)
    network_without.load_state_dict(state)
    still = Verification(rods(), network_without, count=3, ticks=60).inside_step(motions)
    assert all(a < 0.35 * b for a, b in zip(ours, still, strict=True))
    assert card.iterations == SMALL.iterations


def test_advance_is_the_ansatz_at_the_end_of_the_step():
    network, _, _ = small_network()
    coordinates = torch.randn(20, 72)
    told = torch.randn(20, 9).clamp(-1, 1)
    end, _ = network.at(coordinates, told, torch.tensor(network.period))
    assert torch.allclose(network.advance(coordinates, told), end, rtol=1e-4, atol=1e-4)
    marks = network.at_marks(coordinates, told)
    for mark in range(3):
        time = torch.tensor(network.period * (mark + 1) / 3)
        there, _ = network.at(coordinates, told, time)
        assert torch.allclose(there, marks[:, mark], rtol=1e-4, atol=1e-4)


@pytest.mark.skipif(shutil.which("g++") is None, reason="torch.compile needs g++")
def test_the_compiled_self_loop_is_the_loop():
    network = blank_network(rods(), SMALL)
    generator = torch.Generator().manual_seed(0)
    states, told = (torch.randn(4, k, n, generator=generator) for k, n in ((4, 72), (3, 9)))
    results = []
    for function in (loop_error, _compiled_loop()):
        network.zero_grad()
        value = function(network, states[:, 0], states, told, 0.05)
        value.backward()
        results.append((value.detach(), network.last.weight.grad.clone()))
    for ours, theirs in zip(*results, strict=True):
        assert torch.allclose(ours, theirs, rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("kind", [("gated", True), ("gated", False), ("silu", False)])
@pytest.mark.parametrize("layers", [1, 2, 3])
def test_a_folded_network_moves_as_the_network(layers, kind):
    """One more multiplication of every constant, nothing else: float32 apart."""
    architecture = Architecture(neurons=24, layers=layers, activation=kind[0], directions=kind[1])
    network = blank_network(rods(), SMALL.model_copy(update={"architecture": architecture}))
    generator = torch.Generator().manual_seed(layers)
    with torch.no_grad():
        for values in (*network.parameters(), network.linear):
            values.copy_(0.05 * torch.randn(values.shape, generator=generator))
        if architecture.directions:
            values = network.bending
            values.copy_(1e-3 * torch.randn(values.shape, generator=generator))
        network.output_scale.copy_(torch.rand(len(network.output_scale), generator=generator))
    levels = 1e5 * torch.rand(6, 7, 3, generator=generator)
    coordinates = 2.0 * torch.randn(7, 72, generator=generator)
    parameters = torch.tensor([[52.0, 0.07, 0.9]])
    rolled = FoldedNetwork(network).rollout(coordinates, levels[:-1], levels[1:], parameters)
    for tick, theirs in enumerate(rolled):
        told = network.tell(levels[tick], levels[tick + 1], parameters.expand(7, -1))
        coordinates = network.advance(coordinates, told)
        assert torch.allclose(theirs, coordinates, rtol=1e-4, atol=1e-4)


def test_a_network_is_told_where_cross_sections_point():
    """Bent in one plane they are what the rod's own kinematics say, at every node."""
    rod = rods()
    network = blank_network(rod, SMALL)
    identity = Coordinates(np.zeros(72), np.eye(72), np.eye(72), np.ones(72))
    network.set_coordinates(identity, rod)
    state = np.zeros(72)
    RodState(state).wrenches[:, 4] = np.linspace(0.6, 0.1, 6)  # N m about y, as nodes have them
    parameters = rod.nominal_parameters.copy()
    parameters[0] = 55.0  # the compliance
    poses = rod.node_poses(state, parameters)
    none, numbers_of = torch.zeros(1, 3), torch.tensor(parameters[None]).float()
    told = network.tell(none, none, numbers_of)
    directions = network.directions(torch.tensor(state[None]).float(), told).view(3, 5)
    assert torch.allclose(directions[0], torch.zeros(5), atol=1e-6)
    assert np.allclose(directions[1], poses[1:, 0, 2], atol=2e-3)
    assert np.allclose(directions[2], poses[1:, 2, 2], atol=2e-3)
    assert float(directions[2].min()) < 0.0  # bent by more than a right angle


def test_a_network_with_its_own_shapes_cannot_be_folded():
    settings = SMALL.model_copy(update={"architecture": PUBLISHED})
    with pytest.raises(ValueError, match="shared shapes"):
        FoldedNetwork(blank_network(rods(), settings))


@pytest.mark.parametrize("architecture", [Architecture(neurons=8), PUBLISHED])
def test_rates_are_the_derivative_in_time(architecture):
    robot = SMALL.model_copy(update={"architecture": architecture})
    network = blank_network(rods(), robot).double()
    network._told = {k: v.double() for k, v in network._told.items()}
    network.compute_type = torch.float64
    with torch.no_grad():
        network.last.weight.mul_(10.0)
    coordinates = torch.randn(3, 72, dtype=torch.float64)
    told = torch.randn(3, 9, dtype=torch.float64)
    time = torch.tensor([0.001, 0.006, 0.013], dtype=torch.float64)
    before, after = (network.at(coordinates, told, time + d)[0] for d in (-1e-7, 1e-7))
    rates = network.at(coordinates, told, time)[1]
    assert torch.allclose((after - before) / 2e-7, rates, rtol=1e-4, atol=1e-4)


def test_predict_by_name_equals_the_prediction_model():
    model = small_model()
    network, tip_mass = model.network, model.rod.robot.tip_mass
    rng = np.random.default_rng(0)
    states = 0.05 * rng.standard_normal((5, 72))
    begin, end = rng.uniform(0, 5e4, (2, 5, 3))
    parameters = np.tile([52.0, tip_mass, 1.0], (5, 1))
    theirs = model.step(states, begin, end, parameters, network.period)
    told, now, after = (torch.tensor(each, dtype=torch.float32) for each in (states, begin, end))
    ours = network.predict(told, now, 52.0, pressures_end=after)
    np.testing.assert_allclose(ours.numpy(), theirs, rtol=1e-4, atol=1e-4)
    with pytest.raises(UserError, match="parameter 'colour': the network knows bending_compliance"):
        network.predict(torch.zeros(1, 72), torch.zeros(1, 3), 50.0, colour=1.0)


def test_twice_the_period_is_two_steps_with_the_pressure_half_way_between():
    model = small_model()
    begin, end = np.random.default_rng(1).uniform(0, 4e4, (2, 6, 3))
    state = model.equilibrium(np.array([3e4, 1e4, 0.0]), model.nominal_parameters)
    states, one = (np.repeat(each[None], 6, 0) for each in (state, model.nominal_parameters))
    middle = 0.5 * (begin + end)
    half = model.step(states, begin, middle, one, PERIOD)
    twice = model.step(half, middle, end, one, PERIOD)
    long = model.step(states, begin, end, one, 2 * PERIOD)
    rounding = 1e-5 * np.abs(twice).max()  # the network computes in single precision
    np.testing.assert_allclose(long, twice, atol=rounding)


def test_a_network_tells_that_it_is_asked_outside_its_range():
    model = small_model()
    states, levels = np.zeros((2, model.state_size)), np.zeros((2, 3))
    low, high = np.array(model.network.inputs.low), np.array(model.network.inputs.high)
    for numbers in (low, high):
        model.step(states, levels, levels, numbers[None], model.network.period)
    assert counts_and_warnings(model) == ({"outside": 0}, [])
    outside = np.stack((1.1 * high, model.nominal_parameters))
    heavier = model.nominal_parameters * [1.0, 2.0, 1.0]
    model.step(states, levels, levels, outside, model.network.period)
    assert counts_and_warnings(model)[0] == {"outside": 1}
    model.step(states, levels, levels, heavier[None], model.network.period)
    counts, lines = counts_and_warnings(model)
    assert counts == {"outside": 2}
    assert len(lines) == 1
    assert lines[0].startswith(f"tip_mass {heavier[1]:.4g}: ")
    model.step(states, levels, levels, model.nominal_parameters[None], model.network.period)
    assert counts_and_warnings(model) == (counts, [])


def test_what_a_filter_rounds_does_not_move_the_tip():
    """Tip shear and torsion never move; the rod does not feel them, so the network must not."""
    robot = load_robot("licher2025")
    network = SurrogatePrediction.load(robot, device="cpu")
    exact = RodPrediction(network.rod, single_precision=False)
    parameters = network.nominal_parameters[None]
    pressures = np.array([[4e4, 1e4, 0.0]])
    state = network.equilibrium(pressures[0], parameters[0])
    rounded = state.copy()
    never_moving = [60, 61, 65]
    rounded[never_moving] += [1e-5, -1e-5, 2e-8]
    for model, least in ((exact, 1e-7), (network, 1e-6)):
        ends = (
            model.step(x[None], pressures, pressures, parameters, PERIOD) for x in (state, rounded)
        )
        tips = [exact.tip_poses(end, parameters)[0, :, 3] for end in ends]
        assert np.linalg.norm(tips[1] - tips[0]) < least


def test_a_shorter_step_ends_where_the_rod_does():
    """The ansatz is asked inside the step: closer to the rod than standing still is."""
    model, rod = small_model(), rods()
    exact = RodPrediction(rod, 4, single_precision=False)
    parameters = rod.nominal_parameters[None]
    state = rod.equilibrium(np.array([2e4, 0.0, 0.0]))
    for _ in range(6):
        state = exact.step(state[None], *2 * (np.array([[4e4, 0, 0]]),), parameters, PERIOD)[0]
    pressures = np.array([[4e4, 0.0, 0.0]])
    truth = exact.step(state[None], pressures, pressures, parameters, 0.4 * PERIOD)
    ours = model.step(state[None], pressures, pressures, parameters, 0.4 * PERIOD)
    tips = [exact.tip_poses(x, parameters)[0, :, 3] for x in (truth, ours, state[None])]
    assert np.linalg.norm(tips[1] - tips[0]) < 0.5 * np.linalg.norm(tips[2] - tips[0])


def test_bfloat16_changes_little():
    pressures = np.random.default_rng(2).uniform(0, 4e4, (8, 5, 3))
    model, tips = small_model(), []
    for kind in (torch.bfloat16, torch.float32):
        model.network.compute_type = kind
        rolled = model.rollout_tips(np.zeros(72), pressures, model.nominal_parameters, PERIOD)
        tips.append(rolled[..., 3])
    assert 0.0 < 1e3 * np.abs(tips[0] - tips[1]).max() < 1.0  # mm


# --- files ---------------------------------------------------------------------------------------


def test_a_network_survives_its_files_and_so_does_the_card_of_one_that_diverged(tmp_path):
    network, card, path = small_network()
    again, card_again = files.load(path)
    assert card_again == card
    coordinates, told = torch.randn(4, 72), torch.randn(4, 9)
    assert torch.equal(again.advance(coordinates, told), network.advance(coordinates, told))
    assert again.state_size == 72
    lost = card.model_copy(update={"validation": {"tip smooth mm": float("inf")}})
    files.save(network, lost, tmp_path / "lost")
    assert files.load(tmp_path / "lost")[1] == lost


def test_motions_that_leave_the_numbers_are_infinitely_far_off():
    network, _, _ = small_network()
    runaway = copy.deepcopy(network)
    with torch.no_grad():
        runaway.linear[-72:, :72] += 2.0 * torch.eye(72)
    verification = Verification(rods(), runaway, count=2, ticks=60)
    table, _ = verification.table(verification.motions("smooth 70 %"))
    assert table["tip position"][0] == float("inf")


def test_broken_files_are_refused_in_one_line(tmp_path):
    path = tmp_path / "copied"
    weights, sheet = files.files_of(path)
    for file, kept in zip((weights, sheet), files.files_of(small_network()[2]), strict=True):
        file.write_bytes(kept.read_bytes())
    whole, card = weights.read_bytes(), sheet.read_text()
    tensors, told = load(whole), json.loads(card)
    lost = torch.full_like(tensors["last.bias"], np.nan)
    for content, match in (
        (whole[: len(whole) // 2], "cannot be read as weights"),
        (b"\x80\x05pickle", "cannot be read as weights"),
        (save(tensors | {"last.bias": lost}), "last.bias holds numbers that are not finite"),
        (save({k: v for k, v in tensors.items() if k != "mean"}), "lacks 'mean'"),
        (save(tensors | {"extra": torch.zeros(1)}), "holds 'extra'"),
        (save(tensors | {"mean": torch.zeros(3)}), "mean has shape"),
    ):
        weights.write_bytes(content)
        with one_line(match):
            files.load(path)
    weights.write_bytes(whole)
    for content, match in (
        (card[:100], "not a training card"),
        (json.dumps(told | {"intervals": 0}), "intervals"),
        (json.dumps(told | {"intervals": 10**9}), "its card asks for"),  # 100 GB if allocated
    ):
        sheet.write_text(content)
        with one_line(match):
            files.load(path)
    sheet.write_text(card)
    files.load(path)


# --- training ------------------------------------------------------------------------------------


def test_published_recipe_runs_on_physics_alone(tmp_path):
    few = {"iterations": 20, "trajectories": 16, "ticks": 40, "box_samples": 4000}
    few |= {"physics_points": 64, "threads": 1, "validate_every": 1.0}
    recipe, seen = published_settings().model_copy(update=few), []
    network, card = train(load_robot("licher2025"), recipe, tmp_path / "published", seen.append)
    assert network.architecture == PUBLISHED
    assert card.training["supervised"] == 0.0
    losses = [set(p.losses) for p in seen if p.losses]
    assert losses
    assert all(names == {"physics"} for names in losses)


def test_stages_follow_their_shares():
    stages = (Stage(steps=1, share=1.0), Stage(steps=4, share=3.0))
    assert [stage_at(stages, part).steps for part in (0.0, 0.24, 0.26, 1.0)] == [1, 1, 4, 4]


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device")
def test_a_gpu_trains_and_predicts_as_the_processor(tmp_path):
    """It draws other batches: its networks are as good, and not the same."""
    there, robot = SMALL.model_copy(update={"device": "cuda"}), load_robot("licher2025")
    with quick_fits():
        network, card = train(robot, there, tmp_path / "cuda")
    for name, value in small_network()[1].validation.items():
        assert card.validation[name] < 1.5 * value
    pressures = np.random.default_rng(0).uniform(0, 4e4, (8, 5, 3))
    tips = [
        SurrogatePrediction(robot, copy.deepcopy(network), card, device).rollout_tips(
            np.zeros(72), pressures, rods().nominal_parameters, PERIOD
        )[..., 3]
        for device in ("cpu", "cuda")
    ]
    assert 1e3 * np.abs(tips[0] - tips[1]).max() < 0.1  # mm
