"""`device: auto | cpu | cuda` means what it says, and says what is missing."""

import subprocess
import sys

import pytest

from softcr_models import UserError, devices
from softcr_models.devices import resolve_device


@pytest.fixture
def with_cuda(monkeypatch):
    monkeypatch.setattr(devices, "what_cuda_lacks", lambda library: "")


@pytest.fixture
def without_driver(monkeypatch):
    def no_library(name):
        raise OSError(f"{name}: cannot open shared object file")

    monkeypatch.delenv("NUMBA_ENABLE_CUDASIM", raising=False)
    monkeypatch.setattr(devices.ctypes, "CDLL", no_library)


@pytest.fixture
def with_driver(monkeypatch):
    monkeypatch.setattr(devices, "_driver_lacks", lambda: "")


@pytest.mark.parametrize("library", ["torch", "numba"])
def test_with_a_gpu(with_cuda, library):
    assert [resolve_device(device, library) for device in devices.DEVICES] == [
        "cuda",
        "cpu",
        "cuda",
    ]


@pytest.mark.parametrize("library", ["torch", "numba"])
def test_without_a_driver(without_driver, library):
    assert resolve_device("auto", library) == "cpu"
    assert resolve_device("cpu", library) == "cpu"
    with pytest.raises(UserError, match=r"device: 'cuda' .*libcuda\.so\.1"):
        resolve_device("cuda", library)


def test_another_word_is_refused():
    with pytest.raises(UserError, match=r"'gpu' is not allowed: auto, cpu, cuda"):
        resolve_device("gpu", "torch")


class Driver:
    """As much of NVIDIA's driver as is asked."""

    def __init__(self, error, count):
        self.error, self.count = error, count

    def cuInit(self, flags):
        return self.error

    def cuDeviceGetCount(self, count):
        count._obj.value = self.count
        return 0

    def cuDeviceGet(self, device, ordinal):
        device._obj.value = 7 + ordinal
        return 0

    def cuDeviceGetName(self, name, size, device):
        name.value = f"GPU number {device.value}".encode()[:size]
        return 0


@pytest.mark.parametrize(("error", "count"), [(100, 0), (0, 0), (3, 1)])
def test_a_driver_without_a_gpu(monkeypatch, error, count):
    monkeypatch.setattr(devices.ctypes, "CDLL", lambda name: Driver(error, count))
    assert f"shows no GPU (error {error}" in devices.what_cuda_lacks("torch")
    assert devices.gpu_name() == ""


def test_the_name_of_the_gpu(monkeypatch):
    monkeypatch.setattr(devices.ctypes, "CDLL", lambda name: Driver(0, 2))
    assert devices.gpu_name() == "GPU number 7"


@pytest.mark.parametrize(
    ("library", "package", "said"),
    [("numba", "numba_cuda", r"softcr\[cuda\]"), ("torch", "torch", "PyTorch is not installed")],
)
def test_a_driver_without_the_library(with_driver, monkeypatch, library, package, said):
    find = devices.importlib.util.find_spec
    monkeypatch.setattr(
        devices.importlib.util, "find_spec", lambda name: None if name == package else find(name)
    )
    with pytest.raises(UserError, match=said):
        resolve_device("cuda", library)


def test_a_torch_without_cuda(with_driver):
    torch = pytest.importorskip("torch")
    if torch.version.cuda is not None:
        pytest.skip("this PyTorch is built with CUDA")
    with pytest.raises(UserError, match="is built without CUDA"):
        resolve_device("cuda", "torch")


def test_nothing_heavy_is_imported_for_it():
    code = (
        "import sys, softcr_models.devices as d; d.resolve_device('cpu', 'torch');"
        "sys.exit(any(name == 'torch' or name.startswith('numba.cuda') for name in sys.modules))"
    )
    assert subprocess.run([sys.executable, "-c", code], timeout=60).returncode == 0
