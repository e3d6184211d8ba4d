"""Classes by their place: `package.module:Class`, or `path/file.py:Class`."""

import importlib
import importlib.util
import inspect
import sys
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from hashlib import sha256
from importlib.machinery import PathFinder
from pathlib import Path
from typing import Annotated, Any

from pydantic import AfterValidator

from softcr_models.errors import UserError


def absolute_place(place: str) -> str:
    """A place whose file is named by its absolute path, so that it means the same anywhere.

    Args:
        place: `path/file.py:Class`, or `name:path` with a slash or an ending in the path; anything
            else is returned as it is.
    """
    where, colon, name = place.rpartition(":")
    if colon and where.endswith(".py"):
        return f"{Path(where).expanduser().resolve()}:{name}"
    if where.isidentifier() and ("/" in name or "." in name):
        return f"{where}:{Path(name).expanduser().resolve()}"
    return place


_asked: list[Callable[[str, str], None]] = []


@contextmanager
def asking(judge: Callable[[str, str], None]) -> Iterator[None]:
    """Ask somebody about each class before its code is imported, in all threads, as long as this
    lasts.

    Args:
        judge: told the place and what it is for, in words; raises UserError to refuse it.
    """
    _asked.append(judge)
    try:
        yield
    finally:
        _asked.remove(judge)


Place = Annotated[str, AfterValidator(absolute_place)]
"""A setting that names a class: nodes and replay elsewhere find what it names here."""


def load_class(place: str, what: str, base: type | None = None) -> Any:
    """The class at a place.

    Args:
        place: `package.module:Class`, or `path/file.py:Class`; the file may lie anywhere.
        what: is asked for, in words ("controller").
        base: that it must be derived from; None for any.

    Raises:
        UserError: one line about what is wrong: no such module, file or class, a file that raises
            when it is read, another kind of class.
    """
    where, colon, name = place.rpartition(":")
    if not colon or not where or not name.isidentifier():
        raise UserError(
            f"{what} {place!r}: must be package.module:Class or path/file.py:Class, or a known name"
        )
    for judge in tuple(_asked):
        judge(place, what)
    module = _module(where, place, what)
    found = getattr(module, name, None)
    if not inspect.isclass(found):
        classes = ", ".join(
            each for each, value in vars(module).items()
            if inspect.isclass(value) and value.__module__ == module.__name__
        )  # fmt: skip
        raise UserError(f"{what} {place!r}: no class {name} there; it has {classes or 'none'}")
    if base is not None and not issubclass(found, base):
        raise UserError(f"{what} {place!r}: is not a {base.__name__}")
    return found


def file_of_place(place: str) -> Path | None:
    """The file that `load_class` would run for a place, found without running anything.

    Returns:
        None where there is no such file, where it depends on the working directory, and for code
        that is not in a file of Python's.
    """
    where = place.rpartition(":")[0]
    if where.endswith(".py"):
        path = Path(where)
        return path.resolve() if path.is_absolute() and path.is_file() else None
    first, *rest = where.split(".")
    try:
        spec = importlib.util.find_spec(first)
        for number, _ in enumerate(rest, 2):
            within = spec.submodule_search_locations if spec is not None else None
            name = ".".join((first, *rest)[:number])
            spec = PathFinder.find_spec(name, within) if within is not None else None
    except (ImportError, ValueError, AttributeError):
        return None
    if spec is None or spec.origin is None or not spec.origin.endswith(".py"):
        return None
    path = Path(spec.origin).resolve()
    # the folder in which the first name was found
    root = path.parents[len(rest) + (path.name == "__init__.py")]
    return None if root == Path.cwd() else path


def made(make: Callable[..., Any], *arguments: Any) -> Any:
    """What a class from outside makes of its arguments.

    Raises:
        UserError: one line about what it raised.
    """
    try:
        return make(*arguments)
    except UserError:
        raise
    except Exception as error:
        named = getattr(make, "__qualname__", str(make))
        raise UserError(f"{named} cannot be made: {in_a_line(error)}") from None


def in_a_line(error: Exception) -> str:
    """Kind and text of an exception, and where code from outside raised it."""
    text = " ".join(str(error).split()) or "no message"
    return f"{type(error).__name__}: {text}{_place_of(error)}"


def _place_of(error: Exception) -> str:
    """File and line of the innermost code that is neither ours nor an installed package's."""
    if isinstance(error, SyntaxError):  # its text says it
        return ""
    here = Path(__file__).parents[1]
    for frame in reversed(traceback.extract_tb(error.__traceback__)):
        path = Path(frame.filename)
        ours = here in path.parents and path.relative_to(here).parts[0].startswith("softcr_")
        if not ours and "site-packages" not in path.parts and path.is_file():
            return f" ({path.name}, line {frame.lineno})"
    return ""


def _module(where: str, place: str, what: str) -> Any:
    is_file = where.endswith(".py")
    try:
        return _of_file(Path(where)) if is_file else importlib.import_module(where)
    except FileNotFoundError:
        raise UserError(f"{what} {place!r}: no such file") from None
    except ModuleNotFoundError as error:
        if not is_file and error.name is not None and where.startswith(error.name):
            raise UserError(f"{what} {place!r}: no module {error.name}") from None
        raise UserError(f"{what} {place!r}: needs the module {error.name}") from None
    except Exception as error:  # whatever somebody's file raises
        raise UserError(f"{what} {place!r}: {in_a_line(error)}") from None


def _of_file(path: Path) -> Any:
    """The module of a file, read once in a process."""
    path = path.expanduser().resolve()
    if not path.is_file():
        raise FileNotFoundError(path)
    name = f"softcr_plugin_{path.stem}_{sha256(str(path).encode()).hexdigest()[:8]}"
    if name in sys.modules:
        return sys.modules[name]
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None  # of a .py file
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    try:
        spec.loader.exec_module(module)
    except BaseException:
        del sys.modules[name]
        raise
    return module
