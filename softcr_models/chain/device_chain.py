"""The chain for candidates that are tensors, in front of its rod on a device."""

from collections.abc import Mapping
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
import torch

from softcr_models.chain.memory import ChainMemory
from softcr_models.cuda.device_model import DeviceFutures, DeviceModel, Moment, inner

if TYPE_CHECKING:
    from softcr_models.chain.chain_model import ChainModel

_OF_ROD = "rod."  # begins the names of what the rod is told


class DeviceChain:
    """A `DeviceModel` of a rod behind its chain.

    What acts on the rod is linear in readings and in what is remembered of them, so the processor
    finds a tick's matrix with the chain's own kernel. Lags are linear, too; stops are not, and are
    followed along the readings.

    Args:
        chain: the model on the processor.
        rod: of the rod behind it, on the device.
        period: of a tick [s].
    """

    def __init__(self, chain: "ChainModel", rod: DeviceModel, period: float) -> None:
        self.device = rod.device
        self._chain, self._rod, self._period = chain, rod, period
        memory, self._count = chain.inputs.memory, chain.inputs.size
        self._memory = memory if isinstance(memory, ChainMemory) else None
        radii = () if self._memory is None else self._memory.radii
        self._stops = len(radii)
        self._radii = self._tensor(np.array(radii, float))
        self._lags = self._decays = self._tensor(np.zeros(0))

    def shapes(self, horizon: int, longest_delay: int) -> dict[str, tuple[int, ...]]:
        remembered = 0 if self._memory is None else self._memory.size
        if self._memory is not None and len(self._memory.times):
            self._lags, self._decays = map(self._tensor, self._memory.lags(horizon, self._period))
        of_rod = self._rod.shapes(horizon, longest_delay)
        return {
            "remembered": (remembered,),
            "acting": (self._count + remembered, self._count),
            "offset": (self._count,),
            "marker": (4, 4),
            **{_OF_ROD + name: shape for name, shape in of_rod.items()},
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
        """(B, N + 1, m) pressures that act on the rod [Pa], of readings (B, N + 1, m).

        A row (reading, stops, lags) of all that is felt at a grid point, times "acting" (m + k, m),
        and "offset" (m,) added.
        """
        batch, rows, count = readings.shape
        acting, remembered = begun["acting"], begun["remembered"]
        levels = readings
        if self._memory is not None:
            levels = readings.new_empty((batch, rows, len(acting)))
            levels[:, :, :count] = readings
            behind = count * (1 + self._stops)
            if self._stops:
                stops = levels[:, :, count:behind].view(batch, rows, count, -1)
                self._follow(remembered[: behind - count].view(count, -1), readings, stops)
            if behind < len(acting):
                left = self._decays * remembered[behind - count :]
                lagging = torch.addmm(left.flatten(), readings.flatten(1), self._lags)
                levels[:, :, behind:] = lagging.view(batch, rows, -1)
        acts = torch.addmm(begun["offset"], levels.view(batch * rows, -1), acting)
        return acts.view(batch, rows, count)

    def _follow(self, first: torch.Tensor, readings: torch.Tensor, stops: torch.Tensor) -> None:
        """Fills stops (B, N + 1, m, J), which are `first` (m, J) at the first of the readings.

        The slider behind a stop's spring is where it was, or a radius beside the reading: one
        operation a tick.
        """
        reading = readings[..., None]
        least, most = reading - self._radii, reading + self._radii
        sliders = torch.empty_like(least)
        torch.sub(reading[:, 0], first, out=sliders[:, 0])
        for tick in range(1, readings.shape[1]):
            torch.clamp(sliders[:, tick - 1], least[:, tick], most[:, tick], out=sliders[:, tick])
        torch.sub(reading, sliders, out=stops)

    def _tensor(self, values: np.ndarray) -> torch.Tensor:
        return torch.as_tensor(values, dtype=torch.float32, device=self.device)


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
