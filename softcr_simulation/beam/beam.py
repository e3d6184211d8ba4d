"""`Beam`: a robot's body as a chain of geometrically exact elements, in motion."""

import numpy as np

from softcr_models.errors import UserError
from softcr_models.robots.robot import Robot
from softcr_models.robots.segments import Payload
from softcr_models.rod.cosserat_rod import CosseratRod
from softcr_models.rod.state import RodState
from softcr_simulation.beam.dynamics import Numbers, march, node_forces, room_for

_FINEST = 4  # halvings of a step that fails


class Beam:
    """The body of a robot: soft segments, connectors, masses at the tip, weight and inputs.

    Attributes:
        rod: the same robot as a rod of the house, for what is asked of a state: poses along it,
            its layout. It moves nothing.
        poses: (N + 1, 3, 4) of the nodes, base frame [m]; node 0 does not move.
        velocities: (N + 1, 6) twists in the nodes' frames, linear first.
        softness: factor on the bending compliance.
        tip_force: (3,) at the outer face of the tip cap, base frame [N].
    """

    def __init__(
        self,
        robot: Robot,
        intervals: int = 20,
        curvature_share: float = 0.0,
        reference_curvature: float = 15.0,
    ) -> None:
        """
        Args:
            robot: with constant or routed actuation, in air.
            intervals: elements of each segment on average.
            curvature_share: relative change of the bending compliance at the reference curvature.
            reference_curvature: [1/m].

        Raises:
            UserError: it has a medium, motors, tendons of the exact model, or too many intervals.
        """
        if robot.medium is not None:
            raise UserError(f"robot {robot.name}: a plant with errors knows no medium")
        if robot.motors or (robot.tendons and robot.tendon_model == "exact"):
            what = "motors" if robot.motors else "tendons of the exact model"
            raise UserError(f"robot {robot.name}: a plant with errors knows no {what}")
        self.rod = CosseratRod(robot, intervals)
        self._starts = np.array(self.rod.grid.first_row)
        self._numbers = _numbers(self.rod, curvature_share, reference_curvature)
        elements = self.rod.total_intervals
        self._room = room_for(elements, self.rod.input_size)
        self.poses = np.zeros((elements + 1, 3, 4))
        self.velocities = np.zeros((elements + 1, 6))
        self.softness = 1.0
        self.tip_force = np.zeros(3)
        self._own_inertia = self._numbers.inertia.copy()
        self._tip_inertia = self._own_inertia - _inertia(self.rod, 0.0)

    def carry(self, mass: float) -> None:
        """From now on so much more mass [kg]: a point on the outer face of the tip cap, which has
        the tip's velocity when it is picked up; below 0, of the tip's own mass, where that sits.

        Raises:
            UserError: nothing would be left of the tip's mass.
        """
        robot, inertia = self.rod.robot, self._numbers.inertia
        if mass <= -robot.tip_mass and mass < 0.0:
            raise UserError(
                f"payload_mass {mass:g} kg: robot {robot.name} then has nothing left of its "
                f"tip_mass of {robot.tip_mass:g} kg"
            )
        inertia[:] = self._own_inertia
        if mass > 0.0:
            spot = (0.0, 0.0, robot.tip_cap_length)
            inertia[-1] += Payload(mass=mass, centre_of_mass=spot).spatial_inertia
        elif mass < 0.0:
            inertia += mass / robot.tip_mass * self._tip_inertia

    def settle(self, inputs: np.ndarray) -> None:
        """Go to the steady state under inputs (m,) at once.

        Raises:
            EquilibriumError: there is none.
        """
        state = self.rod.equilibrium(inputs)
        self.place(self.rod.node_poses(state)[:, :3])
        slow = self._numbers.relaxation.copy()
        self._numbers.relaxation[:] = 20.0 * slow
        try:
            self.advance(np.tile(inputs, (401, 1)), 0.005)
        finally:
            self._numbers.relaxation[:] = slow
        self.place(self.poses)

    def place(self, poses: np.ndarray) -> None:
        """Put the nodes there, at rest: poses (N + 1, 3, 4)."""
        self.poses[:] = poses
        self.velocities[:] = self._room.rate[:] = 0.0

    def take_over(self, other: "Beam") -> None:
        """Go on where another beam is, and as fast; raises ValueError if it has other elements."""
        if self.poses.shape != other.poses.shape:
            raise ValueError(f"{len(other.poses) - 1} elements, must be {len(self.poses) - 1}")
        self.poses[:], self.velocities[:] = other.poses, other.velocities
        self._room.rate[:] = other._room.rate
        self.softness = other.softness

    def advance(self, levels: np.ndarray, dt: float) -> None:
        """Move along inputs (S + 1, m) that are `dt` [s] apart and linear in between.

        Raises:
            ArithmeticError: no motion was found, even in finer steps.
        """
        before = self.poses.copy(), self.velocities.copy()
        for _ in range(_FINEST):
            done = march(
                self.poses, self.velocities, levels, dt, self._numbers, self._room, self.softness,
                self.tip_force,
            )  # fmt: skip
            if done >= 0:
                return
            self.poses[:], self.velocities[:] = before
            middles = 0.5 * (levels[1:] + levels[:-1])
            levels = np.insert(levels, np.arange(1, len(levels)), middles, axis=0)
            dt *= 0.5
        raise ArithmeticError(f"the plant's body was lost under inputs {levels[-1].tolist()}")

    def base_wrench(self, inputs: np.ndarray) -> np.ndarray:
        """(6,) force [N], then moment [N m], that the robot puts on the force-torque sensor."""
        numbers, room = self._numbers, self._room
        node_forces(
            room, self.poses, self.velocities, inputs, numbers, self.softness, self.tip_force
        )
        # with the weight of what is half of the first element
        own = numbers.inertia[0, 0, 0] * numbers.gravity
        wrench = room.forces[0] + np.concatenate((own, np.zeros(3)))
        height = self.rod.base_height
        wrench[3] -= height * wrench[1]
        wrench[4] += height * wrench[0]
        return wrench

    def state(self, inputs: np.ndarray) -> np.ndarray:
        """(nx,) the nearest state of `rod`: its velocities, and the wrenches of the strains with
        the rod's own compliance."""
        numbers, rod = self._numbers, self.rod
        node_forces(
            self._room, self.poses, self.velocities, inputs, numbers, self.softness, self.tip_force
        )
        strains = self._room.psi / numbers.lengths[:, None]
        strains[:, 2] -= 1.0
        wrenches = np.empty((rod.total_intervals + rod.segments, 6))
        for a in range(rod.segments):
            first, end = int(self._starts[a]), int(self._starts[a + 1])
            own = strains[first - a : end - 1 - a]
            nodal = np.empty((end - first, 6))
            nodal[1:-1] = 0.5 * (own[1:] + own[:-1])
            if len(own) > 1:
                nodal[0], nodal[-1] = 1.5 * own[0] - 0.5 * own[1], 1.5 * own[-1] - 0.5 * own[-2]
            else:
                nodal[:] = own[0]
            wrenches[first:end] = nodal * numbers.stiffness[first - a]
        base = wrenches[0] - numbers.actuation[0] @ inputs
        return RodState.join(self.velocities[1:], wrenches, base, rod.segments).array

    def node_poses(self) -> np.ndarray:
        """(N + 1, 4, 4) base frame."""
        poses = np.zeros((len(self.poses), 4, 4))
        poses[:, :3], poses[:, 3, 3] = self.poses, 1.0
        return poses


def _numbers(rod: CosseratRod, curvature_share: float, reference_curvature: float) -> Numbers:
    """A robot's numbers on elements that are the intervals of a rod."""
    robot, grid = rod.robot, rod.grid
    counts: list[int] = (np.diff(grid.first_row) - 1).tolist()
    of = np.repeat(np.arange(len(counts)), counts)  # (N,) segment of each element
    offsets, lower, is_offset = _connectors(rod, counts)
    middles = [
        robot.segment_ends[a] + grid.interval_length[a] * (np.arange(count) + 0.5)
        for a, count in enumerate(counts)
    ]
    actuation = [robot.actuation_at(a, places) for a, places in enumerate(middles)]
    return Numbers(
        lengths=grid.interval_length[of],
        stiffness=1.0 / robot.segment_compliances[of],
        relaxation=np.array(robot.segment_relaxation_times)[of],
        inertia=_inertia(rod, robot.tip_mass),
        gravity=-grid.gravity,
        offsets=offsets,
        lower=lower,
        is_offset=is_offset,
        actuation=np.ascontiguousarray(np.concatenate(actuation)),
        curvature_share=curvature_share,
        reference_curvature=reference_curvature,
        tip_lever=robot.tip_cap_length,
    )


def _inertia(rod: CosseratRod, tip_mass: float) -> np.ndarray:
    """(N + 1, 6, 6) of the nodes: half of the elements beside, and the rigid bodies there.

    An element has the mass of the body and its share of the tip mass [kg].
    """
    grid, body = rod.grid, rod.body
    counts = np.diff(grid.first_row) - 1
    of = np.repeat(np.arange(len(counts)), counts)
    spread = np.delete(body.tip_share, grid.first_row[1:] - 1)  # (N,)
    density = body.line_density[of] + tip_mass * spread
    inertia = np.zeros((len(of) + 1, 6, 6))
    for i, half in enumerate(0.5 * density * grid.interval_length[of]):
        bending, torsion = grid.bending_inertia[of[i]], grid.torsion_inertia[of[i]]
        inertia[i : i + 2] += half * np.diag([1.0, 1.0, 1.0, bending, bending, torsion])
    if rod.fittings is not None:
        inertia[np.cumsum(counts)] += rod.fittings.mass
    return inertia


def _connectors(rod: CosseratRod, counts: list[int]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """`offsets`, `lower` and `is_offset` of Numbers."""
    elements = sum(counts)
    offsets = np.tile(np.eye(4)[:3], (elements, 1, 1))
    lower = np.tile(np.eye(6), (elements, 1, 1))
    is_offset = np.zeros(elements, dtype=bool)
    for a, first in enumerate(np.cumsum(counts)[:-1].tolist()):
        connector = rod.robot.segments[a].connector
        if connector is not None and rod.fittings is not None:
            offsets[first, :, :3] = connector.rotation_matrix
            offsets[first, :, 3] = connector.offset
            lower[first], is_offset[first] = rod.fittings.adjoint[a], True
    return offsets, lower, is_offset
