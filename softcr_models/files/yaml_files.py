"""Files of `config/` and of the user: from a name or a path to validated data, or one clear line.

Every YAML file of softcr is read here, so that all of them say the same about a mistake:

    FILE: FIELD: VALUE is not allowed: REASON
    FILE: FIELD: missing; this field is required
    FILE: FIELD: unknown field; allowed are FIELD, FIELD, ...
    FILE: line 3: cannot be read as a robot file: expected ',' or ']', but got '<stream end>'
"""

import copy
import re
from functools import lru_cache
from pathlib import Path
from typing import Any, ClassVar, TypeVar

import yaml
from pydantic import BaseModel, ValidationError

from softcr_models.errors import UserError, did_you_mean
from softcr_models.files.checked import checked
from softcr_models.files.config import config_directory
from softcr_models.files.problems import Problem, all_problems
from softcr_models.files.small_files import content_of

Model = TypeVar("Model", bound=BaseModel)

_MOST = 20  # problems of a file that are told
_LONGEST_EXAMPLE = 120  # characters


def load_yaml(name_or_path: str | Path, folder: str, model: type[Model], what: str) -> Model:
    """The file `config/FOLDER/NAME.yaml`, or the YAML file at a path, as a model.

    Args:
        name_or_path: a name without an ending and without a folder, or else a path.
        folder: of `config/`, where names are looked for.
        model: what the file holds.
        what: the word for it, such as "robot".

    Raises:
        UserError: a line for each field that is wrong, with the file, the field, the value found
            and what is allowed.
    """
    path = yaml_path(name_or_path, folder, what)
    return validated(model, read_mapping(path, what), path, folder)


def yaml_path(name_or_path: str | Path, folder: str, what: str) -> Path:
    """Where a file lies: in `config/FOLDER` when a name is given.

    Raises:
        UserError: no file has this name; the line lists those there are.
    """
    if is_path(name_or_path):
        return Path(name_or_path)
    path = config_directory() / folder / f"{name_or_path}.yaml"
    if "\0" in str(path) or not path.is_file():
        names = available(folder)
        near, known = did_you_mean(name_or_path, names), ", ".join(names) or "none"
        raise UserError(
            f"{what} {str(name_or_path)!r}: unknown; {near}known are {known}, or give a .yaml path"
        )
    return path


def is_path(name_or_path: str | Path) -> bool:
    """Whether this is a path, and not a name of a file in `config/`."""
    path = Path(name_or_path)
    return path.suffix in (".yaml", ".yml") or path.parent != Path(".")


def available(folder: str) -> list[str]:
    """Names of the YAML files in a folder of `config/`."""
    return sorted(path.stem for path in (config_directory() / folder).glob("*.yaml"))


def read_mapping(path: Path, what: str) -> dict[str, Any]:
    """The content of a YAML file, which must be a mapping.

    Raises:
        UserError: the file is absent, cannot be read, is not YAML, names a field twice, or holds
            something else.
    """
    try:
        content = copy.deepcopy(_parsed(content_of(path).decode("utf-8")))
    except FileNotFoundError:
        known = (
            ", ".join(sorted(file.name for file in path.parent.glob("*.yaml"))) or "no YAML file"
        )
        raise UserError(f"{what} file {path}: no such file; beside it are: {known}") from None
    except yaml.YAMLError as error:
        line, problem = _line_and_problem(error)
        raise UserError(f"{path}: {line}cannot be read as a {what} file: {problem}") from None
    except OSError as error:
        why = error.strerror or error
        raise UserError(f"{path}: cannot be read as a {what} file: {why}") from None
    except UnicodeDecodeError as error:
        problem = f"byte {error.start} is not text in UTF-8"
        raise UserError(f"{path}: cannot be read as a {what} file: {problem}") from None
    except ValueError as error:  # of a date that is none, of a zero in the path
        raise UserError(f"{str(path)!r}: cannot be read as a {what} file: {error}") from None
    except RecursionError:
        raise UserError(f"{path}: cannot be read as a {what} file: nested too deeply") from None
    if not isinstance(content, dict):
        found = "is empty" if content is None else f"holds {_NOUNS.get(type(content), 'a value')}"
        raise UserError(f"{path}: {found}, must hold a mapping of {what} fields")
    return content


def validated(model: type[Model], content: object, where: object, folder: str = "") -> Model:
    """Content as a model.

    Args:
        model: what the content must be.
        content: of a file.
        where: the file, or another word for the content.
        folder: of `config/`, where files of the same kind lie, for examples of what is missing.

    Raises:
        UserError: a line for each problem, which begins with `where`.
    """
    try:
        return checked(model, content)
    except ValidationError as error:
        problems = all_problems(error, model)
        lines = [f"{where}: {each}{_example(folder, each, content)}" for each in problems[:_MOST]]
        if len(problems) > _MOST:
            lines.append(f"{where}: and {len(problems) - _MOST} more")
        raise UserError("\n".join(lines)) from None


def _example(folder: str, problem: Problem, content: Any) -> str:
    """What a shipped file has where something is missing in the content of another."""
    if problem.kind != "missing" or not folder:
        return ""
    for name in available(folder):
        shipped = read_mapping(config_directory() / folder / f"{name}.yaml", folder)
        if (value := _value_at(shipped, problem.location, content)) is not None:
            many = isinstance(value, list) and isinstance(value[0], dict)
            text = yaml.safe_dump(
                value[0] if many else value, default_flow_style=True, width=_LONGEST_EXAMPLE
            ).removesuffix("\n...\n").strip()  # fmt: skip
            if "\n" not in text:
                return f"; {name} has {text}{', ...' if many else ''}"
    return ""


def _value_at(shipped: Any, location: tuple[str | int, ...], own: Any) -> Any:
    """What stands at a place of a shipped file, in any entry of a list that has the type of one's
    own; None where nothing does."""
    if not location:
        return shipped
    here, further = location[0], location[1:]
    if isinstance(shipped, list) and isinstance(here, int):
        mine = own[here] if isinstance(own, list) and here < len(own) else None
        found = (_value_at(each, further, mine) for each in shipped)
        return next((each for each in found if each is not None), None)
    if not isinstance(shipped, dict) or here not in shipped:
        return None
    if not isinstance(own, dict) or shipped.get("type") != own.get("type"):
        return None
    return _value_at(shipped[here], further, own.get(here))


_NOUNS: dict[type, str] = {list: "a list", str: "text", bool: "true or false"}


@lru_cache(maxsize=64)
def _parsed(text: str) -> Any:
    """What a text in YAML holds; it is kept, for a start reads the same few files dozens of
    times, and copying what they hold is faster than parsing it."""
    return yaml.load(text, _Loader)


class _Loader(yaml.SafeLoader):
    """YAML 1.2, of which PyYAML knows 1.1: scalars are those of the core schema (YAML 1.2.2,
    section 10.3.2), so that 0100 is a hundred, and a mapping may not name a field twice."""

    yaml_implicit_resolvers: ClassVar = {"<": yaml.SafeLoader.yaml_implicit_resolvers["<"]}

    def construct_yaml_int(self, node: yaml.ScalarNode) -> int:
        text = self.construct_scalar(node)
        base = {"0o": 8, "0x": 16}.get(text[:2], 10)
        return int(text, base)

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        seen = set()
        for key, _ in node.value:
            if isinstance(key, yaml.ScalarNode):
                if key.value in seen:
                    raise yaml.constructor.ConstructorError(
                        None, None, f"{key.value} stands twice", key.start_mark
                    )
                seen.add(key.value)
        return super().construct_mapping(node, deep)


_Loader.add_constructor("tag:yaml.org,2002:int", _Loader.construct_yaml_int)
for _tag, _first, _form in (
    ("null", "~nN", r"~|null|Null|NULL"),
    ("bool", "tTfF", r"true|True|TRUE|false|False|FALSE"),
    ("int", "-+0123456789", r"[-+]?[0-9]+|0o[0-7]+|0x[0-9a-fA-F]+"),
    (
        "float",
        "-+.0123456789",
        r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?"
        r"|[-+]?\.(inf|Inf|INF)|\.(nan|NaN|NAN)",
    ),
):
    _Loader.add_implicit_resolver(f"tag:yaml.org,2002:{_tag}", re.compile(f"(?:{_form})$"), _first)
_Loader.add_implicit_resolver("tag:yaml.org,2002:null", re.compile("$"), [""])


def _line_and_problem(error: yaml.YAMLError) -> tuple[str, str]:
    """The line, where it is known, and what is wrong there."""
    mark = getattr(error, "problem_mark", None)
    problem = getattr(error, "problem", None) or getattr(error, "reason", None) or "not YAML"
    return f"line {mark.line + 1}: " if mark else "", " ".join(str(problem).split())
