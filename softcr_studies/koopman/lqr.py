"""A regulator on the lifted linear model, with the static model as its pre-gain.

Haggerty et al. (Science Robotics 8, 2023; the baseline of Licher et al. 2025, Sec. V-B3): the
static Koopman operator says which input holds the wanted output, the dynamic one how to get there,
u = u_static(r) - K (z - z_r), K from the discrete algebraic Riccati equation. Neither they nor what
we could read of Haggerty et al. prints degrees, weights or what is done for a reference that moves:
all are parameters. With `Weights.preview` the motion is met by the known-disturbance feed-forward
of linear quadratic tracking (Anderson and Moore, Optimal Control, 1990, ch. 4); without it the
formula above is all there is.
"""

import math
import warnings
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy import linalg

from softcr_control.command import Command
from softcr_control.command_limits import limit_command
from softcr_control.observation import ControlContext, Observation
from softcr_models.errors import UserError
from softcr_models.model import TIP
from softcr_studies.koopman.lifted_model import (
    KoopmanModel,
    Scaling,
    Trial,
    monomials,
    ridge_regression,
)

_UNSTABLE = "Koopman regulator: no stabilising gain"
# Of the Riccati equation, relative to its solution. The 96 designs that the tracking experiment's
# recipe tries (27 to 57 lifted states, 240 s of data) leave at most 2e-12.
_LARGEST_RESIDUAL = 1e-6
_ROUNDING = 1e-9  # of an eigenvalue: what is on the unit circle may come out below it


@dataclass(frozen=True, eq=False)
class StaticModel:
    """The inputs that hold outputs: a polynomial of the outputs.

    Attributes:
        degree: of the polynomial.
        output_scaling, input_scaling: of p outputs, of m inputs.
        slopes: (m, q), on the monomials.
        intercept: (m,).
    """

    degree: int
    output_scaling: Scaling
    input_scaling: Scaling
    slopes: np.ndarray
    intercept: np.ndarray

    @classmethod
    def identified(
        cls, trials: Sequence[Trial], settled: int, degree: int = 3, ridge: float = 1e-8
    ) -> "StaticModel":
        """From all samples before which the input had stood still for `settled` samples.

        Raises:
            UserError: there are fewer of them than coefficients.
        """
        outputs, inputs = (
            np.vstack(parts)
            for parts in zip(*(_standing(trial, settled) for trial in trials), strict=True)
        )
        needed = math.comb(outputs.shape[1] + degree, degree)
        if len(outputs) < needed:
            raise UserError(
                f"static model: {len(outputs)} samples stand still for {settled} samples; "
                f"at least {needed} are needed for degree {degree}"
            )
        output_scaling, input_scaling = Scaling.of(outputs), Scaling.of(inputs)
        lifted = monomials(output_scaling.to_model(outputs), 1, degree)
        found = ridge_regression(lifted, input_scaling.to_model(inputs), ridge)
        return cls(degree, output_scaling, input_scaling, *found)

    def inputs(self, outputs: np.ndarray) -> np.ndarray:
        """(T, m) that hold outputs (T, p)."""
        lifted = monomials(self.output_scaling.to_model(outputs), 1, self.degree)
        return self.input_scaling.from_model(lifted @ self.slopes.T + self.intercept)


@dataclass(frozen=True)
class Weights:
    """Of the quadratic cost, on scaled numbers; the scaled outputs weigh 1.

    Attributes:
        effort: on inputs that are not the static ones, > 0.
        rate: on their changes.
        preview: samples of the reference looked ahead; 0: none.
    """

    effort: float = 0.1
    rate: float = 0.0
    preview: int = 0


@dataclass(frozen=True, eq=False)
class Gains:
    """What the Riccati equation gives.

    Attributes:
        feedback: K (m, nz).
        preview: (preview, m, nz) on what the reference is off its model 0, 1, ... samples ahead.
    """

    feedback: np.ndarray
    preview: np.ndarray

    @classmethod
    def of(cls, model: KoopmanModel, weights: Weights) -> "Gains":
        """Of the infinite horizon.

        Raises:
            UserError: the model cannot be stabilised.
        """
        a, b = model.transition, model.input_matrix
        size, inputs = b.shape
        cost = np.zeros((size, size))
        cost[: model.outputs, : model.outputs] = np.eye(model.outputs)
        effort = (weights.effort + weights.rate) * np.eye(inputs)
        cross = np.zeros((size, inputs))
        if weights.rate:
            # the previous input is part of the state: behind the outputs and their delays
            first = (model.lift.delays + 1) * model.outputs
            previous = np.arange(first, first + inputs)
            cost[previous, previous] += weights.rate
            cross[previous, np.arange(inputs)] = -weights.rate
        value, inner, feedback = _regulator(a, b, cost, effort, cross)
        closed = a - b @ feedback
        ahead, propagated = [], value
        for _ in range(weights.preview):
            ahead.append(linalg.solve(inner, b.T @ propagated, assume_a="pos"))
            propagated = closed.T @ propagated
        return cls(feedback, np.array(ahead).reshape(weights.preview, inputs, size))


@dataclass(frozen=True, eq=False)
class KoopmanDesign:
    """What was identified, and the weights found for it.

    Attributes:
        model: of tips (3) [m] under commands, at the control period.
        static: of the same.
        weights: of the cost.
    """

    model: KoopmanModel
    static: StaticModel
    weights: Weights


class KoopmanLqr:
    """Tracks tip positions [m] with any inputs; a `Controller` of the control loop.

    It knows nothing of a robot: of the estimated state it takes the tip alone. That its answer acts
    a sample late is in the identified model; the observation's `delay` is therefore not used.

    Args:
        context: its model says the limits of the inputs, and where the tip of a state is.
        design: what controls.

    Raises:
        UserError: the model cannot be stabilised, or has other inputs than the robot.
    """

    def __init__(self, context: ControlContext, design: KoopmanDesign) -> None:
        model, weights, inputs = design.model, design.weights, context.model.inputs
        if weights.rate and not model.lift.delays:
            raise UserError("Koopman regulator: a weight on rates needs a model with delays")
        if model.input_matrix.shape[1] != inputs.size:
            raise UserError(
                f"Koopman regulator: identified with {model.input_matrix.shape[1]} inputs, the "
                f"robot has {inputs.size}"
            )
        self._model, self._static, self._weights = model, design.static, weights
        self._gains = Gains.of(model, weights)
        self._inputs = inputs
        self.reset()

    @property
    def rows(self) -> int:
        """Reference rows that are enough: now, the preview, and one more."""
        return self._weights.preview + 1

    def reset(self) -> None:
        """As if newly made."""
        samples = self._model.lift.delays + 1
        self._tips: deque[np.ndarray] = deque(maxlen=samples)
        self._wanted: deque[np.ndarray] = deque(maxlen=samples)
        self._sent: deque[np.ndarray] = deque(maxlen=samples)

    def command(self, observation: Observation) -> Command:
        """The inputs to send now; see `Controller`."""
        model, delays = self._model, self._model.lift.delays
        reference = observation.reference
        _remember(self._tips, observation.output(TIP)[:, 3])
        _remember(self._wanted, reference.tip_positions[0])
        if not self._sent:
            self._sent.extend([np.array(observation.inputs, float)] * (delays + 1))
        wanted = np.vstack([*self._wanted, reference.tip_positions[1 : self.rows]])
        moving, standing, held = self._lifted_reference(wanted)
        # the input of the newest sample is not part of the state: any number stands for it
        now = model.lifted(np.array(self._tips), np.array(self._sent))[0]
        scaled = model.input_scaling.to_model(held[0]) - self._gains.feedback @ (now - moving[0])
        # what the model would do by itself on the reference, and where the reference then is
        off = standing[:-1] + (moving[:-1] - standing[:-1]) @ model.transition.T - moving[1:]
        scaled -= np.einsum("kmn,kn->m", self._gains.preview, off)
        wish = model.input_scaling.from_model(scaled)
        inputs, previous = self._inputs, self._sent[-1]
        sent, _ = limit_command(wish, previous, inputs.low, inputs.high, inputs.rate, model.period)
        self._sent[-1] = sent
        predicted = model.rollout(now, sent[None])
        self._sent.append(sent)
        return Command(sent[None], float("nan"), {}, sent[None], predicted)

    def _lifted_reference(self, wanted: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """z (N, nz) on the reference, z (N, nz) if it stood still there, static inputs (N, m)."""
        model, delays = self._model, self._model.lift.delays
        held = np.clip(self._static.inputs(wanted), self._inputs.low, self._inputs.high)
        moving = model.lifted(wanted, held)
        # every row for as long as the state remembers, of which the last state is the standing one
        samples = delays + 1
        standing = model.lifted(
            np.repeat(wanted[delays:], samples, axis=0), np.repeat(held[delays:], samples, axis=0)
        )[::samples]
        return moving, standing, held[delays:]


def _regulator(
    a: np.ndarray, b: np.ndarray, cost: np.ndarray, effort: np.ndarray, cross: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Value X (nz, nz), R + B^T X B (m, m) and gain K (m, nz) of the infinite horizon.

    The answer is judged, because a solver need not raise where there is no solution: with some
    BLAS kernels scipy's returns X of 1e15 instead. X must solve the Riccati equation, and every
    eigenvalue of A - B K must lie inside the unit circle.

    Args:
        a, b: (nz, nz) and (nz, m) of the model.
        cost, effort, cross: Q (nz, nz), R (m, m) and S (nz, m) of x^T Q x + u^T R u + 2 x^T S u.

    Raises:
        UserError: the model cannot be stabilised.
    """
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", linalg.LinAlgWarning)  # what is ill is judged below
            value = linalg.solve_discrete_are(a, b, cost, effort, s=cross)
            inner = effort + b.T @ value @ b
            feedback = linalg.solve(inner, b.T @ value @ a + cross.T, assume_a="pos")
        radius = np.abs(linalg.eigvals(a - b @ feedback)).max()
    except (linalg.LinAlgError, ValueError) as error:
        raise UserError(f"{_UNSTABLE}: {' '.join(str(error).split())}") from None
    if not radius < 1.0 - _ROUNDING:
        raise UserError(
            f"{_UNSTABLE}: the closed loop has an eigenvalue of magnitude {radius:.6g}, "
            "must be below 1"
        )
    residual = a.T @ value @ a - value - (a.T @ value @ b + cross) @ feedback + cost
    relative = np.abs(residual).max() / np.abs(value).max()
    if not relative < _LARGEST_RESIDUAL:
        raise UserError(
            f"{_UNSTABLE}: the Riccati equation is solved to {relative:.2g} of its solution, "
            f"must be {_LARGEST_RESIDUAL:g}"
        )
    return value, inner, feedback


def _remember(past: deque[np.ndarray], newest: np.ndarray) -> None:
    """Before the first sample everything stood still."""
    past.extend([newest] * (1 if past else past.maxlen or 1))


def _standing(trial: Trial, settled: int) -> tuple[np.ndarray, np.ndarray]:
    """Outputs and inputs of the samples before which the input stood for `settled` samples."""
    changed = np.flatnonzero((np.diff(trial.inputs, axis=0) != 0.0).any(axis=1)) + 1
    began = np.zeros(len(trial.inputs), int)
    began[changed] = changed
    stands = np.arange(len(trial.inputs)) - np.maximum.accumulate(began) >= settled
    return trial.outputs[stands], trial.inputs[stands]
