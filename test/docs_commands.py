"""Shell lines of the documentation, checked word by word without being run."""

import re
from functools import cache

from docs_blocks import ROOT

from softcr_models.plugins import load_class
from softcr_runtime.blocks.block import BlockBase
from softcr_runtime.ros.executor.exchange import SERVICE
from softcr_runtime.settings.node_settings import declared_settings
from softcr_tools.ros.executables import NODES
from softcr_tools.running.hardware_system import HardwareOptions
from softcr_tools.running.run_options import SimulationOptions

SHELL_WORDS = {"cd", ".", "source", "export"}
OTHER_PROGRAMS = {"ip", "dask", "rviz2", "plotjuggler", "colcon", "cp", "mkdir", "touch"}
OTHER_PROGRAMS |= {"rosdep", "python3", "python3.11", "apt", "soromox-env/bin/pip"}
"""What is not ours; that the line can be split into words is all that is checked."""

NO_GPU = "'cuda' cannot be used here: "
"""What comes last, where a line is right: what this machine lacks is no mistake of the page."""

_LAUNCH = {"simulation.launch.py": SimulationOptions, "hardware.launch.py": HardwareOptions}
LAUNCH_OWN = {"args", "results", "rviz", "use_sim_time"}
_TRANSITIONS = {"configure", "activate", "deactivate", "cleanup", "shutdown"}


def problem_of(words: list[str]) -> str | None:
    """What is wrong with a line; None: nothing."""
    while words and re.fullmatch(r"[A-Z_]+=\S*", words[0]):
        words = words[1:]
    program, *rest = words
    if (program, rest[:1]) == ("softcr", ["call"]) and rest[1:]:
        return _softcr(rest) or _service(rest[1])
    if (program, rest[:2]) == ("softcr", ["lifecycle", "set"]):
        return _softcr(rest) or _lifecycle(rest[1:])
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
    from softcr_runtime.settings import command_line
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
        line = command_line._line(error, words) or repr(error)
        return None if NO_GPU in line else line
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


def _ros2(words: list[str]) -> str | None:
    verb, *rest = words
    if verb == "run":
        return "softcr run starts our nodes everywhere" if rest[0] == "softcr" else None
    if verb == "security":  # DDS Security comes with an installation alone
        return None
    return _launch(rest) if verb == "launch" else f"ros2 {verb}: not on a machine with wheels"


def _launch(words: list[str]) -> str | None:
    package, file, *rest = words
    if package != "softcr" or file not in _LAUNCH or not (ROOT / "launch" / file).is_file():
        return f"no launch file {file!r}"
    names = {word.split(":=", 1)[0] for word in rest} - {"--show-args"}
    unknown = names - declared_settings(_LAUNCH[file]).keys() - LAUNCH_OWN
    return f"{file} has no argument {unknown}" if unknown else None


def _lifecycle(words: list[str]) -> str | None:
    verb, node, transition = words
    good = verb == "set" and node.strip("/") in NODES and transition in _TRANSITIONS
    return None if good else f"lifecycle {words}: no such node or transition"


def _service(name: str) -> str | None:
    if name.strip("/") == SERVICE:
        return None
    node, _, service = name.strip("/").partition("/")
    sources = "".join(path.read_text() for path in ROOT.glob("softcr_hardware/nodes/*.py"))
    good = node in NODES and f'"~/{service}"' in sources
    if node in NODES and ":" in NODES[node]:
        block = load_class(NODES[node].split()[1], "block", BlockBase)
        good = service in block.actions
    return None if good else f"no service {name}"
