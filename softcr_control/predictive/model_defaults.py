"""Settings of controllers whose default depends on what kind of model they predict with."""

from typing import Any

ON_APPROXIMATIONS: dict[str, Any] = {
    "population": 32,  # candidates at 70 Hz on two cores
    "tip_offset_gain": 0.1,  # an approximation's slow errors are worth learning, the rod's are not
    "perturbation": 2e-3,  # finite differences of what is computed in single precision
}
"""By name of setting: where the model is a trained network."""

_APPROXIMATIONS = ("ddpinn",)


def defaults_on(model: str) -> dict[str, Any]:
    """Defaults that differ from those of the settings' class, by name; a file or a user wins.

    Args:
        model: its name.
    """
    return ON_APPROXIMATIONS if model in _APPROXIMATIONS else {}
