"""All numbers of an A-PCC controller."""

from typing import Annotated, Literal

import numpy as np
from pydantic import BaseModel, ConfigDict, Field, model_validator

from softcr_papers.dalenberg2024.apcc.adaptation import AdaptationSettings
from softcr_papers.dalenberg2024.apcc.inference import InferenceSettings


class ApccSettings(BaseModel):
    """The control law; the fixed-parameter rival is the same with adaptation gains of zero.

    `jacobian_state` decides at which configuration the Jacobian and the secondary objective are
    taken. The thesis says "the state of the virtual model", which Algorithm 2 infers; but then the
    inferred elongations absorb the lengths' errors, nothing couples these to the tip any more, and
    the estimates diverge (docs/papers/dalenberg2024.md). `commanded` takes the command,
    `inferred` reads the thesis literally, `true` is what the proof assumes and exists in tests.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    gain: Annotated[float, Field(gt=0.0, allow_inf_nan=False)] = Field(
        default=1.8, description="K = gain * identity [1/s]"
    )
    null_space_gain: Annotated[float, Field(ge=0.0, allow_inf_nan=False)] = Field(
        default=1.0, description="k_N of the secondary objective [1/s, m/s for the norm]"
    )
    objective: Literal["squared", "norm"] = Field(
        default="squared", description="descend Psi^2 / 2 or Psi"
    )
    jacobian_state: Literal["commanded", "inferred", "true"] = Field(
        default="commanded", description="configuration at which the Jacobian is evaluated"
    )
    tip_source: Literal["sensor", "model"] = Field(
        default="sensor",
        description="tip of which the error is taken: that of the last sensor, or that of the "
        "model",
    )
    fastest: Annotated[float, Field(gt=0.0)] = Field(
        default=np.inf, description="fastest change of a commanded coordinate; inf: off [m/s]"
    )
    window: Annotated[int, Field(ge=2, le=101)] = Field(
        default=7, description="number of configurations that the rate is fitted to [-]"
    )
    order: Annotated[int, Field(ge=1, le=5)] = Field(
        default=2, description="order of the polynomial that is fitted to them [-]"
    )
    adaptation: AdaptationSettings = AdaptationSettings()
    inference: InferenceSettings = InferenceSettings()

    @model_validator(mode="after")
    def _window_holds_order(self) -> "ApccSettings":
        if self.window <= self.order:
            raise ValueError(f"window {self.window} must be above order {self.order}")
        return self

    def without_adaptation(self) -> "ApccSettings":
        """The fixed-parameter rival."""
        still = self.adaptation.model_copy(update={"gains": (0.0,)})
        return self.model_copy(update={"adaptation": still})
