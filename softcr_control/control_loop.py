"""What the controller does in a tick: an answer to an estimate, limited. No ROS here.

The node feeds it with what DDS brings, `softcr replay` with what a bag holds.
"""

from collections import deque
from dataclasses import replace
from statistics import median
from typing import Any, ClassVar, Literal

import numpy as np
from pydantic import Field

from softcr_control.controller_file import named_settings
from softcr_control.costs.rollout import tips_of
from softcr_control.horizon import MAXIMUM_DELAY
from softcr_control.model_defaults import defaults_on
from softcr_control.observation import ControlContext, Observation, PredictiveController
from softcr_control.references import Reference
from softcr_models.limits import limit_command
from softcr_models.model import nominal_parameters
from softcr_models.models import DeviceName, ModelChoice, ModelName, prediction_model
from softcr_models.robot import Robot
from softcr_models.rod.kernel import MAX_INTERVALS
from softcr_models.rod_model import RodModel
from softcr_runtime import registry
from softcr_runtime.rod_clouds import ReferenceCloud, RodCloud
from softcr_runtime.settings import SampledNodeSettings

_LATENCIES_KEPT = 15  # ticks that tell how late answers are
_ENOUGH = 5  # of them: a run's first answer is later than the others, and says nothing
_IN_TIME = 0.05  # an answer may be so much late, and is not planned for later [periods]
# Answers must be so much earlier to be planned for earlier again [periods]. The bench's wait until
# their tick; the simulator follows them before, and a plan that is late makes the loop oscillate
_SURELY, _SURELY_SIMULATED = 0.25, 0.05
_LEAD = 0.0035
"""An answer to the bench is sent so long before the tick it was planned for: what the valves' node
takes to see it, and the valves to begin [s]."""


class ControllerSettings(SampledNodeSettings):
    """What every predictive controller is told.

    Attributes:
        kind: its `type`, as its files name it.
    """

    kind: ClassVar[str]

    controller: str
    model: ModelName = Field("rod", description="the exact rod, or the network trained for it")
    network: str = Field("", description="path of another network than the robot's own")
    device: DeviceName = Field("cpu", description="where the model computes")
    threads: int = Field(1, ge=1, le=256, description="of the prediction")
    horizon: int = Field(
        0, ge=0, le=200, description="periods looked ahead; 0: as the controller's file says"
    )
    intervals: int = Field(5, ge=2, le=MAX_INTERVALS, description="intervals of the model's rod")
    # through the pressure lag nothing jumps: the closed loop's tip error is that of two sub-steps
    substeps: int = Field(1, ge=1, le=20, description="sub-steps of the prediction per period")
    estimate_lag: bool = Field(
        True,
        description="whether the pressure lag is found from commands and readings; true: as the "
        "controller's file says",
    )
    command_age: float = Field(
        0.0,
        ge=0.0,
        le=0.1,
        description="of an answer when the valves begin to follow it, counted from its stamp, for "
        "which they wait themselves; 0: they do when it comes. As the valves'",
        json_schema_extra={"unit": "s"},
    )
    input_timeout: float = Field(
        0.1,
        ge=0.01,
        le=5.0,
        description="without estimate or reference for so long the chambers vent (wall mode)",
        json_schema_extra={"unit": "s"},
    )

    @property
    def given(self) -> dict[str, Any]:
        """What counts more than the controller's file, by name; 0 stands for nothing."""
        numbers = {"horizon": self.horizon} if self.horizon else {}
        return numbers if self.estimate_lag else numbers | {"estimate_lag": False}


class NempcControllerSettings(ControllerSettings):
    """Which controller file, and what in it to replace."""

    kind: ClassVar[str] = "nempc"

    controller: str = Field(
        "nempc", min_length=1, description="a file of config/controllers, or a YAML file"
    )
    population: int = Field(
        0,
        ge=0,
        le=100_000,
        description="candidates per generation; 0: as the controller's file says, and if it says "
        "nothing 1000 on the rod, 32 on its network",
    )
    backend: Literal["auto", "numpy", "torch"] = Field(
        "auto",
        description="what the population lives in; auto: torch where a network computes on a GPU",
    )
    threads: int = Field(2, ge=1, le=256, description="of the prediction")

    @property
    def given(self) -> dict[str, Any]:
        """See ControllerSettings."""
        numbers = {"population": self.population} if self.population else {}
        return super().given | numbers | {"backend": self.backend}


class RodMpcControllerSettings(ControllerSettings):
    """Which controller file, and what in it to replace."""

    kind: ClassVar[str] = "rod_mpc"

    controller: str = Field(
        "rod_mpc", min_length=1, description="a file of config/controllers, or a YAML file"
    )


class ControlLoop:
    """A predictive controller from messages to the limited command.

    Attributes:
        clipped, fallbacks: counts since `forget`.
    """

    def __init__(self, robot: Robot, settings: ControllerSettings) -> None:
        """Make model and controller, compile and rehearse: the first tick is as fast as any.

        Raises:
            UserError: the controller file cannot be used.
        """
        self._robot, self._settings = robot, settings
        self._lead = _LEAD / settings.period if settings.resampled else 0.0  # [periods]
        self._waited_for = round(settings.command_age / settings.period)  # [periods]
        self._model, self._controller = made_controller(robot, settings)
        self._model.warm_up()
        self._rehearse()
        self.forget()

    @property
    def chosen(self) -> Any:
        """The controller's own settings, after its file and what was given were merged."""
        return self._controller.settings

    @property
    def expected_delay(self) -> int:
        """Ticks until the plant follows the next answer: one, if the chain keeps up."""
        return self._expected

    @property
    def age_to_send(self) -> float:
        """How long after its stamp the last answer is to be sent [s].

        The simulator follows a command from its next tick on, whenever it came. The bench's valves
        wait until it is of the age they are told, and follow older ones at once, along a ramp.
        """
        if not self._lead or self._delay <= self._waited_for:
            return 0.0
        return (self._delay - self._lead) * self._settings.period

    def forget(self) -> None:
        """Begin anew, as if newly made."""
        self._controller.reset()
        self._sent = np.zeros(len(self._robot.chambers))
        self._latencies: deque[float] = deque(maxlen=_LATENCIES_KEPT)
        self._expected = self._delay = max(1, self._waited_for)
        self.clipped = self.fallbacks = 0

    def answer(
        self, estimate: RodCloud, reference: ReferenceCloud, pressures: np.ndarray
    ) -> np.ndarray:
        """The command (m,) [Pa] for an estimate, a reference and pressures (m,) of one stamp.

        The limiter is the last stage: what it lets through is what is to be published.
        """
        self._delay = self.expected_delay
        stamp = reference.stamp * 1e-9
        command = self._controller.command(
            Observation(
                stamp=stamp,
                state=estimate.state,
                parameters=estimate.parameters,
                reference=Reference(
                    stamp, reference.period, reference.states, reference.tip_positions
                ),
                inputs=pressures,
                model=self._model,
                delay=self._delay,
            )
        )
        limits = self._robot.pressure_limits
        self._sent, clipped = limit_command(
            command.pressures,
            self._sent,
            limits.minimum,
            limits.maximum,
            limits.maximum_rate,
            self._settings.period,
        )
        self.clipped += clipped
        self.fallbacks += command.fallback
        return self._sent

    def answered(self, latency: float) -> None:
        """Note how long after its stamp an answer was ready [s]."""
        self._latencies.append(latency)
        if not self._settings.lockstep and len(self._latencies) >= _ENOUGH:
            usual = self._usual_latency() / self._settings.period
            surely = _SURELY if self._lead else _SURELY_SIMULATED
            least, most = self._ticks(usual), self._ticks(usual + surely)
            self._expected = min(max(self._expected, least), most)

    def _usual_latency(self) -> float:
        """[s] The simulator follows what is early too early; what is early for the bench waits, so
        that nearly all answers should be in time."""
        if self._lead:
            return sorted(self._latencies)[-2:][0]
        return median(self._latencies)

    def _ticks(self, latency: float) -> int:
        """Until an answer so late is followed [periods]."""
        ticks = 1 + int(latency + max(self._lead - _IN_TIME, 0.0))
        return min(max(ticks, self._waited_for), MAXIMUM_DELAY)

    def vent(self, begins: bool) -> np.ndarray:
        """Zero pressures; where venting begins the controller starts afresh."""
        if begins:
            self._controller.reset()
        self._sent = np.zeros(len(self._robot.chambers))
        return self._sent

    def _rehearse(self) -> None:
        """A few ticks at rest, so that nothing is compiled or allocated first in the loop."""
        model, rows = self._model, self._controller.rows
        inputs, nominal = model.inputs.rest, nominal_parameters(model.parameters)
        state = model.equilibrium(inputs, nominal)
        tip = tips_of(model, state[None], nominal)[0, :, 3]
        reference = Reference(
            0.0, self._settings.period, np.tile(state, (rows, 1)), np.tile(tip, (rows, 1))
        )
        for _ in range(3):
            self._controller.command(Observation(0.0, state, {}, reference, inputs, model))


def made_controller(
    robot: Robot, settings: ControllerSettings
) -> tuple[RodModel, PredictiveController]:
    """The controller that settings name, and its model.

    Raises:
        UserError: the controller file or the model cannot be used.
    """
    kind = registry.resolve("controller", settings.kind)
    given, defaults = settings.given, defaults_on(settings.model)
    chosen = named_settings(settings.kind, settings.controller, given, defaults)
    choice = ModelChoice(
        settings.model, settings.device, settings.network, settings.intervals, settings.substeps
    )
    model = prediction_model(robot, replace(choice, single_precision=not kind.double_precision))
    context = ControlContext(robot, model, settings.period, settings.seed, settings.resampled)
    return model, getattr(kind, "made", kind)(context, chosen)
