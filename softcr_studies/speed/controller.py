"""One tick of the controller, from an estimate to a command."""

import itertools
from collections.abc import Callable, Iterator
from functools import partial

import numpy as np
from scipy.optimize import lsq_linear

from softcr_control.command import Command
from softcr_control.controller import ControllerBlock
from softcr_control.observation import Observation
from softcr_control.predictive.bounded_minimum import bounded_minimum
from softcr_control.reference.references import pressure_trajectory
from softcr_control.reference.signals import circle_phase, rotating_inputs
from softcr_models.prediction import RodPrediction
from softcr_models.robots.robot import load_robot
from softcr_models.rod.cosserat_rod import CosseratRod
from softcr_runtime.blocks.system import Parameters
from softcr_runtime.settings import registry
from softcr_runtime.settings.registry import GRADIENT_MPC
from softcr_studies.frame.study import Metric, Must, Result
from softcr_studies.loops.compared_loops import CHAINED
from softcr_studies.loops.known_state import KnownState
from softcr_studies.speed import motion, timing
from softcr_studies.speed.batch import SCALAR, SUBSTEPS, scalar_step
from softcr_studies.speed.timing import Baseline, Effort, told

ROBOT, INTERVALS = "licher2025", 5
UNIT, SOLUTION = "ms per tick", "us per solution"
HORIZON = 8
STEP, MINIMUM = ("one step", SCALAR), "bounded minimum, 6 unknowns"
OURS, BVLS = (MINIMUM, "softcr"), (MINIMUM, "scipy's lsq_linear, bvls")
NEMPC = {count: ("tick", f"NEMPC {count} x {HORIZON}, at most two cores") for count in (1000, 512)}
ARM = "two_segments"
ARM_NEMPC = "tick", f"NEMPC 256 x {HORIZON} on {ARM}, at most two cores"
ARM_GAUSS_NEWTON = "tick", f"Gauss-Newton on {ARM}, 70 Hz, horizon {HORIZON}, one core"
GAUSS_NEWTON = {  # rate [Hz] and horizon [ticks]
    told: ("tick", f"Gauss-Newton, {told[0]} Hz, horizon {told[1]}, one core")
    for told in ((70, 8), (500, 40))
}
CHAIN = "tick", f"Gauss-Newton on {CHAINED}, 70 Hz, horizon {HORIZON}, one core"
AS_SHIPPED = {
    name: ("tick as shipped, one core", f"{name} on {CHAINED}")
    for name in (registry.NEMPC, GRADIENT_MPC)
}
BESIDE = f"times the tick on {ROBOT} before it"


_FOLLOWS = "it follows the reference motion in closed loop with its own model"


def nempc(population: int, effort: Effort, robot: str = ROBOT) -> Result:
    """The shipped NEMPC with a population."""
    count = min(2, timing.cores_available())
    note = f"config/controllers/nempc.yaml, {SUBSTEPS} sub-steps, float32 lanes, {count} core(s)"
    numbers = {"population": population, "substeps": SUBSTEPS, "horizon": HORIZON}
    return _ticks({"robot": robot, "controller": "nempc", **numbers}, count, note, effort)


def gauss_newton(rate_hz: int, horizon: int, effort: Effort, robot: str = ROBOT) -> Result:
    """The shipped gradient MPC, on one core."""
    note = f"config/controllers/{GRADIENT_MPC}.yaml, this horizon, one sub-step, float64 lanes"
    numbers = {"rate_hz": float(rate_hz), "horizon": horizon}
    return _ticks({"robot": robot, "controller": GRADIENT_MPC, **numbers}, 1, note, effort)


def minimum(ours: bool, effort: Effort) -> Result:
    """The Gauss-Newton step where bounds are active: every second unknown ends at one."""
    draw = np.random.default_rng(0)
    jacobian, residual = draw.normal(size=(48, 6)), draw.normal(size=48)
    hessian, gradient = jacobian.T @ jacobian, jacobian.T @ residual
    reach = np.abs(np.linalg.solve(hessian, -gradient)) * np.tile((0.5, 2.0), 3)
    work = (
        partial(bounded_minimum, hessian, gradient, -reach, reach)
        if ours
        else partial(lsq_linear, jacobian, -residual, (-reach, reach), method="bvls")
    )
    return told(1e6 * timing.measure(work, effort), SOLUTION)


def beside_plain(controller: str, effort: Effort) -> Result:
    """A controller with its shipped numbers on the robot with a chain, tick by tick in turn with
    the same on the robot without: whatever else the machine does slows down both."""
    robots = ROBOT, CHAINED
    with timing.cores(1):
        loops = [_Loop({"robot": robot, "controller": controller}, effort) for robot in robots]
        turns = itertools.chain.from_iterable(zip(*loops, strict=True))
        both = timing.measure_each(lambda turn: turn[0](turn[1]), turns, _of_both(effort))
    pairs = both[timing.WARM_UP % 2 :]  # begin with a tick without a chain
    plain, chained = pairs[: len(pairs) // 2 * 2].reshape(-1, 2).T
    note = f"config/controllers/{controller}.yaml; {_FOLLOWS}"
    ratio = float(np.median(chained / plain))
    return {**told(1e3 * chained, UNIT, note=note), BESIDE: ratio}


def _of_both(effort: Effort) -> Effort:
    return effort.model_copy(
        update={"repeats": 2 * effort.repeats, "seconds": 2.0 * effort.seconds}
    )


def _ticks(parameters: Parameters, count: int, note: str, effort: Effort) -> Result:
    """A tick of a shipped controller with other numbers, in closed loop."""
    with timing.cores(count):
        turns = _Loop(parameters, effort)
        durations = timing.measure_each(lambda turn: turn[0](turn[1]), turns, effort)
    return told(1e3 * durations, UNIT, note=f"{note}; {_FOLLOWS}")


class _Loop:
    """A controller with its numbers in closed loop with its own rod: gives what it does in a tick
    and what it sees there, tick after tick."""

    def __init__(self, parameters: Parameters, effort: Effort) -> None:
        rod = CosseratRod(load_robot(str(parameters["robot"])), INTERVALS)
        block = ControllerBlock(rod.robot, ControllerBlock.settings_of(parameters))
        self._controller, self._commands = block.controller, list[Command]()
        self._observations = _observations(RodPrediction(rod), block, self._commands, effort)

    def __iter__(self) -> Iterator[tuple[Callable[[Observation], None], Observation]]:
        return ((self._tick, observation) for observation in self._observations)

    def _tick(self, observation: Observation) -> None:
        self._commands.append(self._controller.command(observation))


def _observations(
    prediction: RodPrediction, block: ControllerBlock, commands: list[Command], effort: Effort
) -> Iterator[Observation]:
    """What is seen at each tick; a command acts one tick later."""
    period = block.settings.period
    wanted = _pressures(prediction, effort.repeats, period)
    source = pressure_trajectory(prediction, wanted, period)
    state = prediction.equilibrium(wanted[0], prediction.nominal_parameters)
    loop = KnownState(prediction, prediction, state, wanted[0], period)
    while True:
        yield loop.observe(source.window(loop.now, block.controller.rows))
        loop.follow(commands[-1].pressures)


def _pressures(prediction: RodPrediction, periods: int, period: float) -> np.ndarray:
    """(T, m) of the reference motion [Pa]; of an arm those of each segment turn alike, at 1 Hz."""
    inputs = prediction.inputs
    if inputs.size == motion.CHAMBERS:
        return motion.three_phase_pressures(periods, period)
    phases = circle_phase(np.arange(periods) * period, 1.0)
    turning = rotating_inputs(phases, motion.CHAMBERS, 0.35, 0.2)
    return inputs.low + np.tile(turning, inputs.size // motion.CHAMBERS) * inputs.range


STUDY = timing.speed_study(
    "speed/controller",
    "one tick of each predictive controller",
    {
        **{cell: partial(nempc, population) for population, cell in NEMPC.items()},
        **{cell: partial(gauss_newton, *told) for told, cell in GAUSS_NEWTON.items()},
        ARM_NEMPC: partial(nempc, 256, robot=ARM),
        CHAIN: partial(gauss_newton, 70, HORIZON, robot=CHAINED),
        ARM_GAUSS_NEWTON: partial(gauss_newton, 70, HORIZON, robot=ARM),
        **{cell: partial(beside_plain, name) for name, cell in AS_SHIPPED.items()},
        STEP: scalar_step,
        OURS: partial(minimum, True),
        BVLS: partial(minimum, False),
    },
    [UNIT, SOLUTION],
    [
        *(Baseline(cell, STEP, population * HORIZON) for population, cell in NEMPC.items()),
        *(Baseline(cell, NEMPC[512]) for cell in GAUSS_NEWTON.values()),
        Baseline(CHAIN, GAUSS_NEWTON[70, 8], must=1 / 1.5),
        Baseline(OURS, BVLS),
    ],
    metrics=[Metric(BESIDE, "x", BESIDE, timing=True)],
    musts=(
        *(Must(BESIDE, 1.25, 1.1, method=method) for _, method in AS_SHIPPED.values()),
        Must("median", 10.0, 6.0, method=NEMPC[1000][1]),
        Must("median", 1.0, 0.4, method=GAUSS_NEWTON[70, 8][1]),
        Must("p99", 3.0, 1.0, method=GAUSS_NEWTON[70, 8][1]),
        Must("median", 8.0, 4.0, method=ARM_NEMPC[1]),
        Must("median", 3.0, 1.5, method=ARM_GAUSS_NEWTON[1]),
        *(Must(quantity, 2.0, method=GAUSS_NEWTON[500, 40][1])  # a period
          for quantity in ("median", "p99")),
    ),
)  # fmt: skip
