"""The control loop: an estimate and a reference in, pressure commands out."""

import sys
import threading
import time
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median
from typing import Any, ClassVar

import numba
import numpy as np
from pydantic import Field

from softcr_control.controller_file import load_nempc
from softcr_control.nempc import MAXIMUM_DELAY, Command, Nempc
from softcr_control.references import Reference
from softcr_models.limits import limit_command
from softcr_models.prediction import RodPrediction
from softcr_models.rod.cosserat_rod import CosseratRod
from softcr_models.rod.kernel import MAX_INTERVALS
from softcr_models.runtime.letter import Letter
from softcr_models.runtime.messages import (
    RodCloud,
    pressures_from_message,
    pressures_to_message,
    reference_cloud_from_message,
    rod_cloud_from_message,
)
from softcr_models.runtime.node import LoopNode, run
from softcr_models.runtime.settings import NodeSettings

_STAMPS_KEPT = 8  # cycles whose messages are still incomplete


class NempcControllerSettings(NodeSettings):
    """Which controller file, and what in it to replace."""

    controller: str = Field(
        "nempc", min_length=1, description="a file of config/controllers, or a YAML file"
    )
    population: int = Field(1000, ge=8, le=100_000, description="candidates per generation")
    horizon: int = Field(8, ge=2, le=200, description="periods looked ahead")
    intervals: int = Field(5, ge=2, le=MAX_INTERVALS, description="intervals of the model's rod")
    # through the pressure lag nothing jumps: the closed loop's tip error is that of two sub-steps
    substeps: int = Field(1, ge=1, le=20, description="sub-steps of the prediction per period")
    threads: int = Field(2, ge=1, le=256, description="of the prediction")
    input_timeout: float = Field(
        0.1,
        ge=0.01,
        le=5.0,
        description="without estimate or reference for so long the chambers vent (wall mode)",
        json_schema_extra={"unit": "s"},
    )


class NempcController(LoopNode):
    """Moves the rod along the reference by nonlinear evolutionary model-predictive control."""

    default_name = "nempc_controller"
    Settings = NempcControllerSettings
    settings: NempcControllerSettings
    _clipped = _fallbacks = _vents = 0
    _venting = False
    _latencies: ClassVar[Sequence[float]] = ()

    def on_configure_node(self) -> None:
        settings, robot = self.settings, self.robot
        self._prediction = RodPrediction(CosseratRod(robot, settings.intervals), settings.substeps)
        self._prediction.warm_up()
        self._nempc = self._made_controller()
        self._rehearse()
        self._forget()
        self._command = self.advertise("pressure/command")
        chambers, n = robot.chamber_names, settings.intervals
        self.receive(
            "pressure/state", lambda m: pressures_from_message(m, chambers, "pressure/state")
        )
        self.receive("reference/rod", lambda m: reference_cloud_from_message(m, "reference/rod", n))
        self.receive("estimate/rod", lambda m: rod_cloud_from_message(m, "estimate/rod", n))

    def on_activate_node(self) -> None:
        self._nempc.reset()
        self._forget()

    def loop(self, stop: threading.Event) -> None:
        numba.set_num_threads(min(self.settings.threads, numba.config.NUMBA_NUM_THREADS))
        while not stop.is_set():
            inputs = self._next_inputs()
            if stop.is_set():
                return
            if inputs is None:
                self._vent()
                continue
            command = self._nempc.command(
                inputs.estimate.state,
                inputs.estimate.parameters["bending_compliance"],
                inputs.reference,
                inputs.pressures,
                inputs.estimate.parameters,
                self._expected_delay(),
            )
            self._send(command, inputs.stamp)
            self._latencies.append((self.now() - inputs.stamp) * 1e-9)
            self.finish_tick(inputs.received, inputs.stamp)

    def on_deactivate_node(self) -> None:
        self._vent()

    def diagnostic_values(self) -> dict[str, Any]:
        settings = self.settings
        return {
            "population": settings.population,
            "horizon": settings.horizon,
            "substeps": settings.substeps,
            "intervals": settings.intervals,
            "clipped": self._clipped,
            "fallbacks": self._fallbacks,
            "vents": self._vents,
            "delay": self._expected_delay(),
        }

    def diagnostic_warnings(self) -> list[str]:
        return ["estimate or reference is missing: vented"] if self._venting else []

    # --- inputs and output ------------------------------------------------------------------

    def _next_inputs(self) -> "_Inputs | None":
        """Estimate, reference and pressures of one stamp, newer than the last; None if overdue."""
        deadline = time.monotonic() + self.settings.input_timeout
        while True:
            # in lock-step the plant waits for us, so nothing is overdue
            left = None if self.settings.lockstep else deadline - time.monotonic()
            if left is not None and left <= 0.0:
                return None
            letter = self.inbox.get(timeout=left)
            if letter is None:
                return None
            letters = self._by_stamp.setdefault(letter.stamp, {})
            letters[letter.topic] = letter
            if len(letters) == 3:
                self._by_stamp = {k: v for k, v in self._by_stamp.items() if k > letter.stamp}
                return _Inputs.of(letters)
            if len(self._by_stamp) > _STAMPS_KEPT:
                del self._by_stamp[min(self._by_stamp)]

    def _expected_delay(self) -> int:
        """Ticks until the plant follows an answer: one, if the chain keeps up."""
        if self.settings.lockstep or not self._latencies:
            return 1
        ticks = 1 + int(median(self._latencies) / self.settings.period)
        return min(ticks, MAXIMUM_DELAY)

    def _send(self, command: Command, stamp: int) -> None:
        """The limiter is the last stage: what it lets through is what is published."""
        limits = self.robot.pressure_limits
        pressures, clipped = limit_command(
            command.pressures,
            self._sent,
            limits.minimum,
            limits.maximum,
            limits.maximum_rate,
            self.settings.period,
        )
        self._clipped += clipped
        self._fallbacks += command.fallback
        self._venting = False
        self._publish(pressures, stamp)

    def _vent(self) -> None:
        """Zero pressure at once, and start afresh when the inputs come back."""
        if not self._venting:
            self._vents += 1
            self._nempc.reset()
            self._by_stamp.clear()
        self._venting = True
        # in lock-step the stamp continues simulated time, so that runs are equal to the bit
        stamp = self._last_stamp + 1 if self.settings.lockstep else self.now()
        self._publish(np.zeros(len(self.robot.chambers)), stamp)

    def _publish(self, pressures: np.ndarray, stamp: int) -> None:
        self._sent = pressures
        self._last_stamp = stamp
        self._command.publish(pressures_to_message(pressures, self.robot.chamber_names, stamp))

    # --- preparation ------------------------------------------------------------------------

    def _forget(self) -> None:
        self._by_stamp: dict[int, dict[str, Letter]] = {}
        self._sent = np.zeros(len(self.robot.chambers))
        self._last_stamp = 0
        self._latencies: deque[float] = deque(maxlen=15)
        self._clipped = self._fallbacks = self._vents = 0
        self._venting = False

    def _made_controller(self) -> Nempc:
        settings, limits = self.settings, self.robot.pressure_limits
        file = load_nempc(settings.controller)
        numbers = file.nempc.model_copy(
            update={
                "population": settings.population,
                "horizon": settings.horizon,
                "period": settings.period,
                "pressure_low": limits.minimum,
                "pressure_high": limits.maximum,
                "max_rate": limits.maximum_rate,
                "seed": settings.seed,
            }
        )
        terms = file.costs.terms(self._prediction, numbers.input_range)
        return Nempc(self._prediction, self.robot.pressure_lag, numbers, terms)

    def _rehearse(self) -> None:
        """A few ticks at rest, so that nothing is compiled or allocated first in the loop."""
        pressures = np.zeros(len(self.robot.chambers))
        state = self._prediction.equilibrium(pressures, self._prediction.nominal_parameters)
        tip = self._prediction.rod.tip_pose(state)[:3, 3]
        rows = self._nempc.rows
        reference = Reference(
            0.0, self.settings.period, np.tile(state, (rows, 1)), np.tile(tip, (rows, 1))
        )
        for _ in range(3):
            self._nempc.command(state, None, reference, pressures)
        self._nempc.reset()


@dataclass(frozen=True, eq=False)
class _Inputs:
    """What one tick looks at, all of one stamp [ns]."""

    stamp: int
    received: float  # when the last of them came, on the monotonic clock [s]
    estimate: RodCloud
    reference: Reference
    pressures: np.ndarray

    @classmethod
    def of(cls, letters: dict[str, Letter]) -> "_Inputs":
        estimate, cloud = letters["estimate/rod"], letters["reference/rod"].value
        rows = Reference(cloud.stamp * 1e-9, cloud.period, cloud.states, cloud.tip_positions)
        received = max(letter.received for letter in letters.values())
        pressures = letters["pressure/state"].value
        return cls(estimate.stamp, received, estimate.value, rows, pressures)


def main() -> int:
    """Entry point of `ros2 run softcr nempc_controller`."""
    return run(NempcController)


if __name__ == "__main__":
    sys.exit(main())
