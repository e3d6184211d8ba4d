"""The reference that is told its goals while it runs.

`goal/pose` or `goal/path` says where the tip is to go, and the action `go` sends it there: planned
inside the workspace, refused with a reason otherwise. `follow` lets it pursue `reference/tip`, as a
joystick gives it; `cancel` brakes and stays. Whatever comes, the wanted tip moves no faster than
the limits of speed and acceleration, and what is silent lets it stand.
"""

import threading
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
from pydantic import Field
from scipy.spatial.transform import Rotation

from softcr_control.goals.motion import Limits, OnPath, Path, Point, Pursuit
from softcr_control.goals.turning import Turning
from softcr_control.goals.workspace import ModelTipSolver, Way, Workspace
from softcr_control.predictive.horizon import MAXIMUM_DELAY
from softcr_control.reference.block import RowsSettings
from softcr_models.errors import UserError
from softcr_models.models import make_model, model_class
from softcr_models.prediction import RodPrediction
from softcr_models.robots.robot import kind_of
from softcr_models.rod.cosserat_rod import CosseratRod
from softcr_models.rod_model.rod_model import RodModel
from softcr_runtime.blocks.block import CLOCK, BlockBase, Input, Output, Samples
from softcr_runtime.blocks.values import Goal, GoalState, ReferenceRows
from softcr_runtime.settings.node_settings import LIVE
from softcr_runtime.wire.robot_topics import robot_topics


class GoalSettings(RowsSettings):
    """How fast the tip may move, and how exactly a goal must be reached."""

    speed: float = Field(
        0.05,
        gt=0.0,
        le=2.0,
        description="highest speed of the tip",
        json_schema_extra={"unit": "m/s", **LIVE},
    )
    acceleration: float = Field(
        0.25,
        gt=0.0,
        le=50.0,
        description="highest acceleration of the tip",
        json_schema_extra={"unit": "m/s^2", **LIVE},
    )
    tolerance: float = Field(
        1e-3,
        gt=0.0,
        le=0.5,
        description="largest distance from the goal of a tip that stands still",
        json_schema_extra={"unit": "m"},
    )
    turn_tolerance: float = Field(
        0.1,
        gt=0.0,
        le=3.2,
        description="largest angle between the tip and an orientation that a goal asks for; for "
        "robots with more inputs than coordinates of the tip, only its axis counts; (0, "
        "0, 0, 1) asks for none",
        json_schema_extra={"unit": "rad"},
    )
    turn_speed: float = Field(
        0.5,
        gt=0.0,
        le=20.0,
        description="highest rate at which a requested orientation changes",
        json_schema_extra={"unit": "rad/s", **LIVE},
    )
    spacing: float = Field(
        5e-3,
        gt=0.0,
        le=1.0,
        description="distance between points of a path at which the workspace is searched",
        json_schema_extra={"unit": "m"},
    )
    patience: float = Field(
        0.2,
        gt=0.0,
        le=10.0,
        description="silence of a stream of goals after which the tip stops",
        json_schema_extra={"unit": "s", **LIVE},
    )

    @property
    def limits(self) -> Limits:
        """Of motions."""
        return Limits(self.speed, self.acceleration, self.period)


POSE, PATH, STREAM, STATE = "goal/pose", "goal/path", "reference/tip", "goal/state"
_MOST_PERIODS = 10  # that one tick makes up for; a longer hole is a pause of the motion
_REST_SHARE = 2.0  # of planning, in which ticks go on, over what it computes
_STATE_PERIOD = 0.2  # between two tellings of a state that does not change [s]


_PLACE = 3  # numbers of a tip without orientation
_ASKS_NONE = "(0, 0, 0, 1) asks for none"
_Motion = OnPath | Pursuit


def _asks(quaternion: np.ndarray) -> bool:
    """Whether (4,) x y z w asks for an orientation."""
    return not np.allclose(np.abs(quaternion), (0.0, 0.0, 0.0, 1.0), atol=1e-9)


def _told(tip: np.ndarray) -> str:
    return ", ".join(f"{value:.4g}" for value in tip)


class GoalReference(BlockBase):
    """Moves the tip to poses, along paths or after a stream, as requested during the run."""

    name = "goal"
    Settings = GoalSettings
    kinds = None
    actions = ("start", "go", "follow", "cancel")

    def __init__(self, robot: Any, settings: Any, workspace: Workspace | None = None) -> None:
        """See BlockBase.

        Args:
            robot: see BlockBase.
            settings: see BlockBase.
            workspace: another one than the model's.
        """
        super().__init__(robot, settings)
        self.on_grid = settings.resampled
        topics = robot_topics(robot)
        name = settings.model or kind_of(settings.robot)
        is_rod = issubclass(model_class(name), RodModel)
        self._unknown: np.ndarray | None = None
        lead, self._topic = topics.state, "reference/output"
        if is_rod:
            rod = CosseratRod(robot, settings.intervals)
            self._unknown, self._topic = np.full(rod.state_size, np.nan), "reference/rod"
            reach: Any = ModelTipSolver(RodPrediction(rod, single_precision=False))
        elif not settings.model and (own := robot.tip_solver()) is not None:
            lead, reach = topics.poses, own  # of what is led by the cameras
        else:
            reach = ModelTipSolver(make_model(name, robot))
        self.inputs = (
            Input(CLOCK if settings.resampled else lead, "lead"),
            *(Input(each, "newest", needed=False, wakes=False) for each in (POSE, PATH)),
            Input(STREAM, "latest", needed=False, wakes=False),
        )
        self.outputs = (self._topic, STATE)
        share = 0.0 if settings.lockstep else _REST_SHARE
        self._workspace = workspace or Workspace(reach, settings.tolerance, settings.seed, share)
        self._limits = settings.limits
        self._lock = threading.Lock()  # actions come in another thread than ticks
        self.reset()

    @property
    def tip(self) -> np.ndarray:
        """(3,) where the tip should be now [m]."""
        return self._point.position

    def rehearse(self) -> None:
        """See BlockBase; the workspace is looked at, which takes a second."""
        self._workspace.contains(self._workspace.rest)
        self._workspace.way(self._workspace.rest, self._workspace.rest[None], 1.0)

    def reset(self) -> None:
        """See BlockBase; the wanted tip is that of the robot at rest."""
        self._motion: _Motion = Pursuit(Point.at_rest(self._workspace.rest), None, self._limits)
        self._next: tuple[Way, Rotation | None, Rotation | None] | None = None
        self._turning = Turning()
        self._goal: Goal | None = None
        self._stream: tuple[int, np.ndarray] | None = None
        self._follows = False
        self._last: int | None = None
        self._first_periods = 0  # that the first tick makes
        self._started = self.settings.start == "first sample"
        self._said, self._warns = "no goal yet", False
        self._told: tuple[int, Any] = (0, None)

    def prepared(self, settings: Any) -> Callable[[], None]:
        """See BlockBase; a way that has begun keeps its limits."""
        use = super().prepared(settings)

        def use_both() -> None:
            use()
            self._limits = settings.limits

        return use_both

    def time_jumped(self, seconds: float) -> None:
        """See BlockBase: the tip brakes where it is, and waits to be asked again."""
        with self._lock:
            self._next, self._follows, self._goal, self._stream = None, False, None, None
            self._last, self._first_periods = None, 1  # the motion goes on, by one period
            self._stop()
            self._say("time jumped: the tip stops and stays", warns=True)

    # --- actions ----------------------------------------------------------------------------

    def act(self, action: str) -> str:
        """`go`: Goes to the last goal/pose or along the last goal/path. `follow`: Follows
        reference/tip until go or cancel. `cancel`: Stops the tip. `start`: Accepts goals from now
        on."""
        if action == "start":
            self._started = True
            return "goals are taken"
        if not self._started:
            raise UserError("the run has not begun: goals are taken after goal/start")
        return {"go": self._go, "follow": self._follow, "cancel": self._cancel}[action]()

    def _go(self) -> str:
        goal = self._goal
        if goal is None:
            raise UserError(
                f"no goal: none came on {POSE} or {PATH} since the last one was used; diagnostics "
                "tell of messages that are none"
            )
        if goal.frame not in (self.expected.frame, ""):
            raise self._refused(
                f"the goal is in frame {goal.frame!r}, must be {self.expected.frame!r}, or empty "
                "for the same; softcr transforms none"
            )
        with self._lock:
            start = self._motion.stopped().point.position
        way = self._workspace.way(start, goal.tips, self.settings.spacing)
        if way.problem:
            raise self._refused(way.problem)
        if problem := self._turned_too_far(goal):
            raise self._refused(problem)
        target, begin = self._asked(goal), None
        if target is not None and self._turning.now is None:
            begin = self._workspace.orientation_at(start)
        with self._lock:
            self._goal = None if self._goal is goal else self._goal
            self._next, self._follows = (way, target, begin), False
            length = float(np.linalg.norm(np.diff(way.points, axis=0), axis=1).sum())
            length += float(np.linalg.norm(way.points[0] - start))
            self._say(f"going to ({_told(goal.tips[-1])}) m, {1e3 * length:.0f} mm of way")
        return self._said

    def _asked(self, goal: Goal) -> Rotation | None:
        """The orientation that the tip shall have at the end, if the robot can choose it."""
        if goal.orientations is None or not self._workspace.chooses_orientation:
            return None
        wanted = goal.orientations[-1]
        return Rotation.from_quat(wanted) if _asks(wanted) else None

    def _turned_too_far(self, goal: Goal) -> str:
        """Why an orientation that the goal asks for is not that of the tip there; else empty."""
        if goal.orientations is None:
            return ""
        chooses = self._workspace.chooses_orientation
        if chooses and any(_asks(each) for each in goal.orientations[:-1]):
            return "only the last point of a path may ask for an orientation"
        for tip, wanted in zip(goal.tips, goal.orientations, strict=True):
            if not _asks(wanted):
                continue
            if chooses:
                _, left, turn = self._workspace.numbers_at_pose(tip, wanted)
                if left > self.settings.tolerance:
                    return (
                        f"with the orientation asked for at ({_told(tip)}) m the tip comes no "
                        f"nearer than {1e3 * left:.1f} mm, must be "
                        f"{1e3 * self.settings.tolerance:.1f} mm: {_ASKS_NONE}"
                    )
            else:
                turn = self._workspace.turn_at(tip, wanted)
            if not np.isfinite(turn):
                return "no orientation of this robot's tip can be asked for: " + _ASKS_NONE
            if turn > self.settings.turn_tolerance:
                place, limit = _told(tip), np.degrees(self.settings.turn_tolerance)
                return (
                    f"the orientation asked for at ({place}) m is {np.degrees(turn):.0f} deg away "
                    f"from that of the tip there, must be {limit:.1f} deg at most: {_ASKS_NONE}"
                )
        return ""

    def _follow(self) -> str:
        with self._lock:
            if self._fresh_target(self._last or 0) is None:
                raise UserError(
                    f"nothing comes on {STREAM}: start what sends it first; diagnostics tell of "
                    "messages that are none"
                )
            self._next, self._follows = None, True
            self._say(f"following {STREAM}")
        return self._said

    def _cancel(self) -> str:
        with self._lock:
            idle = self._rests and self._next is None and not self._follows
            self._next, self._follows, self._goal = None, False, None
            self._stop()
            self._say("nothing to cancel" if idle else "cancelled: the tip stops and stays")
        return self._said

    def _refused(self, line: str) -> UserError:
        """A goal is taken back; what goes on goes on."""
        with self._lock:
            self._goal = None
            self._say(f"refused: {line}", warns=True)
        return UserError(line)

    # --- ticks ------------------------------------------------------------------------------

    def tick(self, now: int, samples: Samples) -> Iterable[Output]:
        """The rows from now on, and how it stands with the goal."""
        with self._lock:
            self._take(samples)
            for _ in range(self._periods(now)):
                self._step(now)
            self._last = now
            rows = self._rows(self.settings.horizon + 1 + MAXIMUM_DELAY)
            turns = self._turning.rows(len(rows))
            states = None
            if self._unknown is not None:
                states = np.tile(self._unknown, (len(rows), 1))
            told = self._state_when_due(now)
        reference = ReferenceRows(now, self.settings.period, states, rows, tip_orientations=turns)
        return [Output(self._topic, now, reference), *told]

    def _take(self, samples: Samples) -> None:
        goals = [samples[topic] for topic in (POSE, PATH) if topic in samples]
        if goals:
            self._goal = max(goals, key=lambda sample: sample.stamp).value
        if STREAM in samples:
            self._stream = samples[STREAM].stamp, samples[STREAM].value

    def _periods(self, now: int) -> int:
        """How many have passed since the last tick."""
        if self._last is None:
            return self._first_periods
        passed = round(1e-9 * (now - self._last) / self.settings.period)
        return min(max(passed, 0), _MOST_PERIODS)

    def _step(self, now: int) -> None:
        """One period on."""
        if self._follows:
            target = self._fresh_target(now, complain=True)
            place = None if target is None else target[:3]
            self._motion = Pursuit(self._point, place, self._limits)
            self._turn_after(target)
        elif self._next is not None:
            if self._point.stands:
                self._begin(*self._next)
                self._next = None
            else:
                self._brake()
        moved, turned = self._motion.after(), self._turning.after()
        there = isinstance(moved, OnPath) and moved.arrived and turned.done
        if there and not (self._arrived(self._motion) and self._turning.done):
            self._say("arrived")
        self._motion, self._turning = moved, turned

    def _begin(self, way: Way, target: Rotation | None, begin: Rotation | None) -> None:
        here = self._point.position
        caps = np.r_[np.inf, way.speeds]
        self._motion = OnPath(Path(np.vstack((here, way.points)), self._limits, caps))
        self._turning = self._turning.towards(target, begin, self._turn_step)
        if self._motion.arrived and self._turning.done:
            self._say("arrived")

    def _brake(self) -> None:
        self._motion = self._motion.braking()

    def _stop(self) -> None:
        """Place and orientation."""
        self._brake()
        self._turning = self._turning.stopped()

    def _turn_after(self, target: np.ndarray | None) -> None:
        """After what a stream asks for: (7,) with an orientation, (3,) without one, None where it
        is silent."""
        if target is None:
            self._turning = self._turning.stopped()
        elif len(target) == _PLACE:
            self._turning = Turning()
        else:
            wanted = Rotation.from_quat(target[_PLACE:])
            begin = None
            if self._turning.now is None:
                begin = self._workspace.orientation_at(self._point.position)
            self._turning = self._turning.towards(wanted, begin, self._turn_step)

    @property
    def _turn_step(self) -> float:
        """Largest turn in a period [rad]."""
        return float(self.settings.turn_speed * self.settings.period)

    @property
    def _rests(self) -> bool:
        """Whether neither the wanted place nor the wanted orientation changes."""
        return self._point.stands and self._turning.done

    def _rows(self, count: int) -> np.ndarray:
        """(count, 3) wanted tips from now on [m]."""
        motion, found = self._motion, [self._point.position]
        while len(found) < count:
            motion = motion.after()
            found.append(motion.point.position)
        return np.array(found)

    def _fresh_target(self, now: int, complain: bool = False) -> np.ndarray | None:
        """Of the stream, if it is not silent and leads to where the tip can be: (3,), or (7,) with
        an orientation."""
        if self._stream is None:
            return None
        stamp, target = self._stream
        if abs(now - stamp) > 1e9 * self.settings.patience:
            if complain:
                self._say(f"{STREAM} is silent: the tip stops", warns=True)
            return None
        if not self._workspace.contains(target[:_PLACE]):
            if complain:
                self._say(
                    f"({_told(target[:_PLACE])}) m is outside of the workspace: the tip stops",
                    warns=True,
                )
            return None
        if complain:
            self._say(f"following {STREAM}")
        return target

    # --- what is told -----------------------------------------------------------------------

    @property
    def _point(self) -> Point:
        return self._motion.point

    @staticmethod
    def _arrived(motion: _Motion) -> bool:
        return isinstance(motion, OnPath) and motion.arrived

    def _say(self, line: str, warns: bool = False) -> None:
        self._said, self._warns = line, warns

    def _word(self) -> str:
        if self._follows:
            waits = isinstance(self._motion, Pursuit) and self._motion.target is None
            return "waiting" if waits else "following"
        if self._next is not None:
            return "moving"
        if self._rests and (not isinstance(self._motion, OnPath) or self._motion.stops):
            return "idle"
        if isinstance(self._motion, OnPath) and not self._motion.stops:
            return "idle" if self._motion.arrived and self._turning.done else "moving"
        return "stopping"

    def _state_when_due(self, now: int) -> list[Output]:
        told_at, key = self._told
        word = self._word()
        new = (word, self._said)
        if new == key and (word == "idle" or now - told_at < 1e9 * _STATE_PERIOD):
            return []
        self._told = now, new
        motion, left = self._motion, float("nan")
        if isinstance(motion, OnPath):
            left = motion.path.length - motion.place
        state = GoalState(word, self._said, self._warns, left, self.tip, self.expected.frame)
        return [Output(STATE, now, state)]

    def describe(self) -> dict[str, Any]:
        return {"reference": "goal", "state": self._word(), "said": self._said}

    def warnings(self) -> list[str]:
        return [self._said] if self._warns else []
