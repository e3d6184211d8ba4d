"""Each cost term against its formula written out in loops."""

from typing import ClassVar

import numpy as np
import pytest
from kit.refusals import one_line
from scipy.spatial.transform import Rotation

from softcr_control.costs import (
    CostSettings,
    InputLevel,
    InputRate,
    OutputError,
    Rollout,
    StateError,
    TipDirection,
    TipOrientation,
    TipPosition,
)
from softcr_control.costs.term import evaluate, stacked_residuals
from softcr_control.reference.references import Reference
from softcr_models.errors import UserError
from softcr_models.model import Group, Inputs, Layout, OutputInfo, Parameter
from softcr_models.prediction import RodPrediction
from softcr_models.robots.robot import load_robot
from softcr_models.rod.cosserat_rod import CosseratRod
from softcr_models.rod.state import RodState

B, N, NX, M = 7, 4, 24, 3


class TurningModel:
    """Tip from the state: position is the first three states, orientation the next three scaled."""

    state = Layout(
        (Group("position", np.arange(3), "m"), Group("others", np.arange(3, NX), "-")),
        np.linspace(0.5, 2.0, NX),
    )
    inputs = Inputs(
        "pressure", ("a", "b", "c"), "Pa", np.zeros(M), np.full(M, 1e5), np.full(M, 1e6)
    )
    parameters = (Parameter("gain", "-", 1.0, 0.1, 10.0),)
    outputs: ClassVar = {
        "tip": OutputInfo((3, 4), "m", "pose"),
        "middle": OutputInfo((3,), "m", "position"),
    }

    def __init__(self):
        self.calls = 0
        self.states = np.random.default_rng(1).standard_normal((B, N, NX))

    def rollout(self, state, inputs, parameters, dt):
        return self.states

    def rollout_tips(self, state, inputs, parameters, dt):
        rows = self.states.reshape(-1, NX)
        return self._tip(rows, parameters[None]).reshape(B, N, 3, 4)

    def observe(self, names, states, inputs, parameters):
        made = {"tip": lambda: self._tip(states, parameters), "middle": lambda: states[:, 6:9]}
        return {name: made[name]() for name in names}

    def _tip(self, states, parameters):
        self.calls += 1
        poses = np.empty((len(states), 3, 4))
        poses[:, :, :3] = Rotation.from_rotvec(parameters[:, :1] * states[:, 3:6]).as_matrix()
        poses[:, :, 3] = parameters[:, :1] * states[:, :3]
        return poses


RANGE = np.full(M, 1e5)


def make_rollout(
    model=None, reference_states=None, gain=1.0, dtype=float, rotations=None, outputs=None
) -> Rollout:
    draw = np.random.default_rng(0)
    if reference_states is None:
        reference_states = draw.standard_normal((N, NX))
    model = model or TurningModel()
    model.states = model.states.astype(dtype)
    commands, previous = draw.uniform(0, 1e5, (B, N, M)), draw.uniform(0, 1e5, M)
    tips = draw.standard_normal((N, 3))
    wanted = Reference(0.0, 0.01, reference_states, tips, rotations, outputs or {})
    held = np.zeros((B, N + 1, M))
    return Rollout(np.zeros(NX), held, commands, previous, wanted, model, np.array([gain]), 0.01)


WEIGHTS, SCALE = np.arange(NX, dtype=float), np.linspace(0.1, 3.0, NX)
REST, RANGES = np.array([1e4, 0.0, 2e4]), np.array([1e5, 2e4, 5e5])
UNKNOWN = np.full((N, NX), np.nan)
PARTLY = np.random.default_rng(1).standard_normal((N, NX))
PARTLY[2, 5] = np.nan
TURNS = Rotation.random(N, random_state=3).as_matrix()
TURNS[1] = np.nan
WANTED = np.random.default_rng(5).standard_normal((N, 3))
WANTED[1, 2] = np.nan


def of_state(rollout, b, k):
    return (WEIGHTS * ((rollout.reference.states[k] - rollout.states[b, k]) / SCALE) ** 2).sum()


def of_turn(rollout, b, k, wanted, gain=1.0):
    """By the angle between the tip and a wanted matrix."""
    if np.isnan(wanted).any():
        return np.nan
    tip = Rotation.from_rotvec(gain * rollout.states[b, k, 3:6])
    return 2 * (1 - np.cos((tip.inv() * Rotation.from_matrix(wanted)).magnitude()))


def of_states_turn(rollout, b, k):
    wanted = Rotation.from_rotvec(rollout.reference.states[k, 3:6])  # of the nominal gain
    return 2.0 * of_turn(rollout, b, k, wanted.as_matrix(), 0.5)


def of_axis(rollout, b, k):
    axis = Rotation.from_rotvec(rollout.states[b, k, 3:6]).apply([0.0, 0.0, 1.0])
    return 2.0 * 2.0 * (1 - axis @ TURNS[k, :, 2])


def of_tip(rollout, b, k):
    away = 0.5 * rollout.states[b, k, :3] - rollout.reference_tip_positions[k]
    return 3.0 * np.linalg.norm(away) ** 2


def of_rate(rollout, b, k):
    before = rollout.commands[b, k - 1] if k else rollout.previous_command
    return 5.0 * (((rollout.commands[b, k] - before) / RANGES) ** 2).sum()


def of_level(rollout, b, k):
    return 3.0 * (((rollout.commands[b, k] - REST) / RANGE) ** 2).sum()


def of_output(first):
    def squared(rollout, b, k):
        return 2.0 * ((rollout.states[b, k, first : first + 3] - WANTED[k]) ** 2).sum()

    return squared


STATES, BOTH = StateError(1.0, WEIGHTS, SCALE), {"outputs": {"middle": WANTED, "tip": WANTED}}
ASKED = {"reference_states": UNKNOWN, "rotations": TURNS}
TERMS = {
    "state": (STATES, {}, of_state),
    "state, float32": (STATES, {"dtype": np.float32}, of_state),
    "state, where known": (STATES, {"reference_states": PARTLY}, of_state),
    "state, unknown": (STATES, {"reference_states": UNKNOWN}, of_state),
    "tip": (TipPosition(3.0), {"gain": 0.5}, of_tip),
    "turn of a state": (TipOrientation(2.0), {"gain": 0.5}, of_states_turn),
    "turn": (TipOrientation(1.0), ASKED, lambda *row: of_turn(*row, TURNS[row[2]])),
    "turn, unknown": (TipOrientation(1.0), {"reference_states": UNKNOWN}, lambda *_: np.nan),
    "axis": (TipDirection(2.0), {"rotations": TURNS}, of_axis),
    "output": (OutputError(2.0, "middle"), BOTH, of_output(6)),
    "output tip": (OutputError(2.0, "tip"), BOTH, of_output(0)),
    "level": (InputLevel(3.0, REST, RANGE), {}, of_level),
    "rate": (InputRate(5.0, RANGES), {}, of_rate),
}


@pytest.mark.parametrize("name", TERMS)
def test_a_term_is_the_sum_of_its_formula_over_all_rows_that_are_known(name):
    term, told, formula = TERMS[name]
    rollout, tolerance = make_rollout(**told), 1e-5 if "dtype" in told else 1e-12
    rows = [[formula(rollout, b, k) for k in range(N)] for b in range(B)]
    costs = term(rollout)
    assert costs.shape == (B,)
    np.testing.assert_allclose(costs, np.nansum(rows, axis=1), rtol=tolerance)
    squares = (term.residuals(rollout) ** 2).sum(axis=1)
    np.testing.assert_allclose(squares, costs, rtol=tolerance)


def test_a_turn_about_the_tips_axis_costs_no_direction():
    rollout = make_rollout()
    turned = Rotation.from_rotvec(rollout.states[0, :, 3:6]) * Rotation.from_rotvec([0.0, 0.0, 1.0])
    aimed = make_rollout(rotations=turned.as_matrix())
    assert TipDirection(1.0)(aimed)[0] == pytest.approx(0.0, abs=1e-12)
    assert TipOrientation(1.0)(aimed)[0] > 1.0


def test_the_orientation_of_a_wanted_state_asks_for_no_direction():
    rollout = make_rollout()
    assert rollout.orientation_known.all()
    terms, total = evaluate([TipDirection(1.0), TipPosition(1.0)], rollout)
    assert set(terms) == {"tip_position"}
    assert np.array_equal(total, terms["tip_position"])
    assert stacked_residuals([TipDirection(1.0)], rollout).shape == (B, 0)


def test_only_more_inputs_than_coordinates_have_a_level():
    model, four = TurningModel(), np.ones(4)
    model.inputs = Inputs("tension", tuple("abcd"), "N", 0 * four, four, four)
    weights = CostSettings(tip_position=0.0, input_rate=0.0)
    assert [term.name for term in weights.made(model)] == ["input_level"]
    with pytest.raises(UserError, match="at least one"):
        weights.made(TurningModel())


def test_a_state_that_is_not_finite_makes_its_candidate_not_finite_only():
    rollout = make_rollout()
    rollout.states[3, 1, 0] = np.nan
    for term in (StateError(1.0, np.ones(NX), np.ones(NX)), TipPosition(1.0)):
        assert np.array_equal(np.flatnonzero(~np.isfinite(term(rollout))), [3])


def test_tips_are_computed_once_and_only_when_asked():
    model = TurningModel()
    rollout = make_rollout(model)
    InputRate(1.0, RANGE)(rollout)
    StateError(1.0, np.ones(NX), np.ones(NX))(rollout)
    assert model.calls == 0
    TipPosition(1.0)(rollout)
    TipPosition(2.0)(rollout)
    assert model.calls == 1


def names(**weights):
    off = {"tip_position": 0.0, "input_rate": 0.0}
    return [term.name for term in CostSettings(**{**off, **weights}).made(TurningModel())]


def test_settings_give_the_terms_that_count():
    weights = {"tip_position": 1.0, "tip_direction": 0.0, "input_rate": 1.0}
    assert names(**weights) == ["tip_position", "input_rate"]
    assert names(state={"others": 1.0}) == ["state_error"]
    assert names(tip_position=1.0) == ["tip_position", "tip_direction"]
    assert names(tip_orientation=1.0, state={"others": 0.0}) == ["tip_orientation"]
    assert names(outputs={"middle": 1.0}) == ["output middle"]


@pytest.mark.parametrize(
    ("weights", "message"),
    [
        ({}, "at least one, no name twice"),
        ({"state": {"speed": 1.0}}, "costs.state.speed: .*it has position, others"),
        ({"outputs": {"elbow": 1.0}}, "costs.outputs.elbow: .*it has tip, middle"),
    ],
)
def test_costs_that_a_model_does_not_have_are_named(weights, message):
    with one_line(message):
        names(**weights)
    with one_line("no output 'elbow'; it has middle, tip"):
        OutputError(1.0, "elbow")(make_rollout(**BOTH))


def test_state_weights_sit_where_the_model_keeps_its_states():
    rod = RodPrediction(CosseratRod(load_robot("licher2025"), 2))
    groups = {"velocity": 1, "angular_velocity": 2, "force": 3, "force_z": 4, "torque": 5}
    (term, *_) = CostSettings(state=groups).made(rod)
    view = RodState(term.weights)
    assert np.array_equal(view.velocities, [[1, 1, 1, 2, 2, 2]] * 2)
    assert np.array_equal(view.wrenches, [[3, 3, 4, 5, 5, 5]] * 3)
    assert np.array_equal(view.base_wrench, [3, 3, 4, 5, 5, 5])
    assert np.array_equal(term.scale, rod.state.scale)


TERM = """
from dataclasses import dataclass
from typing import ClassVar

from softcr_control.costs import CostTerm


@dataclass(frozen=True, eq=False)
class Height(CostTerm):
    height: float = 0.0
    name: ClassVar[str] = "height"

    def errors(self, rollout):
        return rollout.output("tip")[:, :, 2, 3] - self.height
"""


def test_a_term_of_ones_own_is_a_class_in_a_file(tmp_path):
    (tmp_path / "mine.py").write_text(TERM)
    told = {"class": f"{tmp_path}/mine.py:Height", "weight": 3.0, "height": 0.25}
    terms = CostSettings(tip_position=0.0, input_rate=0.0, terms=[told]).made(TurningModel())
    rollout = make_rollout()
    expected = 3.0 * ((rollout.states[:, :, 2] - 0.25) ** 2).sum(axis=1)
    assert np.allclose(terms[0](rollout), expected)
    assert np.allclose((terms[0].residuals(rollout) ** 2).sum(axis=1), expected)
    for wrong, message in (
        ({"class": f"{tmp_path}/none.py:Height"}, "none.py:Height': no such file"),
        ({"class": f"{tmp_path}/mine.py:Width"}, "no class Width there; it has Height"),
        ({"class": "no.such.module:Width"}, "no module no"),
        (told | {"width": 1.0}, "unexpected keyword argument 'width'"),
    ):
        with one_line(message):
            CostSettings(terms=[wrong]).made(TurningModel())


def test_tip_path_of_one_candidate_is_that_row_of_all():
    model = TurningModel()
    rollout = make_rollout(model)
    alone = rollout.tip_path(2)
    assert np.array_equal(alone, rollout.tip_poses[2, :, :, 3])
    assert np.array_equal(rollout.tip_path(2), alone)
    assert model.calls == 2
