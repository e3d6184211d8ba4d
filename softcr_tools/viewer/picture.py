"""What the live view knows: the newest of everything, and a table of the last seconds.

No ROS, no browser: decoded messages go in by topic, arrays come out. What a robot is shown by
follows from the topics that arrive: node poses on `estimate/shape` are enough for a shape.
"""

from collections import deque
from collections.abc import Iterable
from typing import Any

import numpy as np

from softcr_models.robots.kinds import AnyRobot
from softcr_models.robots.obstacle_files import ObstacleFile, parse_obstacles
from softcr_models.robots.robot import Robot
from softcr_models.rod_model.tip_force import TIP_FORCE, known_tip_force
from softcr_runtime.bags.signals import fields_of
from softcr_runtime.blocks.values import PointForces, ReferenceRows
from softcr_runtime.wire.codecs import expected_of
from softcr_runtime.wire.diagnostics import DiagnosticReport
from softcr_runtime.wire.robot_topics import inputs_of, robot_topics
from softcr_runtime.wire.rod_clouds import ReferenceCloud
from softcr_runtime.wire.topics import ACTUATOR_TOPICS, topics_of
from softcr_tools.viewer.body import tendon_lines
from softcr_tools.viewer.shape import Shape, shape_makers

WINDOW = 30.0  # how far back the plots and the trail go [s]
SAMPLE_PERIOD = 1 / 30  # between two rows of the table, at least [s]
STALE = 0.5  # what is older than this beside the newest stamp is not drawn as present [s]
COMPLIANCE = "bending_compliance"
HEARD = {
    "estimate/rod": "estimate", "estimate/state": "estimate",
    "estimate/constant_curvature": "estimated arc", "estimate/shape": "estimated shape",
    "reference/rod": "reference", "reference/output": "reference", "reference/tip": "setpoint",
    "mocap/tip/pose": "cameras", "mocap/body/poses": "body poses",
    "force_torque/wrench": "force sensor", "tendon/lengths": "tendon lengths",
    **{
        topic: f"{kind.quantity}s" if topic.endswith("/state") else "commands"
        for topic, kind in ACTUATOR_TOPICS.items()
        if topic.endswith(("/state", "/sent"))
    },
}  # fmt: skip
"""Topics whose flow is shown, with a word for each."""

_RESTART = 1.0  # a stamp so far back begins a new story: a replay that was started again [s]
_STANDS = 1.0  # a setpoint has no horizon: its only row stands for itself [s]
_ARC, _STIFFNESS = "estimate/constant_curvature", "bending_stiffness"
_REFERENCES = ("reference/rod", "reference/output")
_TIP = "estimate/tip/pose"
_ALWAYS = ("estimate_error", "measured_error", "tip_x", "tip_y", "tip_z")
_NOWHERE = np.full(3, np.nan)


class Picture:
    """The newest message of each topic, and a table of the past.

    The table has `estimate_error` and `measured_error`, distances of the estimated and of the
    measured tip from the reference at their stamps [m]; `tip_x`, `tip_y`, `tip_z` of the estimate
    [m]; and what has arrived of `measured_<actuator>`, `commanded_<actuator>` [Pa] or [m],
    estimated parameters by name with `<name>_std`.

    Attributes:
        robot: whose.
        actuators: their names; inputs are in this order.
        has_valves: whether the robot's commands go to valves.
        inputs_shown: how inputs are shown.
        expected: topics that are said to be silent where nothing like them was heard.
        topics, tip_topics: of the robot's commands and sensors; of estimated and measured tips.
        frame: that positions are in.
        diagnostics, safety: the newest status of each node by its name, and safety/state.
        received: when each topic was last heard, on the monotonic clock [s].
        told: when each node last told its status, on the same clock [s].
    """

    def __init__(self, robot: AnyRobot) -> None:
        """Know nothing yet of a robot."""
        self.topics, expected = robot_topics(robot), expected_of(robot)
        self.actuators, self.frame = expected.actuators, expected.frame
        known = topics_of(robot.type)
        self.has_valves = "safety/state" in known
        self.inputs_shown = robot.shown_inputs
        expected_here: tuple[str, ...]
        of_rod, others = ("estimate/rod", "reference/rod"), ("estimate/state", "reference/output")
        expected_here = of_rod if of_rod[0] in known else others
        if "force_torque/wrench" in known:
            expected_here = (*expected_here, "force_torque/wrench")
        self.expected = (*expected_here, self.topics.poses, self.topics.state, self.topics.sent)
        self.diagnostics: dict[str, DiagnosticReport] = {}
        self.safety: DiagnosticReport | None = None
        self.received: dict[str, float] = {}
        self.told: dict[str, float] = {}
        self._obstacles: tuple[Any, ObstacleFile | None] = None, None  # as told, and as read
        self.robot, self._makers = robot, shape_makers(robot)
        self._estimates = tuple(topic for topic in self._makers if topic.startswith("estimate/"))
        self._seen_tips = (self.topics.poses,)
        self.tip_topics = {"estimate": (_TIP, *self._estimates), "measured": self._seen_tips}
        self._newest: dict[str, tuple[int, Any]] = {}
        self._shapes: dict[str, tuple[int, Shape | None]] = {}
        self._columns = dict.fromkeys(_ALWAYS)
        self._rows: deque[tuple[int, np.ndarray]] = deque()

    def hear(self, topic: str, stamp: int, value: Any, received: float) -> None:
        """Take what a topic's codec made of a message with a stamp [ns], received at a time on the
        monotonic clock [s]."""
        self.received[topic] = received
        if topic == "safety/state":
            self.safety = value
        elif topic == "/diagnostics":
            self.diagnostics |= {report.name.partition(":")[0]: report for report in value}
            self.told |= {report.name.partition(":")[0]: received for report in value}
        else:
            if stamp < self.stamp - round(1e9 * _RESTART):
                self._newest.clear()
                self._rows.clear()
            self._newest[topic] = (stamp, value)

    def sample(self) -> None:
        """Add a row to the table if it is time for one, by the stamps."""
        stamp = self.stamp
        due = self._rows[-1][0] + round(1e9 * SAMPLE_PERIOD) if self._rows else 0
        if not self._newest or stamp < due:
            return
        row = self._row()
        self._columns |= dict.fromkeys(row)
        self._rows.append((stamp, np.array([row.get(name, np.nan) for name in self._columns])))
        while self._rows[0][0] < stamp - round(1e9 * WINDOW):
            self._rows.popleft()

    @property
    def stamp(self) -> int:
        """The newest stamp [ns]; 0 when nothing was heard."""
        return max((stamp for stamp, _ in self._newest.values()), default=0)

    @property
    def shape_topic(self) -> str | None:
        """The topic that tells the estimated shape now; None when all are stale."""
        present = (topic for topic in self._estimates if self.present(topic) is not None)
        return next((topic for topic in present if self._shape(topic) is not None), None)

    @property
    def estimate(self) -> Shape | None:
        """The estimated shape, unless it is stale."""
        return self._shape(self.shape_topic)

    @property
    def tendon_names(self) -> tuple[str, ...]:
        """Of a rod."""
        robot = self.robot
        return tuple(each.name for each in robot.tendons) if isinstance(robot, Robot) else ()

    @property
    def tendons(self) -> dict[str, np.ndarray]:
        """(k, 3) points along each tendon of an estimated rod, by name [m]."""
        rod = self.estimate
        if rod is None or not isinstance(self.robot, Robot):
            return {}
        return tendon_lines(self.robot, rod)

    @property
    def truth(self) -> Shape | None:
        """The simulator's own robot, unless it is stale."""
        return self._shape(self._flowing(t for t in self._makers if t not in self._estimates))

    @property
    def obstacles(self) -> ObstacleFile | None:
        """That a simulator told; None where it told none."""
        for report in self.diagnostics.values():
            told = report.values.get("obstacles")
            if told is not None:
                if told != self._obstacles[0]:
                    self._obstacles = told, parse_obstacles(told)
                return self._obstacles[1]
        return None

    @property
    def loads(self) -> PointForces | None:
        """On the simulated robot, by a script, unless they are stale."""
        forces: PointForces | None = self.present("simulation/truth/loads")
        return forces

    @property
    def contact(self) -> PointForces | None:
        """Of the simulated robot with obstacles, unless it is stale."""
        forces: PointForces | None = self.present("simulation/truth/contact/points")
        return forces

    @property
    def tip_force(self) -> PointForces | None:
        """On the estimated tip, where a force is known there; None where none is looked for."""
        parameters, tip = self.parameters, self.estimated_tip[1]
        if tip is None or not set(TIP_FORCE) <= parameters.keys():
            return None
        force = known_tip_force(*(
            {name: told[place] for name, told in parameters.items()} for place in (0, 1)
        ))  # fmt: skip
        wrench = np.zeros((1, 6))
        wrench[0, :3] = 0.0 if force is None else force
        return PointForces(tip[np.newaxis], wrench)

    @property
    def reference(self) -> ReferenceCloud | ReferenceRows | None:
        """The wanted motion, unless it is stale; a setpoint is a reference of one row, which
        never is stale: one that was said once holds."""
        wanted = self._flowing(_REFERENCES)
        if wanted is not None:
            return self.newest(wanted)[1]
        stamp, target = self.newest("reference/tip")
        return None if target is None else ReferenceRows(stamp, _STANDS, None, target[None])

    @property
    def reference_shape(self) -> np.ndarray | None:
        """(k, 3) points of the shape that is wanted now [m]; None where only the tip is."""
        points = getattr(self.reference, "positions", [None])[0]
        return points if points is not None and np.isfinite(points).all() else None

    @property
    def measured_tip(self) -> tuple[int, np.ndarray | None]:
        """Stamp [ns] and (3,) tip seen by the cameras [m]; 0 and None when it is stale."""
        topic = self._flowing(self._seen_tips)
        if topic is None:
            return 0, None
        stamp, value = self.newest(topic)
        fields = fields_of(topic, value)
        return stamp, fields.get("tip", fields.get("position"))

    @property
    def estimated_tip(self) -> tuple[int, np.ndarray | None]:
        """Stamp [ns] and (3,) estimated tip [m]; 0 and None when it is stale: of its own topic,
        which knows the end of the cap on the last node, otherwise the end of the shape."""
        told = self.present(_TIP)
        if told is not None:
            return self.newest(_TIP)[0], told.pose().position
        shape = None if self.present("estimate/rod") is not None else self.estimate
        if shape is None or self.shape_topic == _ARC:
            return 0, None
        return shape.stamp, shape.positions[-1]

    @property
    def parameters(self) -> dict[str, tuple[float, float]]:
        """Estimated parameters and their standard deviations by name; what is stale is left out.
        Of an arc its bending stiffness counts as a bending compliance [rad/(N m m)]."""
        topic = self._flowing(("estimate/rod", "estimate/state"))
        if topic is not None:
            found = self.newest(topic)[1]
            std = found.parameters_std
            return {n: (v, std.get(n, np.nan)) for n, v in found.parameters.items()}
        arc, robot = self.present(_ARC) or {}, self.robot
        if not isinstance(robot, Robot) or not {_STIFFNESS, f"{_STIFFNESS}_std"} <= arc.keys():
            return {}
        value = 1.0 / (arc[_STIFFNESS] * robot.length * (0.5 * robot.outer_diameter) ** 2)
        return {COMPLIANCE: (value, value * arc[f"{_STIFFNESS}_std"] / arc[_STIFFNESS])}

    @property
    def parameters_shown(self) -> tuple[str, ...]:
        """The bending compliance, or the first parameter that was heard with those that differ from
        it by a number only; none where none was."""
        told = [name.removesuffix("_std") for name in self._columns if name.endswith("_std")]
        if COMPLIANCE in told or not told:
            return (COMPLIANCE,) if told else ()
        family = told[0].rstrip("0123456789")
        return tuple(name for name in told if name.rstrip("0123456789") == family)

    def inputs(self, topic: str) -> np.ndarray:
        """(m,) newest inputs of a topic [Pa] or [m]; NaN when there are none, or stale ones."""
        value = self.present(topic)
        return np.full(len(self.actuators), np.nan) if value is None else inputs_of(value)

    def forces(self) -> np.ndarray | None:
        """(m,) of tendons [N]; None where none are told."""
        value = self.present(self.topics.state)
        return value[1] if isinstance(value, tuple) else None

    def shape_flows(self, now: float) -> bool:
        """Whether an estimated shape was heard lately; `now` on the clock of `received` [s]."""
        return any(self.flows(topic, now) for topic in self._estimates)

    def flows(self, topic: str, now: float) -> bool:
        """Whether a topic was heard lately; `now` on the clock of `received` [s]."""
        return now - self.received.get(topic, -np.inf) <= STALE

    def silent_for(self, now: float) -> float:
        """How long nothing that is drawn was heard; `now` on the clock of `received` [s]."""
        heard = [self.received[topic] for topic in self._newest if topic in self.received]
        age = now - max(heard, default=now)
        return age if age > STALE else 0.0

    def forget(self) -> None:
        """Know nothing any more of what was heard: another run begins."""
        self._newest.clear()
        self._rows.clear()
        self.received.clear()
        self.diagnostics.clear()
        self._columns = dict.fromkeys(_ALWAYS)

    def table(self, age: float = 0.0) -> dict[str, np.ndarray]:
        """The last `WINDOW` seconds, oldest row first, NaN where nothing was known: by name, each
        (rows,), `time` [s] and the columns. The newest row is at `-age`."""
        time = np.array([1e-9 * (stamp - self._rows[-1][0]) - age for stamp, _ in self._rows])
        rows = np.full((len(self._rows), len(self._columns)), np.nan)
        for into, (_, row) in zip(rows, self._rows, strict=True):
            into[: len(row)] = row
        return {"time": time} | dict(zip(self._columns, rows.T, strict=True))

    def newest(self, topic: str) -> tuple[int, Any]:
        """Stamp [ns] and value of the newest message; 0 and None when there is none."""
        return self._newest.get(topic, (0, None))

    def present(self, topic: str) -> Any:
        """Value of the newest message, unless it is stale."""
        stamp, value = self.newest(topic)
        return value if self.stamp - stamp <= 1e9 * STALE else None

    def _flowing(self, topics: Iterable[str]) -> str | None:
        """The first of some topics that is not stale."""
        return next((topic for topic in topics if self.present(topic) is not None), None)

    def _shape(self, topic: str | None) -> Shape | None:
        """Made once of each message."""
        if topic is None:
            return None
        stamp, value = self.newest(topic)
        if topic not in self._shapes or self._shapes[topic][0] != stamp:
            self._shapes[topic] = stamp, self._makers[topic](value, stamp)
        return self._shapes[topic][1]

    def trail(self, seconds: float) -> np.ndarray:
        """(k, 3) where the estimated tip was in the last seconds [m], oldest first."""
        places = [list(self._columns).index(f"tip_{axis}") for axis in "xyz"]
        begin = self._rows[-1][0] - round(1e9 * seconds) if self._rows else 0
        rows = [row[places] for stamp, row in self._rows if stamp >= begin]
        found = np.array(rows).reshape(-1, 3)
        return found[np.isfinite(found).all(axis=1)]

    def _row(self) -> dict[str, float]:
        told_at, tip = self.estimated_tip
        errors = self._error(told_at, tip), self._error(*self.measured_tip)
        row = dict(zip(_ALWAYS, (*errors, *(_NOWHERE if tip is None else tip)), strict=True))
        for word, topic in (("measured", self.topics.state), ("commanded", self.topics.sent)):
            names = (f"{word}_{name}" for name in self.actuators)
            row |= dict(zip(names, self.inputs(topic), strict=True))
        for name, (value, deviation) in self.parameters.items():
            row |= {name: value, f"{name}_std": deviation}
        return row

    def _error(self, stamp: int, tip: np.ndarray | None) -> float:
        """Distance [m] of a tip from the reference at a stamp [ns]."""
        rows = self.reference
        if tip is None or rows is None:
            return np.nan
        holds = rows.states is None and len(rows.tip_positions) == 1  # a setpoint
        wanted = rows.tip_positions[0] if holds else tip_at(rows, stamp)
        return float(np.linalg.norm(tip - wanted))


def tip_at(reference: ReferenceCloud | ReferenceRows, stamp: int) -> np.ndarray:
    """(3,) wanted tip [m] at a time [ns], linear between rows; NaN outside of the horizon.

    Half a period outside is taken as the end: stamps of two clocks that tick alike never are equal.
    """
    step = 1e-9 * (stamp - reference.stamp) / reference.period
    rows = np.arange(len(reference.tip_positions))
    if not -0.5 <= step <= rows[-1] + 0.5:
        return _NOWHERE
    return np.array([np.interp(step, rows, axis) for axis in reference.tip_positions.T])
