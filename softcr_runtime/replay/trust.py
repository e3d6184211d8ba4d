"""What a bag may decide when it is replayed: which code is run, and which files are read.

A bag may come from anybody. Registered names are followed. A class or a file that only the bag
names is followed where the person trusts the bag, and told with its digest before it is used.
"""

from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import AbstractContextManager
from hashlib import sha256
from pathlib import Path
from typing import Any

from pydantic import BaseModel

from softcr_models.errors import UserError
from softcr_models.models import MODELS
from softcr_models.plugins import absolute_place, asking, file_of_place
from softcr_models.prediction import ON_GPU
from softcr_models.robots.kinds import KINDS
from softcr_runtime.settings import registry

_WITHOUT_NAMES = ("softcr_control.open_loop.feedforward:Feedforward",)
_OF_KINDS = (place for kind in KINDS.values() for place in (kind.robot, kind.loop, kind.report))
_HOUSE = frozenset({*registry.places(), *MODELS.values(), *_OF_KINDS, *_WITHOUT_NAMES, ON_GPU})
_FILES = (".yaml", ".yml", ".json", ".safetensors", ".csv", ".npz", ".py")
_CODE = ("estimator", "controller", "model")  # settings that name a class
_NO_FILES = ("frame_prefix",)  # settings whose text may have a slash


class Trust:
    """Judges what a bag names."""

    def __init__(self, bag: Path, named: Any, trusted: bool, say: Callable[[str], None]) -> None:
        """
        Args:
            bag: its path.
            named: what the person asked for on the command line, in lists and mappings: that may
                be run and read, whatever the bag says.
            trusted: whether what the bag names may be run and read, too.
            say: shows a line, before what it tells of is used.
        """
        self._bag, self._trusted, self._say = bag, trusted, say
        texts = set(_texts(named))
        self._named = texts | set(map(absolute_place, texts))
        self._told: set[Path] = set()

    def asking(self) -> AbstractContextManager[None]:
        """As long as it lasts, code that the bag alone names is refused, or told."""
        return asking(self._judge_place)

    def judge_files(
        self, node: str, values: Mapping[str, Any], given: Collection[str], names: Collection[str]
    ) -> None:
        """Refuse, or tell, the files that settings name.

        Args:
            node: whose settings they are.
            values: as recorded.
            given: dotted names of those that a person, or softcr itself, has set otherwise.
            names: dotted names of those that name a file, whatever their text looks like.

        Raises:
            UserError: a file is named that nobody but the bag names.
        """
        for name in _CODE:
            if not isinstance(values.get(name, ""), str):
                raise UserError(
                    f"bag {self._bag}: the {node}'s {name} is {values[name]!r}: must be text"
                )
        for name, text in _by_dotted_name(values):
            told = name.partition("[")[0]
            if told in given or text in self._named or not text:
                continue
            if told in _CODE or name.endswith(".class"):
                known, _, path = text.partition(":")
                if path and told == "controller" and known in registry.names("controller"):
                    self._judge_file(node, known, path)
            elif told in names or (told not in _NO_FILES and _looks_like_a_path(text)):
                self._judge_file(node, name, text)

    def _judge_place(self, place: str, what: str) -> None:
        if place in _HOUSE or place in self._named:
            return
        if not self._trusted:
            option = _OPTIONS.get(what)
            hint = f"name what to run: {option}={_shown(place)}, or " if option else ""
            raise UserError(
                f"bag {self._bag}: the run's {what} is code of its own ({_shown(place)}), which a "
                f"bag does not run; {hint}let the bag name it: --trust-bag"
            )
        path = file_of_place(place)
        if path is None:
            raise UserError(
                f"bag {self._bag}: the run's {what} is {_shown(place)}: no file of Python's at an "
                "absolute path, nor in an installed package"
            )
        self._tell("runs", path)

    def _judge_file(self, node: str, name: str, text: str) -> None:
        if not self._trusted:
            option = "--robot FILE" if name == "robot" else f"--set {node}.{name}=FILE"
            raise UserError(
                f"bag {self._bag}: the {node}'s {name} is the file {_shown(text)}, which the bag "
                f"does not hold; name one: {option}, or let the bag name it: --trust-bag"
            )
        if not Path(text).is_absolute():
            raise UserError(
                f"bag {self._bag}: the {node}'s {name} is {_shown(text)}, must be an absolute path"
            )
        for path in (Path(text), *(Path(text + ending) for ending in _FILES)):
            if path.is_file():
                self._tell("reads", path)

    def _tell(self, does: str, path: Path) -> None:
        if path not in self._told:
            self._told.add(path)
            with path.open("rb") as file:
                digest = _digest(file)
            self._say(f"--trust-bag: {does} {_shown(str(path))}, SHA-256 {digest}")


_OPTIONS = {
    "estimator": "--set estimator",
    "controller": "--set controller",
    "model": "--set model",
}
"""By what a class is for, the option that names one."""


def names_of_files(model: type[BaseModel], prefix: str = "") -> Iterator[str]:
    """Dotted names of settings that name a file by a path in any case, and not by a name."""
    for name, about in model.model_fields.items():
        extra = about.json_schema_extra if isinstance(about.json_schema_extra, dict) else {}
        if "endings" in extra or extra.get("folder") == "":
            yield prefix + name
        kind = about.annotation
        if isinstance(kind, type) and issubclass(kind, BaseModel):
            yield from names_of_files(kind, f"{prefix}{name}.")


def _digest(file: Any) -> str:
    found = sha256()
    while piece := file.read(1 << 20):
        found.update(piece)
    return found.hexdigest()


def _texts(value: Any) -> Iterator[str]:
    return (text for _, text in _by_dotted_name({"": value}))


def _by_dotted_name(values: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, str]]:
    """Every text in values, with the dotted name of where it stands."""
    for name, value in values.items():
        dotted = f"{prefix}{name}"
        if isinstance(value, str):
            yield dotted, value
        elif isinstance(value, Mapping):
            yield from _by_dotted_name(value, f"{dotted}.")
        elif isinstance(value, (list, tuple)):
            inner = {f"[{place}]": each for place, each in enumerate(value)}
            yield from _by_dotted_name(inner, dotted)


def _looks_like_a_path(text: str) -> bool:
    return any(each in text for each in "/\\~\0") or text.endswith(_FILES) or text in (".", "..")


def _shown(text: str) -> str:
    return repr(text)[1:-1][:200]
