"""Kinds of robots: what a robot file of each `type` is, and what every part of softcr reads of it.

No part asks of which kind a robot is: it reads the robot's own description, whose members
`AnyRobot` lists. The exact model and the simulated plant of a kind have the kind's name in the
tables of models and plants. A package that is installed beside softcr adds a kind by an entry point
of the group `softcr.kinds`, whose value is a `Kind`; the papers' folders do so, too. The module of
a `Kind` imports nothing of softcr but this one, because the table is made before all others.
"""

import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.metadata import entry_points
from typing import Any, ClassVar, Literal, Protocol

import numpy as np

from softcr_models.plugins import in_a_line

ENTRY_POINTS = "softcr.kinds"
"""Group of the entry points by which installed packages, the papers among them, add kinds."""


@dataclass(frozen=True)
class Kind:
    """A kind of robot.

    Attributes:
        words: what such a robot is, with its article.
        robot: place of the class of its files, an `AnyRobot`: `package.module:Class`.
        quantity: what drives it: first part of the names of its actuators' topics.
        meaning: the numbers on these topics, with their units.
        field: of their messages that has the numbers; beside positions, readings have forces, too.
        loop: place of the class that says what runs around it, see
            `softcr_runtime.settings.loops.Loop`; empty: what runs around every robot.
        report: place of the class that says what the report of a run adds, see
            `softcr_runtime.console.kind_reports.KindReport`; empty: nothing.
    """

    words: str
    robot: str
    quantity: str
    meaning: str
    field: Literal["effort", "positions"] = "effort"
    loop: str = ""
    report: str = ""


@dataclass(frozen=True)
class ShownInput:
    """How an actuator's input is shown to persons.

    Attributes:
        name: of the actuator.
        quantity: what the input is, in one word: pressure, tension, angle, torque, force.
        scale: from SI to `unit` [-].
        unit: that it is shown in.
        low, high: its limits [SI].
    """

    name: str
    quantity: str
    scale: float
    unit: str
    low: float
    high: float


class AnyRobot(Protocol):
    """What the class of a kind's files has, beside what its own model reads.

    Attributes:
        sees_tip: whether cameras see the pose of its tip alone, beside bodies; else bodies only.
        in_world: whether poses are told in the world's axes at its base, instead of the base frame.
        type: name of its kind.
        name: of the robot.
        actuator_names: (m,) in the order of every vector of inputs.
        shown_inputs: (m,) how its inputs are shown, in the same order.
        bodies_seen: outputs of its model that cameras see beside the tip, base to tip.
        length: of the robot at rest [m].
        radius: of the cross-section at its base [m].
        base_orientation: roll, pitch, yaw of the base in the world [rad].
        kernels: sets of kernels that its models call, see `softcr_models.warm_up`.
    """

    sees_tip: ClassVar[bool]
    in_world: ClassVar[bool]

    @property
    def type(self) -> Any: ...
    @property
    def name(self) -> Any: ...
    @property
    def actuator_names(self) -> tuple[str, ...]: ...
    @property
    def shown_inputs(self) -> tuple[ShownInput, ...]: ...
    @property
    def bodies_seen(self) -> tuple[str, ...]: ...
    @property
    def length(self) -> float: ...
    @property
    def radius(self) -> float: ...
    @property
    def base_orientation(self) -> tuple[float, ...]: ...
    @property
    def kernels(self) -> tuple[str, ...]: ...

    def tip_solver(self) -> Any:
        """What finds where the tip can stand, a `softcr_control.goals.workspace.TipSolver`, for
        goals that are followed without a model's states; None: the steady states of its model."""
        ...

    def centre_line(
        self, state: Mapping[str, np.ndarray], parameters: Mapping[str, float], points: int
    ) -> np.ndarray | None:
        """(points, 3, 4) or (points, 4, 4) poses along the robot, base to tip [m].

        Args:
            state: groups of a state, estimated or true, by name.
            parameters: that were told with it.
            points: how many.

        Returns:
            None where the state is none of this kind's model.
        """
        ...


KINDS: dict[str, Kind] = {
    "rod": Kind(
        "a rod of soft segments",
        "softcr_models.robots.robot:Robot",
        "pressure",
        "gauge pressure [Pa], tension [N] or motor angle [rad]",
        report="softcr_tools.report.rod_report:RodReport",
    )
}
"""Every kind by the `type` of its robot files."""

UNREADABLE: dict[str, str] = {}
"""Why the kind of an installed package cannot be used, by its name."""

for _point in sorted(entry_points(group=ENTRY_POINTS), key=lambda point: point.name):
    try:
        _kind = _point.load()
        if KINDS.setdefault(_point.name, _kind) != _kind:
            warnings.warn(f"kind of {_point.value}: {_point.name!r} is taken already", stacklevel=1)
    except Exception as _error:  # whatever somebody's package raises; told when it is asked for
        UNREADABLE[_point.name] = f"kind of {_point.value}: {in_a_line(_error)}"
