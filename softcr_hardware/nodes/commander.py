"""Who publishes commands: exactly one node, and while the valves are enabled that one.

A message does not say who sent it, as far as rclpy tells. But DDS matches a publisher with a
subscription before it delivers anything of it, so the number of matched publishers, looked at after
messages were taken and before they are used, tells whether another one may be among them.

Where controllers are exchanged, nodes may be permitted beside the owner. Which of them commands is
then their own agreement, by stamps; anybody else is still one too many.
"""

import math
from collections.abc import Sequence
from typing import Any

_PERIOD = 1.0
"""Between two looks at the graph without a change of the count [s]; it may name other endpoints."""
_UNKNOWN = "_NODE_NAME_UNKNOWN_"
"""rclpy's word for a node whose publisher is known before it is."""


class Commander:
    """The publishers of some topics, each of which carries commands.

    Attributes:
        owner: full name of the node whose messages are followed; empty for none.
        several: who publishes, in words, where that is not the owner alone; empty otherwise.
    """

    def __init__(self, node: Any, subscriptions: Sequence[Any]):
        """Nobody is known yet.

        Args:
            node: that subscribes.
            subscriptions: of it, one to each topic.
        """
        self._node, self._subscriptions = node, subscriptions
        self.owner = self.several = ""
        self._permitted: tuple[str, ...] = ()
        self._count, self._looked = -1, -math.inf

    def permit(self, names: Sequence[str]) -> None:
        """The nodes, by full name, that may publish beside each other, the one that commands first;
        of none, one alone."""
        self._permitted, self._looked = tuple(names), -math.inf

    def look(self, now: float, enabled: bool) -> bool:
        """Look whether somebody has come or gone; returns whether `several` has changed.

        Args:
            now: on any clock that does not jump [s].
            enabled: whether the valves are: the owner then stays who it is.
        """
        count = sum(each.get_publisher_count() for each in self._subscriptions)
        unsettled = _UNKNOWN in self.owner or _UNKNOWN in self.several
        if count == self._count and not unsettled and now - self._looked < _PERIOD:
            return False
        self._count, self._looked = count, now
        before = self.several
        names = sorted(
            f"{each.node_namespace.rstrip('/')}/{each.node_name}"
            for topic in self._subscriptions
            for each in self._node.get_publishers_info_by_topic(topic.topic_name)
        )
        self.owner, self.several = judged(names, self.owner, enabled, self._permitted)
        return self.several != before


def judged(
    names: Sequence[str], owner: str, enabled: bool, permitted: Sequence[str] = ()
) -> tuple[str, str]:
    """Owner, and who publishes in words where that is not the owner alone.

    Args:
        names: of the nodes, one of each publisher.
        owner: of the last look.
        enabled: whether the valves are.
        permitted: nodes that may publish beside each other, the one that commands first.
    """
    if names and _are_permitted(names, permitted):
        return next((name for name in permitted if name in names), owner), ""
    if len(names) > 1:
        told = [
            name if names.count(name) == 1 else f"{name} twice" for name in dict.fromkeys(names)
        ]
        return owner, " and ".join(told)
    if not names:
        return owner if enabled else "", ""
    known = owner and _UNKNOWN not in owner and _UNKNOWN not in names[0]
    if enabled and known and names[0] != owner:
        return owner, f"{names[0]}, not {owner}"
    return names[0], ""


def _are_permitted(names: Sequence[str], permitted: Sequence[str]) -> bool:
    """Whether each of some publishers is another permitted node; one whose name is not known yet
    may be any of those that are still missing."""
    known = [name for name in names if _UNKNOWN not in name]
    others = set(known) <= set(permitted) and len(set(known)) == len(known)
    return others and bool(known) and len(names) <= len(permitted)
