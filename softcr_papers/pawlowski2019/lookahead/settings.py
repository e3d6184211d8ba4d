"""Settings that NLSQ, LQR and iLQR share."""

from collections.abc import Mapping
from typing import Any

from pydantic import Field, model_validator

from softcr_control.costs.settings import CostSettings
from softcr_control.predictive.horizon import HorizonSettings


class LookaheadSettings(HorizonSettings):
    """A horizon in steps of several ticks, over each of which a command is held.

    A plan is made at the start of each step and followed until the next one: a step is the time
    between two plans, and the time that one may take.
    """

    horizon: int = Field(
        default=8, ge=2, le=400, description="length of the horizon, whole steps [ticks]"
    )
    step_ticks: int = Field(
        default=2, ge=1, le=100, description="length of a step, for which a command is held [ticks]"
    )
    perturbation: float = Field(
        default=1e-4,
        gt=0.0,
        le=0.1,
        description="step of the finite differences / scale of a state, range of an input",
    )
    costs: CostSettings = Field(
        default=CostSettings(input_rate=0.02, input_level=1e-5),
        description="terms that are minimised",
    )

    @model_validator(mode="after")
    def _whole_steps(self) -> "LookaheadSettings":
        if self.horizon % self.step_ticks:
            raise ValueError(
                f"horizon {self.horizon} must be a multiple of step_ticks {self.step_ticks}"
            )
        return self

    @property
    def steps(self) -> int:
        """N, steps of the horizon."""
        return self.horizon // self.step_ticks

    @classmethod
    def beside_horizon(cls, values: Mapping[str, Any], horizon: Any) -> dict[str, Any]:
        """Where the horizon is no multiple of the steps, they become ticks."""
        step = values["step_ticks"]
        whole = all(isinstance(each, int) and each > 0 for each in (step, horizon))
        return {"step_ticks": 1} if whole and horizon % step else {}
