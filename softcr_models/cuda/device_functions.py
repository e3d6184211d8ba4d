"""The rod's equations for CUDA: the functions of `softcr_models.rod`, with other globals.

The equations stand once, in `rod.kernel` and `rod.rosenbrock`. Four things they take from their
module differ on a GPU, so each function is made again from its own code object with these replaced:

- `local`, where scratch comes from: a thread's local memory;
- `MAX_NODES`, `MAX_SEGMENTS`, `MAX_TENDONS`, its size: that of the rod at hand, because the driver
  reserves local memory for every thread the device could hold (64 intervals would be 135 kB each);
- numbers: float32 ones where the arithmetic is float32, because numba makes float64 of float32
  times a Python float;
- `np`, of which they need `exp` alone, and numba-cuda has it in `math` only.
"""

import math
from collections.abc import Callable
from types import FunctionType
from typing import Any

import numpy as np
from numba import config, cuda, from_dtype

from softcr_models.rod import simd
from softcr_models.rod.section import Grid

OURS = "softcr_models."
# numba's simulator (NUMBA_ENABLE_CUDASIM=1) runs kernels as plain Python
SIMULATED = bool(config.ENABLE_CUDASIM)


class DeviceFunctions:
    """Makes device functions out of the rod's functions, each once.

    Attributes:
        grid, tendons: for which scratch is sized; the tendons are those of the exact model.
        dtype: np.float32 or np.float64, of all arithmetic.
    """

    def __init__(self, grid: Grid, tendons: int, dtype: type[np.floating]) -> None:
        self.grid, self.tendons = grid, tendons
        self.dtype = dtype
        self.local = _local_memory(dtype)
        self._made: dict[FunctionType, Callable] = {}

    def of(self, function: Any) -> Callable:
        """The device function with the text of `function`, be it compiled, and of all it calls."""
        text: FunctionType = getattr(function, "py_func", function)
        if text not in self._made:
            code = text.__code__
            constants = tuple(self.number(constant) for constant in code.co_consts)
            names = {
                name: self._global(name, text.__globals__[name])
                for name in code.co_names
                if name in text.__globals__
            }
            names["__name__"] = text.__module__
            copy = FunctionType(code.replace(co_consts=constants), names, text.__name__)
            self._made[text] = cuda.jit(device=True)(copy)
        return self._made[text]

    def number(self, value: Any) -> Any:
        """A float, or an array or named tuple of such, in the arithmetic's type."""
        if isinstance(value, float):
            return self.dtype(value)
        if isinstance(value, np.ndarray):
            return value.astype(self.dtype) if value.dtype.kind == "f" else value
        if isinstance(value, tuple) and hasattr(value, "_fields"):
            return type(value)(*map(self.number, value))
        return value

    def _global(self, name: str, value: Any) -> Any:
        replaced = {
            "local": self.local,
            "MAX_NODES": int(self.grid.first_row[-1]),
            "MAX_SEGMENTS": self.grid.segments,
            "MAX_TENDONS": max(1, self.tendons),
            "np": math,
        }
        if name in replaced:
            return replaced[name]
        if callable(value) and not isinstance(value, type) and _is_ours(value):
            return self.of(value)
        return self.number(value)


def _is_ours(function: Callable) -> bool:
    return getattr(function, "__module__", "").startswith(OURS)


def _local_memory(dtype: type[np.floating]) -> Callable:
    """`simd.local` for CUDA; `like` only tells lanes from numbers, and here are no lanes."""
    if SIMULATED:
        return simd.local
    element = from_dtype(np.dtype(dtype))

    @cuda.jit(device=True, inline="always")
    def local(like, shape):
        return cuda.local.array(shape, element)

    return local
