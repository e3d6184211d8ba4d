"""Which cost terms a controller uses, and how much each counts."""

from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field

from softcr_control.costs.input_level import InputLevel
from softcr_control.costs.input_rate import InputRate
from softcr_control.costs.keep_away import KeepAway
from softcr_control.costs.output_error import OutputError
from softcr_control.costs.state_error import StateError
from softcr_control.costs.term import CostTerm, checked_terms
from softcr_control.costs.tip_direction import TipDirection
from softcr_control.costs.tip_orientation import TipOrientation
from softcr_control.costs.tip_position import TipPosition
from softcr_models.errors import UserError
from softcr_models.model import Model
from softcr_models.plugins import load_class


class OutsideTerm(BaseModel):
    """A term by its class, `path/file.py:Class` or `package.module:Class`.

    Whatever is given beside them goes to the class by name, as `weight` does.
    """

    model_config = ConfigDict(frozen=True, extra="allow", allow_inf_nan=False)

    class_: str = Field(
        alias="class", min_length=3, description="class of a CostTerm, as path/file.py:Class"
    )
    weight: float = Field(default=1.0, ge=0.0, description="factor of the term")

    def made(self) -> CostTerm:
        """The term.

        Raises:
            UserError: no such file, module or class, it is no cost term, or it cannot be made so.
        """
        kind = load_class(self.class_, "cost term", CostTerm)
        options: dict[str, Any] = {"weight": self.weight, **(self.model_extra or {})}
        try:
            made: CostTerm = kind(**options)
            return made
        except (TypeError, ValueError) as error:
            raise UserError(f"cost term {self.class_}: {error}") from None


Weight = Annotated[float, Field(ge=0.0, allow_inf_nan=False)]

_COORDINATES = 3  # of a tip


class CostSettings(BaseModel):
    """Weights; a term of weight 0 is left out."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    state: dict[str, Weight] = Field(
        default={},
        description="weights of normalised states by group of the model's state; for a rod, Q of "
        "Licher et al. (2025), Table VII, shared by all nodes",
    )
    tip_position: Weight = Field(
        default=1e4,
        description="weight of the squared distance of the tip [1/m^2]",
        json_schema_extra={"live": True},
    )
    tip_orientation: Weight = Field(
        default=0.0,
        description="weight of the squared angle of the tip [1/rad^2]",
        json_schema_extra={"live": True},
    )
    tip_direction: Weight = Field(
        default=10.0,
        description="weight of the squared angle between the tip's axis and that of an orientation "
        "that the reference asks for, besides tip_position [1/rad^2]",
        json_schema_extra={"live": True},
    )
    outputs: dict[str, Weight] = Field(
        default={}, description="weights of other outputs of the model, by name [1/unit^2]"
    )
    input_rate: Weight = Field(
        default=0.5,
        description="weight of changes of command / range of the input, R",
        json_schema_extra={"live": True},
    )
    input_rate_of_delay: Weight = Field(
        default=0.0,
        description="added to input_rate for each tick of delay beyond the first",
        json_schema_extra={"live": True},
    )
    input_level: Weight = Field(
        default=1e-3,
        description="weight of squared commands / range of the input, for robots with more inputs "
        "than coordinates of the tip: chooses the smallest of equivalent commands",
        json_schema_extra={"live": True},
    )
    obstacles: str = Field(
        default="",
        description="planes and spheres that the whole body stays away from: a file of "
        "config/obstacles, or a YAML file; empty: none",
        json_schema_extra={"folder": "obstacles"},
    )
    clearance: Annotated[float, Field(ge=0.0, le=1.0, allow_inf_nan=False)] = Field(
        default=5e-3,
        description="clearance that the body's surface keeps from obstacles [m]",
        json_schema_extra={"live": True},
    )
    keep_away: Weight = Field(
        default=1e6,
        description="weight of the squared shortfall of the clearance at every point [1/m^2]",
        json_schema_extra={"live": True},
    )
    terms: tuple[OutsideTerm, ...] = Field(
        default=(),
        description="cost terms of your own: class (path/file.py:Class), weight, options",
    )

    @property
    def follows_states(self) -> bool:
        """Whether the state counts at all."""
        return any(self.state.values())

    def made(self, model: Model) -> tuple[CostTerm, ...]:
        """The terms that count, for a model.

        Raises:
            UserError: the model has no such group or output, a term cannot be made, none is left,
                or two have the same name.
        """
        terms: list[CostTerm] = []
        if self.follows_states:
            _check("state", self.state, model.state.names)
            weights = model.state.by_group(self.state)
            terms.append(StateError(1.0, weights, model.state.scale))
        if self.obstacles and self.keep_away:
            terms.append(KeepAway.of(model, self.obstacles, self.clearance, self.keep_away))
        if self.tip_position:
            terms.append(TipPosition(self.tip_position))
        if self.tip_orientation:
            terms.append(TipOrientation(self.tip_orientation))
        if self.tip_direction and self.tip_position:
            terms.append(TipDirection(self.tip_direction))
        _check("outputs", self.outputs, tuple(model.outputs))
        terms += [OutputError(weight, name) for name, weight in self.outputs.items() if weight]
        if self.input_rate or self.input_rate_of_delay:
            of_delay = self.input_rate_of_delay
            terms.append(InputRate(self.input_rate, model.inputs.range, of_delay))
        if self.input_level and model.inputs.size > _COORDINATES:
            terms.append(InputLevel(self.input_level, model.inputs.rest, model.inputs.range))
        terms += [term.made() for term in self.terms if term.weight]
        return checked_terms(terms)


def _check(field: str, given: dict[str, float], known: tuple[str, ...]) -> None:
    for name in given:
        if name not in known:
            raise UserError(
                f"costs.{field}.{name}: the model has none of that name; it has {', '.join(known)}"
            )
