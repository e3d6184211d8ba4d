"""Where a batch is computed: the processor, or an NVIDIA GPU through CUDA.

Libraries are imported only once a GPU is known to be there.
"""

import ctypes
import importlib.util
import platform
from collections.abc import Callable
from pathlib import Path
from typing import Literal, get_args

from softcr_models.errors import UserError

DeviceName = Literal["auto", "cpu", "cuda"]
DEVICES: tuple[str, ...] = get_args(DeviceName)
DRIVER = "libcuda.so.1"
LEAST_CUDA = 12
"""Major version that a driver must know for the rod's kernels."""
LEAST_CAPABILITY = (8, 0)
"""Of a GPU, for the rod's kernels: a smaller one has too little room for a candidate."""
_MAJOR, _MINOR = 75, 76  # the driver's numbers of the attributes that are a GPU's capability


def resolve_device(device: str, library: str) -> str:
    """What `device` means on this machine for code that computes with `library`.

    Args:
        device: "cpu", "cuda", or "auto": "cuda" if it can be used, else "cpu".
        library: "torch" (the surrogate) or "rod" (the exact rod's kernels, beside torch).

    Returns:
        "cpu" or "cuda".

    Raises:
        UserError: for another word, or for "cuda" where it cannot be used.
    """
    if device not in DEVICES:
        raise UserError(f"device: {device!r} is not allowed: {', '.join(DEVICES)}")
    if device == "cpu":
        return "cpu"
    missing = what_cuda_lacks(library)
    if missing and device == "cuda":
        raise UserError(f"device: 'cuda' cannot be used here: {missing}")
    return "cpu" if missing else "cuda"


def what_cuda_lacks(library: str) -> str:
    """Why `library` ("torch" or "rod") cannot use CUDA on this machine; empty if it can."""
    return _driver_lacks() or _LIBRARIES[library]()


def gpu_name() -> str:
    """What the first GPU calls itself, for figures measured on it; empty without one."""
    if _driver_lacks():
        return ""
    driver, device, name = ctypes.CDLL(DRIVER), ctypes.c_int(0), ctypes.create_string_buffer(256)
    driver.cuDeviceGet(ctypes.byref(device), 0)
    driver.cuDeviceGetName(name, len(name), device)
    return name.value.decode(errors="replace")


def processor_name() -> str:
    """What the processor calls itself, for figures measured on it."""
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        return platform.processor()
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.processor()


def _driver_lacks() -> str:
    try:
        driver = ctypes.CDLL(DRIVER)
    except OSError:
        return f"no NVIDIA driver ({DRIVER} was not found)"
    count = ctypes.c_int(0)
    error = driver.cuInit(0) or driver.cuDeviceGetCount(ctypes.byref(count))
    if error or not count.value:
        return f"the NVIDIA driver shows no GPU (error {error}, {count.value} devices)"
    return ""


def _torch_lacks() -> str:
    if importlib.util.find_spec("torch") is None:
        return "PyTorch is not installed"
    import torch

    if torch.cuda.is_available():
        return ""
    if torch.version.cuda is None:
        return f"PyTorch {torch.__version__} is built without CUDA"
    return f"PyTorch {torch.__version__} (CUDA {torch.version.cuda}) cannot use this driver"


def _rod_lacks() -> str:
    return _gpu_lacks() or _torch_lacks() or _compiler_lacks()


def _gpu_lacks() -> str:
    """Why the rod's kernels cannot run on the first GPU."""
    driver, (major, minor) = ctypes.CDLL(DRIVER), _cuda_of_driver()
    if major < LEAST_CUDA:
        return f"the NVIDIA driver is for CUDA {major}.{minor}, and {LEAST_CUDA} or later is needed"
    device, found = ctypes.c_int(0), (ctypes.c_int(0), ctypes.c_int(0))
    driver.cuDeviceGet(ctypes.byref(device), 0)
    for number, attribute in zip(found, (_MAJOR, _MINOR), strict=True):
        driver.cuDeviceGetAttribute(ctypes.byref(number), attribute, device)
    capability = found[0].value, found[1].value
    if capability < LEAST_CAPABILITY:
        own, least = (".".join(map(str, each)) for each in (capability, LEAST_CAPABILITY))
        return f"{gpu_name()} has compute capability {own}, and {least} or more is needed"
    return ""


def _cuda_of_driver() -> tuple[int, int]:
    """The version of CUDA that the driver is for."""
    version = ctypes.c_int(0)
    ctypes.CDLL(DRIVER).cuDriverGetVersion(ctypes.byref(version))
    return version.value // 1000, version.value % 1000 // 10


def _compiler_lacks() -> str:
    try:
        from cuda.bindings import nvrtc

        made = int(nvrtc.nvrtcVersion()[1])
    except ImportError:
        return "the package cuda-bindings is not installed (pip install 'softcr[cuda]')"
    except RuntimeError:
        return "NVIDIA's compiler NVRTC is not installed (pip install 'softcr[cuda]')"
    major, minor = _cuda_of_driver()
    if made > major:
        return (
            f"NVRTC compiles for CUDA {made}, and the NVIDIA driver is for {major}.{minor}: update "
            f"the driver, or pip install 'cuda-bindings<{major + 1}' nvidia-cuda-nvrtc-cu{major}"
        )
    return ""


_LIBRARIES: dict[str, Callable[[], str]] = {"torch": _torch_lacks, "rod": _rod_lacks}
