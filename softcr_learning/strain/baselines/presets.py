"""How long each network is trained: quickly, or as well as minutes allow."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Literal

from softcr_learning.strain.baselines.training import Stage, TrainingSettings
from softcr_models.errors import UserError

Preset = Literal["quick", "full"]


def _stages(*pairs: tuple[int, int]) -> tuple[Stage, ...]:
    return tuple(Stage(steps, iterations) for steps, iterations in pairs)


_PRESETS: Mapping[Preset, Mapping[str, TrainingSettings]] = {
    "quick": {
        "NODE": TrainingSettings(_stages((0, 300), (20, 60), (50, 80)), windows=16),
        "LNN": TrainingSettings(_stages((0, 150), (5, 60), (10, 40)), windows=16, rate=1e-3),
        "CON": TrainingSettings(_stages((20, 60), (100, 40)), windows=64, rate=0.03),
    },
    "full": {
        "NODE": TrainingSettings(_stages((0, 400), (20, 150), (100, 150), (300, 400)), windows=16),
        "LNN": TrainingSettings(_stages((0, 300), (5, 200), (20, 100), (50, 60)), windows=16,
                                rate=1e-3),
        "CON": TrainingSettings(_stages((20, 150), (100, 150), (300, 100)), windows=64, rate=0.03),
    },
}  # fmt: skip
"""The paper trains with 1000 windows of 300 steps for 3000 epochs, ten hours of a core and more for
each network; these take under half a minute and some minutes."""


def preset(kind: str, name: Preset, seed: int) -> TrainingSettings:
    """How a network is trained.

    Args:
        kind: of the network.
        name: of the preset.
        seed: of first weights and windows.

    Raises:
        UserError: there is no such preset for the network.
    """
    if kind not in _PRESETS.get(name, {}):
        raise UserError(f"preset {name!r} of network {kind!r}: there is none")
    return replace(_PRESETS[name][kind], seed=seed)
