"""Kernels for a GPU compiled for this processor: for tests without a GPU."""

import ctypes
import hashlib
import shutil
import subprocess
import tempfile
from pathlib import Path

import pytest

from softcr_models.cuda import module

COMPILER = shutil.which("g++")
OPTIONS = ("-O1", "-std=c++17", "-ffp-contract=off", "-shared", "-fPIC", "-Wno-unknown-pragmas")
_FOLDER = tempfile.TemporaryDirectory(prefix="softcr_kernels_")  # gone with this process


def library_of(text, folder=None):
    """The kernels of a text, as a library of C functions."""
    path = Path(folder or _FOLDER.name) / f"{hashlib.sha256(text.encode()).hexdigest()[:16]}.so"
    if not path.exists():
        path.with_suffix(".cpp").write_text(text)
        command = [COMPILER, *OPTIONS, str(path.with_suffix(".cpp")), "-o", str(path)]
        subprocess.run(command, check=True, capture_output=True)
    return ctypes.CDLL(str(path))


class HostModule:
    """What `Module` is, of tensors on the processor: a kernel has ended when it is launched."""

    def __init__(self, text, device):
        self._library = library_of(text)

    def launch(self, kernel, tensors, told, blocks, threads=0, room=0):
        assert all(each is None or each.is_contiguous() for each in tensors)
        places = (ctypes.c_void_p(0 if each is None else each.data_ptr()) for each in tensors)
        getattr(self._library, kernel)(*places, told)


class NoModule:
    """Of tensors without values."""

    def __init__(self, text, device):
        pass

    def launch(self, kernel, tensors, told, blocks, threads=0, room=0):
        pass


@pytest.fixture(autouse=True, scope="module")
def kernels_on_this_processor():
    """For all tests of a file that imports it."""
    if COMPILER is None:
        pytest.skip("no g++ is here")
    on_gpu = module.Module

    def chosen(text, device):
        return on_gpu(text, device) if device.type == "cuda" else HostModule(text, device)

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(module, "Module", chosen)
        yield
