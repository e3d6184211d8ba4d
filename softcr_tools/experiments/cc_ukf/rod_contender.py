"""The rod itself as the filter's model, through the base sensor alone: an outlook of Mehl et al."""

import time
from collections.abc import Callable
from functools import partial

import numpy as np

from softcr_estimation import UnscentedFilter
from softcr_models import CosseratRod, Robot
from softcr_models.constant_curvature.dynamics import ConstantCurvatureModel
from softcr_models.constant_curvature.kinematics import coordinates_of_tip
from softcr_models.prediction import RodPrediction
from softcr_models.rod.state import RodState
from softcr_tools.experiments.cc_ukf.contenders import case_of
from softcr_tools.experiments.cc_ukf.plant import DT, SensedRun
from softcr_tools.experiments.cc_ukf.scores import Seen

INTERVALS = 5
STATE_NOISE = 0.01  # [state scale/sqrt(s)], as RodEstimator's
INITIAL_DEVIATION = 0.5  # [state scale], as RodEstimator's
FORCE_NOISE, MOMENT_NOISE = 1e-2, 1e-3  # as CcEstimatorSettings' [N], [N m]


class RodContender:
    """An unscented filter over half as many intervals as the plant has, with its exact numbers.

    So it shows what the model's shape is worth; it does not identify anything.
    """

    name, case = "rod UKF", case_of(1.0)
    share_mass = corrected = False

    def __init__(self, robot: Robot) -> None:
        self._rod = CosseratRod(robot, INTERVALS)
        self._prediction = RodPrediction(self._rod, substeps=2, single_precision=False)

    def see(
        self,
        run: SensedRun,
        model: ConstantCurvatureModel,
        base_height: float,
        tick: Callable[[], None],
    ) -> Seen:
        """See Contender; the model serves to express the tip in its coordinates."""
        unscented = self._started()
        noise = np.repeat([FORCE_NOISE, MOMENT_NOISE], 3)
        states, durations = [], []
        before = run.pressures[0]
        for pressures, wrench in zip(run.pressures, run.wrenches, strict=True):
            began = time.perf_counter()
            unscented.predict((before, pressures), DT)
            unscented.update(wrench, noise, partial(self._wrenches, pressures))
            durations.append(time.perf_counter() - began)
            states.append(unscented.mean * self._prediction.state_scale)
            before = pressures
            tick()
        poses = np.array([self._rod.backbone(state, 2)[-1] for state in states])
        in_node_frame = RodState(np.array(states)).velocities[:, -1, :3]
        tips = poses[:, :3, 3] - [0.0, 0.0, base_height]
        velocities = np.einsum("tij,tj->ti", poses[:, :3, :3], in_node_frame)
        coordinates = coordinates_of_tip(tips, model.rest_length, model.radius)
        return Seen(
            coordinates=coordinates,
            rates=model.rate_of_tip(coordinates, velocities),
            tips=tips,
            velocities=velocities,
            tick_times=np.array(durations),
            stiffness=np.full(len(states), np.nan),
        )

    def _started(self) -> UnscentedFilter:
        size = self._prediction.state_size
        noise = np.full(size, STATE_NOISE)
        unscented = UnscentedFilter(self._step, self._no_measurement, noise)
        straight = self._rod.equilibrium(np.zeros(self._rod.input_size))
        deviations = np.full(size, INITIAL_DEVIATION)
        unscented.start(straight / self._prediction.state_scale, np.diag(deviations**2))
        return unscented

    def _step(
        self, points: np.ndarray, ramp: tuple[np.ndarray, np.ndarray], dt: float
    ) -> np.ndarray:
        prediction, count = self._prediction, len(points)
        begin, end = (np.repeat(pressures[None], count, axis=0) for pressures in ramp)
        parameters = np.repeat(prediction.nominal_parameters[None], count, axis=0)
        scaled = points * prediction.state_scale
        images: np.ndarray = prediction.step(scaled, begin, end, parameters, dt)
        return images / prediction.state_scale

    def _wrenches(self, pressures: np.ndarray, points: np.ndarray) -> np.ndarray:
        states = points * self._prediction.state_scale
        return np.array([self._rod.base_wrench(state, pressures) for state in states])

    @staticmethod
    def _no_measurement(points: np.ndarray) -> np.ndarray:
        raise NotImplementedError("the base wrench depends on the pressures: give `measure`")
