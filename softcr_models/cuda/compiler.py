"""CUDA C++ to machine code, by NVIDIA's NVRTC, once for each text, architecture and compiler.

Nothing here needs a GPU.
"""

import hashlib
import os
import re
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from softcr_models.errors import UserError
from softcr_models.kernel_cache import cache_home

OPTIONS = ("--std=c++17", "--ftz=true", "--prec-div=false", "--prec-sqrt=false", "--fmad=true")
"""As on the processor: numbers near zero are zero, quotients may be off by two units in the last
place, and products are fused with sums. NaN stays NaN."""


@dataclass(frozen=True)
class Resources:
    """What a kernel takes of a multiprocessor, for each thread.

    Attributes:
        registers: [-].
        stack: local memory [bytes].
        spilled: bytes that are stored to and loaded from local memory for want of registers.
    """

    registers: int
    stack: int
    spilled: int


@dataclass(frozen=True)
class Compiled:
    """A module of kernels in machine code.

    Attributes:
        cubin: for one architecture.
        resources: of each kernel, by name.
    """

    cubin: bytes
    resources: dict[str, Resources]


def compiled(text: str, architecture: str, cache: Path | None = None) -> Compiled:
    """The machine code of a text, from the cache where it was compiled before.

    Args:
        text: CUDA C++, whole.
        architecture: as "sm_90".
        cache: folder; the user's, if none is given.

    Raises:
        UserError: there is no NVRTC, the line says what to install; or no folder can be written.
    """
    nvrtc = _nvrtc()
    version = _checked(nvrtc, nvrtc.nvrtcVersion())
    told = "\n".join((*OPTIONS, architecture, str(version), text))
    folder = cache or cache_home() / "cuda"
    path = folder / f"{hashlib.sha256(told.encode()).hexdigest()[:32]}.{architecture}"
    try:
        return _read(path)
    except (OSError, ValueError):
        made = _compile(nvrtc, text, architecture)
    with suppress(OSError):  # a folder that cannot be written: compiled again at the next start
        _write(path, made)
    return made


def _nvrtc() -> Any:
    try:
        from cuda.bindings import nvrtc

        nvrtc.nvrtcVersion()
    except (ImportError, RuntimeError) as error:
        line = str(error).splitlines()[0]
        raise UserError(f"CUDA: NVRTC is missing ({line}): pip install 'softcr[cuda]'") from None
    return nvrtc


def _compile(nvrtc: Any, text: str, architecture: str) -> Compiled:
    program = _checked(nvrtc, nvrtc.nvrtcCreateProgram(text.encode(), b"rod.cu", 0, [], []))
    options = (*OPTIONS, f"--gpu-architecture={architecture}", "--ptxas-options=--verbose")
    (error,) = nvrtc.nvrtcCompileProgram(
        program, len(options), [option.encode() for option in options]
    )
    log = bytearray(_checked(nvrtc, nvrtc.nvrtcGetProgramLogSize(program)))
    _checked(nvrtc, nvrtc.nvrtcGetProgramLog(program, log))
    said = bytes(log).rstrip(b"\0").decode(errors="replace")
    if error != nvrtc.nvrtcResult.NVRTC_SUCCESS:
        raise RuntimeError(f"NVRTC refuses the text for {architecture}:\n{said}")
    cubin = bytearray(_checked(nvrtc, nvrtc.nvrtcGetCUBINSize(program)))
    _checked(nvrtc, nvrtc.nvrtcGetCUBIN(program, cubin))
    nvrtc.nvrtcDestroyProgram(program)
    return Compiled(bytes(cubin), _resources(said))


def _resources(log: str) -> dict[str, Resources]:
    """What ptxas says of each kernel."""
    found = {}
    for entry in re.split(r"Compiling entry function '", log)[1:]:
        name = entry.split("'", 1)[0]
        stack, stored, loaded = map(
            int,
            re.search(  # type: ignore[union-attr]
                r"(\d+) bytes stack frame, (\d+) bytes spill stores, (\d+) bytes spill loads", entry
            ).groups(),
        )
        registers = int(re.search(r"Used (\d+) registers", entry).group(1))  # type: ignore[union-attr]
        found[name] = Resources(registers, stack, stored + loaded)
    return found


def _checked(nvrtc: Any, answer: tuple[Any, ...]) -> Any:
    error, *rest = answer
    if error != nvrtc.nvrtcResult.NVRTC_SUCCESS:
        raise RuntimeError(f"NVRTC: {error.name}")
    return rest[0] if len(rest) == 1 else tuple(rest)


def _read(path: Path) -> Compiled:
    """Of the cache: a line a kernel, an empty one, the machine code."""
    head, separator, cubin = path.read_bytes().partition(b"\n\n")
    if not separator or not cubin:
        raise ValueError(path)
    lines = (line.split() for line in head.decode().splitlines())
    return Compiled(cubin, {name: Resources(*map(int, numbers)) for name, *numbers in lines})


def _write(path: Path, made: Compiled) -> None:
    lines = [
        f"{name} {each.registers} {each.stack} {each.spilled}"
        for name, each in made.resources.items()
    ]
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_name(f"{path.name}.{os.getpid()}")
    part.write_bytes("\n".join(lines).encode() + b"\n\n" + made.cubin)
    part.replace(path)
