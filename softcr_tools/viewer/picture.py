"""What the live view knows: the newest of everything, and a table of the last seconds.

No ROS, no browser: decoded messages go in by topic, arrays come out.
"""

from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np

from softcr_runtime.diagnostics import DiagnosticReport
from softcr_runtime.rod_clouds import ReferenceCloud, RodCloud
from softcr_tools.viewer.shape import Arc, Shape

WINDOW = 30.0
"""How far back the plots and the trail go [s]."""

SAMPLE_PERIOD = 1 / 30
"""Between two rows of the table, at least [s]."""

STALE = 0.5
"""What is older than this beside the newest stamp is not drawn as present [s]."""

_RESTART = 1.0  # a stamp so far back begins a new story: a replay that was started again [s]

_ARC, _COMPLIANCE = "estimate/constant_curvature", "bending_compliance"
_COORDINATES = ("delta_x", "delta_y", "elongation")


class LivePicture(ABC):
    """The newest message of each topic, and a table of the past.

    Attributes:
        frame: that positions are in.
        shape_topics: topics that tell the robot's shape.
        heard_topics: those whose flow is shown, with a word for each.
        diagnostics: the newest status of each node, by its name.
        safety: the newest safety/state; None while nobody has told it.
        received: when each topic was last heard, on the monotonic clock [s].
    """

    frame: ClassVar[str]
    shape_topics: ClassVar[tuple[str, ...]]
    heard_topics: ClassVar[tuple[tuple[str, str], ...]]
    estimate_topic: ClassVar[str]
    measured_topic: ClassVar[str]

    def __init__(self, columns: Sequence[str]):
        """Know nothing yet.

        Args:
            columns: of the table, beside `time`.
        """
        self.diagnostics: dict[str, DiagnosticReport] = {}
        self.safety: DiagnosticReport | None = None
        self.received: dict[str, float] = {}
        self._columns = tuple(columns)
        self._newest: dict[str, tuple[int, Any]] = {}
        self._rows: deque[tuple[int, np.ndarray]] = deque()

    # --- in -------------------------------------------------------------------------------------

    def hear(self, topic: str, stamp: int, value: Any, received: float) -> None:
        """Take a decoded message.

        Args:
            topic: name in the table of topics.
            stamp: of the message [ns].
            value: what the decoder made of it.
            received: when, on the monotonic clock [s].
        """
        self.received[topic] = received
        if topic == "safety/state":
            self.safety = value
        elif topic == "/diagnostics":
            for report in value:
                self.diagnostics[report.name.partition(":")[0]] = report
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
        self._rows.append((stamp, self._row()))
        while self._rows[0][0] < stamp - round(1e9 * WINDOW):
            self._rows.popleft()

    # --- out ------------------------------------------------------------------------------------

    @property
    def stamp(self) -> int:
        """The newest stamp [ns]; 0 when nothing was heard."""
        return max((stamp for stamp, _ in self._newest.values()), default=0)

    @property
    @abstractmethod
    def estimate(self) -> RodCloud | Shape | None:
        """The estimated shape, unless it is stale."""

    @property
    @abstractmethod
    def truth(self) -> RodCloud | Shape | None:
        """The simulator's own robot, unless it is stale."""

    @property
    @abstractmethod
    def reference(self) -> ReferenceCloud | None:
        """The wanted motion, unless it is stale."""

    @property
    @abstractmethod
    def measured_tip(self) -> np.ndarray | None:
        """(3,) tip seen by the cameras [m], unless it is stale."""

    @property
    @abstractmethod
    def estimated_tip(self) -> np.ndarray | None:
        """(3,) estimated tip [m], unless it is stale."""

    def shape_flows(self, now: float) -> bool:
        """Whether an estimated shape was heard lately; `now` on the clock of `received` [s]."""
        return any(self.flows(topic, now) for topic in self.shape_topics)

    def flows(self, topic: str, now: float) -> bool:
        """Whether a topic was heard lately; `now` on the clock of `received` [s]."""
        return now - self.received.get(topic, -np.inf) <= STALE

    def table(self) -> dict[str, np.ndarray]:
        """The last `WINDOW` seconds, oldest row first, NaN where nothing was known.

        Returns:
            By name, each (rows,): `time` before the newest row [s, at most 0], and the columns.
        """
        rows = np.array([row for _, row in self._rows]).reshape(-1, len(self._columns))
        times = np.array([1e-9 * (stamp - self._rows[-1][0]) for stamp, _ in self._rows])
        return {"time": times, **dict(zip(self._columns, rows.T, strict=True))}

    # --- for kinds of robots --------------------------------------------------------------------

    def newest(self, topic: str) -> tuple[int, Any]:
        """Stamp [ns] and value of the newest message; 0 and None when there is none."""
        return self._newest.get(topic, (0, None))

    def present(self, topic: str) -> Any:
        """Value of the newest message, unless it is stale."""
        stamp, value = self.newest(topic)
        return value if self.stamp - stamp <= 1e9 * STALE else None

    @abstractmethod
    def _row(self) -> np.ndarray:
        """What the columns are now; NaN where nothing is known."""


class Picture(LivePicture):
    """Of a rod. The table has `estimate_error` and `measured_error`, distances of the estimated and
    of the measured tip from the reference at their stamps [m]; `compliance`, `compliance_std` of
    bending [rad/(N m m)]; `tip_x`, `tip_y`, `tip_z` of the estimate [m]; `measured_<chamber>`,
    `commanded_<chamber>` [Pa].

    Attributes:
        chambers: their names; pressures are in this order.
    """

    frame = "base"
    shape_topics = ("estimate/rod", "estimate/constant_curvature")
    heard_topics = (
        ("estimate/rod", "estimate"),
        ("estimate/constant_curvature", "estimated arc"),
        ("reference/rod", "reference"),
        ("mocap/tip/pose", "cameras"),
        ("force_torque/wrench", "force sensor"),
        ("pressure/state", "pressures"),
        ("pressure/command", "commands"),
    )
    estimate_topic, measured_topic = "estimate/tip/pose", "mocap/tip/pose"

    def __init__(self, chambers: tuple[str, ...], arc: Arc | None = None):
        """Know nothing yet.

        Args:
            chambers: their names.
            arc: the arc that may be estimated in the rod's place; None draws none.
        """
        super().__init__(
            (
                "estimate_error", "measured_error", "compliance", "compliance_std",
                "tip_x", "tip_y", "tip_z",
                *(f"measured_{chamber}" for chamber in chambers),
                *(f"commanded_{chamber}" for chamber in chambers),
            )
        )  # fmt: skip
        self.chambers = chambers
        self._arc = arc

    @property
    def estimate(self) -> RodCloud | Shape | None:
        """The estimated rod, or the arc in its place, unless it is stale."""
        rod: RodCloud | None = self.present("estimate/rod")
        stamp, numbers = self.newest(_ARC)
        if rod is not None or self._arc is None or self.present(_ARC) is None:
            return rod
        return self._arc.shape(np.array([numbers[name] for name in _COORDINATES]), stamp)

    @property
    def compliance(self) -> tuple[float, float]:
        """Estimated bending compliance [rad/(N m m)] and its deviation; NaN where not known."""
        rod, arc = self.present("estimate/rod"), self.present(_ARC)
        if rod is not None:
            return rod.parameters[_COMPLIANCE], rod.parameters_std[_COMPLIANCE]
        if arc is None or self._arc is None:
            return np.nan, np.nan
        stiffness = arc["bending_stiffness"]
        value = self._arc.compliance(stiffness)
        return value, value * arc["bending_stiffness_std"] / stiffness

    @property
    def truth(self) -> RodCloud | None:
        """The simulator's own rod, unless it is stale."""
        return self.present("simulation/truth/rod")

    @property
    def reference(self) -> ReferenceCloud | None:
        """The wanted motion, unless it is stale."""
        return self.present("reference/rod")

    @property
    def measured_tip(self) -> np.ndarray | None:
        """(3,) tip seen by the cameras [m], base frame, unless it is stale."""
        return self._tip("mocap/tip/pose")

    @property
    def estimated_tip(self) -> np.ndarray | None:
        """(3,) estimated tip [m], base frame, unless it is stale: the end of the cap on the last
        node, which estimate/rod has not."""
        return self._tip("estimate/tip/pose")

    def pressures(self, topic: str) -> np.ndarray:
        """(m,) newest pressures of a topic [Pa]; NaN when there are none, or stale ones."""
        value = self.present(topic)
        return np.full(len(self.chambers), np.nan) if value is None else value

    def _tip(self, topic: str) -> np.ndarray | None:
        pose = self.present(topic)
        return None if pose is None else pose[:3, 3]

    def _row(self) -> np.ndarray:
        tip = self.estimated_tip
        return np.array(
            [
                self._error("estimate/tip/pose"),
                self._error("mocap/tip/pose"),
                *self.compliance,
                *(np.full(3, np.nan) if tip is None else tip),
                *self.pressures("pressure/state"),
                *self.pressures("pressure/command"),
            ]
        )

    def _error(self, topic: str) -> float:
        """Distance [m] of a topic's tip from the reference at its stamp."""
        tip = self._tip(topic)
        if tip is None or self.reference is None:
            return np.nan
        return float(np.linalg.norm(tip - tip_at(self.reference, self._newest[topic][0])))


def tip_at(reference: ReferenceCloud, stamp: int) -> np.ndarray:
    """(3,) wanted tip [m] at a time [ns], linear between rows; NaN outside of the horizon.

    Half a period outside is taken as the end: stamps of two clocks that tick alike never are equal.
    """
    step = 1e-9 * (stamp - reference.stamp) / reference.period
    last = len(reference.tip_positions) - 1
    if not -0.5 <= step <= last + 0.5:
        return np.full(3, np.nan)
    rows = np.arange(last + 1)
    return np.array([np.interp(step, rows, axis) for axis in reference.tip_positions.T])
