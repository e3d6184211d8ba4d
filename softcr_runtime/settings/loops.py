"""What `softcr up` runs around a robot, as far as its kind decides it."""

from collections.abc import Mapping
from typing import Any

from softcr_models.plugins import load_class
from softcr_models.robots.kinds import KINDS
from softcr_runtime.blocks.system import Parameters, Part
from softcr_runtime.settings.registry import Kind as Role


class Loop:
    """The usual loop: a kind whose loop differs names a class derived from this one.

    Attributes:
        unused: options that have no effect, beside those of the plant that the kind's own has not.
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

    def parts(self, options: Any, common: Parameters) -> dict[Role, Part | None]:
        """The parts that play estimator, reference and controller, all three, in place of the usual
        ones; None where nothing plays a role. Empty: the usual ones.

        Args:
            options: of the run.
            common: parameters of every part.
        """
        return {}


def loop_of(kind: str) -> Loop:
    """What runs around a robot of a kind, a name of `KINDS`.

    Raises:
        UserError: the kind's class cannot be used.
    """
    place = KINDS[kind].loop
    loop: Loop = load_class(place, "loop", Loop)() if place else Loop()
    return loop
