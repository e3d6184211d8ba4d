"""Commands of `softcr` from the settings' own types: cyclopts parses, pydantic validates.

A command is a function that returns an exit code. `@command` turns every parameter annotated with a
pydantic model into one option per field, with the field's description, unit, range, choices and
default in the help; every other parameter is cyclopts' own:

    class Settings(BaseModel):
        rate_hz: float = Field(70.0, ge=1.0, description="ticks", json_schema_extra={"unit": "Hz"})
        quiet: bool = Field(False, description="no progress bars")

    app = new_app("study", "Run published experiments again.")

    @app.command
    @command
    def run(names: list[str], /, settings: Settings, *, output: Path | None = None) -> int:
        \"\"\"Run studies by name.

        Args:
            names: studies, as `softcr study list` prints them.
            output: directory of the results.
        \"\"\"

gives `run NAMES... --rate-hz 35 --quiet --output DIRECTORY`. A list is one word, `1, 2, 3`. Fields
that no node parameter can hold (mappings, optional values) are left out: declare those as
parameters. An app mounts another one, or a function, lazily by its place:
`app.command("package.module:app", name="study", help="one line for the list")`.

A model may have two class methods. `more_options(given)` returns further settings, which depend on
what the words name, as `{title: {name: Setting}}`. `given` holds the texts of all options by name,
as `rate_hz`, and the list of the other words by the name of the first positional parameter; after
an option that is not known yet, a word is taken for its value. `of_options(values)` builds the
model from the values by dotted name, in place of `build_settings`.

`run(app, words)` returns the exit code, and has one line for every mistake.
"""

import functools
import inspect
import re
import sys
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from difflib import get_close_matches
from glob import escape, glob
from importlib.metadata import entry_points
from typing import TYPE_CHECKING, Annotated, Any, Literal, get_args, get_type_hints

from cyclopts import (
    App,
    CycloptsError,
    Group,
    Parameter,
    Token,
    UnknownCommandError,
    UnknownOptionError,
    UnusedCliTokensError,
    ValidationError,
)

from softcr_runtime.console.terminal import INTERRUPTED, USER_ERROR, complain, warn

if TYPE_CHECKING:
    from softcr_runtime.settings.node_settings import Setting

# The settings are imported where they are needed, so that --help answers at once.


COMMANDS = "softcr.commands"
"""Group of the entry points with which an installed package adds commands. The value of one is a
mapping: `softcr` or `softcr learn` -> name -> (place of a function or app, help)."""


def declared_commands(parent: str, taken: Collection[str]) -> dict[str, tuple[str, str]]:
    """Commands below `softcr` or `softcr learn` that packages declare: name -> (place, help).

    A declaration that cannot be read, or whose name is `taken`, is left out with a warning.
    """
    found: dict[str, tuple[str, str]] = {}
    for point in sorted(entry_points(group=COMMANDS), key=lambda point: point.name):
        try:
            declared = point.load().get(parent, {})
            commands = {name: (place, text) for name, (place, text) in declared.items()}
        except Exception as error:  # whatever somebody's package raises
            warn(f"commands of {point.value}: cannot be read: {type(error).__name__}: {error}")
            continue
        if again := commands.keys() & {*taken, *found}:
            warn(f"commands of {point.value}: {min(again)!r} is taken already")
        found |= {name: each for name, each in commands.items() if name not in again}
    return found


def new_app(name: str, text: str, **more: Any) -> App:
    """An app of commands, as the whole house has them.

    Args:
        name: as the user types it; of a mounted app the name it is mounted by.
        text: what it is, for its help.
        more: arguments of `cyclopts.App`.
    """
    return App(
        name=name,
        help=text,
        default_parameter=Parameter(negative=()),
        suppress_keyboard_interrupt=False,
        **{"version_flags": [], **more},
    )


def completed(names: Callable[[], Iterable[str]]) -> Parameter:
    """What a shell offers for a word of a command, as `Annotated[str, completed(names)]`.

    Files are offered beside the names, because wherever a name may stand a file may, too.

    Args:
        names: asked when the person presses the tabulator key.
    """
    if "completer" not in inspect.signature(Parameter).parameters:  # cyclopts before 5
        return Parameter()
    return Parameter(completer=lambda context: [*names(), *glob(f"{escape(context.incomplete)}*")])


def _robots() -> list[str]:
    from softcr_models.files.yaml_files import available

    return available("robots")


RobotName = Annotated[str, completed(_robots)]
"""A parameter of a command that takes the name of a robot, or a file."""


def command(function: Callable[..., int]) -> Callable[..., int]:
    """A function for `app.command` whose parameters of pydantic types are options by field."""
    return _expanded(function, {})


def run(app: App, words: Sequence[str] | None = None) -> int:
    """Run a command line.

    Args:
        app: of the whole command.
        words: after the command's name; None for those of this process.

    Returns:
        The exit code: 0 good, 1 the run failed, 2 a mistake of the user, 130 interrupted. Of a
        mistake one line on stderr tells the option, the value and what is allowed.
    """
    words = sys.argv[1:] if words is None else list(words)
    try:
        words, chosen = _prepared(app, words)
        with _own_help(chosen):
            code = app(words, exit_on_error=False, print_error=False, result_action="return_value")
        return code if isinstance(code, int) else 0
    except KeyboardInterrupt:
        return INTERRUPTED
    except Exception as error:
        line = _line(error, words)
        if line is None:
            raise
    complain(line)
    return USER_ERROR


# --- settings as options ------------------------------------------------------------------------


def _expanded(function: Callable[..., int], given: Mapping[str, Any]) -> Callable[..., int]:
    """See `command`; with what the models' `more_options` are of what is given."""
    from softcr_runtime.settings.node_settings import declared_settings

    hints = get_type_hints(function, include_extras=True)
    models = {name: hint for name, hint in hints.items() if _is_model(hint)}
    parameters: list[inspect.Parameter] = []
    options: dict[str, _Option] = {}
    for own in inspect.signature(function).parameters.values():
        if own.name not in models:
            shown = Parameter(show_default=own.default is not False and own.default != "")
            parameters.append(own.replace(annotation=Annotated[hints[own.name], shown]))
            continue
        model = models[own.name]
        more = model.more_options(given) if hasattr(model, "more_options") else {}
        for title, settings in {"": declared_settings(model), **more}.items():
            for name, setting in settings.items():
                option = _Option(own.name, title, replace(setting, name=name))
                options[option.python_name] = option
                parameters.append(option.parameter())

    @functools.wraps(function)
    def called(*arguments: Any, **given: Any) -> int:
        values: dict[str, dict[str, Any]] = {owner: {} for owner in models}
        for name in [name for name in given if name in options]:
            values[options[name].owner][options[name].setting.name] = given.pop(name)
        built = {
            owner: _built(model, values[owner])
            for owner, model in models.items()
            if owner not in given
        }
        return function(*arguments, **given, **built)

    parameters.sort(key=lambda each: each.kind)
    marked: Any = called
    marked.__signature__ = inspect.Signature(parameters)
    marked.__annotations__ = {each.name: each.annotation for each in parameters}
    marked.made_from = function, models
    marked.flags = {
        _option_of(options[each.name].setting.name if each.name in options else each.name)
        for each in parameters
        if get_args(each.annotation)[0] is bool
    }
    return called


@dataclass(frozen=True)
class _Option:
    """A setting as an option of a command; `owner` is the parameter that its model becomes."""

    owner: str
    title: str
    setting: "Setting"

    @property
    def python_name(self) -> str:
        return self.setting.name.replace(".", "__")

    @property
    def option(self) -> str:
        return _option_of(self.setting.name)

    def parameter(self) -> inspect.Parameter:
        """For the command's signature."""
        setting, default = self.setting, self.setting.default
        kind: Any = {"boolean": bool, "integer": int, "number": float}.get(setting.kind, str)
        said = setting.description
        if setting.is_list:
            kind, default = Any, ", ".join(map(str, default))
        elif setting.choices:
            kind = Literal[setting.choices]
        allowed = re.sub("^(a|a whole) number ?", "", setting.allowed)
        if allowed and (setting.is_list or kind in (int, float)):
            said = f"{said}; {allowed}"
        group: dict[str, Any] = {"group": Group(self.title)} if self.title else {}
        option = Parameter(
            name=self.option,
            help=said,
            converter=self._converted,
            show_default=default is not False and default != "",
            negative=None if default is True else (),
            allow_leading_hyphen=setting.is_list,
            **group,
        )
        annotation: Any = Annotated[kind, option]
        if setting.known:
            annotation = Annotated[annotation, completed(lambda: setting.known)]
        keyword = inspect.Parameter.KEYWORD_ONLY
        return inspect.Parameter(self.python_name, keyword, default=default, annotation=annotation)

    def _converted(self, tokens: Sequence[Token]) -> Any:
        from softcr_runtime.settings.node_settings import parsed

        implied = tokens[-1].implicit_value
        if isinstance(implied, bool):
            return implied
        return parsed(self.setting, tokens[-1].value, f"option {self.setting.name}")


def _option_of(name: str) -> str:
    return f"--{name.replace('_', '-')}"


def _is_model(hint: Any) -> bool:
    from pydantic import BaseModel

    return isinstance(hint, type) and issubclass(hint, BaseModel)


def _built(model: Any, values: Mapping[str, Any]) -> Any:
    from softcr_runtime.settings.node_settings import build_settings

    if hasattr(model, "of_options"):
        return model.of_options(values)
    return build_settings(model, values, "option")


# --- words --------------------------------------------------------------------------------------


@contextmanager
def _own_help(chosen: App) -> Iterator[None]:
    """The help of a command's function, which is longer than its line in a list, for a while."""
    line = chosen.help
    if chosen.default_command is not None:
        chosen.help = None
    try:
        yield
    finally:
        chosen.help = line


def _prepared(app: App, words: Sequence[str]) -> tuple[list[str], App]:
    """The words, and the chosen command, which now has the options that depend on them.

    Raises:
        UserError: one of several commands must be named, or what the words name cannot be used.
    """
    asked = [word for word in words if word not in app.help_flags]
    names, apps, _ = app.parse_commands(asked)
    target = apps[-1]
    # the list of commands needs no markdown, which takes longer to import than the rest
    app.help_format = "markdown" if names else "plaintext"
    if target.default_command is None and names and list(names) == list(words):
        from softcr_models.errors import UserError

        called = " ".join((*app.name, *names))
        raise UserError(f"{called}: must be followed by one of {', '.join(_commands(target))}")
    function, models = getattr(target.default_command, "made_from", (run, {}))
    if any(hasattr(model, "more_options") for model in models.values()):
        given = _given(target.default_command, asked[len(names) :])
        target.default_command = _expanded(function, given)
    return _joined(words, getattr(target.default_command, "flags", set())), target


def _given(function: Any, words: Sequence[str]) -> dict[str, Any]:
    """What the words say, before all options are known; see `more_options` above."""
    given: dict[str, Any] = {}
    others: list[str] = []
    remaining = list(words)
    while remaining:
        word = remaining.pop(0)
        option, equals, value = word.partition("=")
        if not option.startswith("--"):
            others.append(word)
        elif equals or option in function.flags:
            given[option[2:].replace("-", "_")] = value
        else:
            has_value = remaining and not remaining[0].startswith("--")
            given[option[2:].replace("-", "_")] = remaining.pop(0) if has_value else ""
    first = next(iter(inspect.signature(function).parameters.values()))
    return given if first.kind is inspect.Parameter.KEYWORD_ONLY else {**given, first.name: others}


def _joined(words: Sequence[str], flags: set[str]) -> list[str]:
    """`--flag true` as `--flag=true`."""
    joined: list[str] = []
    for word in words:
        if word.lower() in ("true", "false") and joined and joined[-1] in flags:
            joined[-1] += f"={word}"
        else:
            joined.append(word)
    return joined


def _commands(app: App) -> list[str]:
    return [name for name in app if not name.startswith("-")]


def _line(error: Exception, words: Sequence[str]) -> str | None:
    """What to say of an exception; None of one that is a fault of the program."""
    if isinstance(error, UnknownOptionError):
        word = (error.token.keyword or error.token.value).partition("=")[0]
        known = [name for each in error.argument_collection for name in each.names if each.parse]
        return f"option {word}: unknown; {_instead(word, known, error)}"
    if isinstance(error, UnknownCommandError):
        word = (error.unused_tokens or [""])[0]
        assert error.app is not None
        known = _commands(error.app)
        return f"command {word!r}: unknown; {_instead(word, known, error)}"
    if isinstance(error, CycloptsError):
        return _plain_line(error)
    if isinstance(error, OSError):
        return f"{error.filename or ' '.join(words[:1])}: {error.strerror or error}"
    from softcr_models.errors import UserError

    return str(error) if isinstance(error, UserError) else None


def _plain_line(error: CycloptsError) -> str:
    """In cyclopts' words, but of pydantic's only the reason."""
    cause: Any = error.__cause__
    if isinstance(error, UnusedCliTokensError):
        return f"unexpected: {' '.join(error.unused_tokens or ())}"
    if isinstance(error, ValidationError) and hasattr(cause, "errors"):
        reason = cause.errors()[0]["msg"].removeprefix("Value error, ")
        error.exception_message = reason.replace("Input should", "It must")
    error.verbose = False
    return " ".join(str(error).split()).removesuffix(".")


def _instead(word: str, known: Sequence[str], error: CycloptsError) -> str:
    near = get_close_matches(word, known, n=1)
    if near:
        return f"did you mean {near[0]}?"
    return f"known are {', '.join(known)}"
