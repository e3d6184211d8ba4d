"""Rows: one tick of the controller, from an estimate to a command."""

import itertools
from collections.abc import Iterator

import numpy as np

from softcr_control.command import Command
from softcr_control.controller_file import load_nempc, load_rod_mpc
from softcr_control.nempc import Nempc
from softcr_control.references import Reference, pressure_trajectory
from softcr_control.rod_mpc import RodMpc
from softcr_models.prediction import RodPrediction
from softcr_models.robot import Robot
from softcr_models.rod.cosserat_rod import CosseratRod
from softcr_tools.benchmarks.batches import scalar_timing
from softcr_tools.benchmarks.reference_motion import PERIOD, three_phase_pressures
from softcr_tools.benchmarks.row import Requirement, Rival, Row
from softcr_tools.benchmarks.timing import (
    Effort,
    Timing,
    cores,
    cores_available,
    measure_each,
)

UNIT = "ms per tick"
SUBSTEPS = 2
MUST, GOAL = 10.0, 6.0


def rows(robot: Robot, effort: Effort) -> Iterator[Row]:
    """The default controller with the paper's population, and with one for smaller machines."""
    rod = CosseratRod(robot, 5)
    scalar = scalar_timing(rod, SUBSTEPS, effort).times(1e3).median
    count = min(2, cores_available())
    for population, must in ((1000, True), (512, False)):
        controller, horizon = _controller(robot, rod, population)
        name = f"NEMPC tick {population} x {horizon}, {'two cores' if count == 2 else 'one core'}"
        timing = _ticks(rod, controller, count, effort)
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

    gradient = load_rod_mpc()
    prediction = RodPrediction(rod, SUBSTEPS, single_precision=False)
    terms = gradient.costs.terms(prediction, gradient.rod_mpc.input_range)
    made = RodMpc(prediction, robot.pressure_lag, gradient.rod_mpc, terms)
    timing = _ticks(rod, made, 1, effort)
    horizon = gradient.rod_mpc.horizon
    yield Row(
        f"Gauss-Newton tick, horizon {horizon}, one core",
        UNIT,
        timing,
        None,
        Rival("NEMPC", timing_of_nempc),
        (Requirement(timing.median, "ms", 1.0, 0.4),),
        f"config/controllers/rod_mpc.yaml, knots {gradient.rod_mpc.knots}, {SUBSTEPS} sub-steps, "
        "float64 lanes; as the rows above",
    )


def _controller(robot: Robot, rod: CosseratRod, population: int) -> tuple[Nempc, int]:
    """The controller of the default file with another population, and its horizon."""
    file = load_nempc()
    settings = file.nempc.model_copy(update={"population": population})
    prediction = RodPrediction(rod, SUBSTEPS)
    terms = file.costs.terms(prediction, settings.input_range)
    return Nempc(prediction, robot.pressure_lag, settings, terms), settings.horizon


def _ticks(rod: CosseratRod, controller: Nempc | RodMpc, count: int, effort: Effort) -> Timing:
    """Time [ms] of a tick in closed loop."""
    commands: list[Command] = []

    def tick(inputs: tuple[np.ndarray, Reference, np.ndarray]) -> None:
        state, reference, measured = inputs
        commands.append(controller.command(state, None, reference, measured))

    with cores(count):
        loop = _closed_loop(RodPrediction(rod), controller.rows, commands, effort)
        return measure_each(tick, loop, effort).times(1e3)


def _closed_loop(
    prediction: RodPrediction, rows_needed: int, commands: list[Command], effort: Effort
) -> Iterator[tuple[np.ndarray, Reference, np.ndarray]]:
    """State, reference and pressures [Pa] at each tick; a command acts one tick later."""
    lag = prediction.rod.robot.pressure_lag
    source = pressure_trajectory(prediction, three_phase_pressures(effort.repeats), PERIOD)
    parameters = prediction.nominal_parameters[None]
    state = source.states[0]
    pressures = active = three_phase_pressures(1)[0]
    for tick in itertools.count():
        yield state, source.window(tick * PERIOD, rows_needed), pressures
        after = lag.step(pressures, active, PERIOD)
        state = prediction.step(state[None], pressures[None], after[None], parameters, PERIOD)[0]
        pressures, active = after, commands[-1].pressures
