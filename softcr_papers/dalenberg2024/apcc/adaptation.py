"""The lengths' estimates follow the task error: Dalenberg, (15), and what keeps them in bounds.

    pi' = -Gamma Y^T e

The proof knows nothing of bounds. They are for what it leaves out: (25) divides by a length, and
with an inferred state the estimates can drift (docs/papers/dalenberg2024.md). Each can be
switched off by an infinite or a zero value.
"""

from dataclasses import dataclass
from typing import Annotated

import numpy as np
from pydantic import BaseModel, ConfigDict, Field, model_validator


class AdaptationSettings(BaseModel):
    """Gains and bounds of the adaptation."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    gains: Annotated[
        tuple[Annotated[float, Field(ge=0.0, allow_inf_nan=False)], ...], Field(min_length=1)
    ] = Field(
        default=(24.5,),
        description="diagonal of Gamma: one for all sections, or one for each; 0 is the "
        "fixed-parameter controller [1/m]",
    )
    shortest: Annotated[float, Field(gt=0.0)] = Field(
        default=0.02, description="shortest length of a section [m]"
    )
    longest: Annotated[float, Field(gt=0.0)] = Field(
        default=1.0, description="longest length of a section; inf: off [m]"
    )
    fastest: Annotated[float, Field(gt=0.0)] = Field(
        default=np.inf, description="fastest change of a length; inf: off [m/s]"
    )
    dead_zone: Annotated[float, Field(ge=0.0, allow_inf_nan=False)] = Field(
        default=0.0, description="task error below which lengths do not change; 0: off [m]"
    )
    keep_sum: bool = Field(
        default=False, description="whether the whole rest length of the arm counts as known"
    )

    @model_validator(mode="after")
    def _ordered(self) -> "AdaptationSettings":
        if self.shortest >= self.longest:
            raise ValueError(f"shortest {self.shortest} m must be below longest {self.longest} m")
        return self


@dataclass(frozen=True, eq=False)
class Adaptation:
    """One step of the adaptation.

    Attributes:
        rest_lengths: (n,) estimates after it [m].
        projected: whether a bound on a length held one back.
        slowed: whether the bound on their rate did.
    """

    rest_lengths: np.ndarray
    projected: bool
    slowed: bool


def adapted(
    rest_lengths: np.ndarray,
    regressor: np.ndarray,
    error: np.ndarray,
    dt: float,
    settings: AdaptationSettings,
) -> Adaptation:
    """One explicit Euler step of (15), then the bounds.

    Args:
        rest_lengths: (n,) estimates [m].
        regressor: (3, n) Y [1/s].
        error: (3,) x_d - x [m].
        dt: step [s].
        settings: gains and bounds.
    """
    if np.linalg.norm(error) <= settings.dead_zone:
        return Adaptation(rest_lengths, False, False)
    rates = -np.asarray(settings.gains) * (regressor.T @ error)
    if settings.keep_sum:
        rates = rates - rates.mean()
    allowed = np.clip(rates, -settings.fastest, settings.fastest)
    wanted = rest_lengths + dt * allowed
    kept = np.clip(wanted, settings.shortest, settings.longest)
    return Adaptation(kept, bool((kept != wanted).any()), bool((allowed != rates).any()))
