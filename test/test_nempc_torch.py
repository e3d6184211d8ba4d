"""The NEMPC with its population in torch against the one in numpy, on tensors of the processor."""

import copy
import inspect
import subprocess
import sys
from contextlib import contextmanager, nullcontext
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from host_module import NoModule, kernels_on_this_processor  # noqa: F401
from hypothesis import given, settings
from hypothesis import strategies as st
from kit import models
from torch.utils._python_dispatch import TorchDispatchMode

from softcr_control.controller import ControllerBlock
from softcr_control.costs import CostSettings
from softcr_control.observation import ControlContext, Observation
from softcr_control.predictive.device_search import DeviceSearch
from softcr_control.predictive.nempc import Nempc, NempcSettings
from softcr_control.predictive.nempc_torch import NempcTorch
from softcr_control.reference.references import Reference
from softcr_control.reference.settings import ReferenceSettings
from softcr_models import CosseratRod, load_robot
from softcr_models.cuda import module
from softcr_models.errors import UserError
from softcr_models.prediction import RodPrediction
from softcr_models.surrogate.folded import FoldedNetwork
from softcr_models.surrogate.prediction import SurrogatePrediction
from softcr_models.surrogate.tip_poses import TipPoses

ROBOT = load_robot("licher2025")
PERIOD = 1 / 70
PREDICTION = SurrogatePrediction.load(ROBOT, device="cpu")
ROD = RodPrediction(PREDICTION.rod)
EVERY_TERM = CostSettings(
    state={"velocity": 0.2, "angular_velocity": 0.05, "force": 0.7, "force_z": 15.0, "torque": 0.2},
    tip_orientation=3.0,
)


def make(kind, costs=None, prediction=PREDICTION, period=PERIOD, max_rate=None, seed=1, **numbers):
    numbers = {"population": 64, "costs": costs or CostSettings(), **numbers}
    model = prediction if max_rate is None else models.limited(copy.copy(prediction), rate=max_rate)
    return kind(ControlContext(ROBOT, model, period, seed), NempcSettings(**numbers))


def given_to(controller, candidates):
    """Lets a controller look at these (B, K, m) first; one on tensors, limited, in each tick."""
    if type(controller) is Nempc:
        controller._evolution.first_generation = lambda centre, knots: candidates.copy()
        return
    search = DeviceSearch(
        (len(candidates), 0, 0), np.zeros(candidates.shape[2]), 0.0, controller._inputs.low,
        controller._inputs.high, controller._max_steps, controller.settings.first_knot_fixed,
        controller._generator, controller._device,
    )  # fmt: skip
    fresh = torch.as_tensor(candidates, dtype=torch.float32)
    controller._first_candidates = lambda told: search.bred(
        fresh, told["previous_command"], told["mutation"]
    )


def are_the_same(tensors, arrays, least=1e-6):
    """Answers of both kinds are, and their terms of the cost to a least difference."""
    np.testing.assert_allclose(tensors.best_knots, arrays.best_knots, atol=0.02)  # Pa
    np.testing.assert_allclose(tensors.pressures, arrays.pressures, atol=0.02)
    np.testing.assert_allclose(tensors.predicted_tips, arrays.predicted_tips, atol=2e-6)
    assert list(tensors.cost_terms) == list(arrays.cost_terms)
    for name, value in arrays.cost_terms.items():
        assert tensors.cost_terms[name] == pytest.approx(value, rel=1e-4, abs=least), name
    assert tensors.cost == pytest.approx(arrays.cost, rel=1e-4)


def ask(controller, state, parameters, reference, pressures, delay=1):
    seen = Observation(reference.stamp, state, parameters, reference, pressures, PREDICTION, delay)
    return controller.command(seen)


@pytest.fixture(scope="module")
def motion():
    return ReferenceSettings(duration=1.0).source(ROD, PERIOD)


def asked(motion, tick=20):
    """State, parameters, reference and pressures of a moving rod, another one than the nominal."""
    window = motion.window(tick * PERIOD, 12)
    states = window.states.copy()
    states[4, 7] = np.nan  # a row whose state is unknown
    reference = Reference(tick * PERIOD, PERIOD, states, window.tip_positions)
    told = {"bending_compliance": 46.0, "damping_factor": 1.1}
    return motion.states[tick + 3], told, reference, np.array([30e3, 20e3, 25e3])


def commands(controller, motion, ticks=5, first=10):
    sent = []
    for tick in range(first, first + ticks):
        window = motion.window(tick * PERIOD, controller.rows)
        answer = ask(controller, motion.states[tick], {}, window, np.full(3, 30e3))
        sent.append(answer.pressures)
    return np.array(sent)


# -- the same as the numpy path --------------------------------------------------------------------


@pytest.mark.parametrize("intervals", [2, 5])
@pytest.mark.parametrize(("dtype", "error"), [(torch.float64, 1e-10), (torch.float32, 1e-6)])
def test_tip_poses_are_those_of_the_kernel(intervals, dtype, error):
    model = RodPrediction(CosseratRod(ROBOT, intervals))
    size = model.state_size
    states = model.state_scale * np.random.default_rng(0).normal(0.0, 0.4, (50, size))
    expected = model.tip_poses(states, np.array([[44.0, 0.07, 1.0]]))
    mix = torch.randn(size, size, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    mean = torch.as_tensor(model.state_scale)
    coordinates = torch.linalg.solve(mix, (torch.as_tensor(states) - mean).T).T
    if dtype == torch.float32:  # whose coordinates are the states themselves
        mix, mean, coordinates = torch.eye(size), torch.zeros(size), torch.as_tensor(states)
    poses = TipPoses(model.rod, mean.to(dtype), mix.to(dtype))
    found = poses(coordinates.to(dtype), torch.tensor(44.0, dtype=dtype))
    np.testing.assert_allclose(found.numpy(), expected, atol=error)


@pytest.mark.parametrize("delay", [1, 2, 3])
@pytest.mark.parametrize("seed", [0, 1])
def test_the_same_candidates_have_the_same_best(motion, delay, seed):
    """Through delay, lag, network and every cost term: what is reported of the best is equal."""
    given = np.random.default_rng(seed).uniform(0.0, 1e5, (20, 2, 3))
    answers = []
    for kind in (Nempc, NempcTorch):
        controller = make(kind, EVERY_TERM, population=20, polish=False, max_rate=1.2e6)
        given_to(controller, given)
        answers.append(ask(controller, *asked(motion), delay))
    arrays, tensors = answers
    are_the_same(tensors, arrays)
    assert len(tensors.cost_terms) == 4


# -- promises --------------------------------------------------------------------------------------


@settings(max_examples=20, deadline=None)
@given(
    scale=st.sampled_from([0.0, 1.0, 30.0, np.nan]),
    measured=st.lists(st.floats(-2e4, 1.5e5), min_size=3, max_size=3),
    shift=st.floats(-0.2, 0.2),
    seed=st.integers(0, 100),
)
def test_box_and_slew_are_kept_for_any_state(limited, scale, measured, shift, seed):
    limited.reset()
    draw = np.random.default_rng(seed)
    active = np.clip(measured, 0.0, 1e5)
    for tick in range(3):
        state = scale * PREDICTION.state_scale * draw.normal(size=PREDICTION.state_size)
        tips = np.full((limited.rows, 3), shift)
        reference = Reference(tick * PERIOD, PERIOD, None, tips)
        command = ask(limited, state, {}, reference, np.array(measured))
        # at 30 times the usual motion a tip is beyond what numbers hold
        assert command.fallback == np.isnan(scale) or scale == 30.0
        assert np.isfinite(command.pressures).all()
        assert 0.0 <= command.pressures.min() <= command.pressures.max() <= 1e5
        assert np.abs(command.pressures - active).max() <= 5e5 * PERIOD * (1 + 1e-12)
        active = command.pressures


@pytest.fixture(scope="module")
def limited():
    return make(NempcTorch, population=40, max_rate=5e5)


def test_same_seed_same_commands_and_reset_starts_over(motion):
    first, second, other = make(NempcTorch), make(NempcTorch), make(NempcTorch, seed=2)
    sent = [commands(controller, motion) for controller in (first, second, other)]
    assert np.array_equal(sent[0], sent[1])
    assert not np.array_equal(sent[0], sent[2])
    first.reset()
    assert np.array_equal(commands(first, motion), sent[0])


def test_a_broken_state_continues_the_plan_and_recovery_follows(motion):
    controller = make(NempcTorch)
    good = ask(controller, *asked(motion))
    _, told, reference, pressures = asked(motion, 21)
    broken = ask(controller, np.full(72, np.nan), told, reference, pressures)
    assert broken.fallback
    assert np.isinf(broken.cost)
    plan = controller._knots.commands(good.best_knots[None])[0]
    np.testing.assert_allclose(broken.pressures, plan[1])
    assert not ask(controller, *asked(motion, 22)).fallback


class _Operations(TorchDispatchMode):
    """Which operations torch is asked for."""

    def __init__(self):
        super().__init__()
        self.names = []

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        self.names.append(func.overloadpacket.__name__)
        return func(*args, **(kwargs or {}))


def test_a_tick_consists_of_what_a_cuda_graph_can_record(monkeypatch):
    """On a device without values: whoever asks for one, or mixes devices, fails at once."""
    meta, generator = torch.device("meta"), torch.Generator
    prediction = SurrogatePrediction.load(ROBOT, device="cpu")
    prediction.device, prediction.folded = meta, FoldedNetwork(prediction.network.on(meta))
    monkeypatch.setattr(module, "Module", NoModule)
    with monkeypatch.context() as patched:  # no chance on such a device
        patched.setattr(torch, "Generator", lambda device: generator())
        controller = make(NempcTorch, EVERY_TERM, prediction, generations=2)
    monkeypatch.setattr(controller._outputs, "from_device", lambda: None)
    with torch.inference_mode(), _Operations() as seen:
        controller._tick()
    assert seen.names.count("sort") == 3  # two generations and the polish
    # constants come from the host, and CUDA graphs do not record decompositions
    assert "lift_fresh" not in seen.names
    assert not [name for name in seen.names if "linalg" in name and name != "linalg_cross"]
    with _Operations() as asking:
        torch.tensor([1.0])
    assert asking.names == ["lift_fresh"]


def test_what_is_recorded_begins_anew_at_the_first_replay(motion, monkeypatch):
    """The way to a recorded tick, where CUDA's graph is played by the tick itself."""
    controller = make(NempcTorch)
    expected = commands(make(NempcTorch), motion)
    done, signature = [], inspect.signature(torch.cuda.graph)

    class Graph:
        def register_generator_state(self, generator):
            done.append(generator is controller._generator)

        def replay(self):
            done.append("replay")
            controller._tick()

    @contextmanager
    def recording(*args, **kwargs):
        signature.bind(*args, **kwargs)
        yield
        done.append("recorded")

    stream = SimpleNamespace(wait_stream=lambda other: None)
    for name, what in {
        "CUDAGraph": Graph,
        "Stream": lambda: stream,
        "current_stream": lambda: stream,
        "stream": lambda chosen: nullcontext(),
        "graph": recording,
    }.items():
        monkeypatch.setattr(torch.cuda, name, what)
    controller._records = True
    assert np.array_equal(commands(controller, motion), expected)
    assert done == [True, "recorded", *5 * ["replay"]]


def test_a_gpu_that_fails_in_the_middle_is_one_line(motion, monkeypatch):
    controller = make(NempcTorch)

    def fail():
        raise RuntimeError(
            "CUDA error: unspecified launch failure\nCompile with TORCH_USE_CUDA_DSA"
        )

    monkeypatch.setattr(controller, "_play", fail)
    with pytest.raises(RuntimeError, match="unspecified launch failure"):
        ask(controller, *asked(motion))  # nothing of this processor is hidden
    monkeypatch.setattr(controller, "_device", torch.device("cuda"))
    with pytest.raises(UserError, match=r"^controller: the GPU failed: RuntimeError: CUDA error"):
        ask(controller, *asked(motion))


# -- who chooses it --------------------------------------------------------------------------------


def test_the_node_chooses_by_model_and_period(monkeypatch):
    def kind(**values):
        told = {"controller": "nempc", "population": 16, **values}
        return type(ControllerBlock(ROBOT, ControllerBlock.settings_of(told)).controller)

    assert kind() is Nempc
    assert kind(model="ddpinn") is Nempc  # on the processor
    monkeypatch.setattr(SurrogatePrediction, "on_gpu", True)
    assert kind(model="ddpinn") is NempcTorch
    with pytest.raises(UserError, match=r"period 0.01 s: the network was trained for 0\.0142857 s"):
        make(NempcTorch, period=0.01)
    with pytest.raises(UserError, match="the rod on the processor does not compute with"):
        make(NempcTorch, prediction=ROD)


@pytest.mark.parametrize("output", ["shape", "tip"])
def test_outputs_that_no_device_computes_are_refused_in_one_line(output):
    costs = CostSettings(outputs={output: 1.0})
    with pytest.raises(UserError, match=r"costs\.outputs: none on a GPU"):
        make(NempcTorch, costs)


def test_controllers_do_not_import_torch():
    text = "import sys, softcr_control.controller; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", text], check=False).returncode == 0


# -- on a GPU --------------------------------------------------------------------------------------


@pytest.fixture
def gpu():
    if not torch.cuda.is_available():
        pytest.skip("no CUDA device")
    return SurrogatePrediction.load(ROBOT, device="cuda")


@pytest.mark.gpu
def test_a_recorded_tick_is_the_tick(gpu, motion):
    """CUDA graph against the same operations one by one, and after a reset."""
    numbers = NempcSettings(population=200, generations=2, costs=EVERY_TERM)
    context = ControlContext(ROBOT, gpu, PERIOD, 3)
    recorded, eager = (NempcTorch(context, numbers, record) for record in (True, False))
    sent = commands(eager, motion)
    np.testing.assert_allclose(commands(recorded, motion), sent, atol=5.0)  # Pa
    recorded.reset()
    np.testing.assert_allclose(commands(recorded, motion), sent, atol=5.0)


@pytest.mark.gpu
def test_the_gpu_answers_as_the_processor(gpu, motion):
    costs = [
        ask(
            make(NempcTorch, EVERY_TERM, prediction, population=400, generations=8), *asked(motion)
        ).cost
        for prediction in (gpu, PREDICTION)
    ]
    assert costs[0] == pytest.approx(costs[1], rel=1e-2)
