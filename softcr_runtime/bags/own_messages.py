"""Whose a message of a topic is that all robots of a ROS domain share.

/diagnostics, /rosout, /parameter_events and /tf are absolute in ROS. The messages on them name the
node that speaks, and so its namespace, or frames, and so their prefix: a bag of one robot holds the
messages of its own nodes and its own frames.
"""

from collections.abc import Callable, Iterator
from typing import Any

from softcr_runtime.bags.message_bytes import decoded
from softcr_runtime.wire.diagnostics import node_of_status
from softcr_runtime.wire.namespaces import split
from softcr_runtime.wire.tf_types import TF_MESSAGE
from softcr_runtime.wire.topics import TOPICS


def _of_diagnostics(message: Any) -> Iterator[str]:
    return (node_of_status(status.name)[0] for status in message.status)


def _of_log(message: Any) -> Iterator[str]:
    """A logger is called as its node, with dots: `robot1.estimator`."""
    yield message.name.rpartition(".")[0].replace(".", "/")


def _of_parameter_event(message: Any) -> Iterator[str]:
    yield split(message.node)[0]


_SPEAKERS: dict[str, Callable[[Any], Iterator[str]]] = {
    "diagnostic_msgs/msg/DiagnosticArray": _of_diagnostics,
    "rcl_interfaces/msg/Log": _of_log,
    "rcl_interfaces/msg/ParameterEvent": _of_parameter_event,
}
"""Namespaces of those who speak in a message, by its type."""


def _of_transforms(message: Any) -> Iterator[str]:
    return (each.child_frame_id for each in message.transforms)


def is_shared(topic: str, type_: str) -> bool:
    """Whether the messages of a topic, by its absolute name and type, are of several robots."""
    absolute = topic.startswith("/") and topic in TOPICS
    return absolute and (type_ in _SPEAKERS or type_ == TF_MESSAGE)


def is_robots(namespace: str, prefix: str, payload: bytes, type_: str) -> bool:
    """Whether a message on a shared topic is of one robot, or tells nothing of whose it is.

    Args:
        namespace: of its nodes, without slashes around it; empty: the root.
        prefix: before the names of its frames.
        payload: CDR bytes.
        type_: of a shared topic.
    """
    if type_ == TF_MESSAGE:
        return has_frames_of(prefix, payload)
    return is_of(namespace, payload, type_)


def has_frames_of(prefix: str, payload: bytes) -> bool:
    """Whether all frames that a TFMessage tells of are one robot's.

    Args:
        prefix: before the names of its frames; empty: those without a slash are.
        payload: the message's CDR bytes.
    """
    try:
        children = list(_of_transforms(decoded(payload, TF_MESSAGE)))
    except ValueError:
        return True
    return all(child.startswith(prefix) if prefix else "/" not in child for child in children)


def is_of(namespace: str, payload: bytes, type_: str) -> bool:
    """Whether a message on a shared topic is of a namespace, or tells nothing of whose it is.

    Args:
        namespace: without slashes around it; empty: the root.
        payload: its CDR bytes.
        type_: of a shared topic.
    """
    try:
        speakers = set(_SPEAKERS[type_](decoded(payload, type_)))
    except ValueError:  # not such a message; a reader tells what is wrong with it
        return True
    return not speakers or namespace in speakers
