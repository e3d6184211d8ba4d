"""The filters of the experiment: each sees pressures and base wrench, starts straight, at rest."""

import math
import time
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from softcr_estimation import CcEstimator, CcEstimatorSettings
from softcr_models.constant_curvature.dynamics import ConstantCurvatureModel
from softcr_tools.experiments.cc_ukf.plant import DT, FORCE_NOISE, MOMENT_NOISE, SensedRun
from softcr_tools.experiments.cc_ukf.scores import Seen

# 004, Sec. IV: Q = 1e-10 diag(1, 1, 1, .1, .1, .1, 1e9) is added every 5 ms, and P_0 = Q.
PUBLISHED = CcEstimatorSettings(
    coordinate_noise=math.sqrt(1e-10 / DT),
    rate_noise=math.sqrt(1e-11 / DT),
    stiffness_noise=math.sqrt(1e-1 / DT),
    coordinate_deviation=math.sqrt(1e-10),
    rate_deviation=math.sqrt(1e-11),
    stiffness_deviation=math.sqrt(1e-1),
    force_noise=FORCE_NOISE,
    moment_noise=MOMENT_NOISE,
)


@dataclass(frozen=True)
class Contender:
    """One constant-curvature filter.

    Attributes:
        name: in the table.
        settings: of the filter.
        share_mass: whether its model's mass was shared between centre of gravity and tip; this is
            the corrected mode, reported beside the paper's model.
    """

    name: str
    settings: CcEstimatorSettings
    share_mass: bool = False

    def see(
        self,
        run: SensedRun,
        model: ConstantCurvatureModel,
        base_height: float,
        tick: Callable[[], None],
    ) -> Seen:
        """Sends the filter over a part; calls `tick` after every sample."""
        estimator = CcEstimator(model, base_height, self.settings)
        estimator.start(run.times[0] - DT)
        found, durations = [], []
        for sample in zip(run.pressures, run.wrenches, run.times, strict=True):
            began = time.perf_counter()
            found.append(estimator.update(*sample))
            durations.append(time.perf_counter() - began)
            tick()
        return Seen(
            coordinates=np.array([e.coordinates for e in found]),
            rates=np.array([e.rates for e in found]),
            tips=np.array([e.tip_position for e in found]) - [0.0, 0.0, base_height],
            velocities=np.array([e.tip_velocity for e in found]),
            tick_times=np.array(durations),
            stiffness=np.array([e.bending_stiffness for e in found]),
        )


# A model that fits force and moment may believe both.
_SHARED = CcEstimatorSettings(rate_noise=0.1, force_noise=1e-2, moment_noise=1e-3)

UNSCENTED = "CC-UKF"
CONTENDERS = (
    Contender(UNSCENTED, CcEstimatorSettings()),
    Contender("CC-EKF", CcEstimatorSettings(filter="ekf")),
    Contender("CC-UKF, 004's Q R P0", PUBLISHED),
    Contender("CC-UKF, mass shared", _SHARED, share_mass=True),
)
