"""What the live view knows of a tendon-driven arm: of other topics than a rod's."""

import numpy as np

from softcr_models.constant_curvature.arm import Arm
from softcr_runtime.arm_messages import ArmCloud
from softcr_runtime.rod_clouds import ReferenceCloud
from softcr_tools.viewer.picture import LivePicture
from softcr_tools.viewer.shape import Shape

_POINTS = 25  # of a backbone that is drawn
_STANDS = 1.0  # a setpoint has no horizon: its only row stands for itself [s]


class ArmPicture(LivePicture):
    """The newest of an arm's topics, and a table of the past.

    Positions are in the frame of the arm's base with the world's axes. The table has, beside
    `time`, `estimate_error`, `measured_error` and the tip: `length_<section>`, rest lengths [m];
    `wanted_<tendon>`, `length_of_<tendon>` [m].
    """

    frame = "world"
    shape_topics = ("estimate/arm",)
    heard_topics = (
        ("estimate/arm", "estimate"),
        ("reference/tip", "setpoint"),
        ("mocap/arm/poses", "cameras"),
        ("tendon/state", "tendons"),
        ("tendon/command", "commands"),
    )
    estimate_topic, measured_topic = "estimate/arm", "mocap/arm/poses"

    def __init__(self, arm: Arm):
        """Know nothing yet of an arm."""
        super().__init__(
            (
                "estimate_error", "measured_error", "tip_x", "tip_y", "tip_z",
                *(f"length_{section + 1}" for section in range(len(arm.racks))),
                *(f"wanted_{tendon}" for tendon in arm.tendon_names),
                *(f"length_of_{tendon}" for tendon in arm.tendon_names),
            )
        )  # fmt: skip
        self.arm = arm

    @property
    def estimate(self) -> Shape | None:
        """The model's shape, unless it is stale."""
        model: ArmCloud | None = self.present("estimate/arm")
        if model is None:
            return None
        poses = self.arm.model.backbone(model.q, model.rest_lengths, _POINTS)
        return Shape.of_poses(poses, model.stamp)

    @property
    def truth(self) -> Shape | None:
        """The simulator's own arm, unless it is stale."""
        truth: ArmCloud | None = self.present("simulation/truth/arm")
        if truth is None:
            return None
        poses = self.arm.chain.backbone(truth.q, truth.rest_lengths, _POINTS)
        return Shape.of_poses(poses, truth.stamp)

    @property
    def reference(self) -> ReferenceCloud | None:
        """The setpoint as a reference of one row, in which only the tip is known.

        It never is stale: one that was said once holds.
        """
        stamp, target = self.newest("reference/tip")
        if target is None:
            return None
        unknown = np.full((1, 2, 3), np.nan)
        return ReferenceCloud(stamp, _STANDS, np.empty((1, 0)), target[None], unknown)

    @property
    def measured_tip(self) -> np.ndarray | None:
        """(3,) tip seen by the cameras [m], unless it is stale."""
        poses = self.present("mocap/arm/poses")
        return None if poses is None else poses[-1, :3, 3]

    @property
    def estimated_tip(self) -> np.ndarray | None:
        """(3,) tip of the model [m], unless it is stale."""
        shape = self.estimate
        return None if shape is None else shape.positions[-1]

    @property
    def rest_lengths(self) -> np.ndarray:
        """(n,) of the model's sections [m]; NaN when there is no estimate."""
        model: ArmCloud | None = self.present("estimate/arm")
        return np.full(len(self.arm.racks), np.nan) if model is None else model.rest_lengths

    def tendons(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """(a,) wanted and measured changes of length [m], forces [N]; NaN where not known."""
        unknown = np.full(len(self.arm.tendon_names), np.nan)
        wanted, state = self.present("tendon/command"), self.present("tendon/state")
        lengths, forces = (unknown, unknown) if state is None else state
        return unknown if wanted is None else wanted, lengths, forces

    def _row(self) -> np.ndarray:
        wanted, lengths, _ = self.tendons()
        tip = self.estimated_tip
        return np.concatenate(
            [
                [self._error(tip), self._error(self.measured_tip)],
                np.full(3, np.nan) if tip is None else tip,
                self.rest_lengths,
                wanted,
                lengths,
            ]
        )

    def _error(self, tip: np.ndarray | None) -> float:
        """Distance [m] of a tip from the setpoint."""
        _, target = self.newest("reference/tip")
        if tip is None or target is None:
            return np.nan
        return float(np.linalg.norm(tip - target))
