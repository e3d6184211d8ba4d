"""Which studies there are, and where: a file below a group's folder, or any file by its path."""

import importlib
import importlib.util
import re
import sys
from functools import cache
from pathlib import Path
from types import ModuleType

from softcr_models.errors import UserError
from softcr_models.plugins import in_a_line
from softcr_studies.study import Study

_FOLDER = Path(__file__).parent
_HAS_STUDY = re.compile(r"^STUDY\b", re.MULTILINE)


@cache
def study_files() -> dict[str, Path]:
    """Name -> file of every study that the package brings; nothing is imported."""
    return {
        f"{path.parent.name}/{path.stem.replace('_', '-')}": path
        for path in sorted(_FOLDER.glob("*/*.py"))
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
            groups = ", ".join(dict.fromkeys(name.partition("/")[0] for name in known))
            raise UserError(
                f"study {word!r}: unknown; allowed are the names of `softcr study list`, a group "
                f"({groups}), all, or a file ending in .py"
            )
        places |= dict.fromkeys(found)
    return list(places)


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
    if file.parent.parent == _FOLDER and study.name != place:
        raise UserError(f"study {place}: calls itself {study.name!r}")
    return study


def file_of(place: str) -> Path:
    """The file of a study."""
    return study_files().get(place) or Path(place)


def _module(place: str, file: Path) -> ModuleType:
    if place in study_files():
        return importlib.import_module(f"softcr_studies.{file.parent.name}.{file.stem}")
    name = f"softcr_study_of_{file.stem}"
    spec = importlib.util.spec_from_file_location(name, file)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module  # dataclasses look their module up
    spec.loader.exec_module(module)
    return module
