"""The bag of one run of a tracking experiment: the topics of `make sim` in lock-step.

`softcr report BAG` and `softcr replay BAG [--controller]` read it; the replay is equal to the bit.
"""

from pathlib import Path
from typing import Any

import numpy as np

from softcr_control.control_loop import ControllerSettings
from softcr_control.reference_messages import ReferenceMessages
from softcr_estimation.estimation_loop import EstimatorNodeSettings, estimate_messages
from softcr_hardware.plant_messages import plant_messages
from softcr_models import CosseratRod, Robot
from softcr_runtime.diagnostics import DiagnosticReport
from softcr_runtime.messages import pressures_to_message
from softcr_runtime.settings import build_settings, setting_values
from softcr_tools.experiments.bags import OfflineBag, status
from softcr_tools.experiments.tracking.cases import Difference
from softcr_tools.experiments.tracking.loop import (
    MODEL_INTERVALS,
    PERIOD,
    Cycle,
    controller_settings,
    plant_of,
)

NODES = {"nempc": "nempc_controller", "rod_mpc": "rod_mpc"}
"""Controllers that are nodes, too, by the experiments' names."""


class RunBag:
    """Messages of the cycles of one run.

    Args:
        robot: of filter and controller.
        difference: between plant and robot.
        seed: of the run.
        references: what is followed; None where nothing is.
    """

    def __init__(
        self,
        robot: Robot,
        difference: Difference,
        seed: int,
        references: ReferenceMessages | None = None,
    ) -> None:
        self._robot, self._difference, self._seed = robot, difference, seed
        self._plant_rod = plant_of(robot, difference, seed).rod
        self._rod = CosseratRod(robot, MODEL_INTERVALS)
        self._references = references
        self._bag = OfflineBag()
        self._unpaired: list[int] = []
        self._first_stamp: int | None = None

    def add(self, cycle: Cycle) -> None:
        """Everything that was said in a cycle, in the order in which nodes say it."""
        stamp, chambers = cycle.measured.stamp, self._robot.chamber_names
        self._first_stamp = self._first_stamp or stamp
        if cycle.measured.tip_pose is None:
            self._unpaired.append(stamp)
        messages = plant_messages(self._plant_rod, cycle.measured, chambers)
        if cycle.reference is not None and self._references is not None:
            rows = len(cycle.reference.tip_positions)
            reference = self._references.at(cycle.reference.stamp, rows, stamp)
            messages["reference/rod"] = reference
        rod, tip = estimate_messages(self._rod, cycle.estimate, stamp)
        messages |= {"estimate/rod": rod, "estimate/tip/pose": tip}
        if cycle.command is not None:
            messages["pressure/command"] = pressures_to_message(cycle.command, chambers, stamp)
        for topic, message in messages.items():
            self._bag.add(topic, stamp, message)

    def write(
        self,
        directory: Path,
        parameters: tuple[str, ...],
        controller: str | None = None,
        reference: str | None = None,
        tick_times: np.ndarray | None = None,
    ) -> None:
        """Write the bag, with what the nodes would have said of themselves.

        Args:
            directory: of the bag.
            parameters: what the filter estimated beside the state.
            controller: which one, of the experiments' names.
            reference: kind of it.
            tick_times: (T,) of the controller [s].

        Raises:
            UserError: it cannot be written.
        """
        reports = [self._simulator(), self._estimator(parameters)]
        if reference is not None:
            told = {"reference": reference, "start_stamp": self._first_stamp}
            reports.append(status("reference", self._robot, told))
        if controller is not None:
            reports.append(self._controller(controller, tick_times))
        self._bag.add_statuses(reports)
        self._bag.write(directory)

    def _simulator(self) -> DiagnosticReport:
        robot = self._plant_rod.robot
        difference = self._difference
        values = {
            "seed": self._seed,
            "robot": self._robot.model_dump(mode="json"),
            "plant_mismatch": _mismatch(difference),
            "true_parameters": {
                "bending_compliance": robot.bending_compliance,
                "tip_mass": robot.tip_mass,
                "damping_factor": difference.mismatch.damping_factor,
            },
        }
        return status("simulator", self._robot, values)

    def _estimator(self, parameters: tuple[str, ...]) -> DiagnosticReport:
        values = {"intervals": MODEL_INTERVALS, "parameters": list(parameters)}
        settings = build_settings(EstimatorNodeSettings, values | self._common())
        told = {"settings": setting_values(settings), "unpaired_stamps": self._unpaired}
        return status("estimator", self._robot, told)

    def _controller(self, name: str, tick_times: np.ndarray | None) -> DiagnosticReport:
        values: dict[str, Any] = {"rate_hz": 1.0 / PERIOD}
        if tick_times is not None:
            marks = np.percentile(1e3 * tick_times, (50, 99, 100)).tolist()
            values |= dict(zip(("p50_ms", "p99_ms", "max_ms"), marks, strict=True))
            values["cycles"] = len(tick_times)
        if name in NODES:
            settings: ControllerSettings = controller_settings(name, self._seed)
            told = setting_values(settings) | self._common()
            values |= {"settings": told, "horizon": settings.horizon}
            values |= {"population": told["population"]} if "population" in told else {}
        return status(NODES.get(name, name), self._robot, values)

    def _common(self) -> dict[str, Any]:
        return {"robot": self._robot.name, "mode": "lockstep"}


def _mismatch(difference: Difference) -> dict[str, float]:
    """How the plant differs, as numbers; what is as in the file is 0."""
    mismatch = difference.mismatch
    values = {
        "bending_compliance": round(mismatch.bending_compliance_factor - 1.0, 12),
        "tip_mass": round(mismatch.tip_mass_factor - 1.0, 12),
        "damping": round(mismatch.damping_factor - 1.0, 12),
        "lever_arm_1": round(difference.lever_factor - 1.0, 12),
        "pressure_gain": round(difference.pressure_gain - 1.0, 12),
        "intervals": difference.intervals,
        "tip_noise_mm": 1e3 * difference.tip_noise,
        "missing_poses": difference.dropout,
    }
    if difference.lag_pole is not None:
        values["lag_pole"] = difference.lag_pole
    for chamber, bias in enumerate(difference.pressure_bias, start=1):
        values[f"pressure_bias_{chamber}_pa"] = bias
    return values
