"""Each cost term against its formula written out in loops."""

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from softcr_control.costs import (
    CostSettings,
    InputRate,
    Rollout,
    StateError,
    TipOrientation,
    TipPosition,
)
from softcr_models.rod.state import RodState

B, N, NX, M = 7, 4, 24, 3


class TurningModel:
    """Tip from the state: position is the first three states, orientation the next three scaled."""

    state_size, input_size = NX, M
    parameter_names = ("gain",)
    nominal_parameters = np.array([1.0])
    state_scale = np.linspace(0.5, 2.0, NX)

    def __init__(self):
        self.calls = 0
        self.states = np.random.default_rng(1).standard_normal((B, N, NX))

    def rollout(self, state, pressures, parameters, dt):
        return self.states

    def rollout_tips(self, state, pressures, parameters, dt):
        rows = self.states.reshape(-1, NX)
        return self.tip_poses(rows, parameters[None]).reshape(B, N, 3, 4)

    def tip_poses(self, states, parameters):
        self.calls += 1
        poses = np.empty((len(states), 3, 4))
        poses[:, :, :3] = Rotation.from_rotvec(parameters[:, :1] * states[:, 3:6]).as_matrix()
        poses[:, :, 3] = parameters[:, :1] * states[:, :3]
        return poses


def make_rollout(model=None, reference_states=None, gain=1.0, dtype=float) -> Rollout:
    draw = np.random.default_rng(0)
    if reference_states is None:
        reference_states = draw.standard_normal((N, NX))
    model = model or TurningModel()
    model.states = model.states.astype(dtype)
    return Rollout(
        initial_state=np.zeros(NX),
        pressures=np.zeros((B, N + 1, M)),
        commands=draw.uniform(0, 1e5, (B, N, M)),
        previous_command=draw.uniform(0, 1e5, M),
        reference_states=reference_states,
        reference_tip_positions=draw.standard_normal((N, 3)),
        prediction=model,
        parameters=np.array([gain]),
        period=0.01,
    )


@pytest.mark.parametrize(("dtype", "tolerance"), [(np.float64, 1e-12), (np.float32, 1e-5)])
def test_state_error_is_the_weighted_sum_of_squares(dtype, tolerance):
    weights, scale = np.arange(NX, dtype=float), np.linspace(0.1, 3.0, NX)
    rollout = make_rollout(dtype=dtype)
    expected = [
        sum(
            weights[i]
            * ((rollout.reference_states[k, i] - rollout.states[b, k, i]) / scale[i]) ** 2
            for k in range(N)
            for i in range(NX)
        )
        for b in range(B)
    ]
    costs = StateError(weights, scale)(rollout)
    assert costs.shape == (B,)
    assert np.allclose(costs, expected, rtol=tolerance)


def test_rows_without_a_known_state_cost_nothing():
    reference = np.random.default_rng(1).standard_normal((N, NX))
    known = make_rollout(reference_states=reference.copy())
    reference[2, 5] = np.nan
    partly = make_rollout(reference_states=reference)
    term = StateError(np.ones(NX), np.ones(NX))
    missing = ((known.states[:, 2] - known.reference_states[2]) ** 2).sum(axis=1)
    assert np.allclose(term(partly), term(known) - missing)
    nothing = make_rollout(reference_states=np.full((N, NX), np.nan))
    assert np.array_equal(term(nothing), np.zeros(B))
    assert np.array_equal(TipOrientation(1.0)(nothing), np.zeros(B))


def test_tip_position_is_the_sum_of_squared_distances():
    rollout = make_rollout(gain=0.5)
    expected = [
        3.0 * sum(
            np.linalg.norm(0.5 * rollout.states[b, k, :3] - rollout.reference_tip_positions[k]) ** 2
            for k in range(N)
        )
        for b in range(B)
    ]  # fmt: skip
    assert np.allclose(TipPosition(3.0)(rollout), expected)


def test_tip_orientation_measures_the_angle_between_tips():
    rollout = make_rollout(gain=0.5)
    expected = []
    for b in range(B):
        total = 0.0
        for k in range(N):
            predicted = Rotation.from_rotvec(0.5 * rollout.states[b, k, 3:6])
            wanted = Rotation.from_rotvec(rollout.reference_states[k, 3:6])  # nominal gain
            total += 2 * (1 - np.cos((predicted.inv() * wanted).magnitude()))
        expected.append(2.0 * total)
    assert np.allclose(TipOrientation(2.0)(rollout), expected)


def test_small_tip_angle_costs_its_square():
    reference = np.zeros((N, NX))
    reference[:, 3] = 1e-3
    rollout = make_rollout(reference_states=reference)
    rollout.states[:] = 0.0
    assert np.allclose(TipOrientation(1.0)(rollout), N * 1e-6)


def test_input_rate_includes_the_step_from_the_previous_command():
    rollout = make_rollout()
    expected = []
    for b in range(B):
        path = [rollout.previous_command, *rollout.commands[b]]
        expected.append(
            5.0 * sum(np.sum((path[k + 1] - path[k]) ** 2) for k in range(N)) / 1e5**2
        )  # fmt: skip
    assert np.allclose(InputRate(5.0, 1e5)(rollout), expected)


def test_constant_command_costs_no_rate():
    rollout = make_rollout()
    rollout.commands[:] = rollout.previous_command
    assert np.array_equal(InputRate(5.0, 1e5)(rollout), np.zeros(B))


def test_a_state_that_is_not_finite_makes_its_candidate_not_finite_only():
    rollout = make_rollout()
    rollout.states[3, 1, 0] = np.nan
    for term in (StateError(np.ones(NX), np.ones(NX)), TipPosition(1.0)):
        assert np.array_equal(np.flatnonzero(~np.isfinite(term(rollout))), [3])


def test_tips_are_computed_once_and_only_when_asked():
    model = TurningModel()
    rollout = make_rollout(model)
    InputRate(1.0, 1e5)(rollout)
    StateError(np.ones(NX), np.ones(NX))(rollout)
    assert model.calls == 0
    TipPosition(1.0)(rollout)
    TipPosition(2.0)(rollout)
    assert model.calls == 1


def test_settings_give_the_terms_that_count():
    model = TurningModel()
    names = lambda **weights: [t.name for t in CostSettings(**weights).terms(model, 1e5)]  # noqa: E731
    off = dict.fromkeys(CostSettings.model_fields, 0.0)
    assert names(**off) == []
    assert names(**{**off, "force": 1.0}) == ["state_error"]
    assert names(**{**off, "tip_position": 1.0, "input_rate": 1.0}) == [
        "tip_position",
        "input_rate",
    ]
    assert names(**{**off, "tip_orientation": 1.0}) == ["tip_orientation"]


def test_state_weights_sit_where_the_rod_keeps_its_states():
    settings = CostSettings(velocity=1, angular_velocity=2, force=3, force_z=4, torque=5)
    (term, *_) = settings.terms(TurningModel(), 1e5)
    view = RodState(term.weights)
    assert np.array_equal(view.velocities, [[1, 1, 1, 2, 2, 2]])
    assert np.array_equal(view.wrenches, [[3, 3, 4, 5, 5, 5]] * 2)
    assert np.array_equal(view.base_wrench, [3, 3, 4, 5, 5, 5])
    assert np.array_equal(term.scale, TurningModel.state_scale)


def test_tip_path_of_one_candidate_is_that_row_of_all():
    model = TurningModel()
    rollout = make_rollout(model)
    alone = rollout.tip_path(2)
    assert np.array_equal(alone, rollout.tip_poses[2, :, :, 3])
    assert np.array_equal(rollout.tip_path(2), alone)
    assert model.calls == 2


@pytest.mark.parametrize(
    "term",
    [
        StateError(np.arange(NX, dtype=float), np.linspace(0.1, 3.0, NX)),
        TipPosition(3.0),
        TipOrientation(2.0),
        InputRate(5.0, 1e5),
    ],
    ids=lambda term: term.name,
)
def test_residuals_are_what_is_squared(term):
    reference = np.random.default_rng(2).standard_normal((N, NX))
    reference[1, 0] = np.nan
    rollout = make_rollout(reference_states=reference)
    assert np.allclose((term.residuals(rollout) ** 2).sum(axis=1), term(rollout), rtol=1e-12)
