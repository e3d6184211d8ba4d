"""A linear model in lifted coordinates, identified from recorded outputs and inputs.

z[k + 1] = A z[k] + B u[k] + c, where z lifts the newest outputs and inputs: extended dynamic mode
decomposition with control (Korda, Mezic, Automatica 93, 2018; Bruder et al., T-RO 37, 2021) on time
delays as in Hankel dynamic mode decomposition (Haggerty et al., IROS 2020, the model behind the
controller of Haggerty et al., Science Robotics 8, 2023, which Licher et al. 2025, Sec. V-B3, have
as their baseline). They print neither the observables nor the regularisation: `Lift` and `ridge`
are parameters, chosen from data by `koopman_selection`.
"""

import itertools
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy import linalg

from softcr_models.errors import UserError

# Of the regressors' correlations, smallest to largest eigenvalue, by their number: what dependent
# columns leave is rounding, at most 0.8 eps in 200 random cases on four kinds of BLAS kernels.
_DEPENDENT = 4.0 * np.finfo(float).eps


@dataclass(frozen=True, eq=False)
class Trial:
    """One recording on a uniform grid.

    Attributes:
        outputs: (T, p) in any unit.
        inputs: (T, m) in any unit; row k is held from sample k to sample k + 1.

    Raises:
        UserError: shapes that do not belong together, or numbers that are not finite.
    """

    outputs: np.ndarray
    inputs: np.ndarray

    def __post_init__(self) -> None:
        outputs, inputs = self.outputs, self.inputs
        if outputs.ndim != 2 or inputs.ndim != 2 or len(outputs) != len(inputs):
            raise UserError(
                f"trial: outputs {outputs.shape} and inputs {inputs.shape}: "
                "allowed are (T, p) and (T, m)"
            )
        for name, values in (("outputs", outputs), ("inputs", inputs)):
            bad = ~np.isfinite(values).all(axis=1)
            if bad.any():
                raise UserError(f"trial: {name} of row {bad.argmax()} are not finite")


@dataclass(frozen=True)
class Lift:
    """Which functions of the past are the state.

    Attributes:
        delays: d past outputs and d past inputs, beside the newest output.
        degree: of the monomials, 1: none, which makes the model a linear ARX model.
        lift_inputs: whether the monomials contain the previous input beside the newest output.
    """

    delays: int = 2
    degree: int = 1
    lift_inputs: bool = False

    def observables(self, outputs: np.ndarray, inputs: np.ndarray) -> np.ndarray:
        """(T - d, nz) of outputs (T, p), inputs (T, m); row i belongs to time d + i.

        A row is (y[k], ..., y[k - d], u[k - 1], ..., u[k - d], monomials).
        """
        last, d = len(outputs), self.delays
        past = [outputs[d - j : last - j] for j in range(d + 1)]
        past += [inputs[d - j : last - j] for j in range(1, d + 1)]
        lifted = [past[0], past[d + 1]] if self.lift_inputs and d else [past[0]]
        return np.hstack([*past, monomials(np.hstack(lifted), 2, self.degree)])

    def linear_size(self, outputs: int, inputs: int) -> int:
        """Observables that are no monomials."""
        return (self.delays + 1) * outputs + self.delays * inputs


def monomials(values: np.ndarray, lowest: int, highest: int) -> np.ndarray:
    """(T, q) all monomials of degree lowest to highest of the columns of values (T, n)."""
    columns = [
        values[:, list(factors)].prod(axis=1)
        for degree in range(lowest, highest + 1)
        for factors in itertools.combinations_with_replacement(range(values.shape[1]), degree)
    ]
    return np.stack(columns, axis=1) if columns else np.empty((len(values), 0))


@dataclass(frozen=True, eq=False)
class Scaling:
    """Numbers of any unit, and what the model computes with.

    Attributes:
        offset, scale: (n,) in the unit of the numbers, scale > 0.
    """

    offset: np.ndarray
    scale: np.ndarray

    @classmethod
    def of(cls, values: np.ndarray) -> "Scaling":
        """Mean 0 and standard deviation 1 over values (T, n); a constant column keeps its unit."""
        deviation = values.std(axis=0)
        return cls(values.mean(axis=0), np.where(deviation > 0.0, deviation, 1.0))

    def to_model(self, values: np.ndarray) -> np.ndarray:
        return (values - self.offset) / self.scale

    def from_model(self, values: np.ndarray) -> np.ndarray:
        return values * self.scale + self.offset


@dataclass(frozen=True, eq=False)
class KoopmanModel:
    """What was identified; the state z consists of scaled numbers.

    Attributes:
        period: between samples [s].
        lift: what z is made of.
        output_scaling, input_scaling: of p outputs, of m inputs.
        transition: A (nz, nz).
        input_matrix: B (nz, m).
        constant: c (nz,).
    """

    period: float
    lift: Lift
    output_scaling: Scaling
    input_scaling: Scaling
    transition: np.ndarray
    input_matrix: np.ndarray
    constant: np.ndarray

    @property
    def outputs(self) -> int:
        """p; they are the first numbers of z."""
        return len(self.output_scaling.offset)

    def lifted(self, outputs: np.ndarray, inputs: np.ndarray) -> np.ndarray:
        """z (T - d, nz) of outputs (T, p), inputs (T, m), in their units; row i is time d + i."""
        return self.lift.observables(
            self.output_scaling.to_model(outputs), self.input_scaling.to_model(inputs)
        )

    def rollout(self, start: np.ndarray, inputs: np.ndarray) -> np.ndarray:
        """(..., T, p) outputs after each of inputs (..., T, m), from z (..., nz).

        A model that is unstable may return inf or NaN.
        """
        driven = self.input_scaling.to_model(inputs) @ self.input_matrix.T + self.constant
        predicted = np.empty((*driven.shape[:-1], self.outputs))
        state = start
        with np.errstate(over="ignore", invalid="ignore"):
            for step in range(driven.shape[-2]):
                state = state @ self.transition.T + driven[..., step, :]
                predicted[..., step, :] = state[..., : self.outputs]
        return self.output_scaling.from_model(predicted)


def identified(trials: Sequence[Trial], lift: Lift, ridge: float, period: float) -> KoopmanModel:
    """The model whose one-step error over all trials is least, in the ridge-regularised sense.

    Rows of A and B that only pass a delayed number on are known and not fitted.

    Args:
        ridge: >= 0, on squared coefficients, as a fraction of the number of samples.
        period: between samples [s].

    Raises:
        UserError: no trial is longer than delays + 1, or the data excite too little for ridge 0.
    """
    usable = [trial for trial in trials if len(trial.outputs) > lift.delays + 1]
    if not usable:
        raise UserError(
            f"identification: no trial has more than the {lift.delays + 1} samples that "
            f"{lift.delays} delays need"
        )
    output_scaling = Scaling.of(np.vstack([trial.outputs for trial in usable]))
    input_scaling = Scaling.of(np.vstack([trial.inputs for trial in usable]))
    before, after, driving = [], [], []
    for trial in usable:
        inputs = input_scaling.to_model(trial.inputs)
        states = lift.observables(output_scaling.to_model(trial.outputs), inputs)
        before.append(states[:-1])
        after.append(states[1:])
        driving.append(inputs[lift.delays : -1])
    p, m = len(output_scaling.offset), len(input_scaling.offset)
    regressors = np.hstack([np.vstack(before), np.vstack(driving)])
    size = regressors.shape[1] - m
    fitted = [*range(p), *range(lift.linear_size(p, m), size)]
    slopes, intercept = ridge_regression(regressors, np.vstack(after)[:, fitted], ridge)
    full = _delay_rows(lift, p, m, size)
    full[fitted] = slopes
    constant = np.zeros(size)
    constant[fitted] = intercept
    return KoopmanModel(
        period, lift, output_scaling, input_scaling, full[:, :size], full[:, size:], constant
    )


def ridge_regression(
    regressors: np.ndarray, targets: np.ndarray, ridge: float
) -> tuple[np.ndarray, np.ndarray]:
    """Slopes (q, n) and intercept (q,) that explain targets (T, q) by regressors (T, n).

    Raises:
        UserError: the regressors are linearly dependent and ridge does not help.
    """
    centre, goal = regressors.mean(axis=0), targets.mean(axis=0)
    moved = regressors - centre
    normal = moved.T @ moved / len(moved) + ridge * np.eye(moved.shape[1])
    if _dependent(normal):
        raise UserError(
            f"identification: the data do not excite all {moved.shape[1]} observables and inputs; "
            f"ridge {ridge:g} must be above 0, or the lift smaller"
        )
    slopes = linalg.solve(normal, moved.T @ (targets - goal) / len(moved), assume_a="pos").T
    return slopes, goal - slopes @ centre


def _dependent(normal: np.ndarray) -> bool:
    """Whether a normal matrix (n, n) is singular but for rounding.

    Whether a solver says so depends on how its kernels round. Its columns are scaled first, which
    is what the accuracy of a Cholesky factorisation depends on (van der Sluis, Numerische
    Mathematik 14, 1969).
    """
    scale = np.sqrt(np.diag(normal))
    if not (scale > 0.0).all():
        return True
    correlations = linalg.eigvalsh(normal / scale / scale[:, None])
    return not correlations[0] > _DEPENDENT * len(normal) * correlations[-1]


def _delay_rows(lift: Lift, p: int, m: int, size: int) -> np.ndarray:
    """(nz, nz + m) the rows of (A, B) that pass numbers on."""
    rows = np.zeros((size, size + m))
    first_input = (lift.delays + 1) * p
    rows[p:first_input, : lift.delays * p] = np.eye(lift.delays * p)
    if lift.delays:
        passed = (lift.delays - 1) * m
        second_input = first_input + m
        rows[first_input:second_input, size:] = np.eye(m)
        rows[second_input : second_input + passed, first_input : first_input + passed] = np.eye(
            passed
        )
    return rows
