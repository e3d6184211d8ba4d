"""Rows: one tick of the controller, from an estimate to a command."""

import itertools
from collections.abc import Iterator

import numpy as np
from scipy.optimize import lsq_linear

from softcr_control.bounded_minimum import bounded_minimum
from softcr_control.command import Command
from softcr_control.controller import ControllerBlock
from softcr_control.observation import Observation
from softcr_control.references import pressure_trajectory
from softcr_models.prediction import RodPrediction
from softcr_models.robot import Robot
from softcr_models.rod.cosserat_rod import CosseratRod
from softcr_runtime.registry import GRADIENT_MPC
from softcr_runtime.system import Parameters
from softcr_tools.benchmarks.batches import scalar_timing
from softcr_tools.benchmarks.reference_motion import three_phase_pressures
from softcr_tools.benchmarks.row import Requirement, Rival, Row
from softcr_tools.benchmarks.timing import (
    Effort,
    Timing,
    cores,
    cores_available,
    measure,
    measure_each,
)

UNIT = "ms per tick"
SUBSTEPS = 2
MUST, GOAL = 10.0, 6.0
# Rate [Hz], horizon [ticks], must and goal [ms] of median and 99 %; at 500 Hz the period is 2 ms.
Bounds = tuple[float, float | None]
GAUSS_NEWTON: tuple[tuple[int, int, Bounds, Bounds], ...] = (
    (70, 8, (1.0, 0.4), (3.0, 1.0)),
    (500, 40, (2.0, None), (2.0, None)),
)


def rows(robot: Robot, effort: Effort) -> Iterator[Row]:
    """NEMPC with the paper's population and a smaller one; gradient MPC at two rates."""
    rod = CosseratRod(robot, 5)
    scalar = scalar_timing(rod, SUBSTEPS, effort).times(1e3).median
    count = min(2, cores_available())
    for population, must in ((1000, True), (512, False)):
        nempc = _controller(
            robot, {"controller": "nempc", "population": population, "substeps": SUBSTEPS}
        )
        horizon = nempc.settings.horizon
        name = f"NEMPC tick {population} x {horizon}, {'two cores' if count == 2 else 'one core'}"
        timing = _ticks(rod, nempc, count, effort)
        timing_of_nempc = timing.median
        yield Row(
            name,
            UNIT,
            timing,
            None,
            Rival(f"{population * horizon} scalar steps", population * horizon * scalar),
            (Requirement(timing.median, "ms", MUST, GOAL),) if must else (),
            f"config/controllers/nempc.yaml, {SUBSTEPS} sub-steps, float32 lanes; it follows the "
            "reference motion in closed loop with its own model",
        )

    for rate_hz, horizon, median, p99 in GAUSS_NEWTON:
        gradient = _controller(
            robot, {"controller": GRADIENT_MPC, "rate_hz": float(rate_hz), "horizon": horizon}
        )
        timing = _ticks(rod, gradient, 1, effort)
        yield Row(
            f"Gauss-Newton tick, {rate_hz} Hz, horizon {horizon}, one core",
            UNIT,
            timing,
            None,
            Rival("NEMPC", timing_of_nempc),
            (Requirement(timing.median, "ms", *median), Requirement(timing.p99, "ms p99", *p99)),
            f"config/controllers/{GRADIENT_MPC}.yaml as shipped, one sub-step, float64 lanes; it "
            "follows the reference motion in closed loop with its own model",
        )
    yield _bounded_minimum(effort)


def _bounded_minimum(effort: Effort) -> Row:
    """The Gauss-Newton step where bounds are active: every second unknown ends at one."""
    draw = np.random.default_rng(0)
    jacobian, residual = draw.normal(size=(48, 6)), draw.normal(size=48)
    wanted = np.linalg.solve(jacobian.T @ jacobian, -jacobian.T @ residual)
    reach = np.abs(wanted) * np.tile((0.5, 2.0), 3)
    hessian, gradient = jacobian.T @ jacobian, jacobian.T @ residual
    timing = measure(lambda: bounded_minimum(hessian, gradient, -reach, reach), effort)
    scipys = measure(
        lambda: lsq_linear(jacobian, -residual, (-reach, reach), method="bvls"), effort
    )
    return Row(
        "bounded minimum, 6 unknowns",
        "us per solution",
        timing.times(1e6),
        rival=Rival("scipy's lsq_linear, bvls", scipys.times(1e6).median),
    )


def _controller(robot: Robot, parameters: Parameters) -> ControllerBlock:
    """A shipped controller with other numbers."""
    return ControllerBlock(robot, ControllerBlock.settings_of(parameters))


def _ticks(rod: CosseratRod, block: ControllerBlock, count: int, effort: Effort) -> Timing:
    """Time [ms] of a tick of the block's controller in closed loop."""
    commands: list[Command] = []
    controller, period = block.controller, block.settings.period

    def tick(observation: Observation) -> None:
        commands.append(controller.command(observation))

    with cores(count):
        loop = _closed_loop(RodPrediction(rod), controller.rows, commands, effort, period)
        return measure_each(tick, loop, effort).times(1e3)


def _closed_loop(
    prediction: RodPrediction,
    rows_needed: int,
    commands: list[Command],
    effort: Effort,
    period: float,
) -> Iterator[Observation]:
    """What is seen at each tick; a command acts one tick later."""
    lag = prediction.rod.robot.pressure_lag
    wanted = three_phase_pressures(effort.repeats, period)
    source = pressure_trajectory(prediction, wanted, period)
    parameters = prediction.nominal_parameters[None]
    state = prediction.equilibrium(wanted[0], prediction.nominal_parameters)
    pressures = active = wanted[0]
    for tick in itertools.count():
        now = tick * period
        reference = source.window(now, rows_needed)
        yield Observation(now, state, {}, reference, pressures, prediction)
        after = lag.step(pressures, active, period)
        state = prediction.step(state[None], pressures[None], after[None], parameters, period)[0]
        pressures, active = after, commands[-1].pressures
