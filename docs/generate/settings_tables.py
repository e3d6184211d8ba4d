"""Every parameter of every node: the settings classes, and those of what the registry names."""

import re
from collections.abc import Callable
from typing import Any

from generate.markdown import code, first_paragraph, table
from generate.nodes import all_nodes
from softcr_control.reference.settings import ReferenceSettings
from softcr_models.models import MODELS, model_class
from softcr_runtime.ros.parameters import changes_in_words
from softcr_runtime.settings import registry
from softcr_runtime.settings.node_settings import Setting, declared_settings

_HEAD = ["parameter", "type and range", "default", "meaning"]


def pages() -> dict[str, Callable[[], str]]:
    """Parameters by node, and the registry."""
    return {"parameters.md": _parameters, "registry.md": _registry}


def _parameters() -> str:
    parts = []
    for node in all_nodes():
        rows = [_row(setting) for setting in declared_settings(node.settings).values()]
        parts += [f"(parameters-{node.name})=", f"## `{node.name}`", table(_HEAD, rows)]
    return "\n\n".join(parts) + "\n"


def _row(setting: Setting) -> list[str]:
    live = f" (can change {changes_in_words(setting)})" if setting.live else ""
    meaning = setting.description + live
    return [code(setting.name), setting.allowed, _default(setting.default), meaning]


def _default(value: Any) -> str:
    if isinstance(value, bool):
        return f"`{str(value).lower()}`"
    if isinstance(value, list | tuple):
        return code(", ".join(map(str, value))) or "none"
    return code(str(value)) or "none"


def _registry() -> str:
    rows = []
    for kind in ("controller", "estimator", "plant", "reference"):
        for name in registry.names(kind):
            entry = registry.entry(kind, name)
            rows.append([kind, code(name), code(entry.place), entry.summary])
    rows += [["reference", code(name), "", _motion(name)] for name in registry.MOTIONS]
    rows += [
        ["model", code(name), code(place), first_paragraph(model_class(name).__doc__)]
        for name, place in MODELS.items()
    ]
    return table(["role", "name", "class", "what it is"], rows) + "\n"


def _motion(name: str) -> str:
    """What the docstring of the reference's settings says of a motion."""
    said = " ".join((ReferenceSettings.__doc__ or "").split())
    for sentence in re.split(r"\. (?=`)|\. These|\. What", said):
        names, _, meaning = sentence.rpartition(": ")
        if f"`{name}`" in names:
            return meaning.removeprefix("see `from_file`") or "from a CSV or NPZ file"
    raise ValueError(f"the docstring of ReferenceSettings does not explain {name!r}")
