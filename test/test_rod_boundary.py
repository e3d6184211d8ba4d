"""What is asked of the rod's kernels is checked first, and what is not finite stays where it is."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from softcr_models import CosseratRod, UserError, load_robot
from softcr_models.model import counts_and_warnings
from softcr_models.prediction import RodPrediction
from softcr_models.rod import stepper
from softcr_models.rod.parameters import PARAMETERS
from softcr_models.rod.stepper import Run

ROBOT = load_robot("licher2025")
ROD = CosseratRod(ROBOT, 5)
MODEL = RodPrediction(ROD)
NOMINAL = ROD.nominal_parameters
PERIOD = 1 / 70
B, T, NX, M = 4, 2, 72, 3


def rolled(state=(NX,), inputs=(B, T + 1, M), parameters=(3,), dt=PERIOD, tips=False):
    rollout = MODEL.rollout_tips if tips else MODEL.rollout
    row = np.ones(parameters) if parameters != (3,) else NOMINAL
    return rollout(np.zeros(state), np.zeros(inputs), row, dt)


def stepped(states=(B, NX), begin=(B, M), end=(B, M), parameters=(B, 3), dt=PERIOD):
    arrays = (np.zeros(shape) for shape in (states, begin, end))
    return MODEL.step(*arrays, np.ones(parameters), dt)


shapes = st.lists(st.integers(0, 150), max_size=3).map(tuple)


@settings(max_examples=200, deadline=None)
@given(shape=shapes)
def test_any_wrong_shape_of_any_argument_is_refused_by_name(shape):
    """These calls read and wrote memory of others, or returned finite numbers of nothing."""
    inputs = [(b, levels, M) for b in range(151) for levels in range(2, 151)]
    for name, allowed in {"state": [(NX,)], "inputs": inputs, "parameters": [(3,)]}.items():
        for call in ("rollout", "rollout_tips") if shape not in allowed else ():
            with pytest.raises(UserError, match=rf"RodPrediction\.{call}: {name} of shape"):
                rolled(**{name: shape}, tips=call == "rollout_tips")
    for name, columns in (("states", NX), ("begin", M), ("end", M), ("parameters", 3)):
        if shape not in ((B, columns), (1, columns)):
            with pytest.raises(UserError, match=r"RodPrediction\.step: .* of shape .*allowed is"):
                stepped(**{name: shape})
    if len(shape) != 2 or shape[1] != NX:
        with pytest.raises(UserError, match=r"RodPrediction\.tip_poses: states of shape"):
            MODEL.tip_poses(np.zeros(shape), NOMINAL[None])
    if shape not in ((2, 3), (1, 3)):
        with pytest.raises(UserError, match=r"RodPrediction\.tip_poses: parameters of shape"):
            MODEL.tip_poses(np.zeros((2, NX)), np.ones(shape))


def test_a_simulation_needs_a_step_and_a_pressure_for_each_chamber():
    for shape in ((5, 0), (5, 1), (5, 2), (5, 4), (0, M)):
        with pytest.raises(UserError, match=r"CosseratRod\.simulate: inputs of shape"):
            ROD.simulate(ROD.rest_state(), np.zeros(shape), PERIOD)
    with pytest.raises(UserError, match="levels of shape"):
        ROD.simulate_ramps(ROD.rest_state(), np.zeros(M), PERIOD, substeps=1)
    with pytest.raises(UserError, match=r"stepper\.rollout: inputs of shape \(1, 3, 0"):
        stepper.rollout(np.zeros((1, NX)), np.zeros((1, 3, 0)), NOMINAL[None], RUN)


RUN = Run(ROD.body, ROD.grid, PERIOD, 2, largest_error=1e9)


@pytest.mark.parametrize("dt", [0.0, -1e-3, np.nan, np.inf, None, "fast", [0.1, 0.2]])
def test_a_step_is_finite_and_above_0(dt):
    x, p = ROD.rest_state(), np.zeros(M)
    for call in (
        lambda: stepped(dt=dt),
        lambda: rolled(dt=dt),
        lambda: rolled(dt=dt, tips=True),
        lambda: ROD.step(x, p, dt),
        lambda: ROD.simulate(x, p, dt),
        lambda: stepper.rollout(x[None], np.zeros((1, 2, M)), NOMINAL[None], RUN._replace(dt=dt)),
    ):
        with pytest.raises(UserError, match=r"dt: .* is not allowed: must be finite and above 0"):
            call()


@pytest.mark.parametrize(
    ("column", "value"), [(0, 0.0), (0, -48.0), (1, -1e-9), (2, 0.0), (2, -1.0)]
)
@pytest.mark.parametrize("count", [1, 9])
def test_signs_of_parameters(column, value, count):
    parameters = np.tile(NOMINAL, (count, 1))
    parameters[-1, column] = value
    name = PARAMETERS[column]
    states, p = np.zeros((count, NX)), np.zeros((count, M))
    for call in (
        lambda: MODEL.step(states, p, p, parameters, PERIOD),
        lambda: MODEL.rollout(states[0], np.zeros((9, 2, M)), parameters[-1], PERIOD),
        lambda: MODEL.tip_poses(states, parameters),
        lambda: ROD.step(states[0], p[0], PERIOD, parameters[-1]),
        lambda: ROD.derivative(states[0], p[0], parameters[-1]),
        lambda: ROD.equilibrium(p[0], parameters[-1]),
    ):
        with pytest.raises(UserError, match=f"{name}: {value} is not allowed: must be"):
            call()


def test_no_mass_at_the_tip_is_allowed():
    light, p = np.tile([NOMINAL[0], 0.0, 1.0], (9, 1)), np.zeros((9, M))
    assert np.isfinite(MODEL.step(np.zeros((9, NX)), p, p, light, PERIOD)).all()


@pytest.mark.parametrize("values", [np.zeros(NX, complex), np.full(NX, "1"), [[1.0], [1.0, 2.0]]])
def test_only_real_numbers(values):
    with pytest.raises(UserError, match="state"):
        MODEL.rollout(values, np.zeros((B, 2, M)), NOMINAL, PERIOD)


def test_integers_lists_and_arrays_that_may_not_be_written_are_numbers():
    expected = MODEL.rollout(np.zeros(NX), np.full((B, 2, M), 2e4), NOMINAL, 1.0)
    compiled = len(stepper._rollout_float32.signatures)
    frozen = np.broadcast_to(np.full(M, 20000), (B, 2, M))
    found = MODEL.rollout([0] * NX, frozen, NOMINAL.tolist(), 1)
    assert np.array_equal(found, expected)
    row = NOMINAL.copy()
    row.flags.writeable = False
    MODEL.rollout(np.zeros(NX), frozen, row, 1.0)
    assert len(stepper._rollout_float32.signatures) == compiled


def moving(count):
    random = np.random.default_rng(1)
    states = 0.02 * random.normal(size=(count, NX))
    pressures = random.uniform(1e4, 6e4, (count, 2, M))
    return states, pressures, np.tile(NOMINAL, (count, 1)) * random.uniform(0.9, 1.1, (count, 1))


@pytest.mark.parametrize("single", [False, True])
@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_what_is_not_finite_stays_with_its_candidate(bad, single):
    """Any entry of a state, of pressures, any parameter: NaN in every entry of that candidate."""
    columns = NX + 2 * M + 3
    states, pressures, parameters = moving(2 * columns)
    good = stepper.rollout(states, pressures, parameters, RUN, single)
    good_tips = stepper.rollout_tips(states, pressures, parameters, RUN, single)
    flat = pressures.reshape(len(pressures), -1)
    for column in range(columns):
        row, place = 2 * column, column
        for array in (states, flat, parameters):
            if place < array.shape[1]:
                # a parameter of minus infinity has the wrong sign
                array[row, place] = abs(bad) if array is parameters else bad
                break
            place -= array.shape[1]
    retries = stepper.Retries()
    found = stepper.rollout(states, pressures, parameters, RUN, single, retries=retries)
    tips = stepper.rollout_tips(states, pressures, parameters, RUN, single)
    assert np.isnan(found[::2]).all()
    # the wrench below the base's jump is driven by the rod and does not move it
    moves = np.delete(np.arange(columns), np.arange(NX - 6, NX))
    assert np.isnan(tips[2 * moves]).all()
    assert np.array_equal(found[1::2], good[1::2])
    assert np.array_equal(tips[1::2], good_tips[1::2])
    # it would be of no use, and a tick would wait for it
    assert (retries.candidates, retries.attempts, retries.lost) == (columns, 0, columns)


def test_what_all_share_is_finite():
    shared = NOMINAL.copy()
    shared[1] = np.nan
    for call in (
        lambda: MODEL.rollout(np.zeros(NX), np.zeros((B, 2, M)), shared, PERIOD),
        lambda: MODEL.tip_poses(np.zeros((B, NX)), shared[None]),
        lambda: ROD.equilibrium(np.zeros(M), shared),
    ):
        with pytest.raises(UserError, match="tip_mass: nan is not allowed: what all share"):
            call()
    with pytest.raises(UserError, match=r"inputs .* must be finite"):
        ROD.equilibrium(np.array([0.0, np.nan, 0.0]))
    # a start is a state: that an estimate is lost must not end a controller
    assert np.isnan(MODEL.rollout(np.full(NX, np.nan), np.zeros((B, 2, M)), NOMINAL, PERIOD)).all()


def test_retries_are_counted():
    """Full pressure jumps every tick without lag: one linearisation is not enough for all."""
    model = RodPrediction(ROD, substeps=1, single_precision=False)
    pressures = np.random.default_rng(1).choice([0.0, 1.2e5], (64, 61, M))
    assert model.retries == stepper.Retries()
    assert np.isfinite(model.rollout(np.zeros(NX), pressures, NOMINAL, PERIOD)).all()
    first = model.retries.candidates
    assert counts_and_warnings(model) == (
        {"retried": first, "retries": model.retries.attempts, "not_finite": 0}, [],
    )  # fmt: skip
    assert 0 < first <= model.retries.attempts
    assert model.retries.lost == 0
    model.rollout(np.zeros(NX), pressures, NOMINAL, PERIOD)
    assert model.retries.candidates == 2 * first


def test_a_run_has_sub_steps():
    x, p = np.zeros((1, NX)), np.zeros((1, M))
    with pytest.raises(UserError, match="substeps: 0 is not allowed: 1 or more"):
        RodPrediction(ROD, substeps=0).step(x, p, p, NOMINAL[None], PERIOD)
