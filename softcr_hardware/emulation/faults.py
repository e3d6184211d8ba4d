"""Faults by type, as PX4 injects them: what an emulator does to the signals of its device."""

from collections import deque
from collections.abc import Mapping
from typing import Literal, get_args

import numpy as np

from softcr_models.errors import UserError

FaultKind = Literal[
    "ok", "off", "stuck", "garbage", "wrong", "slow", "delayed", "intermittent", "reconnect"
]
FAULT_KINDS: tuple[FaultKind, ...] = get_args(FaultKind)

SLOW_PERIOD = 0.02
"""A slow signal is renewed so rarely [s]."""
DELAY = 0.05
"""A delayed signal is so old [s]."""
ONE_OF = 10
"""Of an intermittent device one answer in so many is lost."""


class FaultInjector:
    """The present fault of a device with signals (m,); `ok` for none.

    Attributes:
        kind: the present fault.
        renewed: whether the last call of `signals` brought new values.
    """

    def __init__(self, bias: np.ndarray, low: np.ndarray, high: np.ndarray, seed: int = 0):
        """No fault yet.

        Args:
            bias: (m,) added by `wrong`.
            low, high: (m,) range of what `garbage` brings.
            seed: of garbage.
        """
        self.kind: FaultKind = "ok"
        self.renewed = True
        self._bias, self._low, self._high = bias, low, high
        self._random = np.random.default_rng(seed)
        self._answers = 0
        self._last: np.ndarray | None = None
        self._last_time = 0.0
        self._past: deque[tuple[float, np.ndarray]] = deque()

    def answers(self) -> bool:
        """Whether the device answers this time."""
        if self.kind == "off":
            return False
        self._answers += 1
        return self.kind != "intermittent" or self._answers % ONE_OF != 0

    def signals(self, time: float, values: np.ndarray) -> np.ndarray:
        """What the device says instead of `values` (m,) at `time` [s]."""
        values = np.array(values, dtype=float)
        self._past.append((time, values))
        while len(self._past) > 1 and self._past[1][0] <= time - DELAY:
            self._past.popleft()
        self.renewed = True
        if self.kind == "garbage":
            return self._random.uniform(self._low, self._high)
        if self.kind == "wrong":
            return values + self._bias
        if self.kind == "delayed":
            return self._past[0][1]
        if self.kind == "slow" and self._last is not None:
            self.renewed = time - self._last_time >= SLOW_PERIOD
        stuck = self.kind == "stuck" and self._last is not None
        if self._last is None or (self.renewed and not stuck):
            self._last, self._last_time = values, time
        return self._last


def chosen(settings: Mapping[str, tuple[str, ...]], name: str, value: str) -> str:
    """The value of a setting of an emulated device, one of those that it may have.

    Args:
        settings: values by name.
        name: of the setting.
        value: wanted.

    Raises:
        UserError: no such setting, or not one of its values.
    """
    if name not in settings:
        raise UserError(f"setting {name!r}: unknown; known are {', '.join(settings)}")
    if value not in settings[name]:
        raise UserError(f"setting {name} = {value!r}: must be one of {', '.join(settings[name])}")
    return value
