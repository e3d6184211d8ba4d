"""Fields of plant errors, and the presets, from the schema."""

from collections.abc import Callable

from generate.markdown import table
from softcr_simulation.errors.plant_errors import (
    PlantErrors,
    about_field,
    available_plant_errors,
    load_plant_errors,
)


def pages() -> dict[str, Callable[[], str]]:
    """A table of every field, with the presets' values."""
    return {"plant_errors.md": _fields}


def _fields() -> str:
    presets = {name: load_plant_errors(name) for name in available_plant_errors()}
    heads = ["field", "unit", "allowed", "spread of draws", "no error", *presets, "meaning"]
    rows = []
    for name, declared in PlantErrors.model_fields.items():
        about = about_field(name)
        values = [
            _told(getattr(errors, name)) if name in errors.changed() else ""
            for errors in presets.values()
        ]
        spread = "" if about.spread is None else f"{about.spread[0]:g} to {about.spread[1]:g}"
        meaning = str(declared.description).removesuffix(f" [{about.unit}]")
        if about.each == "input":
            meaning += "; a number, or one for each actuator"
        elif about.each == "entry":
            meaning += "; a number or a list"
        allowed = f"{about.low:g} to {about.high:g}"
        rows.append(
            [f"`{name}`", about.unit, allowed, spread, _told(declared.default), *values, meaning]
        )
    return table(heads, rows) + "\n"


def _told(value: object) -> str:
    if value is None:
        return "absent"
    if isinstance(value, tuple):
        return ", ".join(f"{each:g}" for each in value) or "none"
    return f"{value:g}"
