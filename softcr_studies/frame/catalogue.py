"""Which studies there are, and where: GROUP/NAME.py in this room or below `./studies`, and those of
packages that declare a group of studies as an entry point `GROUP = package` of `softcr.studies`.

A study that lies elsewhere is named by the path of its file.
"""

import importlib
import importlib.util
import re
import sys
from collections.abc import Iterable
from functools import cache
from importlib.metadata import entry_points
from pathlib import Path
from types import ModuleType

from softcr_models.errors import UserError, did_you_mean
from softcr_models.plugins import in_a_line
from softcr_studies.frame.claims import Claim
from softcr_studies.frame.study import Study

OWN = Path("studies")
"""Where a person's own studies lie, seen from where the command is run."""

ENTRY_POINTS = "softcr.studies"
"""Group of the entry points that declare studies."""

_FOLDER = Path(__file__).parents[1]
_HAS_STUDY = re.compile(r"^STUDY\b", re.MULTILINE)


def study_files() -> dict[str, Path]:
    """Name -> file of every study; nothing is imported."""
    own = {} if OWN.resolve() == _FOLDER else _files_below(OWN.resolve())
    declared: dict[str, Path] = {}
    for group, package in _declared().items():
        declared |= _files_of(group, _source(package))
    return dict(sorted({**_files_below(_FOLDER), **declared}.items())) | own


@cache
def _declared() -> dict[str, str]:
    """Group -> package of the studies that packages declare."""
    return {each.name: each.value for each in entry_points(group=ENTRY_POINTS)}


def _source(package: str) -> Path:
    """The folder of a package, which is not imported itself."""
    try:
        found = importlib.util.find_spec(package)
    except ModuleNotFoundError:
        found = None
    if found is None or found.origin is None:
        raise UserError(f"studies of {package}: there is no such package; install it again")
    return Path(found.origin).parent


@cache
def _files_below(folder: Path) -> dict[str, Path]:
    found: dict[str, Path] = {}
    for group in sorted(each for each in folder.glob("*") if each.is_dir()):
        found |= _files_of(group.name, group)
    return found


@cache
def _files_of(group: str, folder: Path) -> dict[str, Path]:
    return {
        f"{group}/{path.stem.replace('_', '-')}": path
        for path in sorted(folder.glob("*.py"))
        if _HAS_STUDY.search(path.read_text(encoding="utf-8"))
    }


def named_studies(words: list[str]) -> list[str]:
    """The places that words of a person mean: names, groups, files, or "all".

    Raises:
        UserError: a word means none of them.
    """
    places: dict[str, None] = {}
    for word in words:
        known = study_files()
        if word.endswith(".py"):
            found = [str(Path(word).expanduser().resolve())]
        elif word in known:
            found = [word]
        else:
            found = [name for name in known if word == "all" or name.startswith(f"{word}/")]
            if len(found) > 1:  # a group leaves out what cannot be run without a person's files
                found = [name for name in found if not load_study(name).needs]
        if not found:
            groups = ", ".join(_groups(known))
            raise UserError(
                f"study {word!r}: unknown; {did_you_mean(word, (*known, *_groups(known)))}"
                "allowed are the names of `softcr study list`, a group "
                f"({groups}), all, or a file ending in .py"
            )
        places |= dict.fromkeys(map(_anywhere, found))
    return list(places)


def in_order(places: Iterable[str]) -> list[str]:
    """The places, each study after those whose tables it reads.

    Raises:
        UserError: studies read each other's tables.
    """
    left, ordered = list(places), list[str]()
    while left:
        waiting = {load_study(place).name for place in left}
        ready = (place for place in left if not waiting & set(load_study(place).after))
        if (first := next(ready, None)) is None:
            raise UserError(f"studies {', '.join(left)}: each reads the table of another one")
        left.remove(first)
        ordered.append(first)
    return ordered


def claims_of(group: str) -> tuple[Claim, ...]:
    """What a paper claims: CLAIMS of the module `claims` beside its studies; else empty."""
    package = _declared().get(group)
    if package is None or not (_source(package) / "claims.py").is_file():
        return ()
    claims: tuple[Claim, ...] = importlib.import_module(f"{package}.claims").CLAIMS
    return claims


def _groups(known: Iterable[str]) -> list[str]:
    return list(dict.fromkeys(name.partition("/")[0] for name in known))


def _anywhere(place: str) -> str:
    """A place that means the same wherever a worker was started."""
    file = file_of(place)
    return place if _package_of(file) else str(file)


@cache
def load_study(place: str) -> Study:
    """The study at a place.

    Args:
        place: a name, or the path of a file.

    Raises:
        UserError: one line about what is wrong with the file.
    """
    file = file_of(place)
    try:
        module = _module(place, file)
    except UserError:
        raise
    except FileNotFoundError:
        raise UserError(f"study {place}: there is no such file") from None
    except Exception as error:
        raise UserError(f"study {place}: cannot be read: {in_a_line(error)}") from None
    study = getattr(module, "STUDY", None)
    if not isinstance(study, Study):
        raise UserError(f"study {place}: has no STUDY of softcr_studies.frame.study:Study")
    listed = [name for name, known in study_files().items() if known == file]
    if listed and study.name != listed[0]:
        raise UserError(f"study {place}: calls itself {study.name!r}, must be {listed[0]!r}")
    return study


def file_of(place: str) -> Path:
    """The file of a study."""
    return study_files().get(place) or Path(place)


def _module(place: str, file: Path) -> ModuleType:
    if package := _package_of(file):
        return importlib.import_module(f"{package}.{file.stem}")
    name = f"softcr_study_{file.parent.name}_{file.stem}"
    spec = importlib.util.spec_from_file_location(name, file)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module  # dataclasses look their module up
    spec.loader.exec_module(module)
    return module


def _package_of(file: Path) -> str:
    """The package of a study that is installed; empty for a file of a person's own."""
    if file.parent.parent == _FOLDER:
        return f"{_FOLDER.name}.{file.parent.name}"
    return next((each for each in _declared().values() if _source(each) == file.parent), "")
