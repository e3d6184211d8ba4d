"""An A-PCC controller steers the Lagrangian arm to a setpoint: Dalenberg, Sec. V-B, VI-B, App. A.

The arm has more bodies than the controller's model, a payload and gravity. It settles under them
with its tendons held; then the controller sees poses at 50 Hz, as motion capture does, and the
tendons' loops follow its answer from the next frame on. All of it is the system's own blocks on
virtual time.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from softcr_control.apcc import ApccSettings
from softcr_control.apcc.block import (
    COMMAND,
    ESTIMATE,
    POSES,
    SETPOINT,
    ApccBlock,
    ApccControllerSettings,
)
from softcr_control.apcc.inverse_kinematics import elongation_cost
from softcr_hardware.plants import ArmPlantSettings, TendonArmPlant
from softcr_models.constant_curvature.arm import Arm
from softcr_models.constant_curvature.arm_dynamics import TendonGains
from softcr_models.constant_curvature.shape_error import shape_error
from softcr_runtime.block import BlockBase, Input, Output, Samples
from softcr_runtime.settings import ArmNodeSettings, build_settings
from softcr_studies.virtual_runs import SIMULATOR, common, run_blocks, simulator

PERIOD = 0.02
LOST = 1.0
"""A run whose tip error exceeds this has diverged [m]."""

TRUTH = "simulation/truth/arm"
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


class Setpoint(BlockBase):
    """The same setpoint with every frame of poses.

    Attributes:
        finished: see BlockBase; whoever watches the run says when it has seen enough.
    """

    name = "setpoint"
    Settings = ArmNodeSettings
    kinds = ("arm",)
    inputs = (Input(POSES, "lead"),)
    outputs = (SETPOINT,)

    def __init__(self, robot: Any, settings: Any, target: np.ndarray) -> None:
        """See BlockBase.

        Args:
            robot: see BlockBase.
            settings: see BlockBase.
            target: (3,) of the tip [m].
        """
        super().__init__(robot, settings)
        self._target = target

    def tick(self, now: int, samples: Samples) -> Iterable[Output]:
        """The setpoint."""
        return [Output(SETPOINT, now, self._target)]


class _Watch:
    """Keeps what a controller decided beside the truth, and ends a run that has arrived or is lost.

    Attributes:
        rows: a dictionary for each tick, by the names of `RobotTrace`.
        lost: whether the tip was too far off.
    """

    def __init__(
        self, setting: Setting, controller: ApccBlock, goal: Setpoint, tick: Callable[[], None]
    ) -> None:
        self.rows: list[dict[str, Any]] = []
        self.lost = False
        self._setting, self._controller, self._goal, self._tick = setting, controller, goal, tick
        self._lengths = setting.arm.model_lengths
        self._seen: dict[str, Any] = {}

    def __call__(self, name: str, output: Output) -> None:
        self._seen[output.topic] = output.value
        if output.topic == ESTIMATE:
            self._keep()
        elif output.topic == COMMAND and "tip lost: tendons held" in self._controller.warnings():
            self.lost = self._goal.finished = True

    def _keep(self) -> None:
        arm, decided = self._setting.arm, self._controller.command
        assert decided is not None  # it is what ESTIMATE tells
        inference, error = decided.inference, float(np.linalg.norm(decided.error))
        expected = arm.model.position(decided.configuration, decided.rest_lengths)
        row = {
            "times": len(self.rows) * PERIOD,
            "errors": error,
            "costs": elongation_cost(inference.configuration),
            "mapping": float(np.linalg.norm(expected - self._seen[POSES][-1].position)),
            "lengths": self._lengths,
            "linear": inference.linear,
            "angular": inference.angular,
        }
        if len(self.rows) % _SHAPES_EVERY == 0:
            pair = (
                arm.chain, self._seen[TRUTH].q, arm.rest_lengths,
                arm.model, inference.configuration, self._lengths,
            )  # fmt: skip
            row |= {"shapes": shape_error(*pair), "curves": shape_error(*pair, "arc")}
        self.rows.append(row)
        self._lengths = decided.rest_lengths
        self._tick()
        self._goal.finished = error < self._setting.within


def run_robot(
    setting: Setting, settings: ApccSettings, tick: Callable[[], None] = lambda: None
) -> RobotTrace:
    """One run; `tick` is called once per tick of the longest run, also where it ended before."""
    arm, ticks = setting.arm, round(setting.seconds / PERIOD)
    told = common(arm, 1.0 / PERIOD)
    numbers = told | {"setpoints": "paired", "largest_error": LOST}
    seen = ArmPlantSettings(payload=setting.payload, tip_noise=0.0)
    plant = TendonArmPlant(arm, seen, gains=setting.loops)
    # the thesis's controller takes the routing for coupled, on hardware too
    assumed = arm.model_copy(update={"routing": "coupled"})
    controller = ApccBlock(assumed, build_settings(ApccControllerSettings, numbers), settings)
    goal = Setpoint(arm, build_settings(ArmNodeSettings, told), setting.target)
    watch = _Watch(setting, controller, goal, tick)
    blocks = {
        SIMULATOR: simulator(arm, plant, ticks, 1.0 / PERIOD, 0),
        goal.name: goal,
        controller.name: controller,
    }
    try:
        run_blocks(blocks, watch)
    except ArithmeticError:
        watch.lost = True
    for _ in range(ticks - len(watch.rows)):
        tick()
    arrays = {name: np.array([row[name] for row in watch.rows if name in row]) for name in _SERIES}
    share = controller.describe()["ticks_at_bounds"] / max(1, len(watch.rows))
    return RobotTrace(**arrays, bounded=share, lost=watch.lost)
