"""Commands that become studies, with parsers of their own until then."""

import importlib
from collections.abc import Callable
from typing import Annotated

from cyclopts import App, Parameter

_PLACES = {
    "experiment": "experiments",
}


def mount(app: App) -> None:
    """Add them."""
    for name, place in _PLACES.items():
        app.command(_command(f"softcr_tools.{place}"), name=name, show=False, help_flags=[])


def _command(place: str) -> Callable[..., int]:
    def called(*words: Annotated[str, Parameter(allow_leading_hyphen=True)]) -> int:
        code: int = importlib.import_module(place).main(words)
        return code

    return called
