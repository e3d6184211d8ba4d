"""Which studies there are, and where: GROUP/NAME.py below this package or below `./studies`.

A study that lies elsewhere is named by the path of its file.
"""

import importlib
import importlib.util
import re
import sys
from collections.abc import Iterable
from functools import cache
from pathlib import Path
from types import ModuleType

from softcr_models.errors import UserError, did_you_mean
from softcr_models.plugins import in_a_line
from softcr_studies.study import Study

OWN = Path("studies")
"""Where a person's own studies lie, seen from where the command is run."""

_FOLDER = Path(__file__).parent
_HAS_STUDY = re.compile(r"^STUDY\b", re.MULTILINE)


def study_files() -> dict[str, Path]:
    """Name -> file of every study; nothing is imported."""
    own = {} if OWN.resolve() == _FOLDER else _files_below(OWN.resolve())
    return {**_files_below(_FOLDER), **own}


@cache
def _files_below(folder: Path) -> dict[str, Path]:
    return {
        f"{path.parent.name}/{path.stem.replace('_', '-')}": path
        for path in sorted(folder.glob("*/*.py"))
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


def _groups(known: Iterable[str]) -> list[str]:
    return list(dict.fromkeys(name.partition("/")[0] for name in known))


def _anywhere(place: str) -> str:
    """A place that means the same wherever a worker was started."""
    file = file_of(place)
    return place if _FOLDER in file.parents else str(file)


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
        raise UserError(f"study {place}: has no STUDY of softcr_studies.study:Study")
    listed = [name for name, known in study_files().items() if known == file]
    if listed and study.name != listed[0]:
        raise UserError(f"study {place}: calls itself {study.name!r}, must be {listed[0]!r}")
    return study


def file_of(place: str) -> Path:
    """The file of a study."""
    return study_files().get(place) or Path(place)


def _module(place: str, file: Path) -> ModuleType:
    if file.parent.parent == _FOLDER:
        return importlib.import_module(f"softcr_studies.{file.parent.name}.{file.stem}")
    name = f"softcr_study_{file.parent.name}_{file.stem}"
    spec = importlib.util.spec_from_file_location(name, file)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module  # dataclasses look their module up
    spec.loader.exec_module(module)
    return module
