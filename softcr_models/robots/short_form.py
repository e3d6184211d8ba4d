"""The short form of a robot file: the fields of a robot's one segment stand at the top level.

A robot is always made of segments. A file without `segments` is brought into that form before it is
checked, what is wrong with it is told by the names that stand in it, and a robot of one plain
segment is written in the short form again.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from pydantic import ValidationError

from softcr_models.robots.parts import sparse
from softcr_models.robots.segments import Segment

SEGMENT_FIELDS = {
    name: field for name, field in Segment.model_fields.items() if name not in Segment.optional
}
"""Fields of a segment that stand at the top level of the short form."""


def with_segments(content: dict[str, Any]) -> dict[str, Any]:
    """The content of a file in the long form; the argument stays as it is.

    Raises:
        ValueError: it is in both forms at once; one line with the field.
    """
    moved = {name: content[name] for name in SEGMENT_FIELDS if name in content}
    if "segments" not in content:
        rest = {name: value for name, value in content.items() if name not in moved}
        return {**rest, "segments": [moved]}
    if moved:
        raise ValueError(
            f"{next(iter(moved))}: with segments, this field stands in each of them and not at the "
            "top level"
        )
    return content


def with_short_paths(error: ValidationError) -> ValidationError:
    """The errors with the places that a short file has: `segments[0].x` becomes `x`."""
    problems: list[Any] = [
        {**problem, "loc": problem["loc"][2:]} if problem["loc"][:2] == ("segments", 0) else problem
        for problem in error.errors(include_url=False)
    ]
    return ValidationError.from_exception_data(error.title, problems)


def short_form(
    content: dict[str, Any], optional: dict[str, str], defaults: Mapping[str, Any], left_out: Any
) -> dict[str, Any]:
    """A dumped robot as files have it: the short form where one plain segment allows it.

    Args:
        content: dumped, in the long form.
        optional: as `SparseData.optional`.
        defaults: fields that are left out where they have these values.
        left_out: names in a file that the caller of the dump excludes; None for none.
    """
    excluded = set(left_out or ())
    if isinstance(left_out, Mapping):  # of a part: what it leaves out there is out already
        excluded = {name for name, what in left_out.items() if what is True}
    written: dict[str, Any] = {}
    for name, value in sparse(content, optional).items():
        if name == "segments" and _is_plain(value):
            written |= value[0]
        elif name not in defaults or value != defaults[name]:
            written[name] = value
    return {name: value for name, value in written.items() if name not in excluded}


def _is_plain(segments: Sequence[dict[str, Any]]) -> bool:
    return len(segments) == 1 and segments[0].keys() <= SEGMENT_FIELDS.keys()
