"""The rod on CUDA says what the processor says: its text compiled for this processor, as machine
code of GPUs, and on a GPU."""

import re
from collections import Counter

import numpy as np
import pytest
import torch
from host_module import COMPILER
from host_rod import HostRod

from softcr_models import CosseratRod, UserError, load_robot
from softcr_models.cuda import compiler
from softcr_models.cuda.compiler import compiled
from softcr_models.cuda.prediction import LEAST_BATCH, CudaRodPrediction
from softcr_models.cuda.source import lanes_of, source_of
from softcr_models.devices import what_cuda_lacks
from softcr_models.prediction import RodPrediction, RodSettings
from softcr_models.rod.cosserat_rod import linearisations
from softcr_studies.speed.machine_code import disassembled
from softcr_studies.speed.timing import Skipped

PERIOD = 1 / 70
SHIPPED = ("licher2025", "licher2025_chain", "two_segments", "tendon_arm")
OTHERS = ("till_tendon", "three_segments", "four_chambers", "rao_two_segments")
ARCHITECTURES = ("sm_80", "sm_90", "sm_120")
FINE = ("till_tendon", "rao_two_segments")
"""Whose steps of a whole period are not finite before a retry."""
HOPELESS = 3

needs_compiler = pytest.mark.skipif(COMPILER is None, reason="no g++ is here")


def rod_of(name, intervals=5):
    robot = load_robot(name)
    return CosseratRod(
        robot, intervals, payload=robot.estimated_payload, curvature_stiffness=robot.stiffens
    )


class Case:
    """Candidates of a robot in motion, each with a state, inputs and parameters of its own.

    They set out from rest, so that their states are ones that the robot can have.
    """

    def __init__(self, name, intervals=5, count=5, steps=3, seed=0, effort=0.5, host=None):
        random = np.random.default_rng(seed)
        self.rod = rod_of(name, intervals)
        model = RodPrediction(self.rod, single_precision=False)
        self.scale, low, high = model.state_scale, model.inputs.low, model.inputs.high
        levels = low + effort * (high - low) * random.uniform(size=(count, 4 + steps, len(low)))
        change = np.diff(levels, axis=1)
        most = model.inputs.rate * PERIOD
        levels = levels[:, :1] + np.cumsum(
            np.concatenate((np.zeros_like(change[:, :1]), change.clip(-most, most)), axis=1), axis=1
        ).clip(low - levels[:, :1], high - levels[:, :1])
        nominal = self.rod.nominal_parameters
        self.parameters = nominal * random.uniform(0.9, 1.1, (count, len(nominal)))
        for column, parameter in enumerate(model.parameters):
            if parameter.transform == "linear":
                share = random.uniform(0.1 if parameter.low >= 0.0 else -0.1, 0.3, count)
                self.parameters[:, column] = share * min(parameter.high, 0.5)
        rest = np.tile(self.rod.rest_state(), (count, 1))
        self._host = HostRod(self.rod, np.float64, host) if host and COMPILER else None
        before = self._advanced(rest, levels[:, :4], model)
        self.moving, self.inputs = before[:, -1], levels[:, 3:]
        self.rod.largest_errors = 1e9, 1e9  # texts are compared, and not what is refined

    @property
    def arrays(self):
        return self.moving, self.inputs, self.parameters

    def _advanced(self, states, levels, model, tips=False):
        """What the processor says; with `host` its own text, which needs less compiling."""
        if self._host is not None:
            return self._host.rollout(states, levels, self.parameters, PERIOD, tips=tips)
        rolled = model._advance(states, levels, self.parameters, PERIOD, tips=tips, precise=True)
        return rolled.reshape(*rolled.shape[:2], -1)

    def in_double(self, tips):
        """(B, T, nx or 12) in double precision, two sub-steps."""
        model = RodPrediction(self.rod, single_precision=False)
        return self._advanced(self.moving, self.inputs, model, tips)

    def expected(self, tips, single=False, substeps=2, dt=PERIOD):
        model = RodPrediction(self.rod, substeps, single_precision=single)
        rolled = model._advance(*self.arrays, dt, tips=tips, precise=False)
        return rolled.reshape(*rolled.shape[:2], -1)


def failing(hopeless, host=None):
    """Rods so fast that all need retries but the first; one is beyond help."""
    case, random = Case("licher2025", intervals=2, steps=1, host=host), np.random.default_rng(1)
    case.moving[1:] = case.scale * random.normal(size=case.moving[1:].shape)
    case.moving[HOPELESS] = hopeless
    case.rod.largest_errors = 20.0, 20.0
    return case


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("host")


def assert_close(found, expected, scale, bound):
    assert np.isfinite(expected).all()
    assert found.dtype == expected.dtype
    np.testing.assert_array_less(np.abs(found - expected) / scale, bound)


@needs_compiler
@pytest.mark.parametrize("name", SHIPPED + OTHERS)
def test_the_text_says_what_the_processor_says(name, folder):
    """In double precision; within the bound of single precision, too, where controllers use it."""
    case = Case(name)
    host = HostRod(case.rod, np.float64, folder)
    dt = 1e-4 if name in FINE else PERIOD
    for tips, scale in ((False, case.scale), (True, 1.0)):
        expected = case.expected(tips, dt=dt)
        assert np.ptp(expected, axis=1).max() > 1e-5 * np.max(scale)  # it moves
        assert_close(host.rollout(*case.arrays, dt, tips=tips), expected, scale, 1e-12)
        if name in SHIPPED:
            single = HostRod(case.rod, np.float32, folder)
            found = single.rollout(*case.arrays, dt, tips=tips, dtype=np.float32)
            assert_close(found, expected.astype(np.float32), scale, 2e-5)
    poses = RodPrediction(case.rod).tip_poses(case.moving, case.parameters)
    assert_close(host.tips(case.moving, case.parameters), poses.reshape(-1, 12), 1.0, 1e-12)


@needs_compiler
def test_long_steps_shared_rows_and_other_grids(folder):
    long = 1 / 40
    assert linearisations(long) == 2
    case = Case("licher2025", intervals=2, count=3)
    host = HostRod(case.rod, np.float64, folder)
    found = host.rollout(*case.arrays, long / 2, pieces=2)
    assert_close(found, case.expected(False, dt=long), case.scale, 1e-12)
    one = case.moving[:1], case.inputs, case.parameters[:1]
    every = np.repeat(one[0], 3, axis=0), case.inputs, np.repeat(one[2], 3, axis=0)
    assert (host.rollout(*one, PERIOD) == host.rollout(*every, PERIOD)).all()
    case = Case("licher2025", intervals=12, count=2)
    found = HostRod(case.rod, np.float64, folder).rollout(*case.arrays, PERIOD, tips=True)
    assert_close(found, case.expected(True), 1.0, 1e-12)


@needs_compiler
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_a_candidate_whose_result_is_not_finite_is_done_again_finer_or_nan(folder, dtype):
    """The second kernel computes in double precision and does only what the first left NaN."""
    case = failing(1e200 if dtype is np.float64 else 1e30)
    quick, precise = (HostRod(case.rod, each, folder) for each in (dtype, np.float64))
    for tips in (False, True):
        expected = case.expected(tips, single=dtype is np.float32, substeps=1)
        limit = RodPrediction(case.rod, 1)._run(PERIOD).limits[0]
        given = {"substeps": 1, "tips": tips, "dtype": dtype, "largest_error": limit}
        out = quick.rollout(*case.arrays, PERIOD, **given)
        lost = np.isnan(out).all(axis=(1, 2))
        assert (lost == np.isnan(out).any(axis=(1, 2))).all()  # all of a candidate or nothing
        assert not lost[0]
        assert lost[HOPELESS]
        first = out[0].copy()
        precise.rollout(*case.arrays, PERIOD, doublings=9, out=out, again=1, **given)
        assert (out[0] == first).all()
        hopeless = np.arange(5) == HOPELESS
        assert (np.isnan(out) == hopeless[:, None, None]).all()
        assert (np.isnan(expected) == hopeless[:, None, None]).all()
        retried = lost & ~hopeless
        assert retried.any()
        scale = 1.0 if tips else np.abs(expected[retried]).max(axis=(0, 1))
        bound = 1e-11 if dtype is np.float64 else 1e-4
        assert (np.abs(out[retried] - expected[retried]) / scale).max() < bound
        at_once = quick.rollout(*case.arrays, PERIOD, doublings=9, **given)
        assert (at_once[0] == first).all()
        assert np.isnan(at_once[HOPELESS]).all()
        assert (np.abs(at_once[retried] - expected[retried]) / scale).max() < bound


@needs_compiler
def test_only_steps_that_need_it_are_finer(folder):
    """Along many steps of a rod that slows down, as the processor does it step by step."""
    case = Case("licher2025", intervals=2, steps=12, host=folder)
    case.moving[1:] = case.scale * np.random.default_rng(3).normal(size=case.moving[1:].shape)
    case.rod.largest_errors = 5.0, 5.0
    model = RodPrediction(case.rod, 1, single_precision=False)
    given = {"substeps": 1, "largest_error": model._run(PERIOD).limits[0]}
    host = HostRod(case.rod, np.float64, folder)
    found = [host.rollout(*case.arrays, PERIOD, doublings=each, **given) for each in (0, 9)]
    expected = case.expected(False, substeps=1)
    assert np.isnan(found[0]).all(axis=(1, 2)).any()
    assert_close(found[1], expected, case.scale, 1e-10)
    assert model.retries.attempts < 4 * 12 * len(expected)


@needs_compiler
def test_what_is_not_finite_disturbs_no_other_candidate(folder):
    case = Case("two_segments", count=3)
    host = HostRod(case.rod, np.float64, folder)
    alone = host.rollout(*case.arrays, PERIOD)
    case.inputs[1, 1, 0] = np.nan
    found = host.rollout(*case.arrays, PERIOD)
    assert np.isnan(found[1]).all()
    assert (found[[0, 2]] == alone[[0, 2]]).all()


def test_without_a_gpu_one_line_says_what_is_missing():
    lacks = what_cuda_lacks("rod")
    if not lacks:
        pytest.skip("a GPU is here")
    with pytest.raises(UserError, match="'cuda' cannot be used here: ") as caught:
        RodPrediction.of_robot(load_robot("licher2025"), RodSettings(device="cuda"))
    assert lacks in str(caught.value)
    model = RodPrediction.of_robot(load_robot("licher2025"), RodSettings(device="auto"))
    assert type(model) is RodPrediction


def test_rods_that_are_none_for_a_gpu_are_refused_in_one_line():
    assert lanes_of(rod_of("licher2025")) == 8
    assert lanes_of(rod_of("two_segments")) == 16
    with pytest.raises(UserError, match="40 intervals in 1 segments are 41 rows: a GPU takes 32"):
        lanes_of(rod_of("licher2025", 40))
    with pytest.raises(UserError, match="no obstacles and no force at the tip"):
        lanes_of(CosseratRod(load_robot("licher2025"), 5, tip_force=True))


# -- compiled for GPUs -----------------------------------------------------------------------------


@pytest.fixture(scope="module")
def nvrtc():
    try:
        from cuda.bindings import nvrtc

        nvrtc.nvrtcVersion()
    except (ImportError, RuntimeError) as error:
        pytest.skip(f"NVRTC is not here (make setup-cuda): {error}")


# registers of the rollout in single precision, at most, where it neither has a stack nor spills
REGISTERS = {"licher2025": 128, "licher2025_chain": 128, "tendon_arm": 128, "two_segments": 168}


@pytest.mark.parametrize("architecture", ARCHITECTURES)
@pytest.mark.parametrize("name", SHIPPED)
def test_every_kernel_compiles_within_its_bounds(nvrtc, tmp_path, name, architecture):
    rod = rod_of(name)
    single = compiled(source_of(rod, np.float32), architecture, tmp_path)
    assert set(single.resources) == {"rollout_float", "tips_float"}
    rollout = single.resources["rollout_float"]
    # only that one has shared memory for more blocks than 255 registers allow
    assert rollout.registers <= (REGISTERS[name] if architecture == "sm_90" else 255)
    assert (rollout.stack, rollout.spilled) == (0, 0)
    assert single.resources["tips_float"].spilled == 0
    double = compiled(source_of(rod, np.float64), architecture, tmp_path)
    assert set(double.resources) == {f"{k}_{t}" for k in ("rollout", "tips") for t in REALS}
    assert all(each.registers <= 255 and each.stack <= 1024 for each in double.resources.values())
    assert compiled(source_of(rod, np.float32), architecture, tmp_path) == single  # of the cache
    opcodes = opcodes_of(single.cubin)
    assert opcodes["rollout_float"]["FFMA"] > 500
    for kernel in ("rollout_float", "tips_float"):
        # but for the step's length, which comes as a double and is rounded before the loop
        doubles = Counter({op: n for op, n in opcodes[kernel].items() if re.match(r"D[A-Z]", op)})
        assert doubles <= Counter(DSETP=1), kernel
    assert sum(opcodes_of(double.cubin)["rollout_double"][op] for op in DOUBLES) > 500


REALS = ("float", "double")
DOUBLES = ("DFMA", "DADD", "DMUL")


def opcodes_of(cubin):
    """How often each kernel has each instruction, by its name without modifiers."""
    try:
        kernels = disassembled(cubin)
    except Skipped as reason:
        pytest.skip(str(reason))
    return {name: Counter(one.base for one in program) for name, program in kernels.items()}


def test_the_compiler_says_what_it_refuses(nvrtc, tmp_path):
    with pytest.raises(RuntimeError, match=r"(?s)refuses the text for sm_90:.*undefined"):
        compiled("__global__ void k() { undefined(); }", "sm_90", tmp_path)
    assert not list(tmp_path.iterdir())


def test_what_was_compiled_is_not_compiled_again_and_needs_no_cache(nvrtc, tmp_path, monkeypatch):
    text = 'extern "C" __global__ void k(float* x) { *x = 3.0f * *x; }'
    (tmp_path / "file").write_text("in the place of a folder")
    made, cache = compiled(text, "sm_90", tmp_path / "file" / "cache"), tmp_path / "cache"
    assert compiled(text, "sm_90", cache) == made
    (path,) = cache.iterdir()
    path.write_bytes(b"k 1 2")  # a broken file is made anew
    assert compiled(text, "sm_90", cache) == made
    assert path.read_bytes().endswith(made.cubin)
    monkeypatch.setattr(compiler, "_compile", None)
    assert compiled(text, "sm_90", cache) == made
    with pytest.raises(TypeError):  # another architecture is compiled
        compiled(text, "sm_80", cache)


# -- on a GPU --------------------------------------------------------------------------------------


@pytest.fixture
def gpu():
    lacks = what_cuda_lacks("rod")
    if lacks:
        pytest.skip(lacks)
    return torch.device("cuda", 0)


def on_gpu(case, gpu, single, substeps=2):
    """A case's rod on a GPU, and its arrays."""
    model = CudaRodPrediction(case.rod, substeps, single)
    return model, [torch.tensor(each, dtype=model.tensor_type, device=gpu) for each in case.arrays]


@pytest.mark.gpu
@pytest.mark.parametrize("single", [False, True])
@pytest.mark.parametrize("name", SHIPPED)
def test_the_gpu_agrees_with_the_processor(gpu, folder, name, single):
    case = Case(name, count=37, host=folder)  # fills no warp evenly
    model, tensors = on_gpu(case, gpu, single)
    for tips, scale in ((False, case.scale), (True, 1.0)):
        advance = model.rollout_tips_on_device if tips else model.rollout_on_device
        found = advance(*tensors, PERIOD).cpu().numpy().reshape(37, 3, -1)
        expected = case.in_double(tips).astype(found.dtype)
        assert_close(found, expected, scale, 2e-5 if single else 1e-11)
    poses = model.tip_poses_on_device(tensors[0], tensors[2]).cpu().numpy()
    expected = RodPrediction(case.rod).tip_poses(case.moving, case.parameters)
    assert np.abs(poses - expected).max() < (1e-5 if single else 1e-12)


@pytest.mark.gpu
def test_the_gpu_retries_and_gives_up_as_the_processor(gpu, folder, monkeypatch):
    case = failing(1e30, folder)
    expected = case.expected(False, substeps=1)
    for single in (False, True):
        model, tensors = on_gpu(case, gpu, single, 1)
        found = model.rollout_on_device(*tensors, PERIOD).cpu().numpy()
        with monkeypatch.context() as patched:
            patched.setattr("softcr_models.cuda.prediction.doublings_of", lambda run: 0)
            raw = model.rollout_on_device(*tensors, PERIOD)
        lost = torch.isnan(raw).cpu().numpy().all(axis=(1, 2))
        assert lost.any()
        assert not lost[0]
        assert np.array_equal(found[0], raw[0].cpu().numpy())  # whatever its neighbours need
        hopeless = np.arange(5) == HOPELESS
        assert (np.isnan(found) == hopeless[:, None, None]).all()
        scale = np.abs(expected[~hopeless]).max(axis=(0, 1))
        errors = np.abs(found[~hopeless] - expected[~hopeless]) / scale
        assert errors.max() < (1e-4 if single else 1e-10)


@pytest.mark.gpu
def test_large_batches_of_arrays_go_to_the_gpu_and_come_back(gpu, folder):
    case = Case("licher2025", count=LEAST_BATCH, host=folder)
    model, _ = on_gpu(case, gpu, True)
    found = model._advance(*case.arrays, PERIOD, tips=True, precise=False)
    assert found.dtype == np.float32
    expected = case.in_double(True).astype(np.float32)
    assert_close(found.reshape(LEAST_BATCH, 3, 12), expected, 1.0, 2e-5)
    stepped = model.step(case.moving, case.inputs[:, 0], case.inputs[:, 1], case.parameters, PERIOD)
    assert stepped.dtype == np.float64
    assert_close(stepped, case.in_double(False)[:, 0], case.scale, 1e-11)


@pytest.mark.gpu
def test_a_rollout_can_be_recorded_and_tensors_are_checked(gpu, folder):
    case = Case("licher2025_chain", count=64, host=folder)
    model, tensors = on_gpu(case, gpu, True)
    expected = model.rollout_tips_on_device(*tensors, PERIOD)
    graph, out = torch.cuda.CUDAGraph(), torch.zeros_like(expected)
    with torch.cuda.graph(graph):
        model.rollout_tips_on_device(*tensors, PERIOD, out)
    graph.replay()
    torch.cuda.synchronize()
    assert torch.equal(out, expected)
    states, inputs, parameters = tensors
    with pytest.raises(UserError, match=r"inputs of type torch\.float64 on cuda:0: allowed is"):
        model.rollout_on_device(states, inputs.double(), parameters, PERIOD)
    with pytest.raises(UserError, match="states is not contiguous"):
        model.rollout_on_device(states.T.contiguous().T, inputs, parameters, PERIOD)
    with pytest.raises(UserError, match=r"parameters of shape \(3, "):
        model.rollout_on_device(states, inputs, parameters[:3].contiguous(), PERIOD)
    with pytest.raises(UserError, match=r"out of shape"):
        model.rollout_on_device(*tensors, PERIOD, out)
