"""The simulated robot as a node: commands in, sensor data out, on the hardware's topics."""

import sys
import threading
import time
from typing import Any

import numpy as np
from pydantic import Field

from softcr_hardware.arm_plant import ArmPlant
from softcr_hardware.plant import Mismatch, SensorModel, SimulatedPlant
from softcr_hardware.simulated_machines import SimulatedArm, SimulatedMachine, SimulatedRod
from softcr_models.errors import UserError
from softcr_models.robot import Robot
from softcr_models.rod.kernel import MAX_INTERVALS
from softcr_runtime.cycle_timer import CycleTimer
from softcr_runtime.sample import Sample
from softcr_runtime.messages import clock_to_message
from softcr_runtime.node import LoopNode
from softcr_runtime.process import run
from softcr_runtime.settings import NodeSettings


class SimulatorSettings(NodeSettings):
    """Plant, sensors and what happens when commands stop."""

    payload: float = Field(
        0.0, ge=0.0, le=10.0, description="at an arm's tip", json_schema_extra={"unit": "kg"}
    )
    intervals: int = Field(10, ge=2, le=MAX_INTERVALS, description="intervals of the plant's rod")
    bending_compliance_factor: float = Field(
        1.0, ge=0.2, le=5.0, description="bending compliance of the plant over the robot file's"
    )
    tip_mass_factor: float = Field(
        1.0, ge=0.0, le=5.0, description="tip mass of the plant over the robot file's"
    )
    damping_factor: float = Field(
        1.0, ge=0.1, le=10.0, description="relaxation times of the plant over the robot file's"
    )
    tip_noise: float = Field(
        2e-4, ge=0.0, le=0.05, description="of measured positions", json_schema_extra={"unit": "m"}
    )
    pressure_noise: float = Field(
        0.0, ge=0.0, le=1e4, description="of measured pressures", json_schema_extra={"unit": "Pa"}
    )
    force_noise: float = Field(
        0.02, ge=0.0, le=5.0, description="of the base force", json_schema_extra={"unit": "N"}
    )
    moment_noise: float = Field(
        5e-4, ge=0.0, le=1.0, description="of the base moment", json_schema_extra={"unit": "N m"}
    )
    mocap_latency: int = Field(
        0, ge=0, le=20, description="cycles by which a rod's tip pose comes late"
    )
    command_timeout: float = Field(
        0.1,
        ge=0.01,
        le=10.0,
        description="without a command for so long chambers vent, tendons hold (wall mode)",
        json_schema_extra={"unit": "s"},
    )
    lockstep_timeout: float = Field(
        2.0,
        ge=0.1,
        le=60.0,
        description="wall time to wait for a cycle's command before that (lock-step)",
        json_schema_extra={"unit": "s"},
    )
    duration: float = Field(
        0.0,
        ge=0.0,
        le=86400.0,
        description="simulated time after which the plant stands still; 0 for never",
        json_schema_extra={"unit": "s"},
    )


class Simulator(LoopNode):
    """Simulates a robot of either kind: rod or arm, actuators and sensors.

    A rod's plant is a finer rod with its own parameters and pressure lag; without commands its
    chambers vent. An arm's plant has the bodies of its file, a payload and tendon motors; without
    commands they hold.
    """

    default_name = "simulator"
    Settings = SimulatorSettings
    kinds = ("rod", "arm")
    settings: SimulatorSettings
    _machine: SimulatedMachine
    _timeouts = 0
    _idle = True
    _finished = False

    def on_configure_node(self) -> None:
        settings = self.settings
        self._machine = self._made_machine()
        # compiles every kernel the loop will call
        self._machine.advance(settings.period)
        self._machine.messages(1)
        self._sensors = {topic: self.advertise(topic) for topic in self._machine.topics}
        if settings.lockstep:
            self._simulated_time = self.advertise("/clock")
        self.receive(self._machine.command_topic, self._machine.decoded)

    def on_activate_node(self) -> None:
        self._machine.reset()
        self._timeouts = 0
        self._idle = True
        self._finished = False

    def loop(self, stop: threading.Event) -> None:
        if self.settings.lockstep:
            self._loop_in_lockstep(stop)
        else:
            self._loop_on_wall_clock(stop)

    def diagnostic_values(self) -> dict[str, Any]:
        if not hasattr(self, "_machine"):  # before the first configure
            return {}
        return self._machine.description() | {
            "commands_stale": self._timeouts,
            "without_commands": self._idle,
            "finished": self._finished,
        }

    def diagnostic_warnings(self) -> list[str]:
        return [self._complaint] if self._timeouts and self._idle else []

    @property
    def _complaint(self) -> str:
        return f"no {self._machine.command_topic}: {self._machine.without_commands}"

    # --- the plant --------------------------------------------------------------------------

    def _made_machine(self) -> SimulatedMachine:
        return self._rod() if isinstance(self.robot, Robot) else self._arm()

    def _rod(self) -> SimulatedRod:
        settings = self.settings
        mismatch = Mismatch(
            settings.bending_compliance_factor, settings.tip_mass_factor, settings.damping_factor
        )
        sensors = SensorModel(
            settings.tip_noise,
            settings.pressure_noise,
            settings.force_noise,
            settings.moment_noise,
            settings.mocap_latency,
            settings.seed,
        )
        plant = SimulatedPlant(self.robot, mismatch, sensors, settings.intervals)
        return SimulatedRod(self.robot, plant)

    def _arm(self) -> SimulatedArm:
        settings = self.settings
        if settings.mocap_latency:
            raise UserError(
                f"parameter mocap_latency = {settings.mocap_latency}: must be 0 for an arm, whose "
                "commands answer poses"
            )
        plant = ArmPlant(self.arm, settings.payload, settings.tip_noise, settings.seed)
        return SimulatedArm(plant, settings.tip_noise)

    # --- the two ways of pacing -------------------------------------------------------------

    def _loop_on_wall_clock(self, stop: threading.Event) -> None:
        """Cycle k at t_k: sensors are read, then the newest command is followed until t_{k+1}."""
        period = self.settings.period
        timer = CycleTimer(period)
        last_command = time.monotonic()
        last_stamp = None
        while not stop.is_set():
            self.statistics.skip(timer.wait())
            begin = time.monotonic()
            stamp = self.now()
            if last_stamp is not None:
                # a late cycle has waited longer; the plant must not live more slowly than the clock
                self._machine.advance(min((stamp - last_stamp) * 1e-9, 20 * period))
            last_stamp = stamp
            letter = self._newest_command()
            if letter is not None:
                last_command = letter.received
                self._follow(letter.value)
            elif begin - last_command > self.settings.command_timeout:
                self._go_idle()
            self._publish(stamp)
            self.statistics.add(time.monotonic() - begin)

    def _loop_in_lockstep(self, stop: threading.Event) -> None:
        """The same cycle on simulated time: t_{k+1} comes when the command for t_k is there."""
        period = round(1e9 * self.settings.period)
        stamp = 0
        letter: Sample | None = None
        while not stop.is_set():
            begin = time.monotonic()
            if stamp > 0:
                self._machine.advance(period * 1e-9)
                # as on the wall clock, the answer to one cycle is followed from the next one on
                if letter is not None:
                    self._follow(letter.value)
                else:
                    self._go_idle()
            stamp += period
            self._simulated_time.publish(clock_to_message(stamp))
            self._publish(stamp)
            self.statistics.add(time.monotonic() - begin)
            if 0.0 < self.settings.duration <= stamp * 1e-9:
                self._finished = True
                self.publish_diagnostics()
                stop.wait()
                return
            letter = self._command_for(stamp)

    def _newest_command(self) -> Sample | None:
        newest = None
        while (letter := self.inbox.get(timeout=0)) is not None:
            newest = letter
        return newest

    def _command_for(self, stamp: int) -> Sample | None:
        """The command that answers `stamp`; None after the timeout, once idle soon."""
        wait = self.settings.period if self._idle and self._timeouts else 0.0
        deadline = time.monotonic() + (wait or self.settings.lockstep_timeout)
        while (left := deadline - time.monotonic()) > 0.0:
            letter = self.inbox.get(timeout=left)
            if letter is None:
                return None
            if letter.stamp == stamp:
                return letter
            self.reject(self._machine.command_topic, "stamp of another cycle")
        return None

    def _follow(self, command: np.ndarray) -> None:
        self._machine.follow(command)
        self._idle = False

    def _go_idle(self) -> None:
        if not self._idle:
            self._timeouts += 1
            self._idle = True
            self.get_logger().warning(self._complaint)
        self._machine.idle()

    def _publish(self, stamp: int) -> None:
        for topic, message in self._machine.messages(stamp).items():
            self._sensors[topic].publish(message)


def main() -> int:
    """Entry point of `ros2 run softcr simulator`."""
    return run(Simulator)


if __name__ == "__main__":
    sys.exit(main())
