"""Plant, filter and controller on virtual time, and what is kept of a run."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np

from softcr_control.controller import ControllerBlock, ControllerBlockSettings
from softcr_control.horizon import MAXIMUM_DELAY
from softcr_control.koopman_lqr import KoopmanDesign, KoopmanLqr
from softcr_control.reference_block import ReferenceBlock, ReferenceBlockSettings
from softcr_control.reference_settings import ReferenceSettings
from softcr_control.references import SampledReference, at_nodes
from softcr_estimation import EstimatorSettings
from softcr_models import CosseratRod, Robot
from softcr_models.prediction import RodPrediction
from softcr_models.rod_model import RodModel
from softcr_runtime import registry
from softcr_runtime.block import Output
from softcr_runtime.settings import build_settings
from softcr_runtime.system import Parameters
from softcr_runtime.values import StateEstimate
from softcr_runtime.virtual import Observer
from softcr_studies.virtual_runs import (
    ESTIMATOR,
    REFERENCE,
    SIMULATOR,
    Log,
    common,
    estimator,
    run_blocks,
    simulator,
)
from softcr_tools.experiments.tracking.cases import RATE_HZ, RIVAL, Case, Difference
from softcr_tools.experiments.tracking.plant import DifferentPlant, plant_of

__all__ = [
    "PERIOD", "Trace", "controller_settings", "plant_of", "run_loop", "sampled_reference",
]  # fmt: skip

PERIOD = 1 / RATE_HZ
MODEL_INTERVALS = 5
HORIZON = 8 * PERIOD  # of the predictive controllers [s]
LONGEST_HORIZON = 40  # [ticks]: more do not fit into a tick at 500 Hz
REFERENCE_INTERVALS = Difference().intervals


@dataclass(frozen=True, eq=False)
class Trace:
    """One run, a row per cycle.

    Attributes:
        times: (T,) [s].
        tips, reference_tips, estimated_tips: (T, 3) true, wanted, estimated [m], base frame.
        compliance: (T,) estimated bending compliance [rad/(N m m)].
        true_compliance: of the plant [rad/(N m m)].
        commands: (T, m) [Pa].
        tick_times: (T,) of the controller [s]; empty where they were not measured.
        repairs: of the filter.
    """

    times: np.ndarray
    tips: np.ndarray
    reference_tips: np.ndarray
    estimated_tips: np.ndarray
    compliance: np.ndarray
    true_compliance: float
    commands: np.ndarray
    tick_times: np.ndarray
    repairs: int = 0

    @property
    def error(self) -> np.ndarray:
        """(T,) distance of the true tip from the reference [m]."""
        return np.linalg.norm(self.tips - self.reference_tips, axis=1)


def sampled_reference(
    robot: Robot,
    settings: ReferenceSettings,
    period: float = PERIOD,
    intervals: int = MODEL_INTERVALS,
) -> SampledReference:
    """The reference that a rod as fine as the plant makes, its states at the model's nodes."""
    fine = RodPrediction(
        CosseratRod(robot, REFERENCE_INTERVALS), substeps=3, single_precision=False
    )
    return at_nodes(settings.source(fine, period), intervals)


def controller_parameters(name: str, case: Case | None = None) -> Parameters:
    """What a shipped predictive controller is told, for the case."""
    told: Parameters = {"controller": name, "intervals": MODEL_INTERVALS}
    if case is not None:
        told |= {
            "intervals": case.model_intervals,
            "horizon": min(round(HORIZON * case.rate_hz), LONGEST_HORIZON),
        }
        told |= {} if case.learns_lag else {"estimate_lag": False}
    return told


def controller_settings(name: str, seed: int, case: Case) -> ControllerBlockSettings:
    """Those of a shipped predictive controller, for the case."""
    told = controller_parameters(name, case) | {"rate_hz": case.rate_hz, "seed": seed}
    return ControllerBlock.settings_of(told)


def estimated_parameters(case: Case) -> tuple[str, ...]:
    """What the filter estimates beside the state."""
    return (EstimatorSettings().parameters or ()) if case.adaptive else ()


def run_loop(
    robot: Robot,
    case: Case,
    source: SampledReference,
    controller: str,
    seed: int,
    clock: Callable[[], float] | None = None,
    progress: Callable[[int], None] = lambda cycles: None,
    koopman: KoopmanDesign | None = None,
    parameters: Parameters | None = None,
    filter_parameters: Parameters | None = None,
    filter_settings: EstimatorSettings | None = None,
    observe: Observer = lambda name, output: None,
    bag: Path | None = None,
) -> Trace:
    """One run from the vented rod: what is decided in a cycle acts from the next one on, or later.

    Args:
        robot: as filter and controller know it.
        case: what is run.
        source: what is followed.
        controller: one of CONTROLLERS.
        seed: of sensors and controller.
        clock: that the controller's ticks are measured with [s]; None: they are not.
        progress: told of every cycle.
        koopman: what the rival is made of.
        parameters: of the controller's block; None: the shipped ones, for the case.
        filter_parameters: of the estimator's block, for example its model.
        filter_settings: its estimated parameters are the case's; None: the shipped ones.
        observe: told of everything that is sent.
        bag: to be written.

    Raises:
        ArithmeticError, ValueError: the plant diverged, or the filter did.
        UserError: a parameter, the controller or the bag cannot be used.
    """
    cycles = round(case.duration / case.period)
    shared = common(robot, case.rate_hz, seed)
    plant = DifferentPlant(robot, case.difference, seed)
    numbers = (filter_settings or EstimatorSettings()).model_copy(
        update={"parameters": estimated_parameters(case)}
    )
    intervals: Parameters = {"intervals": case.model_intervals}
    filter_block = estimator(robot, shared | intervals | (filter_parameters or {}), numbers)
    told = controller_parameters(controller, case) if parameters is None else parameters
    control = _controller(robot, case, controller, shared | {"model": "rod"} | told, koopman)
    blocks = {
        SIMULATOR: simulator(robot, plant, cycles, case.rate_hz, seed),
        ESTIMATOR: filter_block,
        REFERENCE: _reference(robot, case, source, control, shared),
        node_of(controller): control,
    }
    log = Log(*_KEPT)

    def told_of(name: str, output: Output) -> None:
        log(name, output)
        observe(name, output)

    executor = run_blocks(blocks, told_of, progress, clock, bag)
    estimates = log.values("estimate/rod")
    return Trace(
        times=np.arange(cycles) * case.period,
        tips=np.array([pose.position for pose in log.values("simulation/truth/tip/pose")]),
        reference_tips=np.array([rows.tip_positions[0] for rows in log.values("reference/rod")]),
        estimated_tips=tips_of(filter_block.model, estimates),
        compliance=np.array([value.parameters["bending_compliance"] for value in estimates]),
        true_compliance=plant.simulated.rod.robot.bending_compliance,
        commands=np.array(log.values("pressure/command")[:cycles]),  # the last one only vents
        tick_times=np.array(executor.tick_times[node_of(controller)]),
        repairs=filter_block.estimator.repairs,
    )


def node_of(controller: str) -> str:
    """Name of the node of one of CONTROLLERS."""
    return controller if controller == RIVAL else registry.entry("controller", controller).node


def tips_of(model: RodModel, estimates: Sequence[StateEstimate]) -> np.ndarray:
    """(T, 3) tips of estimated states [m], base frame."""
    parameters = [[each.parameters[name] for name in model.parameter_names] for each in estimates]
    states = np.array([each.state for each in estimates])
    return model.tip_poses(states, np.array(parameters))[:, :, 3]


def _controller(
    robot: Robot, case: Case, name: str, told: Parameters, koopman: KoopmanDesign | None
) -> ControllerBlock:
    """All get the same estimate; the rival takes its tip alone, less noisy than the measured."""
    if case.difference.latency:
        late = min(1 + case.difference.latency, MAXIMUM_DELAY)
        told = told | {"command_age": late * case.period}
    if name != RIVAL:
        return ControllerBlock(robot, ControllerBlock.settings_of(told))
    assert koopman is not None
    told = {
        key: value for key, value in told.items() if key in ControllerBlockSettings.model_fields
    }
    settings = build_settings(ControllerBlockSettings, told | {"controller": _RIVAL_PLACE})
    return ControllerBlock(robot, settings, partial(KoopmanLqr, design=koopman))


def _reference(
    robot: Robot, case: Case, source: SampledReference, control: ControllerBlock, shared: Parameters
) -> ReferenceBlock:
    """As far ahead as the controller looks."""
    told = shared | {
        "model": "rod",
        "reference": case.reference.kind,
        "duration": case.duration,
        "horizon": max(control.controller.rows - 1 - MAXIMUM_DELAY, 1),
        "intervals": case.model_intervals,
    }
    return ReferenceBlock(robot, build_settings(ReferenceBlockSettings, told), source)


_KEPT = ("simulation/truth/tip/pose", "reference/rod", "estimate/rod", "pressure/command")
_RIVAL_PLACE = "softcr_control.koopman_lqr:KoopmanLqr"
