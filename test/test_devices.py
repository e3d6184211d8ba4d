"""`device: auto | cpu | cuda` means what it says, and says what is missing."""

import subprocess
import sys
from types import SimpleNamespace

import pytest

from softcr_models import UserError, devices
from softcr_models.devices import resolve_device


@pytest.mark.parametrize("library", ["torch", "rod"])
def test_with_a_gpu(monkeypatch, library):
    monkeypatch.setattr(devices, "what_cuda_lacks", lambda library: "")
    found = [resolve_device(device, library) for device in devices.DEVICES]
    assert found == ["cuda", "cpu", "cuda"]


@pytest.mark.parametrize("library", ["torch", "rod"])
def test_without_a_driver(monkeypatch, library):
    def no_library(name):
        raise OSError(f"{name}: cannot open shared object file")

    monkeypatch.setattr(devices.ctypes, "CDLL", no_library)
    assert resolve_device("auto", library) == "cpu"
    assert resolve_device("cpu", library) == "cpu"
    with pytest.raises(UserError, match=r"device: 'cuda' .*libcuda\.so\.1"):
        resolve_device("cuda", library)


def test_another_word_is_refused():
    with pytest.raises(UserError, match=r"'gpu' is not allowed: auto, cpu, cuda"):
        resolve_device("gpu", "torch")


def driver(error=0, count=1, version=12080, capability=(9, 0)):
    """As much of NVIDIA's driver as is asked."""

    def tells(value):
        def tell(pointer, *asked):
            pointer._obj.value = value(*asked) if callable(value) else value
            return 0

        return tell

    def name_of(name, size, device):
        name.value = f"GPU number {device.value}".encode()[:size]
        return 0

    return SimpleNamespace(
        cuInit=lambda flags: error,
        cuDeviceGetCount=tells(count),
        cuDeviceGet=tells(lambda ordinal: 7 + ordinal),
        cuDriverGetVersion=tells(version),
        cuDeviceGetAttribute=tells(lambda attribute, device: capability[attribute - 75]),
        cuDeviceGetName=name_of,
    )


@pytest.fixture
def a_gpu(monkeypatch):
    """Puts a GPU and its driver in the place of this machine's."""
    return lambda **known: monkeypatch.setattr(devices.ctypes, "CDLL", lambda name: driver(**known))


@pytest.mark.parametrize(("error", "count"), [(100, 0), (0, 0), (3, 1)])
def test_a_driver_without_a_gpu(a_gpu, error, count):
    a_gpu(error=error, count=count)
    assert f"shows no GPU (error {error}" in devices.what_cuda_lacks("torch")
    assert devices.gpu_name() == ""


def lacks_of_the_rod():
    with pytest.raises(UserError) as caught:
        resolve_device("cuda", "rod")
    assert resolve_device("auto", "rod") == "cpu"
    return str(caught.value)


TOO_OLD = "the NVIDIA driver is for CUDA 11.8, and 12 or later is needed"
TOO_SMALL = "GPU number 7 has compute capability 7.5, and 8.0 or more is needed"


@pytest.mark.parametrize(
    ("known", "said"),
    [
        ({"version": 11080}, TOO_OLD),
        ({"capability": (7, 5)}, TOO_SMALL),
        ({"capability": (8, 0)}, None),
        ({"capability": (8, 9)}, None),
        ({"capability": (12, 0)}, None),
    ],
)
def test_a_driver_and_a_gpu_will_do_or_it_is_said_what_they_lack(a_gpu, monkeypatch, known, said):
    a_gpu(**known)
    if said:
        assert said in lacks_of_the_rod()
    monkeypatch.setattr(devices, "_torch_lacks", lambda: "")
    monkeypatch.setattr(devices, "_compiler_lacks", lambda: "")
    assert resolve_device("auto", "rod") == ("cpu" if said else "cuda")


@pytest.mark.parametrize("library", ["torch", "rod"])
def test_a_driver_without_pytorch(a_gpu, monkeypatch, library):
    find = devices.importlib.util.find_spec
    a_gpu()
    monkeypatch.setattr(
        devices.importlib.util, "find_spec", lambda name: None if name == "torch" else find(name)
    )
    with pytest.raises(UserError, match="PyTorch is not installed"):
        resolve_device("cuda", library)


def not_to_be_loaded():
    raise RuntimeError("libnvrtc: cannot be found")


@pytest.mark.parametrize(
    ("bindings", "said"),
    [
        (None, r"the package cuda-bindings is not installed \(pip install 'softcr\[cuda\]'\)"),
        (SimpleNamespace(nvrtc=SimpleNamespace(nvrtcVersion=not_to_be_loaded)), "compiler NVRTC"),
    ],
)
def test_a_gpu_without_a_compiler_for_the_rod(a_gpu, monkeypatch, bindings, said):
    a_gpu()
    monkeypatch.setattr(devices, "_torch_lacks", lambda: "")
    monkeypatch.setitem(sys.modules, "cuda.bindings", bindings)
    monkeypatch.setitem(sys.modules, "cuda", bindings and SimpleNamespace(bindings=bindings))
    with pytest.raises(UserError, match=said):
        resolve_device("cuda", "rod")


def test_a_compiler_that_is_newer_than_the_driver(a_gpu, monkeypatch):
    """Machine code of CUDA 13 cannot be loaded by a driver of CUDA 12."""
    a_gpu(version=12040)
    bindings = SimpleNamespace(nvrtc=SimpleNamespace(nvrtcVersion=lambda: (0, 13, 0)))
    monkeypatch.setattr(devices, "_torch_lacks", lambda: "")
    monkeypatch.setitem(sys.modules, "cuda.bindings", bindings)
    monkeypatch.setitem(sys.modules, "cuda", SimpleNamespace(bindings=bindings))
    said = lacks_of_the_rod()
    assert "NVRTC compiles for CUDA 13, and the NVIDIA driver is for 12.4" in said
    assert "pip install 'cuda-bindings<13' nvidia-cuda-nvrtc-cu12" in said
    a_gpu(version=13000)
    assert resolve_device("auto", "rod") == "cuda"


def test_a_torch_without_cuda(monkeypatch):
    torch = pytest.importorskip("torch")
    if torch.version.cuda is not None:
        pytest.skip("this PyTorch is built with CUDA")
    monkeypatch.setattr(devices, "_driver_lacks", lambda: "")
    with pytest.raises(UserError, match="is built without CUDA"):
        resolve_device("cuda", "torch")


def test_nothing_heavy_is_imported_for_it():
    code = (
        "import sys, softcr_models.devices as d; d.resolve_device('cpu', 'torch');"
        "sys.exit(any(name == 'torch' or name.startswith('cuda') for name in sys.modules))"
    )
    assert subprocess.run([sys.executable, "-c", code], timeout=60).returncode == 0
