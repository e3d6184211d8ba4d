"""How much nodes tell: one level for all, others for some, as in ROS. No ROS here."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Annotated

from pydantic import AfterValidator, Field

from softcr_models.errors import UserError
from softcr_runtime.settings.node_settings import nearest_name
from softcr_runtime.wire.namespaces import full_name

LEVELS = ("debug", "info", "warn", "error", "fatal")
"""From the one that tells most to the one that tells least."""


@dataclass(frozen=True)
class LogLevels:
    """What is logged.

    Attributes:
        default: level of all nodes that are not named.
        of: level by the name of a node.
    """

    default: str = "info"
    of: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def parsed(cls, text: str) -> "LogLevels":
        """Of words between commas: `LEVEL`, or `NODE:=LEVEL` for one node.

        Raises:
            ValueError: a word is neither; says what is allowed.
        """
        default, some = cls.default, {}
        for word in filter(None, (part.strip() for part in text.split(","))):
            node, _, level = word.rpartition(":=")
            if level.lower() not in LEVELS or (not node and ":=" in word):
                raise ValueError(f"must be one of {', '.join(LEVELS)}, or NODE:=LEVEL for a node")
            if node:
                some[node] = level.lower()
            else:
                default = level.lower()
        return cls(default, some)

    def check_names(self, nodes: Iterable[str]) -> None:
        """Raise UserError for a name that is none of some nodes'."""
        known = list(nodes)
        for name in self.of.keys() - set(known):
            near = nearest_name(name, known)
            instead = f"did you mean {near}?" if near else f"the nodes are {', '.join(known)}"
            raise UserError(f"option log_level: no node is called {name}; {instead}")

    def arguments(self, namespace: str = "") -> tuple[str, ...]:
        """Words behind --ros-args that say it to nodes of a namespace."""
        words = ["--log-level", self.default]
        for node, level in self.of.items():
            words += ["--log-level", f"{full_name(namespace, node).replace('/', '.')}:={level}"]
        return tuple(words)

    def shows(self, node: str, level: str) -> bool:
        """Whether a line of a node is to be seen."""
        name = level.lower()
        wanted = self.of.get(node, self.default)
        return name in LEVELS and LEVELS.index(name) >= LEVELS.index(wanted)


def _checked(text: str) -> str:
    LogLevels.parsed(text)
    return text


LogLevel = Annotated[
    str,
    AfterValidator(_checked),
    Field(json_schema_extra={"in_words": f"one of {', '.join(LEVELS)}, or NODE:=LEVEL for a node"}),
]
"""The type of an option that says how much is logged."""
