"""Settings of the rods that a policy learns on."""

from pydantic import BaseModel, ConfigDict, Field


class PlantSettings(BaseModel):
    """Grid and time steps of the rods, and how much they differ from their robot's file."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    period: float = Field(
        default=0.05, gt=0.0, le=0.5, description="time for which an action is held",
        json_schema_extra={"unit": "s"},
    )  # fmt: skip
    intervals: int = Field(
        default=10,
        ge=2,
        le=60,
        description="number of intervals of the rod, on average per segment",
    )
    linearisations: int = Field(
        default=4,
        ge=1,
        le=64,
        description="number of linearisations of the rod's equations in a period",
    )
    substeps: int = Field(
        default=5, ge=1, le=64, description="number of integration steps per linearisation"
    )
    largest_error: float = Field(
        default=0.0, ge=0.0, le=100.0, description="largest estimated error of an integration "
        "step over the rod's length and the step's duration; a step with a larger one is done "
        "again more finely, which takes most of the time where rods are thrown about; 0: as usual",
        json_schema_extra={"unit": "1/s"},
    )  # fmt: skip
    spread: float = Field(
        default=0.0, ge=0.0, le=0.5, description="largest relative deviation of a run's "
        "compliance, damping and tip mass from the nominal ones",
    )  # fmt: skip

    def finer(self) -> "PlantSettings":
        """With half the intervals' length and half the time steps: what is judged on."""
        return self.model_copy(
            update={"intervals": 2 * self.intervals, "linearisations": 2 * self.linearisations}
        )
