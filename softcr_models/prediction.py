"""The exact rod as a model."""

from typing import Any

import numpy as np
from pydantic import BaseModel, ConfigDict, Field

from softcr_models.devices import DeviceName, resolve_device
from softcr_models.errors import UserError
from softcr_models.plugins import load_class
from softcr_models.rod import stepper
from softcr_models.rod.cosserat_rod import CosseratRod, linearisations
from softcr_models.rod.stepper import Retries, Run
from softcr_models.rod_model.rod_model import RodModel, rod_robot

ON_GPU = "softcr_models.cuda.prediction:CudaRodPrediction"
"""By its place: it is derived from the class here, and imports torch."""


class RodSettings(BaseModel):
    """Numbers of the exact rod as a model."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    device: DeviceName = Field(
        default="cpu", description="device that computes; auto: a GPU if any"
    )
    intervals: int = Field(
        default=5, ge=1, le=100, description="number of intervals of the rod [-]"
    )
    substeps: int = Field(
        default=2, ge=1, le=64, description="number of integration steps per linearisation [-]"
    )
    single_precision: bool = Field(default=True, description="whether rollouts are float32")
    tip_force: bool = Field(
        default=False,
        description="whether a force at the tip is one of the parameters, so that an estimator "
        "finds it; on the processor only",
    )


class RodPrediction(RodModel):
    """The exact rod as a model.

    A candidate with a step that does not hold, by an estimate of its error, is done again, that
    step in finer sub-steps; what still does not hold is NaN. So is a candidate whose state,
    pressures or parameters are not finite, and it does not disturb the others.
    `softcr_models.arguments` says what may be given.

    Attributes:
        rod: the rod; its robot gives nominal parameters.
        substeps: sub-steps of the time integration per linearisation; at n = 5 and 70 Hz two keep
            the tip within 0.1 mm over an MPC horizon of 8 ticks.
        single_precision: whether rollouts are float32 (tip within micrometres, half the time).
        retries: how many candidates were done again, since it was made.
    """

    Settings = RodSettings

    def __init__(self, rod: CosseratRod, substeps: int = 2, single_precision: bool = True) -> None:
        super().__init__(rod)
        self.substeps = substeps
        self.single_precision = single_precision
        self.retries = Retries()

    @classmethod
    def of_robot(cls, robot: Any, settings: RodSettings | None = None) -> RodModel:
        """The rod of a robot, on the processor or on a GPU.

        Raises:
            UserError: the robot is not a rod driven by pressure, or the device cannot be used.
        """
        own = settings or RodSettings()
        known = rod_robot(robot, "rod")
        rod = CosseratRod(
            known,
            own.intervals,
            tip_force=own.tip_force,
            payload=known.estimated_payload,
            curvature_stiffness=known.stiffens,
        )
        if resolve_device(own.device, "rod") == "cuda":
            on_gpu: type[RodPrediction] = load_class(ON_GPU, "model")
            try:
                return on_gpu(rod, own.substeps, own.single_precision)
            except UserError:  # a rod that is none for a GPU
                if own.device == "cuda":
                    raise
        return cls(rod, own.substeps, own.single_precision)

    def counts(self) -> dict[str, int]:
        """See SelfReport: candidates that were computed again in finer steps, how often that was
        done, and how many have no finite result."""
        told = self.retries
        return {"retried": told.candidates, "retries": told.attempts, "not_finite": told.lost}

    def rollouts(
        self, states: np.ndarray, inputs: np.ndarray, parameters: np.ndarray, dt: float
    ) -> np.ndarray:
        """As `rollout`, from a state each: states (B, nx), inputs (B, T + 1, m), parameters (B, P)
        or (1, P). NaN from where a state is not finite."""
        checked = self._arguments.batch("rollouts", states, inputs, parameters)
        return self._advance(*checked, dt, tips=False, precise=False)

    def _advance(self, states, levels, parameters, dt, *, tips, precise):
        """Steps longer than one linearisation may serve are divided."""
        pieces = linearisations(dt)
        if pieces > 1:
            marks = np.arange(pieces) / pieces
            begin, change = levels[:, :-1, None], np.diff(levels, axis=1)[:, :, None]
            divided = begin + marks[:, None] * change
            divided = divided.reshape(len(levels), -1, self.input_size)
            levels = np.concatenate((divided, levels[:, -1:]), axis=1)
        single = self.single_precision and not precise
        run = self._run(dt / pieces)
        rolled = stepper.advance(
            states, levels, parameters, run, tips=tips, single=single, retries=self.retries
        )
        return rolled if pieces == 1 else rolled[:, pieces - 1 :: pieces]

    def _run(self, dt: float) -> Run:
        """Of steps of `dt` [s] that one linearisation may serve."""
        rod = self.rod
        largest = rod.largest_errors[1]
        return Run.of(
            rod.body, rod.grid, dt, self.substeps, 0, rod.fittings, rod.loads, None, largest
        )
