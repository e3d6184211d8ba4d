"""The structure of a network, of which it is made."""

from typing import Literal

from pydantic import BaseModel, ConfigDict, Field, model_validator

from softcr_models.surrogate.ansatz import PIECES


class Architecture(BaseModel):
    """The structure of a network; our default. `PUBLISHED` is the paper's."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    neurons: int = Field(
        default=224, ge=4, le=4096, description="number of neurons in a hidden layer"
    )
    layers: int = Field(default=2, ge=1, le=8, description="number of hidden layers")
    activation: Literal["gated", "silu"] = Field(
        default="gated",
        description="activation of a hidden layer: a sigmoid(b) of two sums per neuron, or "
        "silu(a) of one",
    )
    directions: bool = Field(
        default=True,
        description="whether the network receives the directions of the cross-sections",
    )
    terms: int = Field(
        default=3, ge=1, le=64, description="number of damped sines per coordinate, n_a of (34)"
    )
    shapes: Literal["shared", "network"] = Field(
        default="shared",
        description="whether frequencies, phases and dampings are the same for all samples, or "
        "come from the network as in the paper",
    )
    coordinates: Literal["modes", "states"] = Field(
        default="modes", description="whitened modes of motion, or single states scaled to [-1, 1]"
    )
    least_spread: float = Field(
        default=0.003,
        gt=0.0,
        le=1.0,
        description="smallest spread of a mode [scaled states]; smaller ones count as this",
    )
    saturation: float = Field(
        default=8.0,
        ge=1.0,
        le=1e6,
        description="coordinates enter the hidden layers as c tanh(y / c)",
    )

    @model_validator(mode="after")
    def _marks_are_sampled(self) -> "Architecture":
        if self.shapes == "shared" and self.terms != PIECES:
            raise ValueError(
                f"terms {self.terms}: with shared shapes it must be {PIECES}, the times inside a "
                "step at which motions are sampled"
            )
        return self


PUBLISHED = Architecture(
    neurons=281,
    layers=1,
    activation="silu",
    directions=False,
    terms=23,
    shapes="network",
    coordinates="states",
    saturation=1e6,
)
