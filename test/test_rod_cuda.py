"""The rod on CUDA says what the processor says: in numba's simulator, as PTX, and on a GPU."""

import importlib.util
import os
import re
import subprocess
import sys
from pathlib import Path

import cuda_cases
import numpy as np
import pytest

from softcr_models import CosseratRod, UserError
from softcr_models.devices import what_cuda_lacks
from softcr_models.rod import linear_solver, packing, rosenbrock

SIMULATED = {"NUMBA_ENABLE_CUDASIM": "1"}


@pytest.fixture(scope="module")
def expected():
    return cuda_cases.expected()


@pytest.fixture(scope="module")
def simulated(tmp_path_factory):
    return found_by_a_process(tmp_path_factory.mktemp("simulator"), SIMULATED)


def found_by_a_process(folder, environment):
    """What `cuda_cases` finds where numba starts anew."""
    path = folder / "found.npz"
    command = [sys.executable, str(Path(__file__).with_name("cuda_cases.py")), str(path)]
    done = subprocess.run(
        command, env=os.environ | environment, capture_output=True, text=True, timeout=300
    )
    assert done.returncode == 0, done.stderr
    return dict(np.load(path))


def assert_same(found, expected, exact):
    """`exact` is the tolerance in float64, absolute below 1 and relative above."""
    for name, value in expected.items():
        tolerance = 3e-4 if value.dtype == np.float32 else exact
        assert found[name].dtype == value.dtype, name
        close = pytest.approx(value, rel=tolerance, abs=tolerance, nan_ok=True)
        assert found[name] == close, name


def test_the_kernels_agree_with_the_processor_in_the_simulator(simulated, expected):
    assert {value.dtype for value in expected.values()} == {np.dtype("f4"), np.dtype("f8")}
    assert_same(simulated, expected, 1e-12)


def test_a_candidate_that_leaves_the_numbers_is_done_again_finer_or_nan(simulated):
    raw = np.isnan(simulated["without retries"])
    assert raw.all(axis=(1, 2)).tolist() == [False, True, True, True, True]
    assert not raw[0].any()
    for name in ("failing rollout", "failing tips"):
        lost = np.isnan(simulated[name])
        hopeless = np.arange(5) == cuda_cases.HOPELESS
        assert (lost == hopeless.reshape(-1, *(1,) * (lost.ndim - 1))).all(), name


def test_arrays_a_kernel_must_not_be_given_are_refused(simulated):
    assert "parameters of shape (3, 3)" in str(simulated["refused shape"])
    assert "(1, 3) or (5, 3)" in str(simulated["refused shape"])
    assert "inputs on the device of type float32" in str(simulated["refused type"])
    assert "CudaRodPrediction.rollout: state of shape (12,)" in str(simulated["refused state"])
    assert "CudaRodPrediction.rollout: inputs of shape" in str(simulated["refused chambers"])
    assert "CudaRodPrediction.step: dt: -0.1 s" in str(simulated["refused dt"])
    assert "bending_compliance: -1.0 is not allowed" in str(simulated["refused sign"])


def test_the_bench_measures_it(simulated):
    assert (simulated["bench medians"] > 0.0).all()
    # two sub-steps in float32 against sixteen: neither nothing nor a different rod
    assert ((simulated["bench tip errors"] > 1e-7) & (simulated["bench tip errors"] < 2e-4)).all()


def test_without_a_gpu_one_line_says_what_is_missing():
    from softcr_models.cuda.prediction import CudaRodPrediction

    if not what_cuda_lacks("numba"):
        pytest.skip("a GPU is here")
    with pytest.raises(UserError, match="'cuda' cannot be used here: ") as caught:
        CudaRodPrediction(CosseratRod(cuda_cases.ROBOT, 2))
    assert what_cuda_lacks("numba") in str(caught.value)


def test_device_functions_are_the_text_itself():
    """Same bytecode; only constants and globals differ."""
    from softcr_models.cuda.device_functions import DeviceFunctions

    grid = CosseratRod(cuda_cases.ROBOT, 3).grid
    functions = DeviceFunctions(grid, 0, np.float32)
    for function in (
        rosenbrock.step, rosenbrock._advance, linear_solver.solve, packing.tip_pose
    ):  # fmt: skip
        made = functions.of(function).py_func
        assert made.__code__.co_code == function.__code__.co_code
        assert functions.of(function) is functions.of(function)
    made = functions.of(rosenbrock._advance).py_func
    assert made.__globals__["MAX_NODES"] == 4
    assert made.__globals__["STAGE_POINT"].dtype == np.float32
    assert made.__globals__["solve"] is functions.of(linear_solver.solve)
    assert {type(c) for c in made.__code__.co_consts} >= {np.float32}
    assert float not in {type(c) for c in made.__code__.co_consts}


@pytest.fixture
def compile_ptx(monkeypatch):
    """Compiles a kernel's text for an H200 (sm_90), which needs no GPU but the compiler."""
    if importlib.util.find_spec("numba_cuda") is None:
        pytest.skip("numba-cuda is not installed (pip install 'softcr[cuda]')")
    from numba import cuda, float32, float64, int64, void
    from numba.cuda import dispatcher
    from numba.cuda.cudadrv import nvvm

    try:
        nvvm.NVVM()
    except Exception as error:  # what it raises depends on which library is missing
        pytest.skip(f"NVVM, CUDA's compiler library, is not here: {error}")

    class H200:
        compute_capability = (9, 0)

    monkeypatch.setattr(dispatcher, "get_current_device", lambda: H200)

    def compile_ptx(rollout_text, dtype):
        real = float32 if dtype is np.float32 else float64
        rows, levels = real[:, ::1], real[:, :, ::1]
        integers = (int64, int64[::1], int64, int64, int64)
        types = void(rows, levels, rows, *integers, float64, levels)
        rod = CosseratRod(cuda_cases.ROBOT, 5)
        return cuda.compile_ptx(rollout_text(rod, dtype), types, cc=(9, 0))[0]

    return compile_ptx


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_the_rollout_compiles_for_an_h200(compile_ptx, dtype):
    from softcr_models.cuda.kernels import rollout_text

    ptx = compile_ptx(rollout_text, dtype)
    assert ".target sm_90" in ptx
    assert len(re.findall(r"\.entry", ptx)) == 1
    multiplied = {bits: len(re.findall(rf"(fma\.rn|mul)\.f{bits}", ptx)) for bits in (32, 64)}
    scratch = sum(int(size) for size in re.findall(r"__local_depot\d+\[(\d+)\]", ptx))
    # factors, increments, stages and nodes of five intervals; 64 would take over 100 kB
    numbers = 5 * 168 + 6 * 36 + 14 * 36
    assert 0.9 * numbers < scratch / np.dtype(dtype).itemsize < 1.5 * numbers
    if dtype is np.float32:
        # what is left in float64: reciprocals and exponentials of the section, times, weights
        assert multiplied[64] < 0.1 * multiplied[32]
    else:
        assert multiplied[32] < 0.01 * multiplied[64]


@pytest.fixture
def gpu():
    lacks = what_cuda_lacks("numba")
    if lacks:
        pytest.skip(lacks)


@pytest.mark.gpu
def test_the_gpu_agrees_with_the_processor(gpu, tmp_path, expected):
    found = found_by_a_process(tmp_path, {})
    # fused multiply-adds, and retries of rods that move at hundreds of metres per second
    assert_same(found, expected, 1e-9)


@pytest.mark.gpu
def test_tensors_of_torch_stay_on_the_gpu(gpu, expected):
    torch = pytest.importorskip("torch")
    lacks = what_cuda_lacks("torch")
    if lacks:
        pytest.skip(lacks)
    from softcr_models.cuda.prediction import CudaRodPrediction

    case = cuda_cases.Case(5)
    model = CudaRodPrediction(case.rod, single_precision=False)
    inputs = [
        torch.as_tensor(array, device="cuda")
        for array in (case.moving, case.pressures, case.parameters)
    ]
    out = torch.empty((5, 2, 3, 4), dtype=torch.float64, device="cuda")
    stream = torch.cuda.current_stream().cuda_stream
    same = model.rollout_tips_on_device(*inputs, cuda_cases.PERIOD, out, stream)
    assert same is out
    assert out.cpu().numpy() == pytest.approx(expected["on device tips"], rel=1e-9, abs=1e-9)
