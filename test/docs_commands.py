"""Shell lines of the documentation, checked word by word without being run."""

import importlib
import re
from functools import cache

from docs_blocks import ROOT

from softcr_models.errors import UserError
from softcr_models.plugins import load_class
from softcr_runtime.block import BlockBase
from softcr_runtime.settings import build_settings, declared_settings, parsed
from softcr_tools.hardware_system import HardwareOptions
from softcr_tools.run_options import SimulationOptions

SHELL_WORDS = {"cd", ".", "source", "export"}
OTHER_PROGRAMS = {
    "ip",
    "dask",
    "rviz2",
    "plotjuggler",
    "colcon",
    "python3",
    "python3.11",
    "apt",
} | {"soromox-env/bin/pip"}
"""What is not ours; that the line can be split into words is all that is checked."""

_LAUNCH = {"simulation.launch.py": SimulationOptions, "hardware.launch.py": HardwareOptions}
_LAUNCH_OWN = {"args", "results", "namespace"}
_TRANSITIONS = {"configure", "activate", "deactivate", "cleanup", "shutdown"}


def problem_of(words: list[str]) -> str | None:
    """What is wrong with a line; None: nothing."""
    while words and re.fullmatch(r"[A-Z_]+=\S*", words[0]):
        words = words[1:]
    program, *rest = words
    check = {
        "softcr": _softcr, "make": _make, "ros2": _ros2, "python": _python, "pip": _pip,
    }.get(program)  # fmt: skip
    if check is not None:
        return check(rest)
    if program in SHELL_WORDS | OTHER_PROGRAMS:
        return None
    return f"program {program!r} is not known to the documentation's test"


def _softcr(words: list[str]) -> str | None:
    """The command line's own parser, and the settings that it builds, but not the command."""
    from softcr_runtime import command_line
    from softcr_tools.cli import app

    if "--help" in words:
        words = [word for word in words if word != "--help"]
        if not words:
            return None
    try:
        prepared, _ = command_line._prepared(app, words)
        command, bound, _ = app.parse_args(prepared, exit_on_error=False, print_error=False)
        done = command.__code__.co_freevars
        if hasattr(command, "made_from"):  # `@command`: build the settings, do nothing with them
            cell = command.__closure__[done.index("function")]
            kept, cell.cell_contents = cell.cell_contents, lambda *_, **__: 0
            try:
                command(*bound.args, **bound.kwargs)
            finally:
                cell.cell_contents = kept
    except Exception as error:
        return command_line._line(error, words) or repr(error)
    return None


def _make(words: list[str]) -> str | None:
    text = (ROOT / "Makefile").read_text()
    targets = set(re.findall(r"^([a-z-]+):", text, re.MULTILINE))
    for word in words:
        if "=" not in word and word not in targets:
            return f"make has no target {word!r}"
        if "=" in word and not re.fullmatch(r"[A-Z_]+", word.partition("=")[0]):
            return f"{word!r} sets no variable of make"
    return None


def _python(words: list[str]) -> str | None:
    if words[0].startswith("-"):
        return None
    return None if (ROOT / words[0]).is_file() else f"no file {words[0]}"


def _pip(words: list[str]) -> str | None:
    extras = re.findall(r"\[([\w,]+)\]", " ".join(words))
    unknown = {name for group in extras for name in group.split(",")} - _setup().keys()
    return f"no extra {unknown}" if unknown else None


@cache
def _setup() -> dict[str, list[str]]:
    """The extras of setup.py."""
    found = re.search(r"extras_require=(\{.*?\n    \})", (ROOT / "setup.py").read_text(), re.DOTALL)
    assert found
    return dict(eval(found[1]))


@cache
def nodes() -> dict[str, str]:
    """What each executable of `ros2 run softcr` runs."""
    text = (ROOT / "setup.py").read_text()
    found = re.search(r"^NODES = (\{.*?^\})", text, re.DOTALL | re.MULTILINE)
    assert found
    return dict(eval(found[1], {"_BLOCK": "block"}))


def _ros2(words: list[str]) -> str | None:
    verb, *rest = words
    checks = {"run": _run, "launch": _launch, "lifecycle": _lifecycle, "service": _service}
    return checks[verb](rest) if verb in checks else f"ros2 {verb}: unknown here"


def _run(words: list[str]) -> str | None:
    package, node, *rest = words
    if package != "softcr":
        return None
    if node not in nodes():
        return f"no node {node!r}"
    given = dict(word.split(":=", 1) for word in rest if ":=" in word)
    given.pop("use_sim_time", None)
    values = dict(given)
    place = nodes()[node].split()
    try:
        if place[0] == "block":
            block = load_class(place[1], "block", BlockBase)
            settings = block.settings_model(values)
        else:
            module = importlib.import_module(place[0])
            settings = next(
                each.Settings for each in vars(module).values()
                if getattr(each, "default_name", None) == node
            )  # fmt: skip
        declared = declared_settings(settings)
        texts = {
            name: parsed(declared[name], text, f"parameter {name}") if name in declared else text
            for name, text in values.items()
        }
        build_settings(settings, texts)
    except UserError as error:
        return str(error)
    return None


def _launch(words: list[str]) -> str | None:
    package, file, *rest = words
    if package != "softcr" or file not in _LAUNCH or not (ROOT / "launch" / file).is_file():
        return f"no launch file {file!r}"
    names = {word.split(":=", 1)[0] for word in rest}
    unknown = names - declared_settings(_LAUNCH[file]).keys() - _LAUNCH_OWN
    return f"{file} has no argument {unknown}" if unknown else None


def _lifecycle(words: list[str]) -> str | None:
    verb, node, transition = words
    good = verb == "set" and node.strip("/") in nodes() and transition in _TRANSITIONS
    return None if good else f"lifecycle {words}: no such node or transition"


def _service(words: list[str]) -> str | None:
    verb, name, kind = words[:3]
    node, _, service = name.strip("/").partition("/")
    sources = "".join(path.read_text() for path in ROOT.glob("softcr_hardware/nodes/*.py"))
    good = verb == "call" and node in nodes() and f'"~/{service}"' in sources
    return None if good and kind == "std_srvs/srv/Trigger" else f"no service {name} of {kind}"
