"""The text of the rod's CUDA kernels, compiled for this processor: for tests without a GPU."""

import ctypes

import numpy as np
from host_module import library_of

from softcr_models.cuda.launcher import Call
from softcr_models.cuda.source import source_of


class HostRod:
    """A rod's kernels, which compute in `dtype`, on the processor."""

    def __init__(self, rod, dtype, folder):
        self._rod = rod
        self._library = library_of(source_of(rod, dtype), folder)

    def rollout(
        self, states, inputs, parameters, length, *, substeps=2, doublings=0, pieces=1, tips=False,
        fresh=0, out=None, again=0, dtype=np.float64, largest_error=1e30,
    ):  # fmt: skip
        """(B, T, nx or 12), as the kernel of tensors of `dtype` writes it."""
        arrays = [np.ascontiguousarray(each, dtype) for each in (states, inputs, parameters)]
        batch, steps = inputs.shape[0], inputs.shape[1] - 1
        if out is None:
            out = np.full((batch, steps, 12 if tips else states.shape[1]), 7.0, dtype)
        call = Call.of(
            length, largest_error, batch=batch, steps=steps, one_state=len(states) == 1,
            one_parameters=len(parameters) == 1, pieces=pieces, fresh=fresh, tips=tips,
            again=again, substeps=substeps, doublings=doublings,
        )  # fmt: skip
        self._call("rollout", (*arrays, out), call)
        return out

    def tips(self, states, parameters, dtype=np.float64):
        """(B, 12) of states."""
        out = np.full((len(states), 12), 7.0, dtype)
        call = Call(batch=len(states), one_parameters=len(parameters) == 1)
        arrays = (np.ascontiguousarray(each, dtype) for each in (states, parameters))
        self._call("tips", (*arrays, out), call)
        return out

    def _call(self, kernel, arrays, call):
        ending = "float" if arrays[0].dtype == np.float32 else "double"
        function = getattr(self._library, f"{kernel}_{ending}")
        function(*(ctypes.c_void_p(array.ctypes.data) for array in arrays), call)
