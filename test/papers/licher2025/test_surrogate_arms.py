"""Surrogates of arms: several segments, connectors, a payload, tendons."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from kit.surrogates import SMALL, quick_fits

from softcr_models import CosseratRod, load_robot
from softcr_models.errors import UserError
from softcr_models.prediction import RodPrediction
from softcr_models.rod.state import RodState
from softcr_models.surrogate.architecture import Architecture
from softcr_models.surrogate.card import Card, differing_field, relaxation_times_of, rod_fields
from softcr_models.surrogate.coordinates import quantity_scale
from softcr_models.surrogate.ddpinn import inputs_of
from softcr_models.surrogate.prediction import SurrogatePrediction
from softcr_models.surrogate.tip_poses import TipPoses
from softcr_papers.licher2025.training.initial_network import blank_network
from softcr_papers.licher2025.training.sampling import draw_inputs, simulate
from softcr_papers.licher2025.training.signals import FAMILIES, Signal
from softcr_papers.licher2025.training.training import fitting, train
from softcr_papers.licher2025.training.training_settings import Stage, published_settings
from softcr_papers.licher2025.training.verification import QUANTITIES, Verification

ARM, TENDONS = load_robot("two_segments"), load_robot("tendon_arm")
PERIOD = 1 / 70
SHORT = SMALL.model_copy(
    update={
        "architecture": Architecture(neurons=32), "intervals": 2, "trajectories": 64,
        "ticks": 40, "noisy_samples": 2000, "iterations": 120,
        "stages": (Stage(steps=1, share=0.7), Stage(steps=3, share=0.3)),
    }
)  # fmt: skip


pytestmark = pytest.mark.usefixtures("one_thread")


def changed(robot, number, **fields):
    parts = [each.model_dump() for each in robot.segments]
    parts[number] |= fields
    return robot.replace(segments=parts)


def card_of(robot, intervals=2):
    rod = CosseratRod(robot, intervals)
    ones = rod.nominal_parameters
    return Card(
        robot=robot.name, rod=rod_fields(robot), relaxation_times=relaxation_times_of(robot),
        intervals=intervals, segments=rod.segments, architecture=SHORT.architecture,
        inputs=inputs_of(rod, 0.8 * ones, 1.2 * ones, PERIOD), training={}, hardware={},
        seconds={}, iterations=0, validation={},
    )  # fmt: skip


@pytest.mark.parametrize("name", ["two_segments", "three_segments", "tendon_arm"])
def test_tips_of_tensors_are_the_rods(name):
    robot = load_robot(name)
    if robot.segments[0].connector is not None:
        turned = {**robot.segments[0].connector.model_dump(), "rotation": [0.3, -0.4, 0.9]}
        robot = changed(robot, 0, connector=turned)
    rod = CosseratRod(robot, 2)
    size = 2.0 / robot.bending_compliance  # within the series of both: less than 1 rad a step
    states = size * np.random.default_rng(0).standard_normal((5, rod.state_size))
    poses = TipPoses(rod, torch.zeros(rod.state_size).double(), torch.eye(rod.state_size).double())
    bending = float(rod.nominal_parameters[0])
    found = poses(torch.tensor(states), torch.tensor(bending, dtype=torch.float64))
    expected = np.stack([rod.tip_pose(state)[:3] for state in states])
    np.testing.assert_allclose(found.numpy(), expected, atol=1e-9)


@pytest.mark.parametrize("robot", [load_robot("licher2025"), ARM, TENDONS], ids=lambda r: r.name)
@pytest.mark.parametrize("name", sorted(FAMILIES))
@settings(max_examples=5, deadline=None)
@given(seed=st.integers(0, 10_000))
def test_signals_stay_within_the_limits_of_each_input_and_repeat(robot, name, seed):
    signal = Signal.of(robot, 60, PERIOD)
    levels, again = (FAMILIES[name](signal, 3, np.random.default_rng(seed)) for _ in range(2))
    np.testing.assert_array_equal(levels, again)
    assert levels.shape == (2, 3, 60, len(robot.actuators))
    assert ((signal.low <= levels) & (levels <= signal.high * (1 + 1e-12))).all()
    known = FAMILIES[name](signal, 3, np.random.default_rng(1))
    assert known.max() > 0.3 * signal.high.max()


def test_inputs_without_a_lag_reach_a_command_within_a_tick():
    signal = Signal.of(TENDONS, 60, PERIOD)
    assert signal.lag is None
    begin, end = FAMILIES["lagged_steps"](signal, 2, np.random.default_rng(1))
    np.testing.assert_array_equal(begin[:, 1:], end[:, :-1])  # no jumps at the ticks
    moved = np.abs(end - begin).max(axis=2)
    assert (moved > 0.0).any()
    assert (moved == 0.0).sum() > (moved > 0.0).sum()  # and at once where they go


def test_what_a_network_is_told_is_each_wrench_that_the_inputs_can_make():
    """Dilatation, bending about x and y of each segment: six of the arm's chambers, three of four
    tendons; the inputs themselves where the wrench changes along the rod."""
    for robot, count in ((ARM, 6), (TENDONS, 3)):
        rod = CosseratRod(robot, 2)
        told = inputs_of(rod, rod.nominal_parameters, rod.nominal_parameters, PERIOD)
        assert np.shape(told.actuation) == (count, len(robot.actuators))
        assert np.linalg.matrix_rank(told.actuation) == count
    winding = {"routing": {"kind": "helical", "pitch": 0.3}}
    helical = [each.model_dump() | winding for each in TENDONS.actuators]
    rod = CosseratRod(TENDONS.replace(actuators=helical), 2)
    told = inputs_of(rod, rod.nominal_parameters, rod.nominal_parameters, PERIOD)
    assert np.array_equal(told.actuation, np.eye(4))


def test_a_tip_mass_that_there_is_not_is_told_as_nothing_and_x_and_y_have_equal_scales():
    rod = CosseratRod(ARM, 2)
    network = blank_network(rod, SHORT)
    known = network.tell_parameters(torch.tensor(rod.nominal_parameters[None], dtype=torch.float32))
    assert torch.isfinite(known).all()
    assert known[0, rod.parameter_names.index("tip_mass")] == 0.0
    deviation = np.random.default_rng(0).uniform(0.5, 2.0, rod.state_size)
    scale = RodState(quantity_scale(deviation, 2), 2)
    np.testing.assert_allclose(scale.wrenches[:, 0], scale.wrenches[:, 1])
    np.testing.assert_allclose(scale.velocities[:, 3], scale.velocities[:, 4])


# --- what a network is bound to -------------------------------------------------------------------


def test_a_card_binds_segments_and_tendons_but_not_what_the_network_is_told():
    named = changed(load_robot("licher2025"), 0, name="body")  # bound as one without a name
    closer = [each.model_dump() | {"lever_arm": 0.003} for each in TENDONS.actuators]
    for bound, robot, field in (
        (ARM, ARM, None),
        (ARM, ARM.scaled(bending=1.1, damping=0.9), None),
        (ARM, changed(ARM, 1, bending_compliance=100.0), "segments"),
        (ARM, changed(ARM, 1, length=0.09), "segments"),
        (ARM, changed(ARM, 0, connector=None), "segments"),
        (ARM, changed(ARM, 1, relaxation_times=[0.004] * 6), "relaxation_times"),
        (ARM, ARM.replace(tip_mass=0.01), "tip_mass"),
        (ARM, ARM.replace(payload=None), "payload"),
        (TENDONS, TENDONS, None),
        (TENDONS, TENDONS.replace(actuators=closer), "actuators"),
        (TENDONS, TENDONS.replace(tendon_model="exact"), "tendon_model"),
        (named, named.scaled(bending=0.9), None),
        (named, changed(named, 0, length=0.2), "segments"),
    ):
        card = Card.model_validate_json(card_of(bound).model_dump_json())
        assert differing_field(card, robot) == field


# --- training -------------------------------------------------------------------------------------


def test_the_physics_loss_is_left_out_where_it_knows_no_such_rod():
    assert fitting(SHORT, CosseratRod(ARM, 2)).physics == 0.0
    assert fitting(SHORT, CosseratRod(TENDONS, 2)) == SHORT
    with pytest.raises(UserError, match="two_segments: the physics loss is for one segment"):
        fitting(published_settings(), CosseratRod(ARM, 2))


@pytest.mark.parametrize("robot", [ARM, TENDONS], ids=["two_segments", "tendon_arm"])
def test_a_short_training_learns_an_arm(robot, tmp_path):
    with quick_fits():
        network, card = train(robot, SHORT, tmp_path / "network")
    assert network.spectral_radius() < 1.0
    assert card.segments == len(robot.segments)
    model = SurrogatePrediction.load(robot, tmp_path / "network", "cpu")
    exact = RodPrediction(model.rod, single_precision=False)
    levels, parameters = draw_inputs(
        model.rod, Signal.of(robot, 30, PERIOD), {"smooth": 1.0}, {}, 3, np.random.default_rng(8)
    )
    motions = simulate(model.rod, levels, parameters, PERIOD)
    states, numbers = motions.states[:, 12].astype(float), parameters
    begin, end = levels[:, :, 12]
    ours = model.tip_poses(model.step(states, begin, end, numbers, PERIOD), numbers)[:, :, 3]
    true = exact.tip_poses(exact.step(states, begin, end, numbers, PERIOD), numbers)[:, :, 3]
    before = exact.tip_poses(states, numbers)[:, :, 3]
    moved, off = (np.linalg.norm(true - each, axis=1).mean() for each in (before, ours))
    assert off < 0.5 * moved
    verification = Verification(model.rod, network, count=2, ticks=20)
    table, _ = verification.table(verification.motions("smooth 100 %"))
    assert set(table) == set(QUANTITIES)
    assert np.isfinite([mean for mean, _ in table.values()]).all()
    with pytest.raises(UserError, match="train again with `softcr train --robot"):
        SurrogatePrediction(changed(robot, 0, density=900.0), network, card)
