"""The launch files where launch itself is not installed: what they name exists, and fits.

test_launch.py runs them where launch can be imported.
"""

import ast
import inspect
import re
from importlib import import_module
from xml.etree import ElementTree

import pytest
from docs_commands import LAUNCH_OWN
from kit.processes import ROOT

from softcr_runtime.settings.node_settings import declared_settings
from softcr_tools.running import up
from softcr_tools.running.run_options import RunOptions

FILES = sorted((ROOT / "launch").glob("*.launch.py"))
LAUNCHING = ROOT / "softcr_tools" / "running" / "launching.py"
trees = {path.name: ast.parse(path.read_text(), str(path)) for path in [*FILES, LAUNCHING]}


def imported(tree):
    """Module and name of everything that is imported from somewhere."""
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom):
            yield from ((node.module, each.name) for each in node.names)
        elif isinstance(node, ast.Import):
            yield from ((each.name, "") for each in node.names)


def calls(tree, name):
    named = [node for node in ast.walk(tree) if isinstance(node, ast.Call)]
    return [node for node in named if isinstance(node.func, ast.Name) and node.func.id == name]


def defined(tree):
    return {node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)}


@pytest.mark.parametrize("file", trees)
def test_what_a_launch_file_imports_of_softcr_is_there(file):
    """What it imports of launch is there where launch is; that a package needs it, it says."""
    needed = {each.text for each in ElementTree.parse(ROOT / "package.xml").iter("exec_depend")}
    for module, name in imported(trees[file]):
        top = module.partition(".")[0]
        if module == "softcr_tools.running.launching":
            assert name in defined(trees[LAUNCHING.name])
        elif top.startswith("softcr"):
            assert not name or hasattr(import_module(module), name), f"{module} has no {name}"
        elif top.startswith("launch"):
            assert top in needed


@pytest.mark.parametrize("file", [path.name for path in FILES])
def test_a_launch_file_runs_a_system_of_softcr_up_with_its_options(file):
    functions = [node for node in trees[file].body if isinstance(node, ast.FunctionDef)]
    (made,) = [each for each in functions if each.name == "generate_launch_description"]
    (call,) = calls(made, "launch_description")
    system, kind, results = call.args
    assert file == f"{system.value}.launch.py"
    places = {name: module for module, name in imported(trees[file])}
    options = getattr(import_module(places[kind.id]), kind.id)
    assert issubclass(options, RunOptions)
    function, models = getattr(up, system.value).made_from
    assert models == {"options": options}
    assert results.value == str(inspect.signature(function).parameters["results"].default)


def test_the_command_of_a_launch_is_that_of_softcr_up():
    """`python -m softcr_tools.cli up SYSTEM` and options that every system has."""
    made = calls(trees[LAUNCHING.name], "ExecuteProcess")
    (process,) = [call for call in made if "name" in {each.arg for each in call.keywords}]
    (command,) = [each.value for each in process.keywords if each.arg == "cmd"]
    words = [each.value for each in command.elts if isinstance(each, ast.Constant)]
    assert words == ["-m", "softcr_tools.cli", "up"]
    assert import_module(words[1]).main is not None
    read = {
        node.slice.value
        for node in ast.walk(trees[LAUNCHING.name])
        if isinstance(node, ast.Subscript)
        and isinstance(node.value, ast.Name)
        and node.value.id in ("values", "defaults")
        and isinstance(node.slice, ast.Constant)
    }
    assert {"namespace", "results", "args", "visuals"} <= read
    assert read - declared_settings(RunOptions).keys() - LAUNCH_OWN <= {"mode"}


def test_the_arguments_beside_the_options_are_those_that_the_page_tells():
    """`offered += [(name, default, said), ...]`"""
    offered = {
        each.elts[0].value
        for node in ast.walk(trees[LAUNCHING.name])
        if isinstance(node, ast.AugAssign) and isinstance(node.value, ast.List)
        for each in node.value.elts
    }
    assert offered == LAUNCH_OWN
    page = (ROOT / "docs/howto/workspace.md").read_text()
    assert [name for name in offered if not re.search(rf"`{name}", page)] == []
    # there is a file of each system, and they are installed
    assert '*shared_files("config", "examples", "launch")' in (ROOT / "setup.py").read_text()
    assert {path.name for path in FILES} == {"simulation.launch.py", "hardware.launch.py"}
