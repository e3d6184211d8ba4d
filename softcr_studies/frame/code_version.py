"""The version of the code that a result depends on: of what a study imports, and no more."""

import ast
import hashlib
import importlib.util
import io
import platform
import re
import tokenize
from collections.abc import Iterator
from functools import cache
from importlib.metadata import entry_points, version
from pathlib import Path
from typing import get_args

from softcr_models.files.config import config_directory
from softcr_runtime.settings import registry

_HOUSE = "softcr_"
_NUMBERS = ("numpy", "scipy", "numba")
_STUDIES = frozenset({"studies", "softcr_studies"})
"""Names of folders of studies."""
_FRAME, _COUNTED = Path(__file__).parent, ("cell", "checkpoints", "particle_swarm", "search")
_MODELS = "softcr.models"
"""Group of the entry points that declare models."""
_PLACE = re.compile(r"(softcr_[\w.]+):\w+")
_WORD = re.compile(r"[\w-]+")


def code_version(file: Path) -> str:
    """A digest of a study's file and of the files of softcr that it needs, see `sources`, without
    comments, docstrings and layout.

    Args:
        file: of the study.

    Returns:
        16 hexadecimal digits: the same wherever the same sources are installed.
    """
    digest = hashlib.sha256()
    for name, path in sorted(sources(file).items()):
        digest.update(name.encode())
        digest.update(_meaning(path))
    return digest.hexdigest()[:16]


def run_version(file: Path) -> str:
    """The code version, and the versions of Python and of packages that change last digits: all
    that decides a study's results beside its settings."""
    packages = (f"{package} {version(package)}" for package in _NUMBERS)
    return ", ".join((code_version(file), f"Python {platform.python_version()}", *packages))


def sources(file: Path) -> dict[str, Path]:
    """Name -> file of a study and of what it needs, whoever of these needs it.

    A file needs the modules of softcr that it imports, also inside a function. In a folder of
    studies, a text that names a registered part, a model, a class as `package.module:Class`, or a
    file of a robot or controller counts as an import of that. Of the frame of studies only what
    decides a cell's result counts, not what gathers and shows results.
    """
    found, left = {"study": file}, [file]
    while left:
        source = left.pop()
        beside = source.parent == file.parent or _STUDIES.intersection(source.parts)
        for name, path in _needs(source, bool(beside) and source.parent != _FRAME).items():
            if name not in found and path != file:
                found[name] = path
                left.append(path)
    return {name: path for name, path in found.items()
            if path.parent != _FRAME or path.stem in _COUNTED}  # fmt: skip


@cache
def _content(path: Path) -> bytes:
    """Of a file, as it was when it was first asked for in this process."""
    return path.read_bytes()


@cache
def _meaning(path: Path) -> bytes:
    """What of a file decides anything: of a module its statements but those of a text alone."""
    if path.suffix != ".py":
        return _content(path)
    kept: list[str] = []
    statement: list[tokenize.TokenInfo] = []
    for token in tokenize.tokenize(io.BytesIO(_content(path)).readline):
        if token.type == tokenize.NEWLINE:
            if any(each.type != tokenize.STRING for each in statement):
                kept += (*(each.string for each in statement), "\n")
            statement = []
        elif token.type in (tokenize.INDENT, tokenize.DEDENT):
            kept.append(f"\0{token.type}")
        elif token.type not in (tokenize.COMMENT, tokenize.NL, tokenize.ENCODING):
            statement.append(token)
    return "".join(kept).encode()


@cache
def _needs(path: Path, naming: bool) -> dict[str, Path]:
    """Name -> file of what one file needs; `naming`: also of what its texts name."""
    content = _content(path).decode()
    if path.suffix == ".yaml":
        return {text: file for text, file in _files().items() if text in _WORD.findall(content)}
    found: dict[str, Path] = {}
    for name in _imported(ast.parse(content)):
        found |= _modules(name)
    for text in _texts(ast.parse(content)) if naming else ():
        place, word = _PLACE.fullmatch(text), text.partition(":")[0]
        found |= _modules(place[1] if place else _parts().get(word, ""))
        found |= {word: _files()[word]} if word in _files() else {}
    return found


def _imported(tree: ast.AST) -> Iterator[str]:
    """Dotted names of all that is imported when the code runs."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.Import):
            yield from (each.name for each in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield from (f"{node.module}.{each.name}" for each in node.names)
        elif not (isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"):
            yield from _imported(node)


def _texts(tree: ast.AST) -> Iterator[str]:
    """All texts, and those of the registry's constants that are named."""
    for node in ast.walk(tree):
        text = getattr(node, "value", None)
        if isinstance(node, ast.Name | ast.Attribute):
            text = vars(registry).get(getattr(node, "attr", getattr(node, "id", "")))
        if isinstance(text, str):
            yield text


@cache
def _modules(name: str) -> dict[str, Path]:
    """Files of a module of softcr and of the packages that hold it, by its dotted name or that of
    something in it; none of other modules."""
    found: dict[str, Path] = {}
    room, *inner = name.split(".")
    if not room.startswith(_HOUSE) or (top := importlib.util.find_spec(room)) is None:
        return found
    assert top.origin is not None
    module, folder = room, Path(top.origin).parent
    found[module] = folder / "__init__.py"
    for part in inner:
        module, folder = f"{module}.{part}", folder / part
        file = folder / "__init__.py" if folder.is_dir() else folder.with_suffix(".py")
        if not file.is_file():
            break
        found[module] = file
    return found


@cache
def _parts() -> dict[str, str]:
    """Name of a registered part or model -> its module."""
    kinds = get_args(registry.Kind)
    known = {name: registry.entry(kind, name).place for kind in kinds
             for name in registry.names(kind)}  # fmt: skip
    known |= {each.name: each.value for each in entry_points(group=_MODELS)}
    return {name: place.partition(":")[0] for name, place in known.items()}


@cache
def _files() -> dict[str, Path]:
    """Name -> file of a robot or controller."""
    folders = (config_directory() / name for name in ("robots", "controllers"))
    return {path.stem: path for folder in folders for path in folder.glob("*.yaml")}
