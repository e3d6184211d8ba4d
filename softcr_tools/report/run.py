"""A recorded run by what its signals are for: the sections and the figures are made of this."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import cached_property
from importlib.metadata import entry_points
from typing import Any, Literal

import numpy as np

from softcr_models.plugins import load_class
from softcr_models.robots.kinds import KINDS, AnyRobot, ShownInput
from softcr_models.robots.robot import robot_of
from softcr_runtime.bags.signals import BagSignals, Signal
from softcr_runtime.console.kind_reports import KindReport
from softcr_runtime.settings import registry
from softcr_runtime.wire.topics import ACTUATOR_TOPICS, TRUTH

LONGEST_HOLE = 0.03  # between poses of a camera that are interpolated [s]
REFERENCES = ("reference", "tip_reference")  # nodes that say what shall be followed
CONTROLLERS = (*registry.nodes("controller"), "controller", "apcc_controller", "feedforward")
"""Nodes that may control; the first stands in the summary even where none ran."""

ENTRY_POINTS = "softcr.reports"
"""Group of the entry points by which installed packages, the papers among them, add to reports:
classes as of `KindReport`."""

_POINTS = 40  # of a centre line that is made from a state


class Run:
    """A recorded run. What was not recorded is an empty signal."""

    def __init__(self, bag: BagSignals, system: Mapping[str, Any] | None = None) -> None:
        """From a bag's signals and the run's system.json, which knows who died."""
        self.bag, self.system = bag, system or {}
        self.controller = next((name for name in CONTROLLERS if name in bag.nodes), CONTROLLERS[0])
        self.commands, self.readings = bag.role("commands"), bag.role("readings")
        self.true_tip, self.tip = bag.role("true tip"), bag.tip
        self.measured_tip, self.reference_tip = bag.role("measured tip"), bag.role("reference tip")

    def said(self, nodes: tuple[str, ...], name: str) -> Any:
        """What the first of some nodes that told something said under a name; None: none did."""
        told = (self.bag.said(node, name) for node in nodes)
        return next((value for value in told if value is not None), None)

    @cached_property
    def robot(self) -> AnyRobot | None:
        """The robot that some node told; None when none did."""
        robot: AnyRobot | None = robot_of(self.bag.robot)
        return robot

    @cached_property
    def kind(self) -> str:
        """Name of the robot's kind: as it was told, else by what drives it."""
        driven = [ACTUATOR_TOPICS[t].quantity for t, _ in self.bag.signals if t in ACTUATOR_TOPICS]
        fits = [name for name, kind in KINDS.items() if kind.quantity in driven]
        told = str(self.bag.robot.get("type"))
        return told if told in KINDS else next(iter([*fits, *KINDS]))

    @cached_property
    def added(self) -> tuple[KindReport, ...]:
        """What the robot's kind and installed packages add to the report."""
        place = KINDS[self.kind].report
        found: list[Any] = [load_class(place, "report")] if place else []
        points = sorted(entry_points(group=ENTRY_POINTS), key=lambda point: point.name)
        return tuple(each() for each in (*found, *(point.load() for point in points)))

    def state(self, of: Literal["true", "estimated", "wanted"]) -> Signal:
        """(T, nx) states of a robot that is not a rod; of what is wanted with the columns of the
        estimated ones, none where it tells no states."""
        topics = {"true": TRUTH, "estimated": "estimate/state", "wanted": "reference/output"}
        found = self.bag.signal(topics[of], "state")
        if of != "wanted" or not len(found):
            return found
        return replace(found, columns=(self.state("estimated") or self.state("true")).columns)

    @cached_property
    def length(self) -> float | None:
        """Of the robot at rest, all its segments together [m]; None where nobody told it."""
        if self.robot is not None:
            return float(self.robot.length)
        told = self.bag.robot.get("length")
        return float(told) if isinstance(told, (int, float)) else None

    @cached_property
    def inputs(self) -> tuple[ShownInput, ...]:
        """How the inputs of the robot that some node told are shown; none when none did."""
        return () if self.robot is None else self.robot.shown_inputs

    @cached_property
    def estimated_tip(self) -> Signal:
        """(T, 3) estimated tip; where only a state was told, the end of its centre line [m]."""
        told, (stamps, points) = self.bag.role("estimated tip"), self._lines(truth=False)
        if len(told) or not len(stamps):
            return told
        return told.like(stamps, np.array([points(row)[-1] for row in range(len(stamps))]))

    def shapes(self, truth: bool) -> tuple[np.ndarray, Callable[[int], np.ndarray]]:
        """(T,) stamps [ns] of the true, or the estimated, robot, none where it was not recorded,
        and what makes (k, 3) points along it [m] of an index of them."""
        stamps, points = self._lines(truth)
        if len(stamps):
            return stamps, points
        told = self.bag.role("true shape" if truth else "estimated shape")
        return told.stamps, told.values.__getitem__

    def _lines(self, truth: bool) -> tuple[np.ndarray, Callable[[int], np.ndarray]]:
        """As `shapes`, of states that the robot's own kind turns into a centre line."""
        topic, robot = TRUTH if truth else "estimate/state", self.robot
        states = self.bag.signal(topic, "state")
        told = {
            field.removeprefix("parameter."): signal.values
            for (of, field), signal in self.bag.signals.items()
            if of == topic and field.startswith("parameter.") and len(signal) == len(states)
        }
        groups: dict[str, list[int]] = {}
        for place, name in enumerate(states.columns):
            groups.setdefault(name.rpartition("_")[0], []).append(place)

        def poses(index: int) -> np.ndarray | None:
            state = {name: states.values[index, places] for name, places in groups.items()}
            numbers = {name: float(values[index]) for name, values in told.items()}
            return None if robot is None else robot.centre_line(state, numbers, _POINTS)

        def points(index: int) -> np.ndarray:
            found = poses(index)
            assert found is not None  # as of the first
            return found[:, :3, 3]

        known = len(states) > 0 and poses(0) is not None
        return states.stamps if known else states.stamps[:0], points

    @cached_property
    def window(self) -> tuple[int, int] | None:
        """First and last stamp [ns] at which the controller had to follow the reference.

        In simulation a command carries the stamp of the estimate it answers; the venting command of
        a controller that leaves answers none, and what the tip does after it is not the
        controller's error.
        Without any command (open loop) the reference alone decides. None without a reference.
        """
        bounds = [self.reference_tip.stamps]
        if len(self.commands):
            answered = self.estimated_tip if len(self.estimated_tip) else self.readings
            told = np.intersect1d(self.commands.stamps, answered.stamps)
            if not len(told) and len(answered):  # valves play commands at times of their own
                told = self.commands.between(*answered.stamps[[0, -1]].tolist()).stamps
            bounds.append(told)
        if any(len(stamps) == 0 for stamps in bounds):
            return None
        start = self.said(REFERENCES, "start_stamp")  # until then it stood still
        first = [start] if isinstance(start, int) else []
        return max([*first, *(int(s[0]) for s in bounds)]), min(int(s[-1]) for s in bounds)

    @cached_property
    def judged(self) -> tuple[int, int] | None:
        """First and last stamp [ns] that figures are made of: the window, up to where a controller
        begins to see that the reference stands still when its duration is over. A motion that stops
        at once cannot be followed, and a predictive controller errs to prepare for it.
        """
        settings, start = self.said(REFERENCES, "settings"), self.said(REFERENCES, "start_stamp")
        if self.window is None or not isinstance(settings, dict) or not isinstance(start, int):
            return self.window
        duration, rate = settings.get("duration"), settings.get("rate_hz")
        if not duration or not rate:
            return self.window
        rows = self.bag.said(self.controller, "horizon") or 0
        rows += (self.bag.said(self.controller, "delay") or 1) if rows else 0
        stands = start + round(1e9 * (duration - rows / rate))
        first, last = self.window
        return first, min(last, stands) if stands > first else last

    def tracking_error(self, after: float = 0.0) -> Signal:
        """(T,) distance of tip and reference [m], from `after` [s] on as far as it is judged."""
        error = _at(self.tip, self.reference_tip.stamps).minus(self.reference_tip).norm()
        start, end = self.judged or (1, 0)
        return error.between(start + round(1e9 * after), end)

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
        signal = self.bag.signal
        return {n: (signal(t, f"parameter.{n}"), signal(t, f"std.{n}")) for t, n in names}

    @property
    def loads(self) -> list[str]:
        """Scripted loads on the simulated robot in words; none where none were told."""
        told = self.bag.said("simulator", "loads")
        return [str(each) for each in told] if isinstance(told, list) else []

    def limits(self) -> tuple[float, float] | None:
        """Lowest and highest allowed pressure [Pa]; None when no node told it."""
        limits = self.bag.robot.get("pressure_limits")
        return (limits["minimum"], limits["maximum"]) if limits else None


def _at(tip: Signal, stamps: np.ndarray) -> Signal:
    """(T, 3) A tip; interpolated at `stamps` [ns] where cameras gave it a time of its own."""
    return tip if len(np.intersect1d(tip.stamps, stamps)) else tip.at(stamps, LONGEST_HOLE)
