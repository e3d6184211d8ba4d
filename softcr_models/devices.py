"""Where a batch is computed: the processor, or an NVIDIA GPU through CUDA.

Libraries are imported only once a GPU is known to be there.
"""

import ctypes
import importlib.util
import os
import platform
from collections.abc import Callable
from pathlib import Path
from typing import Literal, get_args

from softcr_models.errors import UserError

DeviceName = Literal["auto", "cpu", "cuda"]
DEVICES: tuple[str, ...] = get_args(DeviceName)
DRIVER = "libcuda.so.1"


def resolve_device(device: str, library: str) -> str:
    """What `device` means on this machine for code that computes with `library`.

    Args:
        device: "cpu", "cuda", or "auto": "cuda" if it can be used, else "cpu".
        library: "torch" (the surrogate) or "numba" (the exact rod).

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
    """Why `library` ("torch" or "numba") cannot use CUDA on this machine; empty if it can."""
    if library == "numba" and os.environ.get("NUMBA_ENABLE_CUDASIM") == "1":
        return ""  # numba's simulator needs nothing
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


def _numba_lacks() -> str:
    if importlib.util.find_spec("numba_cuda") is None:
        return "the package numba-cuda is not installed (pip install 'softcr[cuda]')"
    from numba import cuda

    if not cuda.is_available():
        return "numba-cuda finds no CUDA it can use (`numba -s` says more)"
    return ""


_LIBRARIES: dict[str, Callable[[], str]] = {"torch": _torch_lacks, "numba": _numba_lacks}
