"""The chain for candidates that are tensors, in front of its rod on a device."""

import ctypes
from collections.abc import Mapping
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
import torch

from softcr_models.chain.memory import ChainMemory
from softcr_models.cuda import module
from softcr_models.cuda.device_model import DeviceFutures, DeviceModel, Moment, inner
from softcr_models.cuda.source import table, text

if TYPE_CHECKING:
    from softcr_models.chain.chain_model import ChainModel

_OF_ROD = "rod."  # begins the names of what the rod is told


class _Futures(ctypes.Structure):
    """What candidates share: `Futures` of `chain.cu`."""

    _fields_ = (("batch", ctypes.c_int), ("rows", ctypes.c_int))


class DeviceChain:
    """A `DeviceModel` of a rod behind its chain.

    What acts on the rod is linear in readings and in what is remembered of them, so the processor
    finds a tick's matrix with the chain's own kernel. What is remembered is followed along the
    readings by a kernel of the device.

    Args:
        chain: the model on the processor.
        rod: of the rod behind it, on the device.
        step: from one predicted state to the next [s].

    Raises:
        UserError: the device has no compiler, or does not take what it made.
    """

    def __init__(self, chain: "ChainModel", rod: DeviceModel, step: float) -> None:
        self.device = rod.device
        self._chain, self._rod = chain, rod
        memory, self._count = chain.inputs.memory, chain.inputs.size
        known = memory if isinstance(memory, ChainMemory) else ChainMemory(self._count, (), ())
        self._remembered = known.size
        self._module = module.Module(source_of(known, self._count, step), self.device)

    def shapes(self, horizon: int, longest_delay: int) -> dict[str, tuple[int, ...]]:
        return {
            "remembered": (self._remembered,),
            "acting": (self._count + self._remembered, self._count),
            "offset": (self._count,),
            "marker": (4, 4),
            **{
                _OF_ROD + name: shape
                for name, shape in self._rod.shapes(horizon, longest_delay).items()
            },
        }

    def told(self, moment: Moment) -> dict[str, np.ndarray]:
        chain, count, parameters = self._chain, self._count, moment.parameters[None]
        columns = moment.approach.shape[1]
        acting = chain.acting_pressures(np.eye(columns)[None], parameters)[0]
        offset, remembered = np.zeros(count), np.zeros(0)
        if moment.remembered is not None:
            remembered, offset = moment.remembered, moment.offset @ acting[:count]
            acting[:count] *= moment.gain[:, None]
        marker = np.eye(4)
        marker[:3, 3] = chain.marker_offset(moment.parameters)
        approach = chain.acting_pressures(np.ascontiguousarray(moment.approach)[None], parameters)
        of_rod = self._rod.told(
            replace(
                moment,
                approach=approach[0],
                remembered=None,
                parameters=chain.rod_parameters(parameters)[0],
            )
        )
        return {
            "remembered": remembered,
            "acting": acting,
            "offset": offset,
            "marker": marker,
            **{_OF_ROD + name: values for name, values in of_rod.items()},
        }

    def begun(self, told: Mapping[str, torch.Tensor]) -> Mapping[str, torch.Tensor]:
        of_rod = self._rod.begun(inner(_OF_ROD, told))
        return {**told, **{_OF_ROD + name: values for name, values in of_rod.items()}}

    def futures(self, begun: Mapping[str, torch.Tensor], readings: torch.Tensor) -> DeviceFutures:
        acting = self._acting_pressures(begun, readings)
        seen = self._rod.futures(inner(_OF_ROD, begun), acting)
        return _AtMarker(seen, begun["marker"]) if self._chain.moves_marker else seen

    def _acting_pressures(
        self, begun: Mapping[str, torch.Tensor], readings: torch.Tensor
    ) -> torch.Tensor:
        """(B, N + 1, m) pressures that act on the rod [Pa], of readings (B, N + 1, m)."""
        batch, rows, count = readings.shape
        out = torch.empty_like(readings)
        tensors = (readings, begun["remembered"], begun["acting"], begun["offset"], out)
        blocks = -(-batch * count // module.THREADS)
        self._module.launch("acting", tensors, _Futures(batch, rows), blocks)
        return out


def source_of(memory: ChainMemory, inputs: int, step: float) -> str:
    """The kernel's whole text for a memory of m inputs and steps of so long [s]."""
    behind, left = memory.lag_tick(step)
    sizes = {"COUNT": inputs, "STOPS": len(memory.radii), "LAGS": len(memory.times)}
    # a table must not be empty
    tables = {name: np.append(values, 0.0) for name, values in
              {"RADII": memory.radii, "BEHIND": behind, "LEFT": left}.items()}  # fmt: skip
    return "\n".join(
        (
            *(f"#define {name} {value}" for name, value in sizes.items()),
            text("grid.cu"),
            *(table("float", name, values) for name, values in tables.items()),
            text("chain.cu"),
        )
    )


class _AtMarker:
    """`DeviceFutures` whose tips are seen at a marker beside the rod's own.

    Args:
        seen: of the rod.
        marker: (4, 4) the marker's pose in the frame of the tip [m].
    """

    def __init__(self, seen: DeviceFutures, marker: torch.Tensor) -> None:
        self._seen, self._marker = seen, marker

    @property
    def states(self) -> torch.Tensor:
        return self._seen.states

    @cached_property
    def tip_poses(self) -> torch.Tensor:
        poses = self._seen.tip_poses
        return torch.mm(poses.reshape(-1, 4), self._marker).view(poses.shape)
