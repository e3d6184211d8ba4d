"""The thresholds of the pressure guard, with units, ranges and defaults."""

from pydantic import BaseModel, ConfigDict, Field
from pydantic.config import JsonDict

_SECOND: JsonDict = {"unit": "s"}
_PASCAL: JsonDict = {"unit": "Pa"}
_PER_SECOND: JsonDict = {"unit": "1/s"}

WIDE = (0.22, 0.011)
"""Tolerances of flow and opening before commissioning: gains within 15 %, dead band 40 mV."""
MEASURED = (0.15, 0.006)
"""The same once flow, dead band and lag were measured: gains within 8 %, dead band 12 mV."""


class GuardSettings(BaseModel):
    """From which disagreement of sensor, valve and command on the chambers are vented.

    `commissioned` says that flow rates, dead band and lag of the station file were measured at this
    bench; the tolerances that are left out follow it.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)

    commissioned: bool = Field(
        default=False, description="whether flow rates, dead band and lag were measured here"
    )
    flow_tolerance: float | None = Field(
        default=None,
        gt=0,
        le=0.5,
        description="relative error of the modelled flow; by default 0.15 if commissioned, "
        "otherwise 0.22",
    )
    opening_tolerance: float | None = Field(
        default=None,
        gt=0,
        le=0.02,
        description="error of the modelled opening, relative to full opening; by default 0.006 if "
        "commissioned, otherwise 0.011",
    )
    equal_samples: int = Field(
        default=40,
        ge=10,
        le=10_000,
        description="number of new samples with the same count after which to vent",
    )
    toggle_age: float = Field(
        default=0.05, gt=0, le=1, description="time without a new sample of a channel after which "
        "to vent",
        json_schema_extra=_SECOND,
    )  # fmt: skip
    fast_leak: float = Field(
        default=4.0, gt=0, le=100, description="rate at which the fast flow residual decays",
        json_schema_extra=_PER_SECOND,
    )  # fmt: skip
    fast_threshold: float = Field(
        default=1500.0, gt=0, le=2e4, description="threshold of the fast flow residual beyond "
        "which to vent",
        json_schema_extra=_PASCAL,
    )  # fmt: skip
    slow_leak: float = Field(
        default=0.5, gt=0, le=100, description="rate at which the slow flow residual decays",
        json_schema_extra=_PER_SECOND,
    )  # fmt: skip
    slow_threshold: float = Field(
        default=2000.0, gt=0, le=2e4, description="threshold of the slow flow residual beyond "
        "which to vent",
        json_schema_extra=_PASCAL,
    )  # fmt: skip
    least_opening: float = Field(
        default=0.04,
        ge=0,
        le=0.2,
        description="opening below which, at rest, pulses of this opening are used instead",
    )
    pulse_size: float = Field(
        default=300.0,
        gt=0,
        le=1e4,
        description="change of pressure by such a pulse, as far as 4 to 6 ms allow",
        json_schema_extra=_PASCAL,
    )
    budget: float = Field(
        default=8000.0,
        gt=0,
        le=1e5,
        description="air that a chamber may hold unconfirmed; half of it triggers a ping",
        json_schema_extra=_PASCAL,
    )
    ping_misses: int = Field(
        default=3,
        ge=1,
        le=10,
        description="number of pings in a row without an answer of the sensor after which to vent",
    )
    ping_every: float = Field(
        default=20.0,
        gt=0,
        le=3600,
        description="longest time without evidence that a sensor responds, after which a ping is "
        "sent",
        json_schema_extra=_SECOND,
    )
    follow_base: float = Field(
        default=4000.0, gt=0, le=1e5, description="|expected - measured| at rest beyond which to "
        "vent",
        json_schema_extra=_PASCAL,
    )  # fmt: skip
    follow_share: float = Field(
        default=0.45,
        ge=0,
        le=5,
        description="fraction of the expected pressure's recent motion that is added to it",
    )
    follow_time: float = Field(
        default=0.08,
        gt=0,
        le=10,
        description="time beyond both after which to vent",
        json_schema_extra=_SECOND,
    )
    overpressure: float = Field(
        default=4000.0, gt=0, le=1e5, description="excess over the limit in two samples beyond "
        "which to vent",
        json_schema_extra=_PASCAL,
    )  # fmt: skip
    second_difference: float = Field(
        default=2500.0, gt=0, le=1e5, description="difference between two sensors of a chamber "
        "beyond which to vent",
        json_schema_extra=_PASCAL,
    )  # fmt: skip
    supply_tolerance: float = Field(
        default=0.1,
        gt=0,
        le=0.5,
        description="relative difference between gauge and station file beyond which to vent",
    )

    @property
    def tolerances(self) -> tuple[float, float]:
        """Relative error of the flow, and error of the opening, that count as none."""
        flow, opening = MEASURED if self.commissioned else WIDE
        return (
            flow if self.flow_tolerance is None else self.flow_tolerance,
            opening if self.opening_tolerance is None else self.opening_tolerance,
        )
