"""The NEMPC on tensors with the exact rod behind its pressure chain, against the one in numpy."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from host_module import kernels_on_this_processor  # noqa: F401
from hypothesis import given, settings
from hypothesis import strategies as st
from tensor_rod import TensorRod
from test_nempc_torch import are_the_same, given_to

from softcr_control.costs import CostSettings
from softcr_control.observation import ControlContext, Observation
from softcr_control.predictive.estimated_parameters import Estimated
from softcr_control.predictive.nempc import Nempc, NempcSettings
from softcr_control.predictive.nempc_backend import NempcBackend
from softcr_control.predictive.nempc_torch import NempcTorch
from softcr_control.reference.references import Reference
from softcr_control.reference.settings import ReferenceSettings
from softcr_models import load_robot
from softcr_models.chain.chain_model import ChainModel
from softcr_models.cuda.device_model import Moment
from softcr_models.errors import UserError
from softcr_models.models import make_model
from softcr_models.rod_model.rod_model import RodModel
from softcr_models.surrogate.prediction import SurrogatePrediction
from softcr_studies.loops.tracking_loop import FAST, reference_of, run_loop

PERIOD = 1 / 70
ROBOT = load_robot("licher2025_chain")
TENSOR_ROD = f"{Path(__file__).with_name('tensor_rod.py')}:TensorRod"
EVERY_TERM = CostSettings(
    state={"velocity": 0.2, "angular_velocity": 0.05, "force": 0.7, "torque": 0.2},
    tip_orientation=3.0,
)
CHAIN = {
    "hysteresis_1": 0.1, "hysteresis_2": 0.12, "hysteresis_3": 0.15, "hysteresis_2_of_3": -0.02,
    "hose_1": 0.3, "hose_3": -0.2, "creep": 0.04, "chamber_angle_2": 0.1,
    "curvature_stiffness": 0.1, "marker_offset_x": 4e-3, "marker_offset_z": -2e-3,
}  # fmt: skip
TOLD = {
    "bending_compliance": 46.0, "damping_factor": 1.1, "pressure_gain_1": 1.03,
    "pressure_offset_2": -400.0, **CHAIN,
}  # fmt: skip


@pytest.fixture(scope="module")
def model():
    return make_model(TENSOR_ROD, ROBOT, {"intervals": 3})


@pytest.fixture(scope="module")
def motion(model):
    return ReferenceSettings(duration=1.0).source(model, PERIOD)


def make(kind, model, costs=None, **numbers):
    numbers = {"population": 64, "costs": costs or CostSettings(), **numbers}
    return kind(ControlContext(ROBOT, model, PERIOD, 1), NempcSettings(**numbers))


def commands(controller, motion, ticks=6, told=TOLD, delay=1):
    """Answers along the motion: pressures that are read go up and down, as those of a rod do."""
    answers = []
    for tick in range(20, 20 + ticks):
        window = motion.window(tick * PERIOD, 12)
        states = window.states.copy()
        states[4, 7] = np.nan  # a row whose state is unknown
        reference = Reference(tick * PERIOD, PERIOD, states, window.tip_positions)
        read = 3e4 + 2e4 * np.sin(0.9 * tick + np.arange(3))
        seen = Observation(
            tick * PERIOD, motion.states[tick + 3], told, reference, read, controller._model, delay
        )
        answers.append(controller.command(seen))
    return answers


# -- the same as the numpy path --------------------------------------------------------------------


@settings(max_examples=30, deadline=None)
@given(
    seed=st.integers(0, 1000),
    ticks=st.integers(1, 9),
    spread=st.sampled_from([0.0, 100.0, 2e3, 5e4]),
    without=st.sampled_from([(), ("hysteresis_radii",), ("hose_time",), ("chamber_angles",),
                             ("hose_time", "creep_time"),
                             ("hysteresis_radii", "hose_time", "creep_time")]),
)  # fmt: skip
def test_what_acts_on_the_rod_is_what_the_chain_says(seed, ticks, spread, without):
    draw = np.random.default_rng(seed)
    elements = ROBOT.pressure_chain.model_dump()
    nothing = {"hysteresis_radii": (), "chamber_angles": False}
    elements |= {name: nothing.get(name) for name in without}
    chain_of = type(ROBOT.pressure_chain).model_validate(elements)
    rod = TensorRod(make_model("rod", ROBOT, {"intervals": 2}).rod)
    chain = ChainModel(rod, chain_of)
    memory = chain.inputs.memory
    parameters = chain.nominal_parameters + draw.normal(0.0, 0.1, len(chain.parameters))
    readings = 3e4 + spread * draw.normal(size=(5, ticks + 1, 3)).cumsum(axis=1)
    gain, offset = 1.0 + draw.normal(0.0, 0.03, 3), draw.normal(0.0, 500.0, 3)
    remembered, levels = None, readings
    if memory is not None:
        known = np.full(3, 3e4)
        past = memory.along(memory.begin(known), np.stack((known, readings[0, 0]))[None], PERIOD)
        remembered = past[0, 1]
        along = memory.along(remembered, np.ascontiguousarray(readings), PERIOD)
        levels = Estimated(parameters, gain, offset).felt(readings, along)
    expected = chain.acting_pressures(levels, parameters[None])
    on_device = chain.on_device(PERIOD, PERIOD)
    shapes = on_device.shapes(ticks, 4)
    state = np.zeros(chain.state_size)
    approach = np.zeros((5, chain.inputs.size + (0 if memory is None else memory.size)))
    moment = Moment(state, 1, approach, lambda: state, remembered, gain, offset, parameters)
    told = on_device.told(moment)
    assert {name: np.shape(values) for name, values in told.items()} == shapes
    tensors = {name: torch.as_tensor(values, dtype=torch.float32) for name, values in told.items()}
    read = torch.as_tensor(readings, dtype=torch.float32)
    found = on_device._acting_pressures(on_device.begun(tensors), read)
    largest = np.abs(levels).max()
    np.testing.assert_allclose(found.numpy(), expected, atol=3e-6 * max(largest, 3e4))


def apart(step):
    """Predicted states some ticks apart."""
    return {"horizon": 8, "prediction_step": step}


@pytest.mark.parametrize(
    ("delay", "costs", "numbers"),
    [
        *((1, EVERY_TERM, {}), (2, None, {}), (3, EVERY_TERM, {})),
        *((1, EVERY_TERM, apart(2)), (3, EVERY_TERM, apart(4))),
    ],
)
def test_the_same_candidates_have_the_same_best(model, motion, delay, costs, numbers):
    """Along six ticks, so that the memory fills: what is told of the best is equal."""
    given = np.random.default_rng(delay).uniform(0.0, 1e5, (20, 2, 3))
    told = []
    for kind in (Nempc, NempcTorch):
        controller = make(kind, model, costs, population=20, polish=False, **numbers)
        if kind is Nempc:
            of = controller._feasible
            controller._begin_tick = lambda problem, of=of: of(given.copy(), problem)
        else:
            given_to(controller, given)
        told.append(commands(controller, motion, delay=delay))
    for arrays, tensors in zip(*told, strict=True):
        if numbers:
            assert arrays.plan.shape == (4, 3)  # the first half is sent
            assert arrays.predicted_tips.shape == (8 // numbers["prediction_step"], 3)
        are_the_same(tensors, arrays, least=1e-5)


def test_predicted_states_are_some_of_those_at_each_tick(model, motion):
    """The same inputs and reference rows, a few ticks apart; the tips are nearly the same."""
    problems = []
    for step in (1, 2):
        controller = make(Nempc, model, horizon=8, prediction_step=step, polish=False)
        kept = controller._evaluate

        def evaluate(knots, problem, *more, keep=problems, kept=kept):
            keep.append(problem)
            return kept(knots, problem, *more)

        controller._evaluate = evaluate
        commands(controller, motion, ticks=1, delay=2)
    fine, coarse = problems
    assert coarse.step == pytest.approx(2 * fine.step)
    wanted, some = fine.reference, coarse.reference
    np.testing.assert_array_equal(some.tip_positions, wanted.tip_positions[1::2])
    np.testing.assert_array_equal(some.states, wanted.states[1::2])
    assert (some.stamp, some.period) == pytest.approx((wanted.stamp + PERIOD, 2 * PERIOD))
    given = np.linspace(2e4, 3e4, 8)[None, :, None] + np.zeros((1, 1, 3))
    ends = [problem.rollout(given).tip_poses[0, :, :, 3] for problem in problems]
    assert 1e3 * np.linalg.norm(ends[1] - ends[0][1::2], axis=1).max() < 1.0  # mm
    with pytest.raises(ValueError, match="horizon 8 must be a multiple of prediction_step 3"):
        NempcSettings(horizon=8, prediction_step=3)


def test_the_surrogate_behind_a_chain_answers_as_its_arrays_do(motion):
    """It predicts over the delay on its device, from what acts along the approach."""
    robot = load_robot("licher2025")
    elements = {**ROBOT.pressure_chain.model_dump(), "curvature_stiffness": False}
    chain_of = type(ROBOT.pressure_chain).model_validate(elements)
    chain = ChainModel(SurrogatePrediction.load(robot, device="cpu"), chain_of)
    five = ReferenceSettings(duration=1.0).source(chain, PERIOD)
    told = {name: value for name, value in TOLD.items() if name != "curvature_stiffness"}
    given = np.random.default_rng(0).uniform(0.0, 1e5, (20, 2, 3))
    answers = []
    for kind in (Nempc, NempcTorch):
        controller = make(kind, chain, population=20, polish=False)
        given_to(controller, given)
        answers += commands(controller, five, ticks=1, told=told, delay=2)
    arrays, tensors = answers
    np.testing.assert_allclose(tensors.best_knots, arrays.best_knots, atol=0.02)
    np.testing.assert_allclose(tensors.predicted_tips, arrays.predicted_tips, atol=3e-6)
    assert tensors.cost == pytest.approx(arrays.cost, rel=1e-4)


def test_the_closed_loop_tracks_as_well(monkeypatch):
    """The plant without a chain, the filter finds that; noise, lag and delay: experiment 4a."""
    case = replace(FAST, duration=1.5)
    source = reference_of(ROBOT, case)
    errors = {}
    for on_gpu in (False, True):
        monkeypatch.setattr(RodModel, "on_gpu", on_gpu)
        told = {"model": TENSOR_ROD, "population": 96}
        run = run_loop(ROBOT, case, source, "nempc", (0, 0), parameters=told)
        errors[on_gpu] = 1e3 * np.median(run["error"][42:])
    assert errors[True] < 1.2 * errors[False] + 0.05
    assert errors[True] < 1.5  # mm


# -- promises --------------------------------------------------------------------------------------


def test_reset_starts_over(model, motion):
    controller = make(NempcTorch, model)
    sent = [answer.pressures for answer in commands(controller, motion)]
    controller.reset()
    again = [answer.pressures for answer in commands(controller, motion)]
    assert np.array_equal(sent, again)


def test_a_candidate_without_a_future_is_not_chosen(model, motion):
    """Half of the candidates' states become NaN: the answer is one of the others."""
    controller = make(NempcTorch, model, population=20, polish=False)
    futures_of = controller._futures_of.futures

    def futures(begun, readings):
        broken = readings.clone()
        broken[::2, -1] = torch.nan
        return futures_of(begun, broken)

    controller._futures_of.futures = futures
    answers = commands(controller, motion)
    assert not any(answer.fallback for answer in answers)
    assert all(np.isfinite(answer.predicted_tips).all() for answer in answers)


def test_a_model_on_a_gpu_gets_tensors_unless_a_cost_term_knows_none(model, monkeypatch, capsys):
    def kind(**numbers):
        chosen = NempcSettings(population=16, **numbers)
        return type(NempcBackend.made(ControlContext(ROBOT, model, PERIOD), chosen))

    assert kind() is Nempc
    monkeypatch.setattr(type(model._inner), "on_gpu", True)
    assert kind() is NempcTorch
    obstacles = CostSettings(obstacles="ball")
    assert kind(costs=obstacles) is Nempc
    assert capsys.readouterr().err == (
        "softcr: warning: costs.obstacles: none on a GPU; allowed on the device cpu: the "
        "population is computed on the processor\n"
    )
    with pytest.raises(UserError, match=r"costs\.obstacles: none on a GPU"):
        make(NempcTorch, model, obstacles)
