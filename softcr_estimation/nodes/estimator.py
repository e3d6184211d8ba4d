"""The estimator as a node: tip poses and pressures in, the rod's whole state out."""

import sys
import threading
import time
from typing import Any

import numba
import numpy as np

from softcr_estimation.estimation_loop import EstimationLoop, EstimatorNodeSettings
from softcr_estimation.sample_pairing import POSES, PRESSURES
from softcr_runtime.messages import pose_from_message, pressures_from_message
from softcr_runtime.node import LoopNode
from softcr_runtime.process import run


class Estimator(LoopNode):
    """Estimates the rod's state and softness from the tip's position."""

    default_name = "estimator"
    Settings = EstimatorNodeSettings
    settings: EstimatorNodeSettings
    _estimation: EstimationLoop | None = None

    def on_configure_node(self) -> None:
        self._estimation = EstimationLoop(self.robot, self.settings)
        self._estimate_rod = self.advertise("estimate/rod")
        self._estimate_tip = self.advertise("estimate/tip/pose")
        self.receive(PRESSURES, self._decoded_pressures)
        self.receive(POSES, self._decoded_pose)

    def on_activate_node(self) -> None:
        assert self._estimation is not None  # made by configure
        self._estimation.forget()
        self._pairing = self._estimation.pairing(self.inbox.get, time.monotonic, self.reject)

    def loop(self, stop: threading.Event) -> None:
        """One tick per pressure sample, as soon as its tip pose is there or overdue."""
        # a second thread, on shared cores, is waited for longer than it helps
        numba.set_num_threads(1)
        estimation = self._estimation
        assert estimation is not None  # made by configure
        while not stop.is_set():
            pressures = self._pairing.next_pressures()
            if pressures is None:
                continue
            pose = self._pairing.partner_of(pressures.stamp, estimation.patience)
            if stop.is_set():
                return
            if pose is None:
                # the wait for an overdue pose is no work
                tip_pose, received = None, time.monotonic()
            else:
                tip_pose, received = pose.value, max(pressures.received, pose.received)
            estimate = estimation.tick(pressures.value, tip_pose, pressures.stamp)
            if estimate is not None:
                self._publish(estimation.messages(estimate, pressures.stamp))
                self.finish_tick(received, pressures.stamp)

    def diagnostic_values(self) -> dict[str, Any]:
        values = {
            "initial_parameters": {
                "bending_compliance": self.robot.bending_compliance,
                "tip_mass": self.robot.tip_mass,
            },
            "intervals": self.settings.intervals,
            "filter": self.settings.filter,
        }
        if self._estimation is not None:
            values |= self._estimation.counts
            values["unpaired_stamps"] = list(self._estimation.unpaired)
        return values

    def diagnostic_warnings(self) -> list[str]:
        blind = self._estimation is not None and self._estimation.blind
        return ["no tip poses: predicting only"] * blind

    def _publish(self, messages: tuple[Any, Any]) -> None:
        rod, tip = messages
        self._estimate_rod.publish(rod)
        self._estimate_tip.publish(tip)

    def _decoded_pressures(self, message: Any) -> np.ndarray:
        return pressures_from_message(message, self.robot.chamber_names, PRESSURES)

    @staticmethod
    def _decoded_pose(message: Any) -> np.ndarray:
        return pose_from_message(message, POSES)


def main() -> int:
    """Entry point of `ros2 run softcr estimator`."""
    return run(Estimator)


if __name__ == "__main__":
    sys.exit(main())
