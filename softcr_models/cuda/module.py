"""Compiled kernels on a GPU: loaded once, and put on torch's current stream."""

import ctypes
from collections.abc import Sequence
from typing import Any

import torch

from softcr_models.cuda.compiler import compiled
from softcr_models.errors import UserError

THREADS = 128
"""Of a block, where a kernel says no other number."""


class Module:
    """The kernels of a text.

    A kernel's parameters are pointers, and behind them one structure that says the rest.

    Raises:
        UserError: the device is none, there is no compiler, or the GPU does not take what it made.
    """

    def __init__(self, text: str, device: torch.device) -> None:
        """Compiles the text for the device, unless that was done before, and loads it."""
        if device.type != "cuda":
            raise UserError(f"kernels on the device {device}: allowed is a GPU")
        try:
            from cuda.bindings import driver
        except ImportError as error:
            raise UserError(f"CUDA: {error}: pip install 'softcr[cuda]'") from None

        self._driver, self._device = driver, device
        major, minor = torch.cuda.get_device_capability(device)
        made = compiled(text, f"sm_{major}{minor}")
        with torch.cuda.device(device):
            torch.cuda.current_stream().synchronize()  # its context is this thread's from here on
            self._module = self._checked(driver.cuModuleLoadData(made.cubin))
            self._functions = {
                name: self._checked(driver.cuModuleGetFunction(self._module, name.encode()))
                for name in made.resources
            }

    def give_room(self, size: int) -> None:
        """Allows all kernels so much shared memory that is asked for at a launch [bytes]."""
        attribute = self._driver.CUfunction_attribute
        most = attribute.CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES
        with torch.cuda.device(self._device):
            for function in self._functions.values():
                self._checked(self._driver.cuFuncSetAttribute(function, most, size))

    def launch(
        self,
        kernel: str,
        tensors: Sequence[torch.Tensor | None],
        told: ctypes.Structure,
        blocks: int,
        threads: int = THREADS,
        room: int = 0,
    ) -> None:
        """Enqueues a kernel on torch's current stream.

        Args:
            kernel: its name.
            tensors: whose memory it reads and writes; it must live until the kernel has ended, as
                all memory does that torch keeps for this stream. None: no memory.
            told: the structure.
            blocks, threads: of the launch.
            room: shared memory of a block [bytes].

        Raises:
            UserError: the GPU refuses.
        """
        values: list[Any] = [
            ctypes.c_void_p(0 if each is None else each.data_ptr()) for each in tensors
        ]
        values.append(told)
        places = (ctypes.c_void_p * len(values))(*map(ctypes.addressof, values))
        with torch.cuda.device(self._device):
            stream = torch.cuda.current_stream().cuda_stream
            self._checked(
                self._driver.cuLaunchKernel(
                    self._functions[kernel], blocks, 1, 1, threads, 1, 1, room, stream,
                    ctypes.addressof(places), 0,
                )
            )  # fmt: skip

    def constant(self, name: str) -> int:
        """A number that the module holds."""
        place, _ = self._checked(self._driver.cuModuleGetGlobal(self._module, name.encode()))
        value = ctypes.c_int(0)
        self._checked(
            self._driver.cuMemcpyDtoH(ctypes.addressof(value), place, ctypes.sizeof(value))
        )
        return value.value

    def _checked(self, answer: tuple[Any, ...]) -> Any:
        error, *rest = answer
        if error != self._driver.CUresult.CUDA_SUCCESS:
            raise UserError(f"device: 'cuda': the GPU refuses a kernel: {error.name}")
        return rest[0] if len(rest) == 1 else tuple(rest)
