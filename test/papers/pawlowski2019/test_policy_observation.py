"""What a learned policy is told: the same numbers on every grid, batched as single."""

import numpy as np
import pytest
from kit.refusals import one_line

from softcr_models import CosseratRod, load_robot
from softcr_models.errors import UserError
from softcr_models.models import make_model
from softcr_models.prediction import RodPrediction
from softcr_papers.pawlowski2019.policy.observation import (
    ObservationLayout,
    PolicyObservation,
    inputs_lag,
    observation_of,
)


def _model(name: str, intervals: int, **changes: object) -> RodPrediction:
    return RodPrediction(CosseratRod(load_robot(name).replace(**changes), intervals))


def _moving(model: RodPrediction, levels: np.ndarray) -> np.ndarray:
    """(1, nx) after 60 ms under inputs (m,) from rest."""
    state, row = np.zeros((1, model.state_size)), model.nominal_parameters[None]
    for _ in range(12):
        state = model.step(state, levels[None], levels[None], row, 0.005)
    return state


def test_a_bent_rod_at_rest_is_told_by_its_curvature() -> None:
    model = _model("tendon_arm", 5, gravity=0.0)
    pull = np.array([0.5, 0.0, 0.0, 0.0])
    state = model.equilibrium(pull, model.nominal_parameters)
    observation = PolicyObservation(model)
    told = dict(zip(observation.layout.names, _physical(observation, state[None]), strict=True))
    # one tendon of 0.5 N at 4 mm on 1/EI = 2037 rad/(N m m): the thesis's rod, constant curvature
    expected = 0.5 * 0.004 * 2037.18327
    assert told["tip x"] == pytest.approx(0.01996366, abs=1e-7)
    assert told["tip z"] == pytest.approx(0.09663698, abs=1e-7)
    for place in (0.0, 0.4, 0.8):
        assert told[f"curvature at {place} y"] == pytest.approx(expected, rel=1e-5)
        assert told[f"curvature at {place} x"] == pytest.approx(0.0, abs=1e-6)
    assert all(abs(v) < 1e-7 for name, v in told.items() if "velocity" in name)
    assert told["goal - tip x"] == pytest.approx(0.01 - 0.01996366, abs=1e-7)


def _physical(observation: PolicyObservation, states: np.ndarray) -> np.ndarray:
    """(n,) in SI units, of one state; the goal stands at (1, 2, 90) mm."""
    goals = np.array([[0.01, 0.02, 0.09]])
    inputs = np.zeros((1, observation.model.input_size)) if observation.of_inputs else None
    values: np.ndarray = observation(states, goals, inputs=inputs)[0]
    return values * observation.scale + observation.offset


@pytest.mark.parametrize("name", ["tendon_arm", "two_segments"])
def test_observations_do_not_depend_on_the_grid(name: str) -> None:
    told = []
    for intervals in (5, 10, 20):
        model = _model(name, intervals)
        pull = model.inputs.low + 0.4 * model.inputs.range * np.linspace(1.0, 0.0, model.input_size)
        told.append(observation_of_state(model, _moving(model, pull)))
    moved = np.abs(told[2]).max()
    errors = [np.abs(each - told[2]).max() for each in told[:2]]
    assert moved > 0.3
    assert errors[1] < 0.1 * moved  # the coarser rod moves a little differently
    assert errors[1] < 0.6 * errors[0]


def observation_of_state(model: RodPrediction, states: np.ndarray) -> np.ndarray:
    return PolicyObservation(model)(states, np.zeros((1, 3)))[0]


def test_the_velocity_of_the_tip_is_the_change_of_its_place() -> None:
    errors = []
    for intervals in (5, 20):
        model = _model("licher2025", intervals)
        held, dt = np.array([[5e4, 0.0, 1e4]]), 1e-5
        before, row = _moving(model, held[0]), model.nominal_parameters[None]
        after = model.step(before, held, held, row, dt)
        observation = PolicyObservation(model, of_inputs=True)
        told = 0.5 * (_physical(observation, before) + _physical(observation, after))[3:6]
        tips = [model.tip_poses(x, row)[0, :, 3] for x in (before, after)]
        moved = (tips[1] - tips[0]) / dt
        errors.append(np.linalg.norm(told - moved) / np.linalg.norm(moved))
    # collocation ties strains and velocities together to the second order of the interval
    assert errors[0] < 0.02
    assert errors[1] < 0.1 * errors[0]


def test_a_batch_is_its_rows_and_curvature_follows_the_compliance() -> None:
    model = _model("two_segments", 4)
    rng = np.random.default_rng(5)
    states = rng.normal(size=(3, model.state_size)) * 0.1 * model.state_scale
    goals, moving = rng.normal(size=(3, 3)), rng.normal(size=(3, 3))
    inputs = rng.uniform(model.inputs.low, model.inputs.high, (3, model.input_size))
    numbers = np.tile(model.nominal_parameters, (3, 1))
    numbers[:, 0] *= (0.9, 1.0, 1.1)
    observation = PolicyObservation(model, of_goal_velocity=True, of_inputs=True)
    told = observation(states, goals, goal_velocities=moving, inputs=inputs, parameters=numbers)
    assert told.shape == (3, observation.size)
    assert observation.size == 12 + 30 + 3 + 6
    for i in range(3):
        one = slice(i, i + 1)
        alone = observation(
            states[one], goals[one], goal_velocities=moving[one], inputs=inputs[one],
            parameters=numbers[one],
        )  # fmt: skip
        np.testing.assert_array_equal(alone[0], told[i])
    same = observation(states, goals, goal_velocities=moving, inputs=inputs)
    bending = [i for i, n in enumerate(observation.layout.names) if n.startswith("curv")]
    bending = [i for i in bending if not observation.layout.names[i].endswith("z")]
    np.testing.assert_allclose(told[2, bending], 1.1 * same[2, bending], rtol=1e-5)


def test_layouts_tell_what_differs() -> None:
    ours = PolicyObservation(_model("tendon_arm", 5)).layout
    assert ours == PolicyObservation(_model("tendon_arm", 10)).layout
    assert ObservationLayout.from_json(ours.as_json()) == ours
    stiffer = PolicyObservation(_model("tendon_arm", 5, bending_compliance=1800.0)).layout
    ours.require(stiffer, "policy p")
    others = {
        "robot licher2025": _model("licher2025", 5),
        "gravity (0, 0, 0)": _model("tendon_arm", 5, gravity=0.0),
    }
    for expected, model in others.items():
        with one_line("policy p", says=expected):
            ours.require(PolicyObservation(model).layout, "policy p")
    with pytest.raises(UserError, match=r"names \(input t1, .*\), must be \(\) for"):
        ours.require(PolicyObservation(_model("tendon_arm", 5), of_inputs=True).layout, "policy p")
    with pytest.raises(UserError, match="layout"):
        ObservationLayout.from_json({"robot": "x"})


def test_what_is_missing_or_of_another_robot_is_refused() -> None:
    model = _model("tendon_arm", 5)
    observation = PolicyObservation(model, of_goal_velocity=True)
    with pytest.raises(UserError, match="goal_velocities"):
        observation(np.zeros((2, model.state_size)), np.zeros((1, 3)))
    with pytest.raises(UserError, match=r"goals of shape \(3,\)"):
        observation(np.zeros((2, model.state_size)), np.zeros(3))
    bending = make_model("constant_curvature", load_robot("licher2025"))
    with pytest.raises(UserError, match="is for rods"):
        observation_of(bending, of_goal_velocity=False, of_inputs=False)


def test_inputs_are_told_where_they_lag() -> None:
    assert inputs_lag(_model("licher2025", 5), 0.05)
    assert not inputs_lag(_model("tendon_arm", 5), 0.05)
    assert inputs_lag(_model("tendon_arm", 5), 0.01)  # 10 N/s of 0.5 N
