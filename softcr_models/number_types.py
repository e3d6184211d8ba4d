"""Numbers in files: finite, and never true or false, which Python would take for 1 and 0."""

from typing import Annotated, Any

from pydantic import AfterValidator, BeforeValidator, Field

_ENDINGS = (".yaml", ".yml", ".json", ".safetensors", ".py")


def _no_boolean(value: Any) -> Any:
    if isinstance(value, bool):
        raise ValueError("must be a number")
    return value


def _as_file_name(name: str) -> str:
    forbidden = {*"/\\:~\"'", *map(chr, range(32))} & {*name}
    if forbidden or name.startswith(".") or name.endswith(_ENDINGS):
        raise ValueError(
            "files are called by it: it must not begin with a dot, have one of / \\ : ~, or end "
            f"in {', '.join(_ENDINGS)}"
        )
    return name


NO_BOOLEAN = BeforeValidator(_no_boolean)
"""Stands behind a number's range, `Annotated[int, Field(ge=1), NO_BOOLEAN]`: JSON schema then has
the range."""

Finite = Annotated[float, Field(allow_inf_nan=False), NO_BOOLEAN]
Positive = Annotated[float, Field(gt=0.0, allow_inf_nan=False), NO_BOOLEAN]
NonNegative = Annotated[float, Field(ge=0.0, allow_inf_nan=False), NO_BOOLEAN]
Fraction = Annotated[float, Field(ge=0.0, le=1.0), NO_BOOLEAN]
Count = Annotated[int, Field(ge=1), NO_BOOLEAN]
Name = Annotated[str, Field(min_length=1)]
FileName = Annotated[str, Field(min_length=1), AfterValidator(_as_file_name)]
"""A name that files are called by: of a robot, whose network and calibration have its name."""

Triple = Annotated[tuple[Finite, ...], Field(min_length=3, max_length=3)]
