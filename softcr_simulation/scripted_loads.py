"""Loads on a simulated rod by a script: what acts, where and when. A file of `config/loads`."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

import numpy as np
import pinocchio as pin
from pydantic import Field, model_validator

from softcr_models.errors import UserError
from softcr_models.files.number_types import Fraction, Name, NonNegative, Positive, Triple
from softcr_models.files.yaml_files import load_yaml
from softcr_models.robots.parts import Data
from softcr_models.robots.robot import Robot
from softcr_models.rod.cosserat_rod import CosseratRod
from softcr_models.rod.point_loads import PointLoad
from softcr_runtime.blocks.values import PointForces

_NOTHING = (0.0, 0.0, 0.0)


class ScriptedLoad(Data):
    """A force, a moment or both, from a time on, at a place of the rod."""

    name: Name | None = Field(
        default=None,
        description="name, different from that of every other load; load_1, load_2 when absent",
    )
    kind: Literal["dead", "follower"] = Field(
        default="dead",
        description="dead: keeps its direction, given in the base frame; follower: turns with the "
        "body, given in the frame of the section",
    )
    force: Triple = Field(default=_NOTHING, description="force at full load [N]")
    moment: Triple = Field(default=_NOTHING, description="moment at full load [N m]")
    segment: Name | None = Field(
        default=None,
        description="segment on which it acts; when absent, the outer face of the tip cap",
    )
    at: Fraction | None = Field(
        default=None, description="position along the segment; its end, 1, when absent [-]"
    )
    start: NonNegative = Field(
        default=0.0, description="start of the load, since the plant's start [s]"
    )
    duration: Positive | None = Field(
        default=None,
        description="duration of the load, including both ramps; to the end when absent [s]",
    )
    ramp: NonNegative = Field(
        default=0.0,
        description="time in which it rises linearly from `start` on, and falls at its end [s]",
    )

    @model_validator(mode="after")
    def _makes_sense(self) -> "ScriptedLoad":
        if not any((*self.force, *self.moment)):
            raise ValueError("force and moment are both zero: one of them must not be")
        if self.at is not None and self.segment is None:
            raise ValueError(f"at {self.at} without segment: must name the segment it is along")
        if self.duration is not None and self.duration < 2.0 * self.ramp:
            raise ValueError(
                f"duration {self.duration} s is shorter than both ramps of {self.ramp} s"
            )
        return self

    def share(self, time: float) -> float:
        """Of the full load at a time [s], from 0 to 1."""
        return _ramp(time - self.start, self.ramp) - _ramp(time - self._fall, self.ramp)

    def mean_share(self, begin: float, end: float) -> float:
        """Mean of `share` over a stretch of time, so that no impulse is lost."""
        risen, fallen = (
            _ramp_integral(end - since, self.ramp) - _ramp_integral(begin - since, self.ramp)
            for since in (self.start, self._fall)
        )
        return (risen - fallen) / (end - begin)

    @property
    def _fall(self) -> float:
        return math.inf if self.duration is None else self.start + self.duration - self.ramp

    def in_words(self) -> str:
        """What acts, where and when."""
        parts = [
            f"{word} ({', '.join(f'{each:g}' for each in value)}) {unit}"
            for word, value, unit in (("force", self.force, "N"), ("moment", self.moment, "N m"))
            if any(value)
        ]
        place = "the tip"
        if self.segment is not None:
            place = f"{self.segment} at {1.0 if self.at is None else self.at:g}"
        when = f"from {self.start:g} s"
        if self.duration is not None:
            when += f" to {self.start + self.duration:g} s"
        return f"{self.kind} {' and '.join(parts)} on {place} {when}"


class LoadScript(Data):
    """The content of a file of loads."""

    loads: Annotated[tuple[ScriptedLoad, ...], Field(min_length=1, max_length=64)] = Field(
        description="the loads; they add up"
    )

    @model_validator(mode="after")
    def _names_differ(self) -> "LoadScript":
        if len(set(self.names)) != len(self.names):
            raise ValueError(f"loads: names must differ, found {list(self.names)}")
        return self

    @property
    def names(self) -> tuple[str, ...]:
        """(J,) their own names, or load_1, load_2, ..."""
        return tuple(each.name or f"load_{k}" for k, each in enumerate(self.loads, start=1))


def load_script(name_or_path: str | Path, robot: Robot) -> LoadScript:
    """The loads of `config/loads/NAME.yaml`, or of the YAML file at a path, for a robot.

    Raises:
        UserError: one line with the file, the field, the value found and what is allowed.
    """
    script = load_yaml(name_or_path, "loads", LoadScript, "loads")
    for number, load in enumerate(script.loads):
        if load.segment is not None and load.segment not in robot.segment_names:
            raise UserError(
                f"loads {str(name_or_path)!r}: loads.{number}.segment: {load.segment!r} is not "
                f"allowed: robot {robot.name} has {', '.join(robot.segment_names)}"
            )
    return script


@dataclass(frozen=True)
class _Share:
    """The part of a load that a node takes.

    Attributes:
        node: from 1; None: the tip.
        weight: of the load.
        offset: (3,) from the node to where it acts, frame of the node [m].
        turn: (3, 3) from the frame of the place to that of the node.
    """

    node: int | None
    weight: float
    offset: np.ndarray
    turn: np.ndarray

    @property
    def has_lever(self) -> bool:
        """Whether it acts beside its node; the kernel knows the lever of the tip's dead force."""
        return self.node is not None and bool(self.offset.any())


class LoadsOnRod:
    """Loads of a script on the nodes of a rod.

    A load between two nodes acts on both, by the lever rule. Dead moments and levers are turned
    into the body once per call of `acting`.
    """

    def __init__(self, script: LoadScript, rod: CosseratRod) -> None:
        """
        Raises:
            UserError: a load lies between the base, which does not move, and the first node.
        """
        self.script, self._rod = script, rod
        self._shares = [
            _shares_of(load, name, rod)
            for load, name in zip(script.loads, script.names, strict=True)
        ]
        self._turns = any(
            load.kind == "dead" and (any(load.moment) or any(each.has_lever for each in shares))
            for load, shares in zip(script.loads, self._shares, strict=True)
        )

    def acting(self, begin: float, end: float, state: np.ndarray) -> list[PointLoad]:
        """Mean loads from `begin` to `end` [s], or those at `begin` if both are the same.

        As many for every time, so that no kernel is compiled when a load begins.

        Args:
            begin, end: since the plant's start [s].
            state: (nx,) of the rod, by whose directions dead moments are turned.
        """
        poses = self._rod.node_poses(state) if self._turns else None
        made = []
        for load, shares in zip(self.script.loads, self._shares, strict=True):
            scale = load.share(begin) if begin == end else load.mean_share(begin, end)
            made += [_point_load(load, scale, share, poses) for share in shares]
        return made

    def forces(self, time: float, state: np.ndarray) -> PointForces:
        """What acts at a time [s], one row for every load of the script, zero while it is off."""
        poses = self._rod.node_poses(state)
        points, wrenches = [], []
        for load, shares in zip(self.script.loads, self._shares, strict=True):
            places = [_node_pose(share, poses) for share in shares]
            spots = [
                each[:3, 3] + each[:3, :3] @ share.offset
                for share, each in zip(shares, places, strict=True)
            ]
            weights = [share.weight for share in shares]
            points.append(np.average(spots, axis=0, weights=weights))
            turns = [np.eye(3)] * len(shares)
            if load.kind == "follower":
                turns = [
                    each[:3, :3] @ share.turn for share, each in zip(shares, places, strict=True)
                ]
            full = [np.concatenate((turn @ load.force, turn @ load.moment)) for turn in turns]
            wrenches.append(load.share(time) * np.average(full, axis=0, weights=weights))
        return PointForces(np.array(points), np.array(wrenches))


def _ramp(since: float, length: float) -> float:
    """0 before, 1 after a rise of some length [s]."""
    if length > 0.0:
        return min(max(since / length, 0.0), 1.0)
    return float(since >= 0.0)


def _ramp_integral(since: float, length: float) -> float:
    """Of `_ramp` from its begin to a time after it [s]."""
    if since <= 0.0:
        return 0.0
    return since - 0.5 * length if since >= length else 0.5 * since * since / length


def _shares_of(load: ScriptedLoad, name: str, rod: CosseratRod) -> list[_Share]:
    nodes = rod.total_intervals
    if load.segment is None:
        cap = np.array([0.0, 0.0, rod.robot.tip_cap_length])
        return [_Share(None, 1.0, cap, np.eye(3))]
    segment = rod.robot.segment_names.index(load.segment)
    counts = np.diff(rod.grid.first_row) - 1
    first, count = int(counts[:segment].sum()), int(counts[segment])
    place = count * (1.0 if load.at is None else load.at)
    below = min(math.floor(place), count - 1)
    upper = place - below
    if first + below == 0 and upper < 1.0:
        raise UserError(
            f"load {name}: at {load.at} of {load.segment}: lies between the base, which does not "
            f"move, and the first node of the plant's rod, at {1.0 / count:g}: must be there or "
            "farther out, or the plant have more intervals"
        )
    found = []
    for node, weight in ((below, 1.0 - upper), (below + 1, upper)):
        if weight > 0.0:
            offset, turn = np.zeros(3), np.eye(3)
            connector = rod.robot.segments[segment - 1].connector if node == 0 else None
            if connector is not None:  # the node of a boundary is the one before it
                offset, turn = connector.offset, connector.rotation_matrix
            found.append(_Share(min(first + node, nodes), weight, offset, turn))
    return found


def _node_pose(share: _Share, poses: np.ndarray) -> np.ndarray:
    pose: np.ndarray = poses[-1 if share.node is None else share.node]
    return pose


def _point_load(
    load: ScriptedLoad, scale: float, share: _Share, poses: np.ndarray | None
) -> PointLoad:
    force = scale * share.weight * np.array(load.force)
    moment = scale * share.weight * np.array(load.moment)
    if load.kind == "follower":
        pull = share.turn @ force
        turning = share.turn @ moment + np.cross(share.offset, pull)
        return PointLoad(wrench=np.concatenate((pull, turning)), node=share.node)
    if poses is None:
        return PointLoad(force, node=share.node)
    into_body = _node_pose(share, poses)[:3, :3].T
    turning = into_body @ moment
    if share.has_lever:
        turning += pin.skew(share.offset) @ into_body @ force
    return PointLoad(force, np.concatenate((np.zeros(3), turning)), share.node)


def in_words(script: LoadScript) -> Sequence[str]:
    """A line for each load, with its name."""
    told = zip(script.names, script.loads, strict=True)
    return [f"{name}: {load.in_words()}" for name, load in told]
