"""The numbers of the safety state machine."""

from pydantic import BaseModel, ConfigDict, Field, model_validator
from pydantic.config import JsonDict

from softcr_runtime.settings.node_settings import FIXED

_LIVE: JsonDict = {"live": True, "while": "the valves are vented"}
_SECOND: JsonDict = {"unit": "s", **_LIVE}
_PASCAL: JsonDict = {"unit": "Pa", **_LIVE}


class SafetySettings(BaseModel):
    """From which age or value on something is done.

    The ages follow a loop of 70 Hz: three periods without a pose are bridged by prediction. Between
    commands the setpoint stays anyway; seven missing periods make that a hold, with its clear time.
    Numbers may change while the node runs and the valves are disarmed.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)

    require_operator: bool = Field(
        default=True,
        description="whether a deadman's signal is required",
        json_schema_extra=FIXED,
    )
    require_mocap: bool = Field(
        default=True,
        description="whether poses of the tip are required",
        json_schema_extra=FIXED,
    )
    operator_hold: float = Field(
        default=0.2, gt=0, le=10, description="operator silent: hold", json_schema_extra=_SECOND
    )
    operator_vent: float = Field(
        default=0.5, gt=0, le=60, description="operator silent: vent", json_schema_extra=_SECOND
    )
    command_hold: float = Field(
        default=0.1, gt=0, le=10, description="commands silent: hold", json_schema_extra=_SECOND
    )
    command_vent: float = Field(
        default=0.5, gt=0, le=60, description="commands silent: vent", json_schema_extra=_SECOND
    )
    several_vent: float = Field(
        default=0.3,
        gt=0,
        le=60,
        description="several nodes command (which holds): vent",
        json_schema_extra=_SECOND,
    )
    command_late: float = Field(
        default=0.06,
        gt=0,
        le=10,
        description="age of a command by its stamp, beyond the horizon of controllers: warn",
        json_schema_extra=_SECOND,
    )
    command_oldest: float = Field(
        default=0.2,
        gt=0,
        le=10,
        description="age of a command by its stamp: refuse it",
        json_schema_extra=_SECOND,
    )
    command_frozen: float = Field(
        default=1.0,
        ge=0,
        le=60,
        description="identical commands while chambers are filled: warn; 0: never",
        json_schema_extra=_SECOND,
    )
    mocap_predict: float = Field(
        default=0.05,
        gt=0,
        le=10,
        description="poses silent: predict only",
        json_schema_extra=_SECOND,
    )
    mocap_hold: float = Field(
        default=0.3, gt=0, le=10, description="poses silent: hold", json_schema_extra=_SECOND
    )
    mocap_vent: float = Field(
        default=1.0, gt=0, le=60, description="poses silent: vent", json_schema_extra=_SECOND
    )
    force_torque_warn: float = Field(
        default=0.1, gt=0, le=10, description="wrenches silent: warn", json_schema_extra=_SECOND
    )
    exchange_vent: float = Field(
        default=0.05,
        gt=0,
        le=1,
        description="no complete bus exchange: vent",
        json_schema_extra=_SECOND,
    )
    cycle_vent: float = Field(
        default=0.2,
        gt=0,
        le=10,
        description="no cycle of the valves, or a clock that jumps ahead: vent",
        json_schema_extra=_SECOND,
    )
    pressure_vent: float = Field(
        default=0.05,
        gt=0,
        le=1,
        description="no believable pressures: vent",
        json_schema_extra=_SECOND,
    )
    overpressure: float = Field(
        default=2e4,
        gt=0,
        le=1e6,
        description="pressure above the highest command: vent",
        json_schema_extra=_PASCAL,
    )
    near_empty: float = Field(
        default=5e3,
        gt=0,
        le=1e5,
        description="pressure below which a chamber counts as vented",
        json_schema_extra=_PASCAL,
    )
    hold_limit: float = Field(
        default=2.0, gt=0, le=600, description="longest hold, then vent", json_schema_extra=_SECOND
    )
    ramp_limit: float = Field(
        default=2.0,
        gt=0,
        le=60,
        description="longest ramp, then vent now",
        json_schema_extra=_SECOND,
    )
    handshake_time: float = Field(
        default=0.3,
        ge=0,
        le=10,
        description="time without any fault before enabling",
        json_schema_extra=_SECOND,
    )
    handshake_samples: int = Field(
        default=300,
        ge=1,
        le=100_000,
        description="number of fast cycles in a row with good samples of every source before "
        "enabling",
        json_schema_extra=_LIVE,
    )
    handshake_messages: int = Field(
        default=10,
        ge=1,
        le=1000,
        description="number of messages of each source in these: commands, poses, operator",
        json_schema_extra=_LIVE,
    )
    clear_time: float = Field(
        default=0.1,
        ge=0,
        le=10,
        description="time without its cause before an action ends",
        json_schema_extra=_SECOND,
    )

    @model_validator(mode="after")
    def _ordered(self) -> "SafetySettings":
        for name, ages in {
            "operator": (self.operator_hold, self.operator_vent),
            "command": (self.command_hold, self.command_vent),
            "mocap": (self.mocap_predict, self.mocap_hold, self.mocap_vent),
        }.items():
            if list(ages) != sorted(ages):
                raise ValueError(f"{name}: ages {ages} s must not decrease with the action")
        return self
