"""A learned policy as files: PATH.safetensors (numbers only, no code) and PATH.json (the card)."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from pydantic import BaseModel, ConfigDict, Field, ValidationError
from safetensors import SafetensorError
from safetensors.numpy import load_file, save

from softcr_models.errors import UserError
from softcr_models.files.problems import first_problem
from softcr_models.files.small_files import LARGEST_ARRAYS, content_of, regular
from softcr_papers.pawlowski2019.policy.network import Activation, PolicyNetwork
from softcr_papers.pawlowski2019.policy.observation import ObservationLayout

_ENDINGS = (".safetensors", ".json")


class PolicyCard(BaseModel):
    """What stands beside a policy's weights: all that is needed to use, judge and repeat it.

    Attributes:
        layout: `ObservationLayout` as JSON: the robot, its actuators, their unit and limits, and
            what the entries of an observation mean. A policy runs on an equal one only.
        of_goal_velocity, of_inputs: of `PolicyObservation`.
        period: an action is held for so long [s].
        sizes: length of an observation, width of each hidden layer, number of actions.
        activation: of the hidden layers.
        task: name of what it was trained for.
        training: how: algorithm, settings with seeds, samples, seconds, figures.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    layout: dict[str, Any]
    of_goal_velocity: bool = False
    of_inputs: bool = False
    period: float = Field(gt=0.0, allow_inf_nan=False)
    sizes: list[int] = Field(min_length=2)
    activation: Activation = "relu"
    task: str
    training: dict[str, Any]


@dataclass(frozen=True, eq=False)
class Policy:
    """A learned policy: observations in, inputs of the robot out.

    Attributes:
        network: that was trained.
        layout: of its observations, and the limits of its inputs.
        card: what stands beside the weights.
    """

    network: PolicyNetwork
    layout: ObservationLayout
    card: PolicyCard

    @classmethod
    def of(
        cls,
        network: PolicyNetwork,
        layout: ObservationLayout,
        period: float,
        task: str,
        training: dict[str, Any],
        *,
        of_goal_velocity: bool = False,
        of_inputs: bool = False,
    ) -> "Policy":
        """A policy of its parts, see `PolicyCard`.

        Raises:
            UserError: the network has other sizes than the layout.
        """
        card = PolicyCard(
            layout=layout.as_json(),
            of_goal_velocity=of_goal_velocity,
            of_inputs=of_inputs,
            period=period,
            sizes=list(network.sizes),
            activation=network.activation,
            task=task,
            training=training,
        )
        _require_sizes(card, layout)
        return cls(network, layout, card)

    def inputs(self, observations: np.ndarray) -> np.ndarray:
        """(B, m) inputs in the unit of the layout for observations (B, n), inside the limits."""
        low, high = np.array(self.layout.low), np.array(self.layout.high)
        return low + 0.5 * (1.0 + self.network(observations).astype(float)) * (high - low)


def save_policy(policy: Policy, path: str | Path) -> None:
    """Writes PATH.safetensors and PATH.json, each whole or not at all.

    Raises:
        OSError: they cannot be written.
    """
    weights, sheet = files_of(path)
    weights.parent.mkdir(parents=True, exist_ok=True)
    contents = {
        weights: save(policy.network.tensors()),
        sheet: (policy.card.model_dump_json(indent=1) + "\n").encode(),
    }
    for target, content in contents.items():
        part = target.with_name(target.name + ".part")
        part.write_bytes(content)
        part.replace(target)


def load_policy(path: str | Path) -> Policy:
    """What `save_policy` wrote.

    Raises:
        UserError: one line, if a file is absent, damaged or of another kind, or if the two do not
            belong together.
    """
    weights, sheet = files_of(path)
    for file in (weights, sheet):
        if not file.is_file():
            raise UserError(f"policy {file}: no such file")
    try:
        card = PolicyCard.model_validate_json(content_of(sheet), strict=True)
    except OSError as error:
        raise UserError(f"{sheet}: cannot be read as a policy's card: {error.strerror}") from None
    except ValidationError as error:
        raise UserError(f"{sheet}: {first_problem(error, PolicyCard)}: not a policy") from None
    try:
        layout = ObservationLayout.from_json(card.layout)
    except UserError as error:
        raise UserError(f"{sheet}: {error}: not a policy") from None
    try:
        _require_sizes(card, layout)
    except UserError as error:
        raise UserError(f"{sheet}: {error}") from None
    try:
        tensors = load_file(regular(weights, LARGEST_ARRAYS))
    except (SafetensorError, OSError, ValueError) as error:
        reason = str(error).splitlines()[0]
        raise UserError(f"{weights}: cannot be read as weights: {reason}") from None
    try:
        network = PolicyNetwork.of_tensors(tensors, card.sizes, card.activation)
    except UserError as error:
        raise UserError(f"{weights}: {error}, as its card {sheet.name} says") from None
    return Policy(network, layout, card)


def files_of(path: str | Path) -> tuple[Path, Path]:
    """Weights and card of a policy: the path of one of them, or what both begin with."""
    given = Path(path)
    stem = given.with_suffix("") if given.suffix in _ENDINGS else given
    return stem.with_name(stem.name + _ENDINGS[0]), stem.with_name(stem.name + _ENDINGS[1])


def absolute_path(path: str) -> str:
    """The path by which nodes and replay elsewhere find what is named here; nothing stays so."""
    return str(Path(path).expanduser().resolve()) if path else path


def _require_sizes(card: PolicyCard, layout: ObservationLayout) -> None:
    """The network's first and last size are those of the layout."""
    wanted = len(layout.names), len(layout.low)
    if (card.sizes[0], card.sizes[-1]) != wanted:
        raise UserError(
            f"sizes {card.sizes}: must begin with {wanted[0]} and end with {wanted[1]}, the "
            "entries of its observation and its inputs"
        )
