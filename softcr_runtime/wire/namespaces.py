"""Namespaces: what tells the robots of one ROS domain apart. No ROS.

Names of nodes, topics and services are relative, so a namespace moves them all. What ROS keeps
absolute tells by name whose it is: a status in /diagnostics begins with the full name of its node,
and `frame_prefix` stands before the frames of a robot. Here a namespace is written without the
slashes around it: `robot1`, `lab/robot1`, and the root is empty.
"""

import re
from typing import Annotated

from pydantic import AfterValidator, Field

_LEVEL = r"[A-Za-z_][A-Za-z0-9_]*"
_NAME = re.compile(rf"(?:{_LEVEL}(?:/{_LEVEL})*)?", re.ASCII)
_LONGEST = 160
"""Of 255 characters that DDS allows to a topic; the rest is the topic's own name."""
_ALLOWED = f"letters, digits and _ between slashes, no digit first, at most {_LONGEST} characters"


def plain(namespace: str) -> str:
    """A namespace without the slashes around it.

    Raises:
        ValueError: ROS allows no such namespace; says what is allowed.
    """
    found = namespace.removeprefix("/").removesuffix("/")
    if not _NAME.fullmatch(found) or len(found) > _LONGEST:
        raise ValueError(f"must be {_ALLOWED}")
    return found


def _relative(prefix: str) -> str:
    """A prefix of frames without a slash in front, which tf2 refuses."""
    return prefix.lstrip("/")


Namespace = Annotated[
    str, AfterValidator(plain), Field(json_schema_extra={"in_words": _ALLOWED})
]  # fmt: skip
"""The type of an option that names a namespace; checked, but a function whose own parameter it is
gets it as it was typed."""

FramePrefix = Annotated[str, AfterValidator(_relative)]
"""The type of a prefix of frame names; `/` stands for an empty one."""


def absolute(namespace: str, name: str = "") -> str:
    """The absolute name of a relative one; of the namespace itself without one: `/` is the root."""
    return "/" + "/".join(part for part in (namespace.strip("/"), name) if part)


def in_namespace(namespace: str) -> tuple[str, ...]:
    """Arguments behind --ros-args that put nodes into a namespace; none for the root.

    Simulated time is the namespace's, too: each lock-step robot has a time of its own, and on one
    topic they would step each other's back. At the root it stays on /clock, where ROS expects it.
    """
    if not namespace.strip("/"):
        return ()
    return "-r", f"__ns:={absolute(namespace)}", "-r", "/clock:=clock"


def full_name(namespace: str, node: str) -> str:
    """A node's name in diagnostics and hardware ids: `robot1/estimator`, at the root `estimator`.

    Args:
        namespace: with slashes or without.
        node: its name, or another one of the robot.
    """
    return absolute(namespace, node)[1:]


def split(name: str) -> tuple[str, str]:
    """Namespace and own name of a full name, with a slash in front or without."""
    namespace, _, own = name.removeprefix("/").rpartition("/")
    return namespace, own


def frame_prefix(namespace: str) -> str:
    """What stands before the frames of a robot where nobody chooses it: `robot1/`; the root has
    none."""
    bare = namespace.strip("/")
    return f"{bare}/" if bare else ""
