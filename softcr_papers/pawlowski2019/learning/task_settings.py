"""Which task is learned, from words of a person."""

from typing import TYPE_CHECKING, Literal

import numpy as np
from pydantic import BaseModel, ConfigDict, Field

from softcr_models.errors import UserError

if TYPE_CHECKING:
    from softcr_papers.pawlowski2019.learning.goals import Goals
    from softcr_papers.pawlowski2019.learning.plant import Plant
    from softcr_papers.pawlowski2019.learning.tasks import Task

STEADY = 512
"""States of rest whose tips are goals."""


class TaskSettings(BaseModel):
    """What is learned."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    task: Literal["reach", "track", "circle"] = Field(
        "reach", description="bring the tip to a goal that stands still (reach), or follow one "
        "that moves from one steady tip to another, or in a circle",
    )  # fmt: skip
    goals: Literal["strict", "quantile", "steady"] = Field(
        "quantile",
        description="goals of reach: from the box around all tips under random held inputs, from "
        "the one around 99.9 % of them, or tips of steady states",
    )
    goal: str = Field(
        "", description="only goal of reach: x, y, z in the base frame; empty: any of the goals",
        json_schema_extra={"unit": "m"},
    )  # fmt: skip
    steps: int = Field(50, ge=1, le=10_000, description="duration of a run of reach")

    def made(self, plant: "Plant") -> "Task":
        """The task for a plant's robot; the random numbers of its goals' set are the same ones in
        every call.

        Raises:
            UserError: the goal is outside of the workspace.
        """
        from softcr_papers.pawlowski2019.learning.circling import Circling  # brings kernels with it
        from softcr_papers.pawlowski2019.learning.goals import OneGoal, require_goals
        from softcr_papers.pawlowski2019.learning.tasks import Reaching, Tracking

        if self.task == "track":
            return Tracking(plant)
        if self.task == "circle":
            return Circling(plant)
        goals = self._goals(plant)
        if self.goal:
            try:
                place = np.array([float(each) for each in self.goal.split(",")])
            except ValueError:
                place = np.empty(0)
            if place.shape != (3,):
                raise UserError(f"goal: {self.goal!r} is not allowed: must be x, y, z")
            require_goals(place[None], goals, "goal")
            goals = OneGoal(place)
        return Reaching(plant, goals, self.steps)

    def _goals(self, plant: "Plant") -> "Goals":
        from softcr_papers.pawlowski2019.learning import goals, tasks

        if self.goals == "steady":
            return goals.SeenGoals(tasks.equilibria(plant, STEADY, np.random.default_rng(0))[1])
        share = 1.0 if self.goals == "strict" else goals.QUANTILE
        return goals.box_around(plant, goals.tips_in_motion(plant), share)
