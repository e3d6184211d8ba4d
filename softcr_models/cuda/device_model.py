"""What a model offers where a controller's candidates are tensors on its device.

A tick has two sides. The processor knows what was estimated and sent (`Moment`) and says it as a
few arrays of fixed shapes, which are copied to the device together. There the futures of all
candidates are computed by operations that are enqueued on torch's current stream; no value is
looked at, so that all of a tick can be recorded in a CUDA graph.

Importing this module imports torch: nothing does before tensors are wanted.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import torch


@dataclass(frozen=True, eq=False)
class Moment:
    """What the processor knows at the start of a tick.

    The optimised commands begin `delay` ticks after the estimate. A model whose inputs have no
    memory is told what it feels; one that remembers feels gain * reading + offset.

    Attributes:
        present_state: (nx,) estimated.
        delay: ticks, at least 1.
        approach: (D + 1, m + k) what the model feels from the estimate on, a tick apart, with what
            is remembered behind; rows after row `delay` repeat it.
        start_state: computes the state (nx,) when the optimised commands begin, on the processor;
            a model that does it on its device does not call it.
        remembered: (k,) of the inputs' past when the optimised commands begin; None without.
        gain: (m,) what the model feels of each input, by its reading [-].
        offset: (m,) what is then added [unit of the inputs].
        parameters: (P,) of the model.
    """

    present_state: np.ndarray
    delay: int
    approach: np.ndarray
    start_state: Callable[[], np.ndarray]
    remembered: np.ndarray | None
    gain: np.ndarray
    offset: np.ndarray
    parameters: np.ndarray


class DeviceFutures(Protocol):
    """Of B candidates over N steps, each computed when it is first asked for and then kept."""

    @property
    def states(self) -> torch.Tensor:
        """(B, N, nx) float32 predicted states, row k one step after row k - 1."""
        ...

    @property
    def tip_poses(self) -> torch.Tensor:
        """(B, N, 3, 4) float32 predicted tip poses, rotation beside position [m], base frame; from
        the states where they are there, else without them if that is faster."""
        ...


class DeviceModel(Protocol):
    """A model for steps of one length, whose candidates are tensors. All tensors are float32.

    A candidate whose state becomes NaN or infinite comes out so and does not disturb the others.

    Attributes:
        device: of all tensors.
    """

    device: torch.device

    def shapes(self, horizon: int, longest_delay: int) -> dict[str, tuple[int, ...]]:
        """Names and shapes of what it must be told at each tick.

        Args:
            horizon: N, steps of a future.
            longest_delay: D, rows of `Moment.approach` less one.
        """
        ...

    def told(self, moment: Moment) -> dict[str, np.ndarray]:
        """Those numbers, all of them, by name."""
        ...

    def begun(self, told: Mapping[str, torch.Tensor]) -> Mapping[str, torch.Tensor]:
        """What all futures of a tick share, computed once from what was told; handed to `futures`.
        Where nothing is to be computed, `told` itself."""
        ...

    def futures(self, begun: Mapping[str, torch.Tensor], readings: torch.Tensor) -> DeviceFutures:
        """Of candidates.

        Args:
            begun: what `begun` returned.
            readings: (B, N + 1, m), contiguous: readings of the inputs at the grid points, linear
                in between, for a model whose inputs have a memory; for others what it feels.
        """
        ...


def inner(prefix: str, named: Mapping[str, torch.Tensor]) -> dict[str, torch.Tensor]:
    """Those whose names begin with the prefix, by what follows it."""
    return {
        name.removeprefix(prefix): value for name, value in named.items() if name.startswith(prefix)
    }
