"""An A-PCC controller steers the Lagrangian arm to a setpoint: Dalenberg, Sec. V-B, VI-B, App. A.

The arm has more bodies than the controller's model, a payload and gravity. It settles under them
with its tendons held; then the controller sees poses at 50 Hz, as motion capture does, and the
tendons' loops follow what it says in between.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from softcr_control.apcc import Apcc, ApccSettings
from softcr_control.apcc.inverse_kinematics import elongation_cost
from softcr_models.constant_curvature.arm import Arm
from softcr_models.constant_curvature.arm_dynamics import ArmDynamics, TendonGains
from softcr_models.constant_curvature.kinematics import coverage_of
from softcr_models.constant_curvature.shape_error import shape_error

PERIOD = 0.02
LOST = 1.0
"""A run whose tip error exceeds this has diverged [m]."""

_SETTLING, _STEP = 3.0, 4e-3  # [s]; the step's error is 0.3 % of the motion
_SHAPES_EVERY = 25  # ticks
_SERIES = (
    "times", "errors", "costs", "mapping", "lengths", "linear", "angular", "shapes", "curves",
)  # fmt: skip


@dataclass(frozen=True, eq=False)
class Setting:
    """What a controller is put to.

    Attributes:
        arm: the true one.
        payload: at its tip [kg].
        target: (3,) setpoint [m].
        loops: of the tendons.
        seconds: longest length of a run.
        within: the run ends when the tip is so near [m]; 0: it does not.
    """

    arm: Arm
    payload: float
    target: np.ndarray
    loops: TendonGains
    seconds: float = 10.0
    within: float = 0.0


@dataclass(frozen=True, eq=False)
class RobotTrace:
    """A run of T ticks; shorter when it ended early.

    Attributes:
        times: (T,) [s].
        errors: (T,) distance of the tip from the setpoint [m].
        costs: (T,) Psi of the inferred configuration [m].
        mapping: (T,) E_mapping of (53), from the commanded configuration's tip to the true one [m].
        lengths: (T, n) estimates before the tick [m].
        linear, angular: (T, n_s) what Algorithm 2 left of the sensors' errors [m], [rad].
        shapes, curves: (K,) E_shape twice a second, by rest length and by arc length [m].
        bounded: share of ticks in which a bound held a length back [-].
        lost: whether the run was given up.
    """

    times: np.ndarray
    errors: np.ndarray
    costs: np.ndarray
    mapping: np.ndarray
    lengths: np.ndarray
    linear: np.ndarray
    angular: np.ndarray
    shapes: np.ndarray
    curves: np.ndarray
    bounded: float
    lost: bool


def run_robot(
    setting: Setting, settings: ApccSettings, tick: Callable[[], None] = lambda: None
) -> RobotTrace:
    """One run; `tick` is called once per tick of the longest run, also where it ended before."""
    arm, model = setting.arm, setting.arm.model
    plant = ArmDynamics(arm, setting.payload)
    state = plant.rest()
    plant.advance(state, np.zeros(len(state.integral)), _SETTLING, setting.loops, _STEP)
    sensors = np.array(arm.racks)
    coverage = coverage_of(sensors, arm.rest_lengths)
    # the thesis's controller takes the routing for coupled, on hardware too
    tendons = arm.tendons("coupled")
    controller = Apcc(model, arm.model_lengths, sensors, tendons, settings)
    lists: dict[str, list[Any]] = {name: [] for name in _SERIES}
    ticks, lost, bounded = round(setting.seconds / PERIOD), False, 0
    for number in range(ticks):
        poses = plant.chain.pose(state.q, arm.rest_lengths, coverage)
        lengths = controller.rest_lengths
        command = controller.tick(number * PERIOD, poses, setting.target)
        inference, error = command.inference, float(np.linalg.norm(command.error))
        lost = not error < LOST
        if lost:
            break
        if number % _SHAPES_EVERY == 0:
            pair = plant.chain, state.q, arm.rest_lengths, model, inference.configuration, lengths
            lists["shapes"].append(shape_error(*pair))
            lists["curves"].append(shape_error(*pair, "arc"))
        expected = model.position(command.configuration, command.rest_lengths)
        for name, value in (
            ("times", number * PERIOD),
            ("errors", error),
            ("costs", elongation_cost(inference.configuration)),
            ("mapping", float(np.linalg.norm(expected - poses[-1, :3, 3]))),
            ("lengths", lengths),
            ("linear", inference.linear),
            ("angular", inference.angular),
        ):
            lists[name].append(value)
        bounded += command.adaptation.projected or command.adaptation.slowed
        tick()
        if error < setting.within:
            break
        try:
            plant.advance(state, command.tendons, PERIOD, setting.loops, _STEP)
        except np.linalg.LinAlgError:
            lost = True
            break
    for _ in range(ticks - len(lists["times"])):
        tick()
    arrays = {name: np.array(values) for name, values in lists.items()}
    share = bounded / max(1, len(lists["times"]))
    return RobotTrace(**arrays, bounded=share, lost=lost)
