"""A training whose iterations are recorded: what a GPU runs, on tensors of the processor."""

import inspect
from contextlib import contextmanager, nullcontext
from types import SimpleNamespace

import pytest
import torch
from kit.surrogates import SMALL, quick_fits
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from softcr_models import CosseratRod, load_robot
from softcr_models.errors import UserError
from softcr_models.surrogate.architecture import Architecture
from softcr_papers.licher2025.training import training
from softcr_papers.licher2025.training.device_optimisers import DeviceAdam, DeviceMuon
from softcr_papers.licher2025.training.gathered_loop import gathered_loop_error
from softcr_papers.licher2025.training.initial_network import blank_network
from softcr_papers.licher2025.training.losses import loop_error
from softcr_papers.licher2025.training.training import train
from softcr_papers.licher2025.training.training_data import on_device, rod_data
from softcr_papers.licher2025.training.training_settings import Stage
from softcr_studies.frame import checkpoints

ROBOT = load_robot("licher2025")
ROD = CosseratRod(ROBOT, 5)
FEW = SMALL.model_copy(
    update={
        "architecture": Architecture(neurons=16), "trajectories": 24, "ticks": 40,
        "noisy_samples": 500, "iterations": 40, "batch": 64, "loop_batch": 16,
        "stages": (Stage(steps=1, share=0.6), Stage(steps=3, share=0.4)),
        "physics_every": 3, "validate_every": 0.5, "precision": "float32", "device": "cpu",
    }
)  # fmt: skip
OWN = Architecture(neurons=16, shapes="network", terms=2, activation="silu")
OWN_SHAPES = FEW.model_copy(update={"architecture": OWN, "optimiser": "adam"})


@pytest.fixture(scope="module")
def data():
    return rod_data(ROD, FEW)


@pytest.fixture(autouse=True)
def quick(monkeypatch):
    monkeypatch.setattr(torch, "set_num_threads", lambda count: None)
    with quick_fits():
        yield


def trained(path, data, settings=FEW, report=lambda progress: None, **more):
    """The parameters that a training leaves, as one vector, and its card."""
    network, card = train(ROBOT, settings, path, report, data=data, **more)
    return torch.cat([each.flatten() for each in network.parameters()]), card


# -- recorded on the processor, where a graph is played by what it has recorded --------------------


def changing(trainer):
    """All tensors that an iteration may change, but for the gradients."""
    states = [value for each in trainer.optimisers for kept in each.state.values()
              for value in kept.values()]  # fmt: skip
    sums = [trainer.skipped, trainer.epoch_loss, *trainer._sums.values()]
    return [*(each.data for each in trainer.network.parameters()), *states, *sums]


@pytest.fixture
def recorded(monkeypatch):
    """CUDA's graphs without CUDA, and what is done with them."""
    done, signature = [], inspect.signature(torch.cuda.graph)
    work = []

    class Graph:
        def register_generator_state(self, generator):
            assert generator is self.trainer.generator

        def replay(self):
            done.append("replay")
            self.work()

    @contextmanager
    def recording(graph, *args, **kwargs):
        signature.bind(graph, *args, **kwargs)
        graph.work, trainer = work[-1], graph.trainer
        kept = [each.clone() for each in changing(trainer)]
        chance = trainer.generator.get_state()
        yield
        # what is recorded computes nothing
        for each, before in zip(changing(trainer), kept, strict=True):
            each.copy_(before)
        trainer.generator.set_state(chance)
        done.append("recorded")

    class Seeing(training.Recorder):
        def _recorded(self, function):
            work.append(function)
            Graph.trainer = function.func.__self__
            return super()._recorded(function)

    stream = SimpleNamespace(wait_stream=lambda other: None)
    mark = SimpleNamespace(record=lambda: None, synchronize=lambda: None)
    for name, what in {
        "CUDAGraph": Graph,
        "Stream": lambda: stream,
        "Event": lambda: mark,
        "current_stream": lambda: stream,
        "stream": lambda chosen: nullcontext(),
        "graph": recording,
        "graph_pool_handle": lambda: (0, 0),
    }.items():
        monkeypatch.setattr(torch.cuda, name, what)
    monkeypatch.setattr(training, "Recorder", Seeing)
    monkeypatch.setattr(training, "_recordable", lambda device: True)
    return done


@pytest.mark.parametrize("settings", [FEW, OWN_SHAPES], ids=["muon", "adam"])
def test_a_recorded_training_is_the_training(tmp_path, data, settings, recorded, monkeypatch):
    """The same numbers are drawn; optimisers round otherwise."""
    weights, card = trained(tmp_path / "recorded", data, settings)
    kinds = recorded.count("recorded")
    assert kinds == 4  # stages with and without the physics loss
    assert recorded.count("replay") == settings.iterations - 2 * kinds
    monkeypatch.setattr(training, "_recordable", lambda device: False)
    expected, their_card = trained(tmp_path / "usual", data, settings)
    moved = torch.linalg.vector_norm(expected)
    assert torch.linalg.vector_norm(weights - expected) < 0.03 * moved
    for name, value in their_card.validation.items():
        assert card.validation[name] == pytest.approx(value, rel=0.1), name


def halted_and_gone_on(tmp_path, data, monkeypatch, settings=FEW):
    """The parameters and card of a training that was stopped after 25 iterations."""

    class Stopped(Exception):
        pass

    def stop(self, *given):
        iterate(self, *given)
        if self.iteration == 25:
            self.save()
            raise Stopped

    iterate = training._Trainer._iterate
    with monkeypatch.context() as patched:
        patched.setattr(training._Trainer, "_iterate", stop)
        with pytest.raises(Stopped):
            trained(tmp_path / "halted", data, settings)
    return trained(tmp_path / "halted", data, settings)


@pytest.mark.parametrize(
    ("graphs", "settings"), [(True, FEW), (False, OWN_SHAPES)], ids=["recorded", "one by one"]
)
def test_a_stopped_training_goes_on_where_it_was(
    tmp_path, data, graphs, settings, request, monkeypatch
):
    if graphs:
        request.getfixturevalue("recorded")
    straight, _ = trained(tmp_path / "straight", data, settings)
    halted, card = halted_and_gone_on(tmp_path, data, monkeypatch, settings)
    assert card.iterations == settings.iterations
    assert torch.equal(halted, straight)


def test_a_checkpoint_of_another_device_or_of_other_settings_is_refused(tmp_path, data):
    kept = {"settings": FEW.model_dump_json(), "states": [], "device": "cuda"}
    checkpoints.save(tmp_path / "other.checkpoint", kept)
    with pytest.raises(UserError, match="on another device"):
        trained(tmp_path / "other", data)
    checkpoints.save(tmp_path / "other.checkpoint", {"settings": "{}"})
    with pytest.raises(UserError, match="other settings"):
        trained(tmp_path / "other", data)


def test_iterations_without_finite_losses_change_nothing_and_are_told(
    tmp_path, data, recorded, monkeypatch
):
    monkeypatch.setattr(training, "_MOST_SKIPPED", FEW.iterations - 1)
    learnt = []
    losses = training._Trainer._losses

    def broken(self, kind):
        learnt.append([each.clone() for each in changing(self)[:-6]])
        return {name: value / 0.0 for name, value in losses(self, kind).items()}

    monkeypatch.setattr(training._Trainer, "_losses", broken)
    with pytest.raises(UserError, match=f"not finite in {FEW.iterations} iterations up to"):
        trained(tmp_path / "broken", data, FEW.model_copy(update={"validate_every": 1.0}))
    for before, after in zip(learnt[0], learnt[-1], strict=True):
        assert torch.equal(before, after)


# -- the self-loop in few operations ---------------------------------------------------------------


@pytest.mark.parametrize("layers", [1, 2, 3])
@pytest.mark.parametrize(
    "kind", [("gated", True), ("silu", True), ("gated", False), ("silu", False)]
)
def test_the_gathered_self_loop_is_the_loop(layers, kind):
    """Its error and the gradient of everything that is trained, from rest and from anywhere."""
    architecture = Architecture(neurons=24, layers=layers, activation=kind[0], directions=kind[1])
    network = blank_network(ROD, FEW.model_copy(update={"architecture": architecture}))
    generator = torch.Generator().manual_seed(layers)
    with torch.no_grad():
        for values in (*network.parameters(), network.linear):
            values.copy_(0.05 * torch.randn(values.shape, generator=generator))
        if architecture.directions:
            size = network.bending.shape
            network.bending.copy_(3e-3 * torch.randn(size, generator=generator))
            network.bending[:, -1] = 0.0
        network.output_scale.copy_(torch.rand(len(network.output_scale), generator=generator))
    states, told = (torch.randn(6, k, n, generator=generator) for k, n in ((6, 72), (5, 9)))
    told[:, :, -3:] = told[:, :1, -3:]  # parameters stay over a motion
    first = torch.cat((torch.zeros(1, 72), torch.randn(5, 72, generator=generator)))
    first.requires_grad_()
    found = []
    for function in (loop_error, gathered_loop_error):
        network.zero_grad()
        first.grad = None
        value = function(network, first, states, told, 0.05)
        value.backward()
        found.append([value.detach(), first.grad, *(each.grad for each in network.parameters())])
    for ours, theirs in zip(*found, strict=True):
        distance = torch.linalg.vector_norm(ours - theirs)
        assert distance < 1e-5 * torch.linalg.vector_norm(theirs)


# -- what can be recorded --------------------------------------------------------------------------


class Operations(TorchDispatchMode):
    """Which operations torch is asked for."""

    def __init__(self):
        super().__init__()
        self.names, self.devices = [], set()

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        self.names.append(func.overloadpacket.__name__)
        given = tree_leaves((args, kwargs))
        self.devices |= {each.device.type for each in given if isinstance(each, torch.Tensor)}
        return func(*args, **(kwargs or {}))


class MetaGenerator(torch.Generator):
    """Draws for a device that has no chance."""

    device = torch.device("meta")

    def __new__(cls, device):
        return super().__new__(cls)


def kinds_of(settings):
    return [
        training._Kind(steps, physics, compute)
        for steps in sorted({stage.steps for stage in settings.stages})
        for physics in (False, True)
        for compute in (torch.float32, torch.bfloat16)
    ]


@pytest.mark.parametrize("settings", [FEW, OWN_SHAPES], ids=["muon", "adam"])
def test_an_iteration_consists_of_what_a_cuda_graph_can_record(
    tmp_path, data, settings, monkeypatch
):
    """On a device without values: whoever asks for one, or mixes devices, fails at once."""
    network, tensors = training._prepared(ROD, data, settings, None, lambda progress: None)
    meta = torch.device("meta")
    if settings is FEW:
        network.kept_amplitudes = network.amplitudes()
    windows, noisy, (physics, points) = tensors
    for name in ("_states", "_told", "_inner"):
        setattr(windows, name, getattr(windows, name).to(meta))
    residual = physics._residual
    for each in (residual, physics):
        for name, value in vars(each).items():
            if isinstance(value, torch.Tensor):
                setattr(each, name, value.to(meta))
    given = training._Data(windows, on_device(noisy, meta), (physics, on_device(points, meta)))
    monkeypatch.setattr(training, "_recordable", lambda device: True)
    monkeypatch.setattr(training, "Recorder", lambda generator: None)
    monkeypatch.setattr(torch, "Generator", MetaGenerator)
    trainer = training._Trainer(network.on(meta), given, settings, tmp_path / "network")
    for kind in kinds_of(settings):
        network.compute_type = kind.compute
        with Operations() as seen:
            trainer._optimise(kind)
        assert len(seen.names) > 100
        assert seen.devices == {"meta"}
        # constants come from the host; decompositions tell the host whether they went well
        forbidden = {"lift_fresh", "_local_scalar_dense", "nonzero", "item"}
        assert not forbidden & set(seen.names)
        algebra = {name for name in seen.names if "linalg" in name}
        assert algebra <= {"linalg_cross", "linalg_vector_norm"}


# -- the optimisers --------------------------------------------------------------------------------


def parameters(shapes, seed=0):
    generator = torch.Generator().manual_seed(seed)
    return [torch.nn.Parameter(torch.randn(shape, generator=generator)) for shape in shapes]


@pytest.mark.parametrize("kind", ["muon", "adam"])
def test_optimisers_of_a_device_do_what_those_of_torch_do(kind):
    shapes = [(48, 20), (16, 40), (30, 30)] + ([(7,)] if kind == "adam" else [])
    ours, theirs = parameters(shapes), parameters(shapes)
    if kind == "muon":
        first = DeviceMuon(ours, 0.02)
        second = torch.optim.Muon(theirs, lr=0.02, weight_decay=0.0)
    else:
        first = DeviceAdam(ours, 0.02, (0.9, 0.99))
        second = torch.optim.Adam(theirs, lr=0.02, betas=(0.9, 0.99))
    begin = torch.cat([each.detach().flatten() for each in ours])
    for step in range(6):
        for group in (*first.param_groups, *second.param_groups):
            group["lr"] = 0.02 / (1 + step)
        gradients = parameters(shapes, seed=step + 1)
        for each, other, gradient in zip(ours, theirs, gradients, strict=True):
            each.grad, other.grad = gradient.detach().clone(), gradient.detach().clone()
        first.tell_rate()
        first.step_where(torch.tensor(True))
        second.step()
        for each in ours:  # what must not be done leaves no trace
            each.grad = torch.full_like(each, torch.nan)
        first.step_where(torch.tensor(False))
    ends = [torch.cat([each.detach().flatten() for each in all_]) for all_ in (ours, theirs)]
    moved = torch.linalg.vector_norm(ends[1] - begin)
    # bfloat16 in the one, single precision in the other
    share = 0.02 if kind == "muon" else 1e-5
    assert torch.linalg.vector_norm(ends[0] - ends[1]) < share * moved


# -- on a GPU --------------------------------------------------------------------------------------


@pytest.fixture
def gpu():
    if not torch.cuda.is_available():
        pytest.skip("no CUDA device")


@pytest.mark.gpu
@pytest.mark.parametrize("precision", ["float32", "mixed"])
@pytest.mark.parametrize("settings", [FEW, OWN_SHAPES], ids=["muon", "adam"])
def test_a_recording_is_what_it_has_recorded(tmp_path, data, gpu, settings, precision, monkeypatch):
    """CUDA graphs against the same operations one by one, in every stage."""
    there = settings.model_copy(update={"device": "cuda", "precision": precision})
    recorded, card = trained(tmp_path / "recorded", data, there)
    assert card.hardware["gpu"]

    def one_by_one(self, kind, work):
        work()

    monkeypatch.setattr(training.Recorder, "__call__", one_by_one)
    eager, _ = trained(tmp_path / "eager", data, there)
    distance = torch.linalg.vector_norm(recorded - eager)
    assert distance < 0.02 * torch.linalg.vector_norm(eager)


@pytest.mark.gpu
def test_a_gpu_goes_on_where_it_was(tmp_path, data, gpu, monkeypatch):
    there = FEW.model_copy(update={"device": "cuda"})
    straight, _ = trained(tmp_path / "straight", data, there)
    halted, card = halted_and_gone_on(tmp_path, data, monkeypatch, there)
    assert card.iterations == FEW.iterations
    distance = torch.linalg.vector_norm(halted - straight)
    assert distance < 0.02 * torch.linalg.vector_norm(straight)
