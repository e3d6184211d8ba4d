"""Rates of a collocated arm from one dense linear system, assembled block by block.

The implicit midpoint rule in every interval of every segment, a wrench on either side of each
boundary between segments, rigid bodies at boundaries and tip; no elimination, no recursion. `up` is
carried along the arm as the pose is: in sub-intervals whose strain is taken at one point of each.
"""

from dataclasses import dataclass, fields

import numpy as np
from scipy.linalg import block_diag, expm
from scipy.optimize import root
from scipy.spatial.transform import Rotation

from oracles.arms import Arm, hat, tendon_wrenches

STRAIGHT = np.array([0.0, 0.0, 1.0, 0.0, 0.0, 0.0])


@dataclass(frozen=True)
class Grid:
    """Intervals of each segment; sub-intervals of an interval and where their strain is taken."""

    intervals: tuple[int, ...]
    subintervals: int = 4
    point: float = 0.5

    @property
    def total(self) -> int:
        """Number of intervals of the arm."""
        return sum(self.intervals)


@dataclass(frozen=True)
class State:
    """Velocities (N, 6) of the nodes but the clamped one, before a connector where there is one;
    elastic wrenches (N + K, 6), two at a boundary; (6,) the one on the mounting."""

    velocities: np.ndarray
    wrenches: np.ndarray
    base: np.ndarray

    def vector(self) -> np.ndarray:
        """(12 N + 6 K + 6,)."""
        return np.concatenate([getattr(self, each.name).ravel() for each in fields(self)])


@dataclass(frozen=True)
class Interval:
    """Where an interval stands: from `node` to the next, its wrenches from `row` to the next."""

    segment: int
    node: int
    row: int
    start: float  # arc length from the base [m]
    length: float


def intervals(arm: Arm, grid: Grid) -> list[Interval]:
    """All intervals, base to tip."""
    found: list[Interval] = []
    for index, (segment, count) in enumerate(zip(arm.segments, grid.intervals, strict=True)):
        h = segment.length / count
        for i in range(count):
            node = len(found)
            start = arm.starts()[index] + i * h
            found.append(Interval(index, node, node + index, start, h))
    return found


def ad(x: np.ndarray) -> np.ndarray:
    """(6, 6) of a twist, linear first."""
    linear, angular = hat(x[:3]), hat(x[3:])
    return np.block([[angular, linear], [np.zeros((3, 3)), angular]])


class Equations:
    """An arm on a grid at one state: every term that the rates multiply, and every other one.

    Attributes:
        at: per interval, what enters its equations (`_Terms`).
        bodies: per boundary and for the tip, (node, matrix (6, 6), gravity's wrench (6,)).
        tip_load: (6,) wrench on the last node.
    """

    def __init__(self, arm: Arm, grid: Grid, state: State) -> None:
        self.arm, self.grid, self.state = arm, grid, state
        self.places = intervals(arm, grid)
        self.nodes = np.vstack((np.zeros((1, 6)), state.velocities))
        rotations, means = _rotations(arm, grid, state.wrenches)
        self.at = [self._terms(i, means[i]) for i in range(len(self.places))]
        self.bodies = []
        for index, segment in enumerate(arm.segments[:-1]):
            node = sum(grid.intervals[: index + 1])
            body = segment.connector.body
            # the rotation before the connector
            up = rotations[node].T @ arm.up
            self.bodies.append((node, body.matrix(), body.weight(up)))
        last = rotations[-1]
        weight = arm.payload.weight(last.T @ arm.up)
        self.bodies.append((grid.total, arm.payload.matrix(), weight))
        self.tip_load = arm.follower + np.concatenate((last.T @ arm.dead_force, np.zeros(3)))

    def _terms(self, i: int, mean_up: np.ndarray) -> "_Terms":
        place = self.places[i]
        segment = self.arm.segments[place.segment]
        wrenches = self.state.wrenches[place.row : place.row + 2]
        before = self.nodes[place.node]
        if place.segment and self.places[i - 1].segment != place.segment:
            before = self.arm.segments[place.segment - 1].connector.adjoint() @ before
        after = self.nodes[place.node + 1]
        velocity = 0.5 * (before + after)
        mass = segment.line_density * block_diag(np.eye(3), np.diag(segment.rotary))
        external = -self.arm.drag * velocity
        external[:3] -= segment.line_density * mean_up
        actuation = self.actuation(place, wrenches)
        return _Terms(
            compliance=np.diag(segment.compliance), relaxation=np.diag(segment.relaxation),
            mass=mass, strain=STRAIGHT + segment.compliance * wrenches.mean(axis=0),
            velocity=velocity, stretch=(after - before) / place.length, external=external,
            actuation=actuation, static=wrenches - actuation,
        )  # fmt: skip

    def actuation(self, place: Interval, wrenches: np.ndarray) -> np.ndarray:
        """(2, 6) wrench of chambers and tendons at both nodes of an interval."""
        segment = self.arm.segments[place.segment]
        arc_lengths = place.start + np.array([0.0, place.length])
        strains = STRAIGHT + segment.compliance * wrenches
        return segment.wrench + tendon_wrenches(self.arm, place.segment, arc_lengths, strains)[0]

    def system(self) -> tuple[np.ndarray, np.ndarray]:
        """Matrix and right-hand side of the rates of velocities and wrenches."""
        size = 6 * (2 * self.grid.total + len(self.arm.segments))
        matrix, right = np.zeros((size, size)), np.zeros(size)
        row = 0

        def put(block: np.ndarray, kind: str, which: int) -> None:
            """Add a block to the current rows; the clamped node has no rate."""
            if kind == "node" and which == 0:
                return
            column = 6 * (which - 1) if kind == "node" else 6 * (self.grid.total + which)
            matrix[row : row + 6, column : column + 6] += block

        for i, (place, term) in enumerate(zip(self.places, self.at, strict=True)):
            h = place.length
            for which in (0, 1):
                put(0.5 * term.compliance, "row", place.row + which)
            right[row : row + 6] = term.stretch + ad(term.strain) @ term.velocity
            row += 6
            turned = ad(term.strain).T
            across = np.eye(6)
            if place.segment and self.places[i - 1].segment != place.segment:
                across = self.arm.segments[place.segment - 1].connector.adjoint()
            put(0.5 * term.mass @ across, "node", place.node)
            put(0.5 * term.mass, "node", place.node + 1)
            put((np.eye(6) / h + 0.5 * turned) @ term.relaxation, "row", place.row)
            put((-np.eye(6) / h + 0.5 * turned) @ term.relaxation, "row", place.row + 1)
            right[row : row + 6] = (
                (term.static[1] - term.static[0]) / h
                - turned @ term.static.mean(axis=0)
                + ad(term.velocity).T @ term.mass @ term.velocity
                + term.external
            )
            row += 6
        for index, (node, mass, weight) in enumerate(self.bodies):
            below = self.at[node - 1]
            put(mass, "node", node)
            put(below.relaxation, "row", node + index)
            velocity = self.nodes[node]
            right[row : row + 6] = ad(velocity).T @ mass @ velocity + weight - below.static[1]
            if node < self.grid.total:
                above = self.at[node]
                force = self.arm.segments[index].connector.adjoint().T
                put(-force @ above.relaxation, "row", node + index + 1)
                right[row : row + 6] += force @ above.static[0]
            else:
                right[row : row + 6] += self.tip_load
            row += 6
        return matrix, right

    def rates(self) -> State:
        """Time derivative of the state."""
        matrix, right = self.system()
        # equations of shear and of bending differ by many orders of magnitude
        scale = np.abs(matrix).max(axis=1)
        found = np.linalg.solve(matrix / scale[:, None], right / scale).reshape(-1, 6)
        velocities, wrenches = found[: self.grid.total], found[self.grid.total :]
        first = self.at[0]
        jump = self.state.base - self.state.wrenches[0]
        jump_rate = -np.linalg.solve(first.relaxation, first.actuation[0] + jump)
        return State(velocities, wrenches, wrenches[0] + jump_rate)

    def base_wrench(self, rates: State) -> np.ndarray:
        """(6,) total wrench on the mounting, at the arm's base."""
        first = self.at[0]
        return first.static[0] + first.relaxation @ rates.wrenches[0]

    def powers(self, rates: State) -> tuple[float, float, float]:
        """What kinetic and elastic energy gain, what damping takes, what all loads bring in [W].

        The first is the third minus the second exactly, in the scheme as in the continuum.
        """
        gained = taken = brought = 0.0
        ends = np.vstack((np.zeros((1, 6)), rates.velocities))
        for i, (place, term) in enumerate(zip(self.places, self.at, strict=True)):
            before = ends[place.node]
            if place.segment and self.places[i - 1].segment != place.segment:
                before = self.arm.segments[place.segment - 1].connector.adjoint() @ before
            acceleration = 0.5 * (before + ends[place.node + 1])
            rate = rates.wrenches[place.row : place.row + 2].mean(axis=0)
            elastic = self.state.wrenches[place.row : place.row + 2].mean(axis=0)
            strain_rate = term.compliance @ rate
            h = place.length
            gained += h * (term.velocity @ term.mass @ acceleration + elastic @ strain_rate)
            taken += h * strain_rate @ term.relaxation @ rate
            brought += h * (term.actuation.mean(axis=0) @ strain_rate)
            brought += h * (term.velocity @ term.external)
        for node, mass, weight in self.bodies:
            gained += self.nodes[node] @ mass @ ends[node]
            brought += self.nodes[node] @ weight
        return gained, taken, brought + self.nodes[-1] @ self.tip_load


@dataclass(frozen=True)
class _Terms:
    """What enters the equations of an interval; `static` (2, 6) is s - w at both nodes."""

    compliance: np.ndarray
    relaxation: np.ndarray
    mass: np.ndarray
    strain: np.ndarray
    velocity: np.ndarray
    stretch: np.ndarray
    external: np.ndarray
    actuation: np.ndarray
    static: np.ndarray


def _curvatures(arm: Arm, grid: Grid, wrenches: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Strains (N, subintervals, 6) and the length (N, 1, 1) of the pieces they hold on."""
    places = intervals(arm, grid)
    fractions = ((np.arange(grid.subintervals) + grid.point) / grid.subintervals)[:, None]
    strains = [
        STRAIGHT
        + arm.segments[p.segment].compliance
        * (wrenches[p.row] + fractions * (wrenches[p.row + 1] - wrenches[p.row]))
        for p in places
    ]
    steps = np.array([p.length / grid.subintervals for p in places])
    return np.array(strains), steps[:, None, None]


def _rotations(arm: Arm, grid: Grid, wrenches: np.ndarray) -> tuple[list[np.ndarray], np.ndarray]:
    """Rotation at each node, before a connector; (N, 3) mean of reversed gravity in each interval,
    by the trapezoidal rule."""
    strains, steps = _curvatures(arm, grid, wrenches)
    vectors = (strains[..., 3:] * steps).reshape(-1, 3)
    turns = Rotation.from_rotvec(vectors).as_matrix().reshape(*strains.shape[:2], 3, 3)
    here, found, means = np.eye(3), [np.eye(3)], []
    weights = np.ones(grid.subintervals + 1)
    weights[[0, -1]] = 0.5
    places = intervals(arm, grid)
    for i, place in enumerate(places):
        if place.segment and places[i - 1].segment != place.segment:
            here = here @ arm.segments[place.segment - 1].connector.rotation
        ups = [here.T @ arm.up]
        for turn in turns[i]:
            here = here @ turn
            ups.append(here.T @ arm.up)
        means.append(weights @ np.array(ups) / grid.subintervals)
        found.append(here)
    return found, np.array(means)


def tip_pose(arm: Arm, grid: Grid, wrenches: np.ndarray) -> np.ndarray:
    """(4, 4) pose of the last node in the frame of the arm's base."""
    strains, steps = _curvatures(arm, grid, wrenches)
    pose = np.eye(4)
    places = intervals(arm, grid)
    for i, place in enumerate(places):
        if place.segment and places[i - 1].segment != place.segment:
            connector = arm.segments[place.segment - 1].connector
            rigid = np.eye(4)
            rigid[:3, :3], rigid[:3, 3] = connector.rotation, connector.translation
            pose = pose @ rigid
        for strain in strains[i] * steps[i]:
            twist = np.zeros((4, 4))
            twist[:3, :3], twist[:3, 3] = hat(strain[3:]), strain[:3]
            pose = pose @ expm(twist)
    return pose


def rest(arm: Arm, grid: Grid) -> State:
    """The collocated arm at rest, reached by raising all loads together from nothing."""
    rows = grid.total + len(arm.segments)
    still = np.zeros((grid.total, 6))
    scale = np.array([1.0, 1.0, 1.0, 0.1, 0.1, 0.1])

    def unbalanced(scaled: np.ndarray, part: Arm) -> np.ndarray:
        state = State(still, scaled.reshape(rows, 6) * scale, np.zeros(6))
        _, right = Equations(part, grid, state).system()
        # without motion compatibility says nothing: every other six of the intervals' rows
        count = 12 * grid.total
        return np.concatenate((right[:count].reshape(-1, 2, 6)[:, 1].ravel(), right[count:]))

    guess, reached, step = np.zeros(6 * rows), 0.0, 1.0
    while reached < 1.0:
        share = min(1.0, reached + step)
        found = root(unbalanced, guess, args=(arm.loaded(share),), tol=1e-12)
        if np.abs(found.fun).max() < 1e-9:
            guess, reached, step = found.x, share, 2.0 * step
        else:
            step *= 0.5
            assert step > 1e-3, "no rest found"
    wrenches = guess.reshape(rows, 6) * scale
    first = Equations(arm, grid, State(still, wrenches, np.zeros(6))).at[0]
    return State(still, wrenches, -first.actuation[0] + wrenches[0])
