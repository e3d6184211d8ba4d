"""The section `pressure_chain` of a rod's file: what lies between a reading and the rod."""

from collections.abc import Mapping
from itertools import pairwise
from typing import Annotated, Any

from pydantic import BeforeValidator, Field, PlainSerializer, WithJsonSchema, model_validator

from softcr_models.files.number_types import Finite, Positive
from softcr_models.robots.parts import Data

_DISTINCT = 1.5  # factor between neighbouring radii, or between times, that can be told apart [-]


def _pairs(given: Any) -> Any:
    if not isinstance(given, Mapping):
        return given
    for name, value in given.items():
        if isinstance(value, bool) or not isinstance(value, (int, float)):
            raise ValueError(f"{name}: {value!r}: must be a number")
    return tuple(given.items())


Values = Annotated[
    tuple[tuple[str, Finite], ...],
    BeforeValidator(_pairs),
    PlainSerializer(dict, dict[str, float]),
    WithJsonSchema({"type": "object", "additionalProperties": {"type": "number"}}),
]
"""Numbers by name; a mapping in files, pairs in the program, so that robots can be keys."""


class PressureChain(Data):
    """Elements of the chain that an estimator identifies; each is on where its field is given.

    An element that is on has parameters, by name, that are zero where the robot's file has no
    `values` of them: how large it is, the filter finds, beginning there.
    docs/howto/pressure-chain.md says what each element is.
    """

    hysteresis_radii: Annotated[tuple[Positive, ...], Field(max_length=8)] = Field(
        default=(),
        description="radii of the stop operators of Prandtl's and Ishlinskii's model, increasing; "
        "each has a weight that all chambers share, and a deviation for each chamber [Pa]",
    )
    hose_time: Positive | None = Field(
        default=None,
        description="lag of the air in a hose behind the sensor; each chamber has a weight [s]",
    )
    creep_time: Positive | None = Field(
        default=None,
        description="time over which the material creeps; one weight for all chambers [s]",
    )
    chamber_angles: bool = Field(
        default=False,
        description="whether the angle of each chamber about the rod may deviate slightly",
    )
    curvature_stiffness: bool = Field(
        default=False, description="whether the bending stiffness may change with the curvature"
    )
    marker_offset: bool = Field(
        default=False,
        description="whether the marker may be off the tip, and the rod longer or shorter",
    )

    values: Values = Field(
        default=(),
        description="values of the elements' parameters by name, from which filter and controllers "
        "start; 0 for those not named; written by `softcr identify` [-, rad, m]",
    )

    @model_validator(mode="after")
    def _consistent(self) -> "PressureChain":
        elements = [name for name in PressureChain.model_fields if name != "values"]
        if not any(getattr(self, name) for name in elements):
            raise ValueError(f"no element is on; known are {', '.join(elements)}")
        for smaller, larger in pairwise(self.hysteresis_radii):
            if larger < _DISTINCT * smaller:
                raise ValueError(
                    f"hysteresis_radii: {larger:g} Pa after {smaller:g} Pa: no motion tells them "
                    f"apart; each must be at least {_DISTINCT:g} times the one before"
                )
        hose, creep = self.hose_time, self.creep_time
        if hose and creep and creep < 10.0 * hose:
            raise ValueError(
                f"creep_time: {creep:g} s beside hose_time {hose:g} s: no motion tells them apart; "
                "must be at least 10 times that"
            )
        return self

    @property
    def lag_times(self) -> tuple[float, ...]:
        """(K,) time constants of the readings' lags: hose, then creep [s]."""
        return tuple(each for each in (self.hose_time, self.creep_time) if each is not None)
