"""Plant, filter and controller in the closed loop of Licher et al. 2025, Sec. V-B.

References are motions of the nominal rod, as fine as the plant, caused by pressures inside the box
(35 +- 20 kPa unless said otherwise), so that a plant a few per cent stiffer can follow them.
"""

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from softcr_control.controller import ControllerBlock, ControllerBlockSettings
from softcr_control.controller_file import named_settings
from softcr_control.predictive.horizon import MAXIMUM_DELAY
from softcr_control.predictive.learned_motion import LearnedMotion
from softcr_control.reference.block import ReferenceBlock, ReferenceBlockSettings
from softcr_control.reference.references import SampledReference, at_nodes
from softcr_control.reference.settings import ReferenceSettings
from softcr_estimation import ModelEstimatorSettings
from softcr_models import CosseratRod, Robot
from softcr_models.prediction import RodPrediction
from softcr_models.rod_model.rows import interval_counts, restricted, with_matching_nodes
from softcr_runtime.blocks.block import Output
from softcr_runtime.blocks.system import Parameters
from softcr_runtime.blocks.values import TipEstimate
from softcr_runtime.blocks.virtual import Observer
from softcr_runtime.blocks.virtual_run import Log
from softcr_runtime.settings import registry
from softcr_runtime.settings.node_settings import build_settings
from softcr_simulation.errors.plant_errors import MODEL_ERRORS, PlantErrors
from softcr_simulation.plant import SimulatedPlant
from softcr_simulation.plants import RodPlant
from softcr_simulation.structural_plant import StructuralPlant
from softcr_studies.frame.cell import Result
from softcr_studies.koopman.lqr import KoopmanDesign, KoopmanLqr
from softcr_studies.loops.closed_loop import (
    ESTIMATOR,
    REFERENCE,
    SIMULATOR,
    common,
    estimator,
    followed,
    simulator,
)

RATE_HZ = 70.0
PERIOD = 1 / RATE_HZ
SETTLED = 2.0  # from here on a setpoint counts, and a motion that fades in [s]
MODEL_INTERVALS = 5
LONGEST_HORIZON = 40  # [ticks]: more do not fit into a tick at 500 Hz
REFERENCE_INTERVALS = 20  # of the usual plant, and of the rod that makes references
SHIPPED_FILTER = ModelEstimatorSettings(initial_state_deviation=0.5)
"""The shipped filter, as uncertain of every rod's first state as of one with a single segment."""

BASELINE = "koopman"
"""The controller that is made of a KoopmanDesign; the others are names of the registry."""


USUAL = PlantErrors.noiseless(bending_factor=0.95, tip_mass_factor=1.1, tip_noise=2e-4)
"""The usual plant: errors that the filter estimates, and noise of the tip alone."""


def with_errors(errors: PlantErrors = USUAL, **others: Any) -> PlantErrors:
    """Plant errors with others by name in their place."""
    return PlantErrors(**(errors.changed() | others))


@dataclass(frozen=True)
class Case:
    """One run: what the rod should do, and how the plant differs from the model.

    Attributes:
        name: of the row.
        reference: what the rod should do.
        duration: of a run [s].
        errors: of the plant.
        plant_intervals: of its rod.
        beam: whether the plant is a StructuralPlant, as it must be with errors that only one has.
        latency: ticks by which commands act later than the usual one, which controllers know.
        adaptive: whether the filter estimates parameters; if not, the model keeps the file's.
        learns_lag: whether the controller estimates the pressure lag.
        rate_hz: of the loop [Hz].
        model_intervals: of filter's and controller's rod.
        from_plant: whether the plant, not the nominal rod, makes the reference.
        learned_on: whose plant the baseline has learned from; None: that of the case.
    """

    name: str
    reference: ReferenceSettings
    duration: float = 12.0
    errors: PlantErrors = field(default=USUAL)
    plant_intervals: int = REFERENCE_INTERVALS
    beam: bool = False
    latency: int = 0
    adaptive: bool = True
    learns_lag: bool = True
    rate_hz: float = RATE_HZ
    model_intervals: int = MODEL_INTERVALS
    from_plant: bool = False
    learned_on: "Case | None" = None

    @property
    def period(self) -> float:
        """Of the loop [s]."""
        return 1.0 / self.rate_hz

    @property
    def teacher(self) -> "Case":
        """The case whose plant the baseline has learned from."""
        return self if self.learned_on is None else self.learned_on


FAST = Case("trajectory to 1.5 Hz", ReferenceSettings(kind="trajectory"))
"""Experiment 4a of the paper: sines up to 1.5 Hz."""

SETPOINT = Case("setpoint (45, 25, 15) kPa", ReferenceSettings(kind="setpoint"), 6.0)
"""Experiment 4b: a setpoint far from the vented rod."""

SLOW = ReferenceSettings(kind="trajectory", frequencies=(0.05, 0.12, 0.2), fade_in=2.0)
SLOW_TRAJECTORY = Case("trajectory to 0.2 Hz", SLOW, 30.0)
"""Experiment 5a: a trajectory with oscillations up to 0.2 Hz."""


def circle(frequency: float) -> Case:
    """At least two turns after it has settled, and 6 s: Experiment 5c."""
    reference = ReferenceSettings(kind="circle", frequency=frequency)
    return Case(f"circle {frequency:g} Hz", reference, max(6.0, SETTLED + 2 / frequency))


def reference_of(robot: Robot, case: Case) -> SampledReference:
    """What a case's rod shall do, a second longer than the run."""
    settings = case.reference.model_copy(update={"duration": case.duration + 1.0})
    maker = robot
    if case.from_plant:
        maker = SimulatedPlant(robot, case.errors, 0, case.plant_intervals).rod.robot
    return sampled_reference(maker, settings, case.period, case.model_intervals)


def sampled_reference(
    robot: Robot,
    settings: ReferenceSettings,
    period: float = PERIOD,
    intervals: int = MODEL_INTERVALS,
) -> SampledReference:
    """The reference that a rod as fine as the plant makes, its states at the model's nodes."""
    coarse = CosseratRod(robot, intervals)
    fine = CosseratRod(with_matching_nodes(robot, intervals), REFERENCE_INTERVALS)
    model = RodPrediction(fine, substeps=3, single_precision=False)
    return at_nodes(settings.source(model, period), fine, coarse)


def controller_parameters(name: str, case: Case, file: str = "") -> Parameters:
    """What a shipped controller is told, for the case: one thread, as cells have, and a horizon of
    as many seconds as its file says at the usual rate; a learned policy has neither,
    the baseline no horizon."""
    told: Parameters = {"controller": name, "intervals": case.model_intervals}
    if name.startswith("policy:"):
        return told
    told["threads"] = 1
    if case.rate_hz != RATE_HZ and name != BASELINE:
        ahead = named_settings(name, file).horizon * case.rate_hz / RATE_HZ
        told["horizon"] = min(round(ahead), LONGEST_HORIZON)
    return told if case.learns_lag else told | {"estimate_lag": False}


def run_loop(
    robot: Robot,
    case: Case,
    source: SampledReference,
    controller: str,
    seeds: tuple[int, int],
    *,
    design: KoopmanDesign | None = None,
    parameters: Parameters | None = None,
    filter_parameters: Parameters | None = None,
    filter_settings: ModelEstimatorSettings = SHIPPED_FILTER,
    learned: LearnedMotion | None = None,
    known: Robot | None = None,
    observe: Observer = lambda name, output: None,
    bag: Path | None = None,
    clock: Callable[[], float] = time.perf_counter,
) -> Result:
    """One run from the vented rod: what is decided in a cycle acts from the next one on, or later.

    Args:
        robot: as filter and controller know it.
        case: what is run.
        source: what is followed.
        controller: BASELINE, a predictive controller of the registry, or a policy.
        seeds: of the plant's sensors and of the controller.
        design: what the baseline is made of.
        parameters: of the controller's block that differ from the shipped ones for the case.
        filter_parameters: of the estimator's block, for example its model.
        filter_settings: numbers of the filter, which estimates nothing where the case is not
            adaptive.
        learned: what repetitions of the case's motion have taught.
        known: the robot as the controller knows it; None: as the filter does.
        observe: told of everything that is sent.
        bag: to be written.
        clock: by which ticks are timed [s].

    Returns:
        As `closed_loop.followed`, and: state_error (T,) root mean square of the true state's
        distance from the wanted one, at the nodes that plant and model share, in the model's state
        scales [-]; compliance (T,) estimated, true_compliance: bending compliance [rad/(N m m)];
        tip_sigmas, compliance_sigmas (T,) how far truth is from the estimate, in the filter's own
        standard deviations: of the tip the square root of its normalised error squared, which is 3
        or less for 97.1 % of sound estimates, of the compliance its distance [-]; warned (T,)
        whether the filter told a warning; repairs, fallbacks: of the filter.

    Raises:
        ArithmeticError, ValueError: the plant diverged, or the filter did.
        UserError: a parameter, the controller or the bag cannot be used.
    """
    blocks = loop_blocks(
        robot, case, source, controller, seeds, design=design, parameters=parameters,
        filter_parameters=filter_parameters, filter_settings=filter_settings, learned=learned,
        known=known,
    )  # fmt: skip
    plant, filter_block = blocks[SIMULATOR].plant, blocks[ESTIMATOR]
    cycles, both = round(case.duration / case.period), _common_intervals(case)
    log = Log(*_KEPT)
    warned: list[bool] = []

    def told_of(name: str, output: Output) -> None:
        log(name, output)
        if output.topic == "estimate/tip/pose":
            warned.append(bool(filter_block.estimator.warnings()))
        observe(name, output)

    found = followed(blocks, told_of, bag, clock)
    rods, rows, estimates, estimated = (log.values(topic) for topic in _KEPT)
    common_rod, model_rod = CosseratRod(robot, both), CosseratRod(robot, case.model_intervals)
    true, aimed = (
        restricted(np.array(states), interval_counts(of), interval_counts(common_rod))
        for states, of in (
            ([rod.state for rod in rods], plant.simulated.rod),
            ([each.states[0] for each in rows], model_rod),
        )
    )
    compliance, deviation = (
        np.array([each["bending_compliance"] for each in values])
        for values in (
            [each.parameters for each in estimates], [each.parameters_std for each in estimates]
        )
    )  # fmt: skip
    true_compliance = plant.simulated.rod.robot.bending_compliance
    astray = (true - aimed) / RodPrediction(common_rod).state_scale
    return {
        **found,
        "times": np.arange(cycles) * case.period,
        "state_error": np.sqrt(np.mean(astray**2, axis=1)),
        "compliance": compliance,
        "true_compliance": true_compliance,
        "tip_sigmas": tip_sigmas(found["tips"] - found["estimated"], estimated),
        "compliance_sigmas": np.abs(compliance - true_compliance) / np.maximum(deviation, 1e-12),
        "warned": np.array(warned),
        "fallbacks": filter_block.estimator.describe()["fallbacks"],
        "repairs": filter_block.estimator.repairs,
    }


def loop_blocks(
    robot: Robot,
    case: Case,
    source: SampledReference,
    controller: str,
    seeds: tuple[int, int],
    *,
    plant: RodPlant | None = None,
    design: KoopmanDesign | None = None,
    parameters: Parameters | None = None,
    filter_parameters: Parameters | None = None,
    filter_settings: ModelEstimatorSettings = SHIPPED_FILTER,
    learned: LearnedMotion | None = None,
    known: Robot | None = None,
) -> dict[str, Any]:
    """Simulator, estimator, reference and controller, by the names of their nodes, in this order.

    Arguments as of `run_loop`, and `plant`: another one than the case's.
    """
    cycles, (plant_seed, controller_seed) = round(case.duration / case.period), seeds
    robot = with_matching_nodes(robot, _common_intervals(case))
    shared = common(robot, case.rate_hz, controller_seed)
    plant = plant or plant_of(robot, case, plant_seed)
    numbers = filter_settings
    if not case.adaptive:
        numbers = numbers.model_copy(update={"parameters": ()})
    told: Parameters = shared | {"intervals": case.model_intervals} | (filter_parameters or {})
    filter_block = estimator(robot, told | numbers.model_dump(exclude_unset=True))
    own = parameters or {}
    usual = controller_parameters(controller, case, str(own.get("controller_file", "")))
    told = shared | {"model": "rod"} | usual | own
    control = _controller(known or robot, case, controller, told, design)
    node = BASELINE if design else registry.entry("controller", controller).node
    return {
        SIMULATOR: simulator(robot, plant, cycles, case.rate_hz, plant_seed),
        ESTIMATOR: filter_block,
        REFERENCE: _reference(robot, case, source, control, shared, learned),
        node: control,
    }


def _common_intervals(case: Case) -> int:
    """Of a rod whose nodes plant and model both have."""
    return math.gcd(case.plant_intervals, case.model_intervals)


def tip_sigmas(apart: np.ndarray, estimated: Sequence[TipEstimate]) -> np.ndarray:
    """(T,) square roots of normalised errors squared, of distances (T, 3) [m] from estimated tips:
    see `run_loop`."""
    covariances = np.array([each.position_covariance for each in estimated])
    normalised = np.linalg.solve(covariances, apart[:, :, None])[:, :, 0]
    sigmas: np.ndarray = np.sqrt(np.maximum((apart * normalised).sum(axis=1), 0.0))
    return sigmas


def plant_of(robot: Robot, case: Case, seed: int) -> RodPlant:
    """The plant of a case, its sensors seeded; `robot` is as filter and controller know it."""
    beam = case.beam or bool(case.errors.changed().keys() - MODEL_ERRORS)
    kind = StructuralPlant if beam else SimulatedPlant
    return RodPlant.of(robot, kind(robot, case.errors, seed, case.plant_intervals))


def _controller(
    robot: Robot, case: Case, name: str, told: Parameters, design: KoopmanDesign | None
) -> ControllerBlock:
    """All get the same estimate; the baseline takes its tip alone, less noisy than the measured."""
    told = told | {"least_delay": 1 + case.latency}
    if name != BASELINE:
        return ControllerBlock(robot, ControllerBlock.settings_of(told))
    assert design is not None
    told = {
        key: value for key, value in told.items() if key in ControllerBlockSettings.model_fields
    }
    settings = build_settings(ControllerBlockSettings, told | {"controller": _BASELINE_PLACE})
    return ControllerBlock(robot, settings, partial(KoopmanLqr, design=design))


def _reference(
    robot: Robot,
    case: Case,
    source: SampledReference,
    control: ControllerBlock,
    shared: Parameters,
    learned: LearnedMotion | None,
) -> ReferenceBlock:
    """As far ahead as the controller looks."""
    told = shared | {
        "model": "rod",
        "reference": case.reference.kind,
        "duration": case.duration,
        "horizon": max(control.controller.rows - 1 - MAXIMUM_DELAY, 1),
        "intervals": case.model_intervals,
    }
    return ReferenceBlock(robot, build_settings(ReferenceBlockSettings, told), source, learned)


_KEPT = ("simulation/truth/rod", "reference/rod", "estimate/rod", "estimate/tip/pose")
_BASELINE_PLACE = "softcr_studies.koopman.lqr:KoopmanLqr"
