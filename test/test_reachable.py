"""Every module serves somebody: a command, a name of the registry, a study, an example."""

import ast
import re
from importlib.metadata import entry_points

from import_graph import ROOT, edges, imports, modules, named

from softcr_studies.frame.catalogue import study_files

COMMANDS = (
    "softcr",
    "softcr_tools.cli",
    "softcr_runtime.settings.registry",
    "softcr_tools.ros.executables",
)
"""The names of the library, the command line, all that has a name, and all nodes."""

_RUN = re.compile(r"(?:-m |[(\"' ])(softcr_[\w.]+)")


def module_of(path):
    parts = path.relative_to(ROOT).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def package_of(name):
    return name if modules()[name].name == "__init__.py" else name.rpartition(".")[0]


def started():
    """Commands, studies, claims of papers, examples, launch files, `python -m` of a page, what
    papers declare."""
    found = {*COMMANDS, *map(module_of, study_files().values())}
    for kind in ("commands", "kernels", "kinds", "models", "names", "nodes", "reports"):
        found |= {point.module for point in entry_points(group=f"softcr.{kind}")}
    found |= {f"{point.value}.claims" for point in entry_points(group="softcr.studies")}
    for folder in ("examples", "launch", "docs"):
        for path in ROOT.glob(f"{folder}/**/*.py"):
            found |= {*imports(ast.parse(path.read_text())), *named(path)}
    for path in (ROOT / "Makefile", *ROOT.glob("examples/*.ipynb")):
        found |= set(_RUN.findall(path.read_text()))
    for path in ROOT.glob("docs/**/*.md"):
        found |= set(re.findall(r"python3? -m (softcr_[\w.]+)", path.read_text()))
    return found


def unreached(graph, roots):
    """The nodes of a graph that nobody comes to from the roots."""
    seen, waiting = set(), sorted({*roots} & {*graph})
    while waiting:
        name = waiting.pop()
        if name not in seen:
            seen.add(name)
            waiting += sorted(graph[name] & {*graph})
    return sorted({*graph} - seen)


def test_every_module_is_reached_by_something_that_a_person_starts():
    graph = {}
    for name, path in modules().items():
        parts = name.split(".")
        packages = {".".join(parts[:count]) for count in range(1, len(parts))}
        graph[name] = edges()[name] | packages | {*named(path, package_of(name))}
    found = unreached(graph, started())
    assert not found, "only tests import these, or nobody does"


def test_a_module_that_only_tests_import_is_found():
    graph = {"cli": {"up"}, "up": {"numpy"}, "oracle": {"up", "helper"}, "helper": {"oracle"}}
    assert unreached(graph, {"cli"}) == ["helper", "oracle"]
    assert unreached(graph, {"cli", "oracle"}) == []
