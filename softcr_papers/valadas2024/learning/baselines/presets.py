"""How long each network is trained: quickly, or ten times as long.

Both presets came out of a short search by the error on the training trajectories of one draw; the
test took no part. Batches of 16 windows are better than of 64 in the same time, and motions of 300
steps at the end better than of 30, 100 or 200. Of the learning rates tried (NODE: 0.002 to 0.004,
CON: 0.01 to 0.1) these were best.
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import Literal

from softcr_models.errors import UserError
from softcr_papers.valadas2024.learning.baselines.training import Stage, TrainingSettings

Preset = Literal["quick", "full"]


def _stages(*pairs: tuple[int, int]) -> tuple[Stage, ...]:
    return tuple(Stage(steps, iterations) for steps, iterations in pairs)


_PRESETS: Mapping[Preset, Mapping[str, TrainingSettings]] = {
    "quick": {
        "NODE": TrainingSettings(_stages((0, 200), (50, 60), (300, 120)), rate=3e-3),
        "LNN": TrainingSettings(
            _stages((0, 100), (5, 100), (20, 80), (50, 30)), frames=256, rate=1e-3, every=50
        ),
        "CON": TrainingSettings(_stages((20, 60), (100, 60), (300, 80)), rate=0.06),
    },
    "full": {
        "NODE": TrainingSettings(_stages((0, 500), (50, 300), (300, 1000)), rate=3e-3),
        "LNN": TrainingSettings(
            _stages((0, 500), (5, 500), (20, 500), (50, 500)), frames=256, rate=1e-3, every=50
        ),
        "CON": TrainingSettings(_stages((20, 200), (100, 300), (300, 1000)), rate=0.06),
    },
}
"""A minute of a core for each network, and about ten. The paper trains with 1000 windows of 300
steps for 3000 epochs, ten hours and more."""


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
