"""What softcr uses of rclpy that rclpy does not promise to keep, and whether this release has it.

rclpy's public functions take a message in an executor's thread, tell no parameter before it is
declared, and end a node that is asked for a transition which its state does not allow. Where softcr
does without them it rests on names that a release may change: here they all stand, once.
"""

import importlib.metadata
from importlib import import_module
from typing import Any

TESTED = {"7.1.5": "jazzy", "9.1.2": "kilted"}
"""Releases of rclpy with which the tests of nodes passed, and the distribution of each."""

_IMPLEMENTATION = "rclpy.impl.implementation_singleton:rclpy_implementation"
_ATTRIBUTES = (
    *(f"{_IMPLEMENTATION}.WaitSet.{name}" for name in (
        "clear_entities", "add_guard_condition", "add_subscription", "wait", "get_ready_entities",
    )),
    f"{_IMPLEMENTATION}.Subscription.take_message",
    f"{_IMPLEMENTATION}.Subscription.pointer",
    "rclpy.subscription:Subscription.handle",
    "rclpy.context:Context.handle",
    "visualization_msgs.msg:MarkerArray.__class__.__import_type_support__",
    "visualization_msgs.msg:MarkerArray.__class__._TYPE_SUPPORT",
)  # fmt: skip
"""`module:name.name`, which must be there."""

_SET_BY = {
    "_parameter_overrides": "rclpy.node:Node.__init__",
    "_service_change_state": "rclpy.lifecycle:LifecycleNodeMixin.__init__",
}
"""Attributes of a node, and the function that makes each of them."""


def release() -> str:
    """Of the rclpy that is installed; empty where nothing tells it."""
    try:
        return importlib.metadata.version("rclpy")
    except importlib.metadata.PackageNotFoundError:
        return ""


def missing_names() -> list[str]:
    """Names that softcr uses and this rclpy does not have; all is well where there are none."""
    missing = [place for place in _ATTRIBUTES if not _is_there(place)]
    for name, place in _SET_BY.items():
        try:
            made = name in _found(place).__code__.co_names
        except (ImportError, AttributeError):
            made = False
        if not made:
            missing.append(f"{place.rpartition('.')[0]}.{name}")
    return missing


def _is_there(place: str) -> bool:
    try:
        _found(place)
    except (ImportError, AttributeError):
        return False
    return True


def _found(place: str) -> Any:
    module, _, names = place.partition(":")
    found: Any = import_module(module)
    for name in names.split("."):
        found = getattr(found, name)
    return found
