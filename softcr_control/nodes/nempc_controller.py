"""The control loop: an estimate and a reference in, pressure commands out."""

import sys
import threading
import time
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numba
import numpy as np

from softcr_control.control_loop import (
    ControlLoop,
    NempcControllerSettings,
    RodMpcControllerSettings,
)
from softcr_runtime.letter import Letter
from softcr_runtime.messages import pressures_from_message, pressures_to_message
from softcr_runtime.node import LoopNode
from softcr_runtime.process import run
from softcr_runtime.rod_clouds import (
    ReferenceCloud,
    RodCloud,
    reference_cloud_from_message,
    rod_cloud_from_message,
)
from softcr_runtime.tick_grid import Resampler

_STAMPS_KEPT = 8  # cycles whose messages are still incomplete


class PredictiveController(LoopNode):
    """Moves the rod along the reference by model-predictive control; which, its settings say."""

    settings: NempcControllerSettings | RodMpcControllerSettings
    _control: ControlLoop | None = None
    _by_stamp: dict[int, dict[str, Letter]]
    _waited = 0.0  # until then an answer was held back [s]
    _vents = 0
    _venting = False

    def on_configure_node(self) -> None:
        self._control = ControlLoop(self.robot, self.settings)
        self._forget()
        self._command = self.advertise("pressure/command")
        chambers, n = self.robot.chamber_names, self.settings.intervals
        waiting = _STAMPS_KEPT if self.settings.resampled else None
        self.receive(
            "pressure/state",
            lambda m: pressures_from_message(m, chambers, "pressure/state"),
            # on the bench they come thrice in a period, and the estimate after them
            wakes=not self.settings.resampled,
        )
        self.receive(
            "reference/rod",
            lambda m: reference_cloud_from_message(m, "reference/rod", n),
            depth=waiting,  # for the cameras' latency
        )
        self.receive(
            "estimate/rod",
            lambda m: rod_cloud_from_message(m, "estimate/rod", n),
            depth=waiting,  # while an answer is held back
        )

    def on_activate_node(self) -> None:
        self._forget()

    def loop(self, stop: threading.Event) -> None:
        numba.set_num_threads(min(self.settings.threads, numba.config.NUMBA_NUM_THREADS))
        control = self._configured
        while not stop.is_set():
            inputs = self._next_inputs()
            if stop.is_set():
                return
            if inputs is None:
                self._vent()
                continue
            pressures = control.answer(inputs.estimate, inputs.reference, inputs.pressures)
            self._venting = False
            age = (self.now() - inputs.stamp) * 1e-9
            began = max(inputs.received, self._waited)  # waiting is no work
            control.answered(age - (began - inputs.received))
            self.finish_tick(began, inputs.stamp)
            if (early := control.age_to_send - age) > 0.0:
                time.sleep(early)
                self._waited = time.monotonic()
            self._publish(pressures, inputs.stamp)

    def on_deactivate_node(self) -> None:
        self._vent()

    def diagnostic_values(self) -> dict[str, Any]:
        settings, control = self.settings, self._control
        values: dict[str, Any] = {
            "substeps": settings.substeps,
            "intervals": settings.intervals,
            "vents": self._vents,
        }
        if control is not None:
            if isinstance(settings, NempcControllerSettings):
                values["population"] = control.chosen.population
            values |= {
                "horizon": control.chosen.horizon,
                "clipped": control.clipped,
                "fallbacks": control.fallbacks,
                "delay": control.expected_delay,
            }
        return values

    def diagnostic_warnings(self) -> list[str]:
        return ["estimate or reference is missing: vented"] if self._venting else []

    # --- inputs and output ------------------------------------------------------------------

    @property
    def _configured(self) -> ControlLoop:
        assert self._control is not None  # made by configure
        return self._control

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
            inputs = None
            for sample in self._at_ticks(letter):
                inputs = self._joined(sample) or inputs
            if inputs is not None:
                return inputs
            if len(self._by_stamp) > _STAMPS_KEPT:
                del self._by_stamp[min(self._by_stamp)]

    def _at_ticks(self, letter: Letter) -> Iterable[Letter]:
        """A letter as it is, or measured pressures at the ticks that they complete."""
        if self.settings.resampled and letter.topic == "pressure/state":
            return self._ticks.add(letter)
        return (letter,)

    def _joined(self, letter: Letter) -> "_Inputs | None":
        """The inputs of the letter's stamp, if it is the last of them."""
        letters = self._by_stamp.setdefault(letter.stamp, {})
        letters[letter.topic] = letter
        if len(letters) < 3:
            return None
        self._by_stamp = {k: v for k, v in self._by_stamp.items() if k > letter.stamp}
        return _Inputs.of(letters)

    def _vent(self) -> None:
        """Zero pressure at once, and start afresh when the inputs come back."""
        begins = not self._venting
        if begins:
            self._vents += 1
            self._by_stamp.clear()
        self._venting = True
        # in lock-step the stamp continues simulated time, so that runs are equal to the bit
        stamp = self._last_stamp + 1 if self.settings.lockstep else self.now()
        self._publish(self._configured.vent(begins), stamp)

    def _publish(self, pressures: np.ndarray, stamp: int) -> None:
        self._last_stamp = stamp
        self._command.publish(pressures_to_message(pressures, self.robot.chamber_names, stamp))

    def _forget(self) -> None:
        self._configured.forget()
        self._by_stamp = {}
        self._ticks: Resampler[Letter] = Resampler(self.settings.period)
        self._last_stamp = 0
        self._waited = 0.0
        self._vents = 0
        self._venting = False


@dataclass(frozen=True, eq=False)
class _Inputs:
    """What one tick looks at, all of one stamp [ns]."""

    stamp: int
    received: float  # when the last of them came, on the monotonic clock [s]
    estimate: RodCloud
    reference: ReferenceCloud
    pressures: np.ndarray

    @classmethod
    def of(cls, letters: dict[str, Letter]) -> "_Inputs":
        estimate, reference = letters["estimate/rod"], letters["reference/rod"]
        received = max(letter.received for letter in letters.values())
        pressures = letters["pressure/state"].value
        return cls(estimate.stamp, received, estimate.value, reference.value, pressures)


class NempcController(PredictiveController):
    """Moves the rod along the reference by nonlinear evolutionary model-predictive control."""

    default_name = "nempc_controller"
    Settings = NempcControllerSettings


def main() -> int:
    """Entry point of `ros2 run softcr nempc_controller`."""
    return run(NempcController)


if __name__ == "__main__":
    sys.exit(main())
