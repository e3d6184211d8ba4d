"""One tick of the controller, from an estimate to a command."""

import itertools
from collections.abc import Iterator
from functools import partial

import numpy as np
from scipy.optimize import lsq_linear

from softcr_control.bounded_minimum import bounded_minimum
from softcr_control.command import Command
from softcr_control.controller import ControllerBlock
from softcr_control.observation import Observation
from softcr_control.references import pressure_trajectory
from softcr_models.prediction import RodPrediction
from softcr_models.rod.cosserat_rod import CosseratRod
from softcr_runtime.registry import GRADIENT_MPC
from softcr_runtime.system import Parameters
from softcr_studies.speed.batch import SCALAR, scalar_timing
from softcr_studies.speed.motion import three_phase_pressures
from softcr_studies.speed.timing import (
    Baseline,
    Effort,
    cores,
    cores_available,
    measure,
    measure_each,
    robot,
    speed_study,
    told,
)
from softcr_studies.study import Must, Result

UNIT, SOLUTION = "ms per tick", "us per solution"
SUBSTEPS, HORIZON = 2, 8
OURS, BVLS = "softcr", "scipy's lsq_linear, bvls"
TICK, STEP, MINIMUM = "tick", "one step", "bounded minimum, 6 unknowns"
NEMPC = {count: f"NEMPC {count} x {HORIZON}, at most two cores" for count in (1000, 512)}
# Rate [Hz] -> horizon [ticks], must and goal [ms] of median and 99 %; at 500 Hz a period is 2 ms.
Bounds = tuple[float, float | None]
GAUSS_NEWTON: dict[int, tuple[int, Bounds, Bounds]] = {
    70: (8, (1.0, 0.4), (3.0, 1.0)),
    500: (40, (2.0, None), (2.0, None)),
}


def nempc(population: int, effort: Effort) -> Result:
    """The shipped NEMPC with a population."""
    block = _controller(
        {"controller": "nempc", "population": population, "substeps": SUBSTEPS, "horizon": HORIZON}
    )
    count = min(2, cores_available())
    note = f"config/controllers/nempc.yaml, {SUBSTEPS} sub-steps, float32 lanes, {count} core(s)"
    return _ticks(block, count, note, effort)


def gauss_newton(rate_hz: int, effort: Effort) -> Result:
    """The shipped gradient MPC at a rate, on one core."""
    horizon, _, _ = GAUSS_NEWTON[rate_hz]
    block = _controller({"controller": GRADIENT_MPC, "rate_hz": float(rate_hz), "horizon": horizon})
    note = f"config/controllers/{GRADIENT_MPC}.yaml as shipped, one sub-step, float64 lanes"
    return _ticks(block, 1, note, effort)


def scalar(effort: Effort) -> Result:
    """A step of the kernel for one rod."""
    timing = scalar_timing(CosseratRod(robot(), 5), SUBSTEPS, effort)
    return told(timing.times(1e3), UNIT, note=f"{SUBSTEPS} sub-steps, float64, one core")


def minimum(ours: bool, effort: Effort) -> Result:
    """The Gauss-Newton step where bounds are active: every second unknown ends at one."""
    draw = np.random.default_rng(0)
    jacobian, residual = draw.normal(size=(48, 6)), draw.normal(size=48)
    wanted = np.linalg.solve(jacobian.T @ jacobian, -jacobian.T @ residual)
    reach = np.abs(wanted) * np.tile((0.5, 2.0), 3)
    hessian, gradient = jacobian.T @ jacobian, jacobian.T @ residual
    timing = measure(
        (lambda: bounded_minimum(hessian, gradient, -reach, reach))
        if ours
        else (lambda: lsq_linear(jacobian, -residual, (-reach, reach), method="bvls")),
        effort,
    )
    return told(timing.times(1e6), SOLUTION)


def _controller(parameters: Parameters) -> ControllerBlock:
    """A shipped controller with other numbers."""
    return ControllerBlock(robot(), ControllerBlock.settings_of(parameters))


def _ticks(block: ControllerBlock, count: int, note: str, effort: Effort) -> Result:
    """A tick of the block's controller in closed loop."""
    rod = CosseratRod(robot(), 5)
    commands: list[Command] = []
    controller, period = block.controller, block.settings.period

    def tick(observation: Observation) -> None:
        commands.append(controller.command(observation))

    with cores(count):
        loop = _closed_loop(RodPrediction(rod), controller.rows, commands, effort, period)
        timing = measure_each(tick, loop, effort).times(1e3)
    note += "; it follows the reference motion in closed loop with its own model"
    return told(timing, UNIT, note=note)


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


def _gradient(rate_hz: int) -> str:
    return f"Gauss-Newton, {rate_hz} Hz, horizon {GAUSS_NEWTON[rate_hz][0]}, one core"


STUDY = speed_study(
    "speed/controller",
    "one tick of each predictive controller",
    {
        **{(TICK, name): partial(nempc, population) for population, name in NEMPC.items()},
        **{(TICK, _gradient(rate_hz)): partial(gauss_newton, rate_hz) for rate_hz in GAUSS_NEWTON},
        (STEP, SCALAR): scalar,
        (MINIMUM, OURS): partial(minimum, True),
        (MINIMUM, BVLS): partial(minimum, False),
    },
    [UNIT, SOLUTION],
    [
        *(Baseline((TICK, name), (STEP, SCALAR), population * HORIZON)
          for population, name in NEMPC.items()),
        *(Baseline((TICK, _gradient(rate_hz)), (TICK, NEMPC[512])) for rate_hz in GAUSS_NEWTON),
        Baseline((MINIMUM, OURS), (MINIMUM, BVLS)),
    ],
    musts=(
        Must("median", 10.0, 6.0, method=NEMPC[1000]),
        *(Must("median", *bounds[1], method=_gradient(rate)) for rate, bounds in
          GAUSS_NEWTON.items()),
        *(Must("p99", *bounds[2], method=_gradient(rate)) for rate, bounds in
          GAUSS_NEWTON.items()),
    ),
)  # fmt: skip
