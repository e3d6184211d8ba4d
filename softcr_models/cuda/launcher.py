"""A rod's kernels on the first GPU."""

import ctypes

import numpy as np
import torch

from softcr_models.cuda.module import Module
from softcr_models.cuda.source import WARP, lanes_of, source_of
from softcr_models.rod.cosserat_rod import CosseratRod

_INTEGERS = (
    "batch", "steps", "one_state", "one_parameters", "pieces", "fresh", "tips", "again", "substeps",
    "doublings",
)  # fmt: skip


class Call(ctypes.Structure):
    """What all candidates of a call share: `Call` of `rod.cu`, which says what each number is."""

    _fields_ = [
        *((name, ctypes.c_int) for name in _INTEGERS),
        ("length", ctypes.c_double),
        ("largest_error", ctypes.c_double),
        ("quick_length", ctypes.c_float),
        ("quick_largest_error", ctypes.c_float),
    ]

    @classmethod
    def of(cls, length: float, largest_error: float, **more: int) -> "Call":
        """A call with pieces of a length [s] and with a largest squared error, and its integers."""
        return cls(
            length=length, largest_error=largest_error, quick_length=length,
            quick_largest_error=largest_error, **more,
        )  # fmt: skip


class Kernels:
    """The kernels of one rod that compute in one float type.

    Raises:
        UserError: the rod is none for a GPU, see `lanes_of`, there is no compiler, or the GPU does
            not take what it made.
    """

    def __init__(self, rod: CosseratRod, dtype: type[np.floating], device: torch.device) -> None:
        self._module = Module(source_of(rod, dtype), device)
        self._candidates = WARP // lanes_of(rod)
        self._room = self._candidates * self._module.constant("candidate_bytes")
        self._module.give_room(self._room)

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
        blocks = -(-call.batch // self._candidates)
        self._module.launch(f"{kernel}_{ending}", tensors, call, blocks, WARP, self._room)
