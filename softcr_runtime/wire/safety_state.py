"""What safety/state says: the one declaration of its keys, for who speaks and who reads. No ROS.

The topic is a diagnostic_msgs/DiagnosticStatus, whose values are text by key; here they have types.
"""

from typing import Any

from pydantic import BaseModel, ConfigDict, Field, StrictBool, ValidationError

from softcr_runtime.wire.diagnostics import DiagnosticReport


class SafetyState(BaseModel):
    """How the valves are; each field is a key of the message, and its description tells it."""

    model_config = ConfigDict(frozen=True, extra="ignore", coerce_numbers_to_str=True)

    action: str = Field(
        default="vent now",
        description="what is done to the chambers: `none`, `warn`, `predict only`, `hold`, `ramp "
        "to vent`, `vent now`",
    )
    enabled: StrictBool = Field(default=False, description="whether commands reach the valves")
    reason: str = Field(default="", description="causes of the action")
    latch: str = Field(
        default="",
        description="what must be reset before the valves are enabled: `O`, a vent by an operator "
        "or because of silence; `M`, by a fault of the machine; `H`, held until a check has "
        "passed; empty: nothing",
    )
    cause: str = Field(default="", description="cause of the latch")
    generation: int = Field(
        default=0,
        description="number of latches and resets so far; requests from before a change are void",
    )
    blockers: tuple[str, ...] = Field(
        default=(), description="while disarmed, what prevents enabling"
    )
    counts: dict[str, tuple[int, int]] = Field(
        default={},
        description="while disarmed, good samples of the handshake by source, and the number "
        "needed",
    )
    testing: bool = Field(default=False, description="whether the arming test is moving the valves")
    switch: str = Field(
        default="silent",
        description="state of the operator's switch: `pressed`, `released`, `silent`, `told by "
        "several nodes`, `not required`",
    )
    owner: str = Field(default="", description="the node whose commands are followed")
    bus: str = Field(
        default="operational", description="what is wrong with the bus; `operational` if nothing"
    )

    @classmethod
    def of(cls, report: DiagnosticReport) -> "SafetyState":
        """The state in a decoded message; one that cannot be read counts as vented."""
        try:
            return cls.model_validate(report.values)
        except ValidationError:
            return cls(reason=report.message, blockers=("what the valves say cannot be read",))

    def values(self) -> dict[str, Any]:
        """As `DiagnosticReport.values`."""
        return self.model_dump(mode="json")

    @property
    def latched(self) -> str:
        """In words, for who must reset it: `latched M: bus silent`; empty for nothing."""
        return f"latched {self.latch}: {self.cause}" if self.latch else ""


KEYS = {name: field.description or "" for name, field in SafetyState.model_fields.items()}
"""Meaning of each key, for the reference page."""
