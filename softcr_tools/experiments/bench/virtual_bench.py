"""The closed loop of `softcr up hardware` on virtual time: its classes, no ROS, no clock.

The estimator waits for letters as its node does; while it waits, virtual time passes and the
devices live. The reference begins to move at the first tick after the valves have been enabled.
"""

import math
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from softcr_control.control_loop import (
    ControlLoop,
    NempcControllerSettings,
    RodMpcControllerSettings,
)
from softcr_control.horizon import MAXIMUM_DELAY
from softcr_control.references import SampledReference
from softcr_estimation import Estimate
from softcr_estimation.estimation_loop import EstimationLoop, EstimatorNodeSettings
from softcr_models import Robot
from softcr_models.errors import UserError
from softcr_runtime.rod_clouds import ReferenceCloud, RodCloud
from softcr_runtime.sample import Sample
from softcr_runtime.settings import build_settings
from softcr_runtime.tick_grid import TickGrid
from softcr_tools.experiments.bench.devices import Devices
from softcr_tools.experiments.bench.setups import POPULATION, Bench
from softcr_tools.experiments.bench.virtual_time import VirtualTime
from softcr_tools.experiments.tracking.loop import PERIOD
from softcr_tools.hardware_system import HardwareOptions, hardware_system

_LONGEST_STANDING = 5.0  # [s] the valves may take to be enabled
_BEFORE = -1e3  # [s] when all rows of the horizon are the reference's first
_ROWS = HardwareOptions.model_fields["horizon"].default + 1 + MAXIMUM_DELAY
_NOWHERE = np.empty((0, 3))  # points that no controller looks at


@dataclass(frozen=True, eq=False)
class BenchTrace:
    """One run from the motion's beginning on, a row per tick.

    Attributes:
        tips, reference_tips: (T, 3) true and wanted [m], base frame.
        sent: (T, m) setpoint of the valves [Pa].
        predicted_only: estimates whose pose did not come in time.
        enabled: whether the valves still were at the end.
    """

    tips: np.ndarray
    reference_tips: np.ndarray
    sent: np.ndarray
    predicted_only: int
    enabled: bool

    @property
    def error(self) -> np.ndarray:
        """(T,) distance of the true tip from the reference [m]."""
        return np.linalg.norm(self.tips - self.reference_tips, axis=1)


class VirtualBench:
    """Devices, estimator and controller of one run."""

    def __init__(
        self,
        robot: Robot,
        bench: Bench,
        source: SampledReference,
        seed: int,
        progress: Callable[[int], None] = lambda ticks: None,
    ) -> None:
        """At rest, vented.

        Args:
            robot: as estimator and controller know it.
            bench: its figures.
            source: the motion.
            seed: of all that is random.
            progress: told of ticks since the motion began.
        """
        self._bench, self._source, self._progress = bench, source, progress
        self._estimation, self._control = _loops(robot, bench, seed)
        self._time = VirtualTime()
        self._inbox: deque[Sample] = deque()
        self._devices = Devices(robot, bench, seed, self._time, self._inbox.append)
        self._grid = TickGrid(PERIOD)
        self._stamp = 0  # of the last tick [ns]
        self._start: int | None = None  # of the motion [ns]
        self._kept: list[tuple[np.ndarray, np.ndarray, np.ndarray]] = []
        self._over = False

    def run(self, duration: float) -> BenchTrace:
        """Let the rod follow the reference for `duration` [s]; once.

        Raises:
            UserError: the valves were not enabled.
        """
        period, ticks = 1e-9 * self._grid.period, round(duration / PERIOD)
        self._time.every(period, period, lambda: self._tick(ticks))
        pairing = self._estimation.pairing(self._get, lambda: self._time.now, _refused)
        while (pressures := pairing.next_pressures()) is not None:
            pose = pairing.partner_of(pressures.stamp, self._estimation.patience)
            self._answer(pressures, None if pose is None else pose.value)
        decision = self._devices.decision
        if not self._kept:
            raise UserError(f"bench: valves not enabled: {', '.join(decision.blockers)}")
        tips, wanted, sent = map(np.array, zip(*self._kept, strict=True))
        return BenchTrace(tips, wanted, sent, self._estimation.predicted_only, decision.enabled)

    def _get(self, timeout: float | None) -> Sample | None:
        """The next letter, for which time passes; None when none comes within `timeout` [s]."""
        deadline = math.inf if timeout is None else self._time.now + timeout
        self._time.pass_until(deadline, lambda: bool(self._inbox) or self._over)
        return self._inbox.popleft() if self._inbox and not self._over else None

    def _tick(self, ticks: int) -> None:
        """What is true at a tick; the motion is over after so many."""
        self._stamp += self._grid.period
        tip = self._devices.tick()
        if self._start is None and self._devices.decision.enabled:
            self._start = self._stamp
        if self._start is None:
            self._over = self._time.now > _LONGEST_STANDING
            return
        wanted = self._source.window(self._since_start(self._stamp), 1).tip_positions[0]
        self._kept.append((tip, wanted, self._devices.sent.copy()))
        self._over = len(self._kept) == ticks
        self._progress(1)

    def _answer(self, pressures: Sample, tip_pose: np.ndarray | None) -> None:
        """What estimator and controller do about a tick; the command leaves when it is ready."""
        stamp = pressures.stamp
        estimate = self._estimation.tick(pressures.value, tip_pose, stamp)
        if estimate is None:
            return
        # the controller's node interpolates the same pressures to the same values
        command = self._control.answer(
            _rod_cloud(estimate, stamp), self._reference(stamp), pressures.value
        )
        age = self._time.now - 1e-9 * stamp + self._bench.computing
        self._control.answered(age)
        leaves = 1e-9 * stamp + max(age, self._control.age_to_send)
        self._devices.send(command, stamp, leaves)

    def _since_start(self, stamp: int) -> float:
        """[s] At a tick before it, nobody knows of the beginning."""
        if self._start is None or stamp < self._start:
            return _BEFORE
        return 1e-9 * (stamp - self._start)

    def _reference(self, stamp: int) -> ReferenceCloud:
        rows = self._source.window(self._since_start(stamp), _ROWS)
        return ReferenceCloud(stamp, rows.period, rows.states, rows.tip_positions, _NOWHERE)


def _loops(robot: Robot, bench: Bench, seed: int) -> tuple[EstimationLoop, ControlLoop]:
    """As `softcr up hardware` sets them, but for what the bench says."""
    chosen = {"controller": bench.controller, "population": POPULATION, "seed": seed}
    options = build_settings(HardwareOptions, chosen)
    system = hardware_system(options, Path())
    told = {node.name: dict(node.parameters) for node in system.nodes}
    # a controller of common samples plans over steps, and sends its answers at once
    sampling = "separate" if bench.ramped else "common"
    varied = {"command_age": bench.delay * PERIOD, "sampling": sampling}
    kind = RodMpcControllerSettings if bench.controller == "rod_mpc" else NempcControllerSettings
    estimator = build_settings(EstimatorNodeSettings, told["estimator"])
    controller = build_settings(kind, told[system.controller] | varied)
    return EstimationLoop(robot, estimator), ControlLoop(robot, controller)


def _refused(topic: str, reason: str) -> None:
    """None is: what is resampled never comes after its cycle."""


def _rod_cloud(estimate: Estimate, stamp: int) -> RodCloud:
    parameters, spread = dict(estimate.parameters), dict(estimate.parameters_std)
    return RodCloud(stamp, estimate.state, _NOWHERE, _NOWHERE, parameters, spread)
