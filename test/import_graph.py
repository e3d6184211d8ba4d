"""The modules of the rooms, and what each imports or names, read from their text."""

import ast
import re
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[1]

_PLACE = re.compile(r"\w+(\.\w+)*(?=:\w+( .*)?$|$)")
_LOADERS = ("import_module", "imported_on_demand")


@cache
def modules():
    """Name -> file of every module of the rooms."""
    found = {}
    for path in ROOT.glob("softcr*/**/*.py"):
        parts = path.relative_to(ROOT).with_suffix("").parts
        found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return found


def imports(tree):
    """Full dotted names that a module imports, wherever in it; `TYPE_CHECKING` blocks aside."""
    if isinstance(tree, ast.If) and "TYPE_CHECKING" in ast.unparse(tree.test):
        return
    if isinstance(tree, ast.Import):
        yield from (alias.name for alias in tree.names)
    elif isinstance(tree, ast.ImportFrom):
        assert tree.level == 0, "relative import"
        for alias in tree.names:
            name = f"{tree.module}.{alias.name}"
            yield name if name in modules() else tree.module
    for child in ast.iter_child_nodes(tree):
        yield from imports(child)


@cache
def edges():
    """Module -> what it imports, itself left out."""
    return {
        name: {found for found in imports(ast.parse(path.read_text())) if found != name}
        for name, path in modules().items()
    }


def named(path, package=""):
    """Modules that strings of a file name: by their place, or as the file of a script beside it.

    A file that loads modules by their names may leave out the package that it lies in, and a table
    of commands the room's common beginning.
    """
    text = path.read_text()
    beginnings = ["", "softcr_", "softcr_tools."]
    if any(loader in text for loader in _LOADERS):
        beginnings.append(f"{package}.")
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            if node.value.endswith(".py"):
                yield f"{package}.{node.value[:-3]}"
            elif place := _PLACE.match(node.value):
                yield from (f"{beginning}{place[0]}" for beginning in beginnings)
