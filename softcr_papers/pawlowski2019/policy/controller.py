"""A learned policy as a controller: it decides at its own period, between the ticks of the loop.

The policy is asked for the state from which its action acts: the estimate, predicted by the model
over the ticks until then, under what was sent, which inputs that lag follow from their readings on.
Its action is held until the next decision is due.
The observation holds the goal at that moment, which is the tip of the reference.
"""

from collections.abc import Sequence
from typing import Annotated, Any

import numpy as np
from pydantic import AfterValidator, BaseModel, ConfigDict, Field

from softcr_control.command_limits import limit_command
from softcr_control.command_ramp import HELD, ramp_weights
from softcr_control.observation import ControlContext, Observation
from softcr_control.predictive.estimated_parameters import Estimated, EstimatedParameters
from softcr_control.predictive.horizon import MAXIMUM_DELAY
from softcr_control.sent_commands import SentCommands
from softcr_models.errors import UserError
from softcr_papers.pawlowski2019.policy.observation import observation_of
from softcr_papers.pawlowski2019.policy.policy_file import absolute_path, load_policy
from softcr_runtime.blocks.command_packets import CommandPacket


class PolicySettings(BaseModel):
    """Which policy."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    policy: Annotated[str, AfterValidator(absolute_path)] = Field(
        "",
        validate_default=True,
        description="path of the learned policy, with or without its ending; the same as "
        "policy:PATH in place of the controller's name",
        json_schema_extra={"endings": [".safetensors", ".json"]},
    )


class PolicyController:
    """Asks a learned policy for inputs that bring the tip to the reference's."""

    Settings = PolicySettings
    rows = 2 + MAXIMUM_DELAY

    def __init__(self, context: ControlContext, settings: PolicySettings) -> None:
        """
        Args:
            context: with the model that states belong to.
            settings: which policy.

        Raises:
            UserError: no policy is named, its files cannot be used, or it was trained for another
                robot or observation.
        """
        if not settings.policy:
            raise UserError("controller 'policy': needs a learned one: policy:PATH")
        self._policy = load_policy(settings.policy)
        card, model = self._policy.card, context.model
        self._observe = observation_of(
            model, of_goal_velocity=card.of_goal_velocity, of_inputs=card.of_inputs
        )
        self._observe.layout.require(self._policy.layout, f"policy {settings.policy}")
        self._model, self._period = model, context.period
        self._names = EstimatedParameters(model)
        lag = model.inputs.lag
        ramp = ramp_weights(lag, context.period) if context.ramped and lag is not None else HELD
        self._sent = SentCommands(ramp, context.period)
        self.reset()

    def reset(self) -> None:
        """See Controller; the next tick decides."""
        self._sent.reset()
        self._due: float | None = None
        self._wish = self._model.inputs.rest
        self._decisions = 0

    def take_over(self, packets: Sequence[CommandPacket]) -> None:
        """Go on from the last packets of another controller."""
        self._sent.take_over(packets)

    def command(self, observation: Observation) -> np.ndarray:
        """(m,) inputs for the tick that begins `delay` ticks from now.

        Raises:
            UserError: the reference tells no tip, or too few rows.
        """
        inputs = self._model.inputs
        self._sent.observe(observation, inputs.low, inputs.high)
        if self._is_due(observation.stamp):
            self._wish = self._decided(observation)
        sent, _ = limit_command(
            self._wish, self._sent.previous, inputs.low, inputs.high, inputs.rate, self._period
        )
        self._sent.answer(sent[None])
        return sent

    def describe(self) -> dict[str, Any]:
        """How often the policy was asked, and what it was trained for."""
        return {"decisions": self._decisions, "policy_task": self._policy.card.task}

    def _is_due(self, stamp: float) -> bool:
        """Whether this tick is the nearest to the next decision; after a gap any tick is."""
        period, half = self._policy.card.period, 0.5 * self._period
        if self._due is None:
            self._due = stamp
        if stamp < self._due - half:
            return False
        late = stamp - self._due > period
        self._due = (stamp if late else self._due) + period
        return True

    def _decided(self, observation: Observation) -> np.ndarray:
        """(m,) what the policy answers to the state in which its answer begins to act."""
        goals, velocities = _goal(observation, observation.delay)
        estimated = self._names.read(observation.parameters)
        parameters = estimated.parameters[None]
        begins, ends = self._felt(observation, estimated)
        state = np.asarray(observation.state, float)[None]
        for begin, end in zip(begins, ends, strict=True):
            state = self._model.step(state, begin[None], end[None], parameters, self._period)
        seen = self._observe(
            state,
            goals,
            goal_velocities=velocities if self._observe.of_goal_velocity else None,
            inputs=ends[-1:] if self._observe.of_inputs else None,
            parameters=parameters,
        )
        self._decisions += 1
        wish: np.ndarray = self._policy.inputs(seen)[0]
        return wish

    def _felt(
        self, observation: Observation, estimated: Estimated
    ) -> tuple[np.ndarray, np.ndarray]:
        """(delay, m) each: what the model feels at begin and end of the ticks until the answer."""
        pending, lag = self._sent.pending, self._model.inputs.lag
        if lag is None:
            return pending, pending
        readings = np.asarray(observation.inputs, float)
        felt = estimated.felt(lag.trajectory(readings, pending[None], self._period)[0])
        return felt[:-1], felt[1:]


def _goal(observation: Observation, delay: int) -> tuple[np.ndarray, np.ndarray]:
    """(1, 3) where the tip should be when the answer begins to act [m], and how fast [m/s]."""
    reference = observation.reference
    tips = reference.tip_positions[delay : delay + 2]
    if len(tips) < 2 or not np.isfinite(tips).all():
        raise UserError(
            f"policy: the reference tells {len(reference.tip_positions)} rows of tips, needs "
            f"{delay + 2} finite ones"
        )
    return tips[:1], np.diff(tips, axis=0) / reference.period
