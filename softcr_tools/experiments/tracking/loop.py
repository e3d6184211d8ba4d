"""Plant, filter and controller in one plain loop: what the nodes do, waiting for no clock."""

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from softcr_control.control_loop import (
    ControllerSettings,
    NempcControllerSettings,
    RodMpcControllerSettings,
    made_controller,
)
from softcr_control.horizon import MAXIMUM_DELAY
from softcr_control.koopman_lqr import KoopmanDesign, KoopmanLqr
from softcr_control.observation import ControlContext, Observation, PredictiveController
from softcr_control.reference_settings import ReferenceSettings
from softcr_control.references import Reference, SampledReference, at_nodes
from softcr_estimation import Estimate, EstimatorSettings, RodEstimator
from softcr_hardware.plant import Measurement, SensorModel, SimulatedPlant
from softcr_models import CosseratRod, Robot
from softcr_models.limits import limit_command
from softcr_models.prediction import RodPrediction
from softcr_models.pressure import PressureLag
from softcr_models.rod_model import RodModel
from softcr_runtime.settings import build_settings
from softcr_tools.benchmarks.timing import cores, cores_available
from softcr_tools.experiments.tracking.cases import (
    RATE_HZ,
    RIVAL,
    Case,
    Difference,
)

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
        tick_times: (T,) of the controller [s].
    """

    times: np.ndarray
    tips: np.ndarray
    reference_tips: np.ndarray
    estimated_tips: np.ndarray
    compliance: np.ndarray
    true_compliance: float
    commands: np.ndarray
    tick_times: np.ndarray

    @property
    def error(self) -> np.ndarray:
        """(T,) distance of the true tip from the reference [m]."""
        return np.linalg.norm(self.tips - self.reference_tips, axis=1)


@dataclass(frozen=True, eq=False)
class Cycle:
    """What passed in one cycle, for who keeps more than a Trace.

    Attributes:
        measured: with pressures as they were read, and without a tip pose that was lost.
        estimate: of the filter.
        reference: over the controller's horizon; None where nothing is followed.
        command: (m,) sent [Pa]; None where nothing is commanded by a controller.
    """

    measured: Measurement
    estimate: Estimate
    reference: Reference | None
    command: np.ndarray | None


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


def plant_of(robot: Robot, difference: Difference, seed: int) -> SimulatedPlant:
    """The plant that differs from the robot file, its sensors seeded."""
    first, *others = robot.actuators
    lever = first.model_copy(update={"lever_arm": difference.lever_factor * first.lever_arm})
    lag = robot.pressure_lag
    if difference.lag_pole is not None:
        lag = PressureLag(lag.gain / lag.pole * difference.lag_pole, difference.lag_pole)
    sensors = SensorModel(
        tip_noise=difference.tip_noise, pressure_noise=difference.pressure_noise, seed=seed
    )
    different = robot.replace(actuators=(lever, *others), pressure_lag=lag)
    return SimulatedPlant(different, difference.mismatch, sensors, difference.intervals)


def controller_settings(name: str, seed: int, case: Case | None = None) -> ControllerSettings:
    """Those of the shipped controller "nempc" or "rod_mpc", for the case."""
    values: dict[str, object] = {"seed": seed, "intervals": MODEL_INTERVALS}
    if case is not None:
        values |= {
            "intervals": case.model_intervals,
            "rate_hz": case.rate_hz,
            "horizon": min(round(HORIZON * case.rate_hz), LONGEST_HORIZON),
            "estimate_lag": case.learns_lag,
        }
    if name == "rod_mpc":
        return build_settings(RodMpcControllerSettings, values)
    return build_settings(NempcControllerSettings, values)


def estimated_parameters(case: Case) -> tuple[str, ...]:
    """What the filter estimates beside the state."""
    return EstimatorSettings().parameters if case.adaptive else ()


def commanded(difference: Difference, sent: np.ndarray) -> np.ndarray:
    """(m,) true pressures [Pa] that valves aim at: they bring their sensors' reading to `sent`."""
    return (sent - np.array(difference.pressure_bias)) / difference.pressure_gain


def controller_of(
    robot: Robot,
    name: str,
    seed: int,
    case: Case,
    koopman: KoopmanDesign | None,
    settings: ControllerSettings | None = None,
) -> tuple[PredictiveController | KoopmanLqr, int]:
    """The controller of that name, and how many threads it takes.

    All get the same estimate; the rival takes its tip alone, which is less noisy than the measured.
    """
    if name == RIVAL:
        assert koopman is not None
        model = RodPrediction(CosseratRod(robot, case.model_intervals))
        return KoopmanLqr(ControlContext(robot, model, case.period, seed), koopman), 1
    if settings is None:
        settings = controller_settings(name, seed, case)
    return made_controller(robot, settings)[1], settings.threads


def run_loop(
    robot: Robot,
    case: Case,
    source: SampledReference,
    controller: str,
    seed: int,
    clock: Callable[[], float],
    progress: Callable[[int], None] = lambda cycles: None,
    koopman: KoopmanDesign | None = None,
    settings: ControllerSettings | None = None,
    filter_model: RodModel | None = None,
    filter_settings: EstimatorSettings | None = None,
    observe: Callable[[Cycle], None] = lambda cycle: None,
) -> Trace:
    """One run from the vented rod: what is decided in a cycle acts from the next one on, or later.

    Args:
        koopman: what the rival is made of.
        settings: of the controller; None: the shipped ones.
        filter_model: what the filter predicts with; None: the exact rod.
        filter_settings: its estimated parameters are the case's; None: the shipped ones.
        observe: told of every cycle.
    """
    difference, period = case.difference, case.period
    plant = plant_of(robot, difference, seed)
    control, threads = controller_of(robot, controller, seed, case, koopman, settings)
    model = filter_model or RodPrediction(
        CosseratRod(robot, case.model_intervals), single_precision=False
    )
    filter_settings = filter_settings or EstimatorSettings()
    adapted = filter_settings.model_copy(
        update={"parameters": estimated_parameters(case), "period": period}
    )
    estimator = RodEstimator(model, adapted)
    limits = robot.pressure_limits
    bias, gain = np.array(difference.pressure_bias), difference.pressure_gain
    poses_lost = np.random.default_rng(seed).random(round(case.duration / period))
    sent = np.zeros(len(robot.chambers))
    on_their_way = deque([sent] * (1 + difference.latency), maxlen=1 + difference.latency)
    rows = []
    for cycle, lost in enumerate(poses_lost < difference.dropout):
        if cycle:
            plant.advance(period)
        plant.follow(commanded(difference, on_their_way[0]))
        measured = plant.measure(round(1e9 * (cycle + 1) * period))
        read = gain * measured.pressures + bias
        measured = replace(measured, pressures=read, tip_pose=None if lost else measured.tip_pose)
        stamp = 1e-9 * measured.stamp
        if cycle == 0:
            estimate = estimator.start(read, stamp)
        else:
            tip = None if measured.tip_pose is None else measured.tip_pose[:3, 3]
            estimate = estimator.update(read, tip, stamp)
        reference = source.window(cycle * period, control.rows)
        seen = Observation(
            stamp=cycle * period,
            state=estimate.state,
            parameters=estimate.parameters,
            reference=reference,
            inputs=read,
            model=model,
            delay=min(1 + difference.latency, MAXIMUM_DELAY),
        )
        with cores(min(threads, cores_available())):
            begin = clock()
            command = control.command(seen)
            tick = clock() - begin
        sent, _ = limit_command(
            command.pressures, sent, limits.minimum, limits.maximum, limits.maximum_rate, period
        )
        on_their_way.append(sent)
        rows.append(
            (
                cycle * period,
                measured.true_tip_pose[:3, 3],
                reference.tip_positions[0],
                estimate.tip_position,
                estimate.bending_compliance,
                sent,
                tick,
            )
        )
        observe(Cycle(measured, estimate, reference, sent))
        progress(1)
    times, tips, wanted, estimated, compliance, commands, ticks = map(
        np.array, zip(*rows, strict=True)
    )
    true = plant.rod.robot.bending_compliance
    return Trace(times, tips, wanted, estimated, compliance, true, commands, ticks)
