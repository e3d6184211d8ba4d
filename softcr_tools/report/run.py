"""A recorded run by what its signals are for: the sections and the figures are made of this."""

from collections.abc import Callable, Mapping
from functools import cached_property
from typing import Any

import numpy as np
from pydantic import ValidationError

from softcr_models.constant_curvature.arm import Arm
from softcr_runtime import registry
from softcr_runtime.bags.signals import BagSignals, Signal

LONGEST_HOLE = 0.03
"""Between poses of a camera that are interpolated [s]."""

CONTROLLERS = (*registry.nodes("controller"), "controller", "apcc_controller", "feedforward")
"""Nodes that may control; the first stands in the summary even where none ran."""

REFERENCES = ("reference", "tip_reference")
"""Nodes that say what shall be followed."""

Shapes = tuple[np.ndarray, Callable[[int], np.ndarray]]
"""(T,) stamps [ns] and what makes (k, 3) points along the robot [m] of an index of them."""

_POINTS = 40  # of a backbone that is made from sections


class Run:
    """A recorded run. What was not recorded is an empty signal.

    Attributes:
        bag: the signals of the bag, and what its nodes said.
        system: content of the run's system.json, which knows who died; empty if there is none.
        controller: name of the node that controls.
    """

    def __init__(self, bag: BagSignals, system: Mapping[str, Any] | None = None) -> None:
        self.bag, self.system = bag, system or {}
        self.controller = next((name for name in CONTROLLERS if name in bag.nodes), CONTROLLERS[0])
        self.commands, self.readings = bag.role("commands"), bag.role("readings")
        self.true_tip, self.tip = bag.role("true tip"), bag.tip
        self.measured_tip, self.reference_tip = bag.role("measured tip"), bag.role("reference tip")

    def said(self, nodes: tuple[str, ...], name: str) -> Any:
        """What the first of some nodes that told something said under a name; None: none did."""
        told = (self.bag.said(node, name) for node in nodes)
        return next((value for value in told if value is not None), None)

    def of_arm(self, name: str, truth: bool = False) -> Signal:
        """A field of the estimated, or of the true, sections of an arm."""
        return self.bag.signal("simulation/truth/arm" if truth else "estimate/arm", name)

    @property
    def is_tendon_driven(self) -> bool:
        """Whether anything of tendons, or of an arm's sections and racks, was recorded."""
        parts = ("tendon/", "estimate/arm", "mocap/arm")
        return any(topic.startswith(parts) for topic, _ in self.bag.signals)

    @cached_property
    def arm(self) -> Arm | None:
        """The arm that some node told; None when none did."""
        try:
            return Arm.model_validate(self.bag.robot)
        except ValidationError:
            return None

    @cached_property
    def estimated_tip(self) -> Signal:
        """(T, 3) estimated tip; of an arm's sections that of its model [m]."""
        told, q = self.bag.role("estimated tip"), self.of_arm("q")
        if len(told) or self.arm is None or not len(q):
            return told
        return q.like(
            q.stamps, self.arm.model.position(q.values, self.of_arm("rest_lengths").values)
        )

    def shapes(self, truth: bool) -> Shapes:
        """The true, or the estimated, robot over time; no stamps where it was not recorded."""
        told, q = (
            self.bag.role("true shape" if truth else "estimated shape"),
            self.of_arm("q", truth),
        )
        if len(told) or self.arm is None:
            return told.stamps, lambda index: told.values[index]
        chain = self.arm.chain if truth else self.arm.model
        lengths = self.of_arm("rest_lengths", truth).values
        return q.stamps, lambda index: chain.backbone(q.values[index], lengths[index], _POINTS)[
            :, :3, 3
        ]

    @cached_property
    def window(self) -> tuple[int, int] | None:
        """First and last stamp [ns] at which the controller had to follow the reference.

        A command carries the stamp of the estimate it answers; the venting command of a controller
        that leaves answers none, and what the tip does after it is not the controller's error.
        Without any command (open loop) the reference alone decides. None without a reference.
        """
        bounds = [self.reference_tip.stamps]
        if len(self.commands):
            answered = self.estimated_tip if len(self.estimated_tip) else self.readings
            bounds.append(np.intersect1d(self.commands.stamps, answered.stamps))
        if any(len(stamps) == 0 for stamps in bounds):
            return None
        start = self.said(REFERENCES, "start_stamp")  # until then it stood still
        first = [start] if isinstance(start, int) else []
        return max([*first, *(int(s[0]) for s in bounds)]), min(int(s[-1]) for s in bounds)

    def tracking_error(self, after: float = 0.0) -> Signal:
        """(T,) distance of tip and reference [m], from `after` [s] on within the window."""
        error = _at(self.tip, self.reference_tip.stamps).minus(self.reference_tip).norm()
        if self.window is None:
            return error.between(1, 0)
        return error.between(self.window[0] + round(1e9 * after), self.window[1])

    def estimation_error(self) -> Signal:
        """(T,) distance of estimated and true tip [m]; empty without a simulator's truth."""
        estimated = self.estimated_tip
        return estimated.minus(_at(self.true_tip, estimated.stamps)).norm()

    def parameters(self) -> dict[str, tuple[Signal, Signal]]:
        """Each estimated parameter and its standard deviation, by name."""
        names = (
            (topic, field.removeprefix("parameter."))
            for topic, field in self.bag.signals
            if topic in ("estimate/rod", "estimate/state") and field.startswith("parameter.")
        )
        return {
            name: (
                self.bag.signal(topic, f"parameter.{name}"), self.bag.signal(topic, f"std.{name}")
            )
            for topic, name in names
        }  # fmt: skip

    def limits(self) -> tuple[float, float] | None:
        """Lowest and highest allowed pressure [Pa]; None when no node told it."""
        limits = self.bag.robot.get("pressure_limits")
        return (limits["minimum"], limits["maximum"]) if limits else None


def _at(tip: Signal, stamps: np.ndarray) -> Signal:
    """(T, 3) A tip; interpolated at `stamps` [ns] where cameras gave it a time of its own."""
    return tip if len(np.intersect1d(tip.stamps, stamps)) else tip.at(stamps, LONGEST_HOLE)
