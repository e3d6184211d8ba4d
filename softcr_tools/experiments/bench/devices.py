"""The bench's devices on virtual time: rod, valves behind their driver and node, cameras."""

import math
from collections.abc import Callable

import numpy as np

from softcr_estimation.sample_pairing import POSES, PRESSURES
from softcr_hardware.actuator import EmulatedActuator
from softcr_hardware.ethercat.driver import ValveDriver
from softcr_hardware.ethercat.process_data import ProcessData
from softcr_hardware.ethercat.terminals import load_station
from softcr_hardware.safety import Decision
from softcr_hardware.safety_settings import SafetySettings
from softcr_models import Robot
from softcr_runtime.sample import Sample
from softcr_tools.experiments.bench.memory_bus import MemoryBus
from softcr_tools.experiments.bench.setups import Bench
from softcr_tools.experiments.bench.virtual_time import VirtualTime
from softcr_tools.experiments.tracking.cases import Difference
from softcr_tools.experiments.tracking.loop import PERIOD, plant_of


class Devices:
    """Lives by the events it asks `time` for, and delivers letters as the nodes would.

    Their phases to each other and to the ticks are random, as on a bench. The valves' node asks for
    the valves to be enabled until they are.
    """

    def __init__(
        self,
        robot: Robot,
        bench: Bench,
        seed: int,
        time: VirtualTime,
        deliver: Callable[[Sample], None],
    ) -> None:
        """Switched on at 0, vented.

        Args:
            robot: which the plant differs from, as in all experiments.
            bench: its figures.
            seed: of noise, phases, delays and losses.
            time: that passes.
            deliver: told of published pressures and poses.
        """
        self._bench, self._time, self._deliver = bench, time, deliver
        self._random = np.random.default_rng(seed)
        self._plant = plant_of(robot, Difference(), seed)
        station = load_station(robot.name, robot.chamber_names)
        self._data = ProcessData(station)
        self._actuator = EmulatedActuator(station, self._plant)
        self._bus = MemoryBus(
            station, self._data, self._actuator, lambda: time.now, bench.quantised
        )
        cycle = 1 / bench.cycle_rate
        self._driver = ValveDriver(
            station, robot.pressure_limits, self._data, self._bus,
            SafetySettings(require_operator=False), command_period=PERIOD, period=cycle,
        )  # fmt: skip
        self._driver.open()
        self._commands: list[tuple[int, np.ndarray, float]] = []  # stamp, pressures, received
        self._last_received = 0.0
        self._often(bench.cycle_rate, self._cycle)
        self._often(bench.pressure_rate, self._look)
        if not bench.poses_at_ticks:
            self._often(bench.camera_rate, self._expose)

    @property
    def decision(self) -> Decision:
        """Of the valves' safety."""
        return self._driver.report.decision

    @property
    def sent(self) -> np.ndarray:
        """(m,) setpoint of the valves [Pa]."""
        return self._driver.report.sent

    def tick(self) -> np.ndarray:
        """What is to happen at a tick, now; returns the true tip (3,) [m]."""
        self._live()
        if self._bench.pressures_at_ticks:
            self._publish_pressures(self._time.now, self._data.pressures(self._bus.read().volts))
        if self._bench.poses_at_ticks:
            self._expose()
        return np.asarray(self._plant.rod.tip_pose(self._plant.state)[:3, 3])

    def send(self, command: np.ndarray, stamp: int, moment: float) -> None:
        """A command (m,) [Pa] that answers `stamp` [ns] leaves the controller at `moment` [s]."""
        bench = self._bench
        if self._random.random() < bench.answers_lost:
            return
        delay = self._random.exponential(bench.jitter) if bench.jitter else 0.0
        # none overtakes another
        received = self._last_received = max(moment + delay, self._last_received)
        self._time.at(received, lambda: self._commands.append((stamp, command, received)))

    # --- events -------------------------------------------------------------------------------

    def _often(self, rate: float, event: Callable[[], None]) -> None:
        self._time.every(1 / rate, self._random.uniform(0.0, 1 / rate), event)

    def _live(self) -> None:
        """Chambers and rod until now."""
        self._bus.read()
        self._actuator.move_rod(self._time.now)

    def _cycle(self) -> None:
        self._driver.tick(self._time.now)

    def _look(self) -> None:
        """A cycle of the valves' node: commands in, pressures out."""
        bench = self._bench
        age = bench.delay * PERIOD + bench.valves_late if bench.delay else -math.inf
        for stamp, command, received in self._commands:
            stamped = 1e-9 * stamp
            self._driver.hear("command", received, command, received - stamped, stamped + age)
        self._commands.clear()
        if not self.decision.enabled:
            self._driver.enable()
        report = self._driver.report
        if not bench.pressures_at_ticks and np.isfinite(report.pressures).all():
            self._publish_pressures(report.time, report.pressures)

    def _expose(self) -> None:
        self._live()
        pose = self._actuator.see(self._time.now).tip_pose
        if pose is None or self._random.random() < self._bench.frames_lost:
            return
        stamp = round(1e9 * (self._time.now + self._bench.poses_late))

        def arrive() -> None:
            self._driver.hear("mocap", 1e-9 * stamp)
            self._deliver(Sample(POSES, stamp, pose, self._time.now))

        self._time.at(self._time.now + self._bench.camera_latency, arrive)

    def _publish_pressures(self, moment: float, pressures: np.ndarray) -> None:
        stamp = round(1e9 * (moment - self._bench.pressures_early))
        self._deliver(Sample(PRESSURES, stamp, pressures, self._time.now))
