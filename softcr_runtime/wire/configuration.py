"""What a node was configured with, as one message: its parameters and robot, and the files that its
settings name, word for word.

A setting names a file by what stands in its field's `json_schema_extra`: `{"folder": "robots"}` for
a name of `config/robots` or a path, `{"folder": ""}` for a path, `{"endings": [...]}` for a path
that files with these endings share. A class of `path/file.py:Class` names a file, too.
"""

import base64
import binascii
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml
from pydantic import BaseModel

from softcr_models.errors import UserError
from softcr_models.files.small_files import LARGEST, content_of, parsed_json
from softcr_models.files.yaml_files import yaml_path
from softcr_models.robots.robot import content_alone, file_below
from softcr_runtime.wire.diagnostics import FILE_KEYS, OK, DiagnosticReport, ToldSize

TOPIC = "configuration"
_WHOLE, _FILE = "configuration", "file "


@dataclass(frozen=True)
class NamedFile:
    """A file that a node was configured with.

    Attributes:
        setting: that names it.
        given: the setting's value.
        path: of the file, on the machine of the node.
        content: its bytes.
    """

    setting: str
    given: str
    path: str
    content: bytes


@dataclass(frozen=True)
class Configuration:
    """What one node was configured with.

    Attributes:
        parameters: by name; empty where they were not told.
        robot: content of its robot file, validated; empty where there is none.
        files: that its settings name.
    """

    parameters: Mapping[str, Any] = field(default_factory=dict)
    robot: Mapping[str, Any] = field(default_factory=dict)
    files: tuple[NamedFile, ...] = ()


def files_of(settings: BaseModel) -> Iterator[tuple[str, str, Path]]:
    """Each setting that names a file, its value, and the file; those that are not there are not.

    Settings of settings have their dotted names: `costs.obstacles`.

    Raises:
        UserError: a name is unknown.
    """
    for name, info in type(settings).model_fields.items():
        value, extra = getattr(settings, name), info.json_schema_extra
        if isinstance(value, BaseModel):
            yield from ((f"{name}.{inner}", said, path) for inner, said, path in files_of(value))
        if not isinstance(value, str) or not value:
            continue
        extra = extra if isinstance(extra, dict) else {}
        paths = []
        if "folder" in extra:
            paths = [yaml_path(value, str(extra["folder"]), name) if extra["folder"] else value]
        elif isinstance(endings := extra.get("endings"), list):
            paths = [f"{_without(value, endings)}{ending}" for ending in endings]
        elif (place := value.rpartition(":")[0]).endswith(".py"):
            paths = [place]
        yield from ((name, value, Path(path)) for path in paths if Path(path).is_file())


def _without(value: str, endings: Any) -> str:
    return next((value.removesuffix(each) for each in endings if value.endswith(each)), value)


def reports(
    node: str,
    hardware_id: str,
    parameters: Mapping[str, Any],
    robot: BaseModel,
    files: Iterable[tuple[str, str, Path]],
) -> list[DiagnosticReport]:
    """A configuration as statuses.

    Args:
        node: with its namespace.
        hardware_id: of the robot.
        parameters: by name, of values that JSON can hold.
        robot: validated.
        files: setting, value and path of each.

    Raises:
        UserError: a file cannot be read, or is larger than `LARGEST`.
    """
    told = {"parameters": dict(parameters), "robot": robot.model_dump(mode="json")}
    found = [DiagnosticReport(f"{node}: {_WHOLE}", OK, "as configured", hardware_id, told)]
    for setting, given, path in files:
        name = f"{node}: {_FILE}{setting}"
        values = {"setting": setting, "given": given, **_told(path)}
        found.append(DiagnosticReport(name, OK, str(path.absolute()), hardware_id, values))
    return found


def _told(path: Path) -> dict[str, str]:
    """The content of a file: as text, or in base64 where it is none."""
    try:
        content = content_of(path, LARGEST)
    except OSError as error:
        raise UserError(f"{path}: cannot be read: {error.strerror}") from None
    try:
        text = content.decode("utf-8")
    except UnicodeDecodeError:
        text = "\0"
    if file_below(path, content):  # which a bag does not hold
        text = yaml.safe_dump(content_alone(path), sort_keys=False, allow_unicode=True)
    if "\0" in text:  # no message can hold this one
        return {FILE_KEYS[1]: base64.b64encode(content).decode("ascii")}
    return {FILE_KEYS[0]: text}


def configurations(messages: Iterable[Any]) -> dict[str, Configuration]:
    """What nodes told, by node with its namespace, the last message of each counts.

    Statuses that are something else, or make no sense, are passed over.
    """
    found: dict[str, Configuration] = {}
    size = ToldSize()
    for message in messages:
        try:
            size.take(message, files=True)
        except ValueError:  # of a size that no configuration has
            continue
        for node, told in _told_by(message).items():
            found[node] = told
    return found


def _told_by(message: Any) -> dict[str, Configuration]:
    whole: dict[str, dict[str, Any]] = {}
    files: dict[str, list[NamedFile]] = {}
    for status in message.status:
        node, _, what = status.name.partition(": ")
        values = {pair.key: pair.value for pair in status.values}
        if what == _WHOLE:
            whole[node] = {name: _mapping(values.get(name, "")) for name in ("parameters", "robot")}
        elif what.startswith(_FILE):
            content = _content(values)
            if content is not None and Path(status.message).name not in ("", ".."):
                named = values.get("setting", ""), values.get("given", ""), status.message
                files.setdefault(node, []).append(NamedFile(*named, content))
    return {
        node: Configuration(**whole.get(node, {}), files=tuple(files.get(node, ())))
        for node in (*whole, *files)
    }


def _mapping(text: str) -> dict[str, Any]:
    try:
        told = parsed_json(text)
    except ValueError:
        return {}
    return told if isinstance(told, dict) else {}


def _content(values: Mapping[str, str]) -> bytes | None:
    text, encoded = (values.get(key) for key in FILE_KEYS)
    if text is not None:
        return text.encode("utf-8")
    try:
        return base64.b64decode(encoded or "-", validate=True)
    except (binascii.Error, ValueError):
        return None
