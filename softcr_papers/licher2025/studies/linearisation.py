"""Experiment 1 of Licher et al. 2025, Sec. III-G: the linearised rod (31) beside the rod.

Both start vented and at rest and follow the same sequence of pressure steps, smoothed by a low-pass
of 4 Hz, at 10 to 80 kPa. The paper prints neither its sequence nor the filter's order: here every
combination of chambers is at the amplitude for a second, in an order that the seed draws, then all
are vented; the filter is of first order. The paper's Fig. 4a is a graph; its two statements can be
judged: good accordance below 10 mm of deflection (the smallest amplitude deflects about so far),
and errors that grow faster than the amplitude (an exponent above 1).
"""

import itertools
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from pydantic import Field
from scipy.linalg import expm
from scipy.signal import cont2discrete, lfilter

from softcr_models import CosseratRod, Robot, load_robot
from softcr_models.prediction import RodPrediction
from softcr_models.rod.section import MAX_INTERVALS
from softcr_papers.licher2025.studies.motion_bag import write_motion_bag
from softcr_runtime.console.panels import panels
from softcr_studies.frame.study import Cell, Metric, Result, Results, Row, Study
from softcr_studies.loops.tracking_loop import PERIOD
from softcr_studies.loops.tracking_study import Settings

_STEP = 1e-5  # of a state's typical magnitude, for central differences of the tip


class LinearRod:
    """Linear model about the steady state at constant pressures; exact for linear pressures.

    Attributes:
        rod: that was linearised.
        pressures: (m,) u_0 [Pa].
        state: (nx,) x_0.
        tip: (3,) h_pos(x_0) [m], base frame.
        jacobian: (nx, nx) df/dx; input_jacobian: (nx, m) df/du [1/Pa].
        tip_jacobian: (3, nx) dh_pos/dx, by central differences.
    """

    def __init__(self, rod: CosseratRod, pressures: np.ndarray) -> None:
        """Raises EquilibriumError where the pressures (m,) [Pa] have no steady state."""
        self.rod = rod
        self.pressures = np.asarray(pressures, float)
        self.state = rod.equilibrium(self.pressures)
        self.tip = rod.tip_pose(self.state)[:3, 3]
        self.jacobian, self.input_jacobian = rod.linearize(self.state, self.pressures)
        self.tip_jacobian = self._tip_jacobian()

    def motion(self, pressures: np.ndarray, period: float) -> np.ndarray:
        """(T + 1, nx) states from x_0 under pressures (T + 1, m) [Pa], linear in between.

        The discretisation is exact: the matrix exponential of model and input together.
        """
        size, chambers = self.input_jacobian.shape
        whole = np.zeros((size + 2 * chambers,) * 2)
        whole[:size, :size] = period * self.jacobian
        whole[:size, size : size + chambers] = period * self.input_jacobian
        whole[size : size + chambers, size + chambers :] = np.eye(chambers)
        exponential = expm(whole)[:size]
        transition = exponential[:, :size]
        held, ramp = np.split(exponential[:, size:], 2, axis=1)
        inputs = pressures - self.pressures
        driven = inputs[:-1] @ held.T + np.diff(inputs, axis=0) @ ramp.T
        away = np.zeros((len(inputs), size))
        for row, push in enumerate(driven):
            away[row + 1] = transition @ away[row] + push
        return self.state + away

    def tips(self, states: np.ndarray) -> np.ndarray:
        """(T, 3) y_pos of states (T, nx) [m]: linear in the states."""
        return self.tip + (states - self.state) @ self.tip_jacobian.T

    def _tip_jacobian(self) -> np.ndarray:
        scale = np.maximum(np.abs(self.state), 1e-2)
        columns = []
        for index, size in enumerate(_STEP * scale):
            change = np.zeros_like(self.state)
            change[index] = size
            ahead, behind = (
                self.rod.tip_pose(state)[:3, 3]
                for state in (self.state + change, self.state - change)
            )
            columns.append((ahead - behind) / (2 * size))
        return np.array(columns).T


# [Pa]; the first is not the paper's
AMPLITUDES = (1.5e3, *(10e3 * number for number in range(1, 9)))
CUTOFF = 4.0  # of the low-pass [Hz]
HOLD = 1.0  # of a step [s]
ERRORS = ("MAE x", "MAE y", "MAE z")
LINEAR = "linear"
CASES = {f"steps of {1e-3 * amplitude:g} kPa": amplitude for amplitude in AMPLITUDES}


class LinearSettings(Settings):
    """See Settings."""

    intervals: int = Field(
        5, ge=2, le=MAX_INTERVALS, description="number of intervals of the rod; the paper has 5"
    )


def sequence(robot: Robot, random: np.random.Generator) -> np.ndarray:
    """(T, m) smoothed steps between 0 and 1, a row per PERIOD; the first row is 0."""
    masks = np.array(list(itertools.product((0, 1), repeat=len(robot.chambers))))
    order = random.permutation(masks[1:])
    levels = np.vstack([order, masks[:1]]).repeat(round(HOLD / PERIOD), axis=0)
    pole = 2 * np.pi * CUTOFF
    numerator, denominator, _ = cont2discrete(([pole], [1.0, pole]), PERIOD)
    smoothed: np.ndarray = lfilter(numerator.ravel(), denominator, levels.astype(float), axis=0)
    return smoothed


def run(cell: Cell) -> Result:
    """Rod and linear model along a sequence.

    Returns:
        times (T,) [s]; tips, linear_tips (T, 3) [m], base frame; "MAE x", ...: mean absolute error
        of each coordinate [mm]; deflection_mm: how far the rod's tip gets from rest.
    """
    rod = CosseratRod(load_robot(cell.settings.robot), cell.settings.intervals)
    linear = LinearRod(rod, np.zeros(rod.input_size))
    pressures = CASES[cell.case] * sequence(rod.robot, cell.random("steps"))
    # with eight sub-steps the time integration is far more exact than the linear model
    prediction = RodPrediction(rod, substeps=8, single_precision=False)
    parameters = rod.nominal_parameters
    later = prediction.rollout(linear.state, pressures[None], parameters, PERIOD)[0]
    states = np.vstack([linear.state, later])
    own = linear.motion(pressures, PERIOD)
    tips = prediction.tip_poses(states, parameters[None])[:, :, 3]
    linear_tips = linear.tips(own)
    if cell.bag:
        write_motion_bag(cell.bag, rod, parameters, pressures, states, own, PERIOD, linear_tips)
    errors = 1e3 * np.abs(linear_tips - tips).mean(axis=0)
    return dict(zip(ERRORS, errors, strict=True)) | {
        "times": PERIOD * np.arange(len(pressures)), "tips": tips, "linear_tips": linear_tips,
        "deflection_mm": 1e3 * np.linalg.norm(tips - tips[0], axis=1).max(),
    }  # fmt: skip


def _errors(results: Results) -> np.ndarray:
    """(A, seeds, 3) mean absolute errors [mm]."""
    return np.array([[[each[name] for name in ERRORS] for each in results.of(case, LINEAR)]
                     for case in CASES])  # fmt: skip


def growth(errors: np.ndarray) -> np.ndarray:
    """(...) exponents of the power of the amplitude that (A, ...) errors grow with."""
    logarithms = np.log(errors).reshape(len(AMPLITUDES), -1)
    slopes: np.ndarray = np.polyfit(np.log(AMPLITUDES), logarithms, 1)[0]
    return slopes.reshape(errors.shape[1:])


def further_rows(results: Results) -> Iterator[Row]:
    """What the rod does, and how fast the errors grow."""
    for case in CASES:
        found = [each["deflection_mm"] for each in results.of(case, LINEAR)]
        yield Row.of(case, "rod", "largest deflection", found, "mm")
    for name, slopes in zip(ERRORS, growth(_errors(results)).T, strict=True):
        yield Row.of("growth with amplitude", LINEAR, f"exponent of {name}", slopes, "-")


def _draw(results: Results, directory: Path) -> None:
    """Fig. 4: errors over the amplitude, and the tips at the largest."""
    errors, amplitudes = _errors(results), 1e-3 * np.array(AMPLITUDES)
    label, x = "mean absolute error [mm]", "amplitude of the steps [kPa]"
    with panels(directory / "errors.png", [label], x=x) as (axes,):
        for name, each in zip("xyz", errors.transpose(2, 0, 1), strict=True):
            axes.errorbar(amplitudes, each.mean(axis=1), each.std(axis=1), fmt="o-", label=name)
    largest = list(CASES)[-1]
    found = results.first(largest, LINEAR)
    with panels(directory / "motion.png", [f"{axis} of the tip [mm]" for axis in "xyz"]) as rows:
        rows[0].set_title(largest)
        for axis, axes in enumerate(rows):
            axes.plot(found["times"], 1e3 * found["tips"][:, axis], "k", label="rod")
            axes.plot(found["times"], 1e3 * found["linear_tips"][:, axis], "C3--", label=LINEAR)


STUDY = Study(
    name="licher2025/linearisation",
    source="Licher et al. 2025, Sec. III-G, Experiment 1",
    summary="the rod linearised about the vented state, on steps of growing pressure",
    run=run,
    cases=tuple(CASES),
    methods=(LINEAR,),
    settings=LinearSettings,
    metrics=[Metric(name, "mm", name) for name in ERRORS],
    exact="Nothing is measured or controlled: rod and linear model are computed along the same "
    "exact pressures.",
    about={"cutoff_hz": CUTOFF},
    further_rows=further_rows,
    draw=_draw,
)
