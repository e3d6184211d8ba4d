"""Qualities of service that a person chooses: parameters `qos_overrides.TOPIC.END.POLICY`.

They are ROS's own: TOPIC is the full name, END `publisher` or `subscription`, POLICY one of
`history`, `depth`, `reliability`, `durability`, `deadline`, `lifespan`. A node declares those of an
end, read-only, where one of them is given for it.
"""

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager

from rcl_interfaces.msg import SetParametersResult
from rclpy.exceptions import InvalidParameterTypeException
from rclpy.qos import QoSPolicyKind, QoSProfile, QoSReliabilityPolicy
from rclpy.qos_overriding_options import InvalidQosOverridesError, QoSOverridingOptions

from softcr_models.errors import UserError

QOS_OVERRIDES = "qos_overrides."

_POLICIES = (
    QoSPolicyKind.HISTORY, QoSPolicyKind.DEPTH, QoSPolicyKind.RELIABILITY,
    QoSPolicyKind.DURABILITY, QoSPolicyKind.DEADLINE, QoSPolicyKind.LIFESPAN,
)  # fmt: skip
_ALLOWED = {
    "history": "keep_last or keep_all",
    "depth": "a whole number from 1",
    "reliability": "reliable or best_effort",
    "durability": "volatile or transient_local",
    "deadline": "whole nanoseconds",
    "lifespan": "whole nanoseconds",
}


@contextmanager
def overriding_options(
    given: Iterable[str], topic: str, end: str, lockstep: bool
) -> Iterator[QoSOverridingOptions | None]:
    """For rclpy, while it makes one end of a topic; None where nothing is given for it.

    Args:
        given: names of all parameters that were given.
        topic: full name.
        end: "publisher" or "subscription".
        lockstep: whether messages must not be lost.

    Raises:
        UserError: a value is not allowed.
    """
    prefix = f"{QOS_OVERRIDES}{topic}.{end}."
    asked = [name for name in given if name.startswith(prefix)]
    if not asked:
        yield None
        return

    def acceptable(profile: QoSProfile) -> SetParametersResult:
        if profile.depth < 1:
            return SetParametersResult(successful=False, reason="depth must be at least 1")
        lossy = profile.reliability != QoSReliabilityPolicy.RELIABLE
        if lockstep and lossy:
            reason = "in lock-step no message may be lost: reliability must be reliable"
            return SetParametersResult(successful=False, reason=reason)
        return SetParametersResult(successful=True)

    try:
        yield QoSOverridingOptions(_POLICIES, callback=acceptable)
    except InvalidQosOverridesError as error:
        raise UserError(
            f"parameters {prefix}...: {str(error).rpartition('not valid: ')[2]}"
        ) from None
    except (InvalidParameterTypeException, RuntimeError, ValueError, TypeError) as error:
        allowed = "; ".join(f"{name}: {words}" for name, words in _ALLOWED.items())
        raise UserError(
            f"parameters {', '.join(asked)}: {_line(error)}; allowed are {allowed}"
        ) from None


def unused_overrides(given: Iterable[str], declared: Callable[[str], bool]) -> list[str]:
    """A line for each given quality of service that no end of a configured node has used.

    Args:
        given: names of all parameters that were given.
        declared: whether the node has a parameter of a name.
    """
    return [
        f"{name}: ignored, this node has no such end of a topic, or it no such policy; the form is "
        f"{QOS_OVERRIDES}/TOPIC.publisher.POLICY or .subscription.POLICY"
        for name in given
        if name.startswith(QOS_OVERRIDES) and not declared(name)
    ]


def _line(error: Exception) -> str:
    return " ".join(str(error).split())
