"""Public names of a package that are imported when they are first asked for.

A package whose `__init__` imports all of its public names loads numba and every kernel with them,
which takes a second, and fails where kernels cannot be kept. A command that only shows its help
needs none of them.
"""

from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any


def imported_on_demand(package: str, places: Mapping[str, tuple[str, ...]]) -> Callable[[str], Any]:
    """The `__getattr__` of a package.

    Args:
        package: its `__name__`.
        places: the names that each of its modules has.
    """
    module_of = {name: module for module, names in places.items() for name in names}

    def get(name: str) -> Any:
        if name not in module_of:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        return getattr(import_module(f"{package}.{module_of[name]}"), name)

    return get
