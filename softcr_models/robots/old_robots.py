"""Robot files as they were before actuators were a list with types; bags hold robots in this form.

Such a file has no `type`. A rod has `chambers`; an arm has the numbers of its tendons, evenly
spaced around each rack. What is upgraded here is then validated like every other file.
"""

from typing import Annotated, Any, TypeVar

import numpy as np
from pydantic import BaseModel, Field, ValidationError

from softcr_models.files.number_types import NO_BOOLEAN, Finite, Positive
from softcr_models.files.problems import first_problem
from softcr_models.robots.parts import Chamber, Data

_Model = TypeVar("_Model", bound=BaseModel)

_ONLY_ARMS = {"bodies", "racks", "tendon_radius"}


class _Chambers(Data):
    chambers: tuple[Chamber, ...]


class _TendonRings(Data):
    """The same number of tendons at each rack, evenly around."""

    racks: tuple[Positive, ...]
    tendons_per_rack: Annotated[int, Field(ge=1, le=12), NO_BOOLEAN]
    tendon_radius: Positive
    rack_turn: Finite


def is_old_rod(content: dict[str, Any]) -> bool:
    """Whether this is a rod in the old form."""
    return "type" not in content and "chambers" in content


def is_old_arm(content: dict[str, Any]) -> bool:
    """Whether this is an arm in the old form."""
    return "type" not in content and bool(_ONLY_ARMS & content.keys())


def upgraded_rod(content: Any) -> Any:
    """The content of a rod's file in the form of today; anything else as it is.

    Raises:
        ValueError: a chamber is not what it must be; one line with the field and the value.
    """
    if not isinstance(content, dict) or not is_old_rod(content):
        return content
    rest = dict(content)
    chambers = rest.pop("chambers")
    if isinstance(chambers, (list, tuple)):
        chambers = [{"type": "chamber", **c} if isinstance(c, dict) else c for c in chambers]
    actuators = _checked(_Chambers, {"chambers": chambers}).chambers
    return {"type": "rod", **rest, "actuators": actuators}


def upgraded_arm(content: Any) -> Any:
    """As `upgraded_rod`, for the file of an arm."""
    if not isinstance(content, dict) or not is_old_arm(content):
        return content
    names = _TendonRings.model_fields
    rings = _checked(_TendonRings, {name: content[name] for name in names if name in content})
    around = 2.0 * np.pi * np.arange(rings.tendons_per_rack) / rings.tendons_per_rack
    angles = np.add.outer(rings.rack_turn * np.arange(len(rings.racks)), around)
    tendons = [
        {
            "type": "tendon",
            "name": f"tendon_{number + 1}",
            "rack": number // rings.tendons_per_rack + 1,
            "angle": angle,
            "lever_arm": rings.tendon_radius,
        }
        for number, angle in enumerate(angles.ravel().tolist())
    ]
    rest = {name: value for name, value in content.items() if name not in names}
    return {"type": "arm", **rest, "racks": content["racks"], "actuators": tendons}


def _checked(model: type[_Model], content: dict[str, Any]) -> _Model:
    try:
        return model.model_validate(content)
    except ValidationError as error:
        raise ValueError(str(first_problem(error, model))) from None
