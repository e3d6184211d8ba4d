"""A rod's kernels on the first GPU: compiled, loaded, and put on a stream of torch."""

import ctypes
from typing import Any

import numpy as np
import torch

from softcr_models.cuda.compiler import compiled
from softcr_models.cuda.source import WARP, lanes_of, source_of
from softcr_models.errors import UserError
from softcr_models.rod.cosserat_rod import CosseratRod

ATTEMPTS = 8
"""Of a call, at most: the room that `rod.cu` has for their sub-steps."""


_INTEGERS = (
    "batch", "steps", "one_state", "one_parameters", "pieces", "fresh", "tips", "again", "attempts",
)  # fmt: skip


class Call(ctypes.Structure):
    """What all candidates of a call share: `Call` of `rod.cu`, which says what each number is."""

    _fields_ = [
        *((name, ctypes.c_int) for name in _INTEGERS),
        ("substeps", ctypes.c_int * ATTEMPTS),
        ("length", ctypes.c_double),
        ("largest_error", ctypes.c_double),
    ]


class Kernels:
    """The kernels of one rod that compute in one float type.

    Raises:
        UserError: the rod is none for a GPU, see `lanes_of`, there is no compiler, or the GPU does
            not take what it made.
    """

    def __init__(self, rod: CosseratRod, dtype: type[np.floating], device: torch.device) -> None:
        from cuda.bindings import driver

        self._driver, self._device = driver, device
        major, minor = torch.cuda.get_device_capability(device)
        made = compiled(source_of(rod, dtype), f"sm_{major}{minor}")
        with torch.cuda.device(device):
            torch.cuda.current_stream().synchronize()  # its context is this thread's from here on
            self._module = self._checked(driver.cuModuleLoadData(made.cubin))
            self._functions = {
                name: self._checked(driver.cuModuleGetFunction(self._module, name.encode()))
                for name in made.resources
            }
            self._candidates = WARP // lanes_of(rod)
            self._room = self._candidates * int(self._constant("candidate_bytes"))
            for function in self._functions.values():
                attribute = driver.CUfunction_attribute
                most = attribute.CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES
                self._checked(driver.cuFuncSetAttribute(function, most, self._room))

    def rollout(
        self,
        states: torch.Tensor,
        inputs: torch.Tensor,
        parameters: torch.Tensor,
        out: torch.Tensor,
        call: Call,
    ) -> None:
        """Enqueues a rollout on torch's current stream; all of one type, which names the kernel."""
        self._launch("rollout", (states, inputs, parameters, out), call)

    def tips(
        self, states: torch.Tensor, parameters: torch.Tensor, out: torch.Tensor, call: Call
    ) -> None:
        """Enqueues tip poses (B, 12) of states."""
        self._launch("tips", (states, parameters, out), call)

    def _launch(self, kernel: str, tensors: tuple[torch.Tensor, ...], call: Call) -> None:
        ending = "float" if tensors[0].dtype == torch.float32 else "double"
        values: list[Any] = [ctypes.c_void_p(tensor.data_ptr()) for tensor in tensors]
        values.append(call)
        places = (ctypes.c_void_p * len(values))(*map(ctypes.addressof, values))
        where = ctypes.addressof(places), self._room
        blocks = -(-call.batch // self._candidates)
        with torch.cuda.device(self._device):
            stream = torch.cuda.current_stream().cuda_stream
            function, (places_at, room) = self._functions[f"{kernel}_{ending}"], where
            self._checked(
                self._driver.cuLaunchKernel(
                    function, blocks, 1, 1, WARP, 1, 1, room, stream, places_at, 0
                )
            )

    def _constant(self, name: str) -> int:
        """A number that the module holds."""
        place, size = self._checked(self._driver.cuModuleGetGlobal(self._module, name.encode()))
        value = ctypes.c_int(0)
        self._checked(self._driver.cuMemcpyDtoH(ctypes.addressof(value), place, size))
        return value.value

    def _checked(self, answer: tuple[Any, ...]) -> Any:
        error, *rest = answer
        if error != self._driver.CUresult.CUDA_SUCCESS:
            raise UserError(f"device: 'cuda': the GPU refuses the rod's kernels: {error.name}")
        return rest[0] if len(rest) == 1 else tuple(rest)
