"""Bags with several robots, as a recorder of all topics of a ROS domain leaves them."""

from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from softcr_models.errors import UserError
from softcr_runtime.bags.own_messages import is_robots, is_shared
from softcr_runtime.bags.reading import Bag, BagMessage, BagTopic
from softcr_runtime.wire.namespaces import absolute, frame_prefix
from softcr_runtime.wire.topics import TOPICS

_ENDS = tuple("/" + name.removeprefix("/") for name in TOPICS)


def namespaces_of(bag: Bag) -> list[str]:
    """The namespaces, without slashes around them, in which a bag has topics of the table."""
    shared = {name for name, topic in bag.topics.items() if is_shared(name, topic.type)}
    return sorted(
        {
            name.removesuffix(end).strip("/")
            for name in bag.topics.keys() - shared
            for end in _ENDS
            if name.endswith(end)
        }
    )


class RobotBag(Bag):
    """What a bag holds of one robot; of topics that all share, what the robot's nodes said, and the
    frames that have its namespace before their names."""

    def __init__(self, path: Path, namespace: str) -> None:
        """Open a bag.

        Args:
            path: see `Bag`.
            namespace: of the robot, with slashes around it or without; empty: the root.

        Raises:
            UserError: as `Bag`, or nothing was recorded in this namespace.
        """
        super().__init__(path)
        namespace = namespace.strip("/")
        held = namespaces_of(self)
        if namespace not in held:
            known = ", ".join(map(absolute, held)) or "none"
            raise UserError(
                f"bag {self.path}: holds nothing of namespace {absolute(namespace)}; "
                f"its namespaces are {known}"
            )
        self._namespace = namespace
        shared = {name for name, topic in self.topics.items() if is_shared(name, topic.type)}
        own = Counter(message.topic for message in self.messages(*shared)) if shared else {}
        self.topics = {
            name: BagTopic(topic.type, own[name]) if name in own else topic
            for name, topic in self.topics.items()
            if name in own or (name not in shared and _holder(name, held) == namespace)
        }

    def messages(self, *topics: str) -> Iterator[BagMessage]:
        for message in super().messages(*topics):
            if not is_shared(message.topic, message.type) or is_robots(
                self._namespace, frame_prefix(self._namespace), message.payload, message.type
            ):
                yield message


def _holder(topic: str, namespaces: list[str]) -> str:
    """The innermost of some namespaces that a topic lies in; the root where it lies in none."""
    around = [each for each in namespaces if each and topic.startswith(f"/{each}/")]
    return max(around, key=len, default="")


def robot_bag(path: Path, namespace: str | None) -> Bag:
    """A bag, or what it holds of a namespace where one is named."""
    return Bag(path) if namespace is None else RobotBag(path, namespace)
