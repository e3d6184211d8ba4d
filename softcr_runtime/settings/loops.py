"""What `softcr up` runs around a robot, as far as its kind decides it."""

from collections.abc import Mapping
from typing import Any

from softcr_models.plugins import load_class
from softcr_models.robots.kinds import KINDS
from softcr_runtime.blocks.system import Parameters, Part
from softcr_runtime.settings import registry
from softcr_runtime.settings.registry import Kind as Role


class Loop:
    """The usual loop: a kind whose loop differs names a class derived from this one.

    Attributes:
        unused: options of a run that have no effect.
    """

    unused: frozenset[str] = frozenset()

    def defaults(self, given: Mapping[str, Any]) -> dict[str, str]:
        """Options that differ from the usual ones, where a person gives no other.

        Args:
            given: by name, as a person gave them.
        """
        return {}

    def check(self, options: Any) -> None:
        """Raise UserError for options that do not fit each other."""

    def common(self, options: Any) -> Parameters:
        """Parameters of every part, such as `rate_hz`."""
        return {}

    def of_model(self, options: Any) -> Parameters:
        """Parameters of filter and controller, about the model that they predict with."""
        return {}

    def part(self, role: Role, options: Any, parameters: Parameters) -> Part | None:
        """The part that plays a role; None where the loop has none.

        Args:
            role: that it plays.
            options: of the run, whose `named(role)` is a name of the registry, or a place.
            parameters: of the part.

        Raises:
            UserError: what is named cannot be used.
        """
        return registry.part(role, options.named(role), parameters)


def loop_of(kind: str) -> Loop:
    """What runs around a robot of a kind, a name of `KINDS`.

    Raises:
        UserError: the kind's class cannot be used.
    """
    place = KINDS[kind].loop
    loop: Loop = load_class(place, "loop", Loop)() if place else Loop()
    return loop
