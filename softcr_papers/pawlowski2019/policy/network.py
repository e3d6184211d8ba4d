"""The network of a learned policy in plain numpy: what runs a policy needs no torch."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np

from softcr_models.errors import UserError

Activation = Literal["relu", "tanh"]


@dataclass(frozen=True, eq=False)
class PolicyNetwork:
    """Actions from observations: layers of weighted sums with an activation, the last with tanh.

    Attributes:
        weights: (out, in) of each layer, float32; the next one's `in` is this one's `out`.
        biases: (out,) of each layer, float32.
        activation: of all layers but the last.
    """

    weights: tuple[np.ndarray, ...]
    biases: tuple[np.ndarray, ...]
    activation: Activation = "relu"

    def __post_init__(self) -> None:
        if not self.weights or len(self.weights) != len(self.biases):
            raise UserError(
                f"policy network: {len(self.weights)} weights and {len(self.biases)} biases: must "
                "be one of each per layer, and at least one layer"
            )
        if self.activation not in get_args(Activation):
            raise UserError(
                f"policy network: activation {self.activation!r}: must be one of "
                f"{', '.join(get_args(Activation))}"
            )
        width = None
        for i, (weight, bias) in enumerate(zip(self.weights, self.biases, strict=True)):
            if weight.ndim != 2 or bias.shape != weight.shape[:1] or width not in (
                None, weight.shape[1],
            ):  # fmt: skip
                wanted = f"({len(bias)}, {width if width is not None else 'in'})"
                raise UserError(
                    f"policy network: layer {i} has weights {weight.shape} and biases "
                    f"{bias.shape}: must be {wanted} and ({len(bias)},)"
                )
            if not (np.isfinite(weight).all() and np.isfinite(bias).all()):
                raise UserError(f"policy network: layer {i} holds numbers that are not finite")
            width = len(weight)

    @classmethod
    def of_layers(
        cls,
        layers: Sequence[tuple[np.ndarray, np.ndarray]],
        activation: Activation = "relu",
    ) -> "PolicyNetwork":
        """Of pairs of weight (out, in) and bias (out,), as torch's linear layers have them."""
        of = [[np.ascontiguousarray(each, np.float32) for each in pair] for pair in layers]
        return cls(tuple(w for w, _ in of), tuple(b for _, b in of), activation)

    @property
    def sizes(self) -> tuple[int, ...]:
        """Length of an observation, width of each hidden layer, number of actions."""
        return (self.weights[0].shape[1], *(len(each) for each in self.biases))

    def __call__(self, observations: np.ndarray) -> np.ndarray:
        """(B, m) float32 actions from -1 to 1 of observations (B, n)."""
        values = np.asarray(observations, np.float32)
        for weight, bias in zip(self.weights[:-1], self.biases[:-1], strict=True):
            values = values @ weight.T + bias
            values = np.maximum(values, 0.0) if self.activation == "relu" else np.tanh(values)
        actions: np.ndarray = np.tanh(values @ self.weights[-1].T + self.biases[-1])
        return actions

    def with_slopes(self, observations: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """(B, m) actions of observations (B, n), and their derivatives (B, m, n) by these."""
        values = np.asarray(observations, np.float32)
        slopes: list[np.ndarray] = []
        for weight, bias in zip(self.weights, self.biases, strict=True):
            values = values @ weight.T + bias
            if len(slopes) < len(self.weights) - 1 and self.activation == "relu":
                slopes.append((values > 0.0).astype(np.float32))
                values = values * slopes[-1]
            else:
                values = np.tanh(values)
                slopes.append(1.0 - values * values)
        jacobian = np.broadcast_to(self.weights[-1], (len(values), *self.weights[-1].shape))
        for weight, slope in zip(self.weights[-2::-1], slopes[-2::-1], strict=True):
            jacobian = (jacobian * slope[:, None, :]) @ weight
        return values, slopes[-1][:, :, None] * jacobian

    def tensors(self) -> dict[str, np.ndarray]:
        """Weights and biases by name, as a file holds them."""
        pairs = enumerate(zip(self.weights, self.biases, strict=True))
        return {
            name: values
            for i, (weight, bias) in pairs
            for name, values in ((f"layers.{i}.weight", weight), (f"layers.{i}.bias", bias))
        }

    @classmethod
    def of_tensors(
        cls, tensors: Mapping[str, np.ndarray], sizes: Sequence[int], activation: Activation
    ) -> "PolicyNetwork":
        """What `tensors` told, of a network with these sizes.

        Raises:
            UserError: one is missing, unknown or of another shape, or holds numbers that are not
                finite.
        """
        expected: dict[str, tuple[int, ...]] = {}
        for i in range(len(sizes) - 1):
            expected[f"layers.{i}.weight"] = (sizes[i + 1], sizes[i])
            expected[f"layers.{i}.bias"] = (sizes[i + 1],)
        for name in sorted({*tensors, *expected}):
            if name not in tensors:
                raise UserError(f"lacks {name}")
            if name not in expected:
                raise UserError(f"holds {name}, which a network of sizes {list(sizes)} has not")
            if tensors[name].shape != expected[name]:
                raise UserError(f"{name} has shape {tensors[name].shape}, must be {expected[name]}")
        layers = range(len(sizes) - 1)
        pairs = [(tensors[f"layers.{i}.weight"], tensors[f"layers.{i}.bias"]) for i in layers]
        return cls.of_layers(pairs, activation)
