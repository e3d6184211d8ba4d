"""Parameter files of ROS: YAML that names nodes, with namespaces and wildcards. No ROS here.

    /**:                      # every node
      ros__parameters:
        robot: licher2025
    /robot1/estimator:        # one node; or robot1: estimator: ros__parameters: ...
      ros__parameters:
        patience: 0.7
        limits.fastest: 3.0   # or limits: {fastest: 3.0}

In a name `*` stands for one word and `**` for any number of them. Sections with wildcards count in
the order of the file, later ones more, and a section that names the node counts most.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from softcr_models.errors import UserError
from softcr_models.files.yaml_files import read_mapping
from softcr_runtime.settings.node_settings import Setting

_KEY = "ros__parameters"
_NAME = re.compile(r"[A-Za-z0-9_*]+")
_FLOAT = re.compile(r"[-+]?(\d+\.?\d*|\.\d+)[eE][-+]?\d+")
_SCALARS = (bool, int, float, str)
_OF_EVERY_NODE = ("use_sim_time", "start_type_description_service")
_QOS = "qos_overrides."


@dataclass(frozen=True)
class Section:
    """Parameters of the nodes whose full names match.

    Attributes:
        name: full, with wildcards, as `/robot1/**`.
        parameters: by dotted name.
    """

    name: str
    parameters: Mapping[str, Any]

    @property
    def wild(self) -> bool:
        """Whether it may mean several nodes."""
        return "*" in self.name

    def matches(self, node: str) -> bool:
        """Whether it holds for a node of this full name."""
        return _matches(self.name.split("/")[1:], node.strip("/").split("/"))

    def is_for_all(self, namespace: str) -> bool:
        """Whether it holds for every node of a namespace."""
        below = f"{namespace.rstrip('/')}/"
        return self.wild and self.matches(f"{below}any_one") and self.matches(f"{below}other")


@dataclass(frozen=True)
class Given:
    """A value of a file, and the section that it stands in."""

    value: Any
    section: Section


@dataclass(frozen=True)
class ParameterFile:
    """A file of parameters.

    Attributes:
        path: as it was given.
        sections: in their order.
    """

    path: str
    sections: tuple[Section, ...]

    @classmethod
    def load(cls, path: str) -> "ParameterFile":
        """Read a file.

        Raises:
            UserError: it cannot be read, or is no file of ROS parameters; in one line.
        """
        content = read_mapping(Path(path), "ROS parameter")
        return cls(path, tuple(_sections(content, "", path)))

    def of(self, node: str) -> dict[str, Given]:
        """What the file says of a node, by dotted name.

        Args:
            node: its full name, as `/robot1/estimator`.
        """
        found: dict[str, Given] = {}
        matching = [section for section in self.sections if section.matches(node)]
        for section in sorted(matching, key=lambda each: not each.wild):  # keeps the order
            found.update({name: Given(v, section) for name, v in section.parameters.items()})
        return found

    def for_all(self, namespace: str) -> dict[str, Given]:
        """What the file says of every node of a namespace."""
        return {
            name: Given(value, section)
            for section in self.sections
            if section.is_for_all(namespace)
            for name, value in section.parameters.items()
        }

    def where(self, section: Section) -> str:
        """The beginning of a line about something in a section."""
        return f"{self.path}: {section.name}"


def as_kind(setting: Setting | None, value: Any) -> Any:
    """A value as ROS reads it: 1e4 is a number, which YAML 1.1 takes for text."""
    if setting is None or setting.kind != "number":
        return value
    if isinstance(value, list):
        return [_number(element) for element in value]
    return _number(value)


def is_of_ros(name: str) -> bool:
    """Whether ROS itself gives a parameter of this name to every node."""
    return name in _OF_EVERY_NODE or name.startswith(_QOS)


def origin(line: str, said: Mapping[str, Given], file: ParameterFile, node: str) -> str:
    """Where in a file the parameter stands that a line complains about.

    Args:
        line: of a mistake.
        said: what the file says of the node, by dotted name.
        file: itself.
        node: name of the node, for a line about several parameters.
    """
    for name, each in said.items():
        if line.startswith((f"parameter {name} ", f"parameter {name}:")):
            return file.where(each.section)
    return f"{file.path}: node {node}"


def _number(value: Any) -> Any:
    return float(value) if isinstance(value, str) and _FLOAT.fullmatch(value) else value


def _matches(pattern: list[str], words: list[str]) -> bool:
    if not pattern:
        return not words
    first, *rest = pattern
    if first == "**":
        return any(_matches(rest, words[begin:]) for begin in range(len(words) + 1))
    return bool(words) and first in ("*", words[0]) and _matches(rest, words[1:])


def _sections(content: Mapping[Any, Any], above: str, path: str) -> Iterator[Section]:
    for key, inner in content.items():
        words = str(key).strip("/").split("/")
        name = "/".join([above, *words])
        if not all(_NAME.fullmatch(word) for word in words) or name.count("**") > 3:
            raise UserError(f"{path}: {key!r}: is not a name of nodes, such as /estimator or /**")
        if not isinstance(inner, dict):
            raise UserError(
                f"{path}: {name}: holds {inner!r}, must hold a mapping with {_KEY}, or names of "
                "nodes in that namespace"
            )
        if _KEY in inner:
            parameters = inner[_KEY] if inner[_KEY] is not None else {}
            if not isinstance(parameters, dict):
                raise UserError(f"{path}: {name}: {_KEY} holds {parameters!r}, must hold a mapping")
            yield Section(name, dict(_flat(parameters, "", f"{path}: {name}")))
        yield from _sections({k: v for k, v in inner.items() if k != _KEY}, name, path)


def _flat(parameters: Mapping[Any, Any], above: str, where: str) -> Iterator[tuple[str, Any]]:
    for key, value in parameters.items():
        name = f"{above}{key}"
        if isinstance(value, dict):
            yield from _flat(value, f"{name}.", where)
            continue
        elements = value if isinstance(value, list) else [value]
        if not all(isinstance(element, _SCALARS) for element in elements):
            raise UserError(
                f"{where}: parameter {name} = {value!r}: must be a boolean, a number, a text, or a "
                "list of these"
            )
        yield name, value
