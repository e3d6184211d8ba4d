"""Options as words of a command line: those of a run, and `--controller.kp 3` of what it names."""

import argparse
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from softcr_models.errors import UserError
from softcr_runtime import registry
from softcr_runtime.settings import Setting, declared_settings
from softcr_tools.run_options import ROLES, RunOptions

_OF_PLUGIN = re.compile(rf"--({'|'.join(ROLES)})\.([^=]+)(?:=(.*))?", re.DOTALL)
_HELP = {"-h", "--help"}


def plugin_words(arguments: Sequence[str]) -> tuple[list[str], dict[str, str]]:
    """The words without `--ROLE.NAME VALUE`, and these values by `role.name`.

    Raises:
        UserError: such a word stands without a value.
    """
    rest, found = [], {}
    words = iter(arguments)
    for word in words:
        match = _OF_PLUGIN.fullmatch(word)
        if match is None:
            rest.append(word)
            continue
        role, name, value = match.groups()
        value = next(words, None) if value is None else value
        if value is None:
            raise UserError(f"option {word}: needs a value")
        found[f"{role}.{name.replace('-', '_')}"] = value
    return rest, found


def add_options(
    parser: argparse.ArgumentParser,
    kind: type[RunOptions],
    results: str,
    words: Sequence[str] = (),
) -> None:
    """An option for every field, and where the results go.

    Args:
        parser: to add to.
        kind: of the options.
        results: directory for the results where no other one is named.
        words: of the command line: what they name lists its settings where they ask for help.
    """
    for setting in declared_settings(kind).values():
        _add(parser, setting.name, setting)
    parser.add_argument(
        "--results",
        type=Path,
        default=Path(results),
        metavar="DIRECTORY",
        help="where the run's directory is made (default: %(default)s)",
    )
    if _HELP & set(words):
        _add_settings_of_the_named(parser, kind, words)


def _add_settings_of_the_named(
    parser: argparse.ArgumentParser, kind: type[RunOptions], words: Sequence[str]
) -> None:
    """For help: a group for everything that the words name.

    Raises:
        UserError: what they name cannot be used.
    """
    roles = [role for role in ROLES if role in kind.model_fields]
    asked = argparse.ArgumentParser(add_help=False, allow_abbrev=False)
    for role in roles:
        asked.add_argument(f"--{role}")
    given = vars(asked.parse_known_args(words)[0])
    for role in roles:
        named = given[role]
        if not named or named in registry.MOTIONS:
            continue
        settings = registry.declared(role, named)
        title = f"settings of the {role} {named}"
        group = parser.add_argument_group(title, None if settings else "it has none")
        for name, setting in settings.items():
            _add(group, f"{role}.{name}", setting)


def _add(parser: Any, name: str, setting: Setting) -> None:
    parser.add_argument(
        f"--{name.replace('_', '-')}",
        dest=name,
        default=argparse.SUPPRESS,
        metavar="VALUE",
        help=_help(setting).replace("%", "%%"),
    )


def _help(setting: Setting) -> str:
    default = f"default: {setting.default}" if setting.default != "" else "default: none"
    return f"{setting.description}; {setting.allowed} ({default})"
