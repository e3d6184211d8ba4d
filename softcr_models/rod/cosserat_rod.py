"""The dynamic Cosserat rod of a robot: `CosseratRod`, the public face of this folder."""

import math
import warnings
from collections.abc import Sequence
from functools import cached_property
from itertools import pairwise
from typing import Literal

import numpy as np

from softcr_models.arguments import ArgumentError, Arguments
from softcr_models.errors import UserError
from softcr_models.robots.robot import Robot
from softcr_models.rod import (
    batches,
    discretise,
    evaluation,
    point_loads,
    residual,
    statics,
    stepper,
    tangents,
)
from softcr_models.rod.contact import Obstacles
from softcr_models.rod.obstacles import ContactLaw, Plane, Sphere, obstacles_of
from softcr_models.rod.packing import Body
from softcr_models.rod.parameters import rod_parameters
from softcr_models.rod.point_loads import PointLoad
from softcr_models.rod.section import Fittings, Grid, NodeLoads
from softcr_models.rod.state import state_size
from softcr_models.rod.statics import EquilibriumError
from softcr_models.rod.step_derivatives import StepDerivatives
from softcr_models.rod.stepper import Retries, Run

__all__ = ["CosseratRod", "EquilibriumError", "Stability", "linearisations"]

# One linearisation serves at most this much time [s]: the paper's control period of 14.3 ms, and a
# little more, because the stamps of a 70 Hz loop scatter and a second one doubles the work.
LONGEST_LINEARISATION = 0.018

Stability = Literal["stable", "unstable"]


def linearisations(dt: float) -> int:
    """How many linearisations a step of `dt` [s] needs, at least 1."""
    return max(1, math.ceil(dt / LONGEST_LINEARISATION - 1e-9))


class CosseratRod:
    """Collocation model of the Cosserat rod, Licher et al. 2025, Sec. III; any number of segments.

    States are vectors of nx = 12 N + 6 K + 6 numbers laid out as `RodState`, of N intervals in K
    segments; 12 (n + 1) for one segment. Poses are in the robot's base frame, which is the
    force-torque sensor's (CS)_fts of eq. (29): the rod itself starts above it by `base_height`.
    Inputs are one per actuator, in the robot's order: gauge pressures [Pa], tensions [N].

    The parameters a filter may estimate, `parameter_names`, can be given to most methods as a (P,)
    vector; they default to the robot's: `nominal_parameters`. Loads at nodes can be given as a
    sequence of `PointLoad`.

    Attributes:
        robot, intervals, max_substep: as given.
        segments, total_intervals: K and N.
        state_size, input_size: nx and m, the number of actuators.
        parameters: what can be estimated, a tuple of `RodParameter`.
        retries: how often a simulation was done again in finer steps, since this was made.
        largest_errors: of a step, and of one of filters and controllers, see `stepper` [1/s].
    """

    def __init__(
        self,
        robot: Robot,
        intervals: int = 5,
        max_substep: float = 0.005,
        *,
        bending_of_each_segment: bool = False,
        tip_force: bool = False,
        payload: bool = False,
        curvature_stiffness: bool = False,
        obstacles: Sequence[Plane | Sphere] = (),
        contact: ContactLaw | None = None,
    ) -> None:
        """A rod of `intervals` collocation intervals in each segment.

        Args:
            robot: what it is made of.
            intervals: n, of each segment on average; 5 as in the paper. A plant takes at least 10:
                the tip is then within about 1.5 mm of n = 20 in motion, with 5 within about 7 mm.
            max_substep: longest sub-step of the time integration [s]; steps are refined below it
                where an error estimate asks for it.
            bending_of_each_segment: whether the bending compliance of each segment is a parameter
                of its own; otherwise there is one, that of the first, and the others keep their
                proportion to it.
            tip_force: whether the three components of a force at the tip are parameters, in the
                base frame.
            payload: whether a point of mass at the tip cap's outer face is a parameter; of a rod
                without fittings, loads or obstacles alone.
            curvature_stiffness: whether the bending stiffness may change with the curvature, by a
                parameter; it always is where the robot's own does, or its material is hyperelastic.
            obstacles: what the rod may touch, base frame.
            contact: how hard it is.

        Raises:
            UserError: if a number is out of range, or a payload cannot be estimated.
        """
        if not max_substep > 0.0:
            raise UserError(f"max_substep: {max_substep} s is not allowed: must be above 0")
        counts = discretise.share_intervals(robot, intervals)
        self.robot = robot
        self.intervals = intervals
        self.max_substep = max_substep
        self.retries = Retries()
        self.segments, self.total_intervals = len(counts), sum(counts)
        self.state_size = state_size(self.total_intervals, self.segments)
        self.input_size = len(robot.actuators)
        self._estimated = (
            self.segments if bending_of_each_segment else 1,
            3 * tip_force,
            int(payload),
            2 if robot.neo_hookean else int(curvature_stiffness or bool(robot.curvature_stiffness)),
        )
        self.parameters = rod_parameters(*self._estimated)
        self.parameter_names = tuple(each.name for each in self.parameters)
        signs = {each.name: each.sign for each in self.parameters}
        self._arguments = Arguments("CosseratRod", self.state_size, self.input_size, signs)
        self.base_height = discretise.base_height(robot)
        self.nominal_parameters = np.array([each.nominal(robot) for each in self.parameters])
        self.grid = discretise.grid_of(robot, counts, *self._estimated[2:])
        self.fittings: Fittings | None = None
        self.loads: NodeLoads | None = None
        self.obstacles: Obstacles | None = None
        if obstacles:
            law = contact or ContactLaw()
            self.obstacles = obstacles_of(robot, self.base_height, obstacles, law)
        fitted = tip_force or bool(obstacles) or discretise.needs_fittings(robot)
        if payload and fitted:
            raise UserError(
                f"robot {robot.name}: estimated_payload: is for a rod without connectors, payload, "
                "medium, neo_hookean, exact or varying tendons, obstacles and an estimated force "
                "at its tip"
            )
        self.body = self._body(by_rows=fitted)
        if fitted:
            self.fittings = discretise.fittings_of(robot, self.grid)
            self.loads = discretise.no_loads(self.grid, 3 * tip_force)
        self.largest_errors = stepper.largest_errors(
            self.grid, self.fittings, self.obstacles, self.body, self.nominal_parameters
        )
        self._no_inputs = np.zeros(self.input_size)

    def rest_state(self) -> np.ndarray:
        """(nx,) straight, unloaded, at rest: zeros."""
        return np.zeros(self.state_size)

    def step(
        self,
        state: np.ndarray,
        inputs: np.ndarray,
        dt: float,
        parameters: np.ndarray | None = None,
        loads: Sequence[PointLoad] = (),
    ) -> np.ndarray:
        """The state (nx,) after `dt` [s] under constant inputs (m,) and loads.

        Where the error estimate asks for it, the step is done in sub-steps shorter than
        `max_substep`. If the motion is too fast for the shortest, the rod is pressed to nothing or
        its grid does not resolve how far it turns, the state is NaN, and a RuntimeWarning says why.

        Raises:
            UserError: a wrong shape, a dt that is not above 0, or parameters of the wrong sign.
        """
        dt = self._arguments.step_length("step", dt)
        pieces = linearisations(dt)
        levels = np.empty((1, pieces + 1, self.input_size))
        levels[0] = self._inputs("step", inputs)
        return self._simulate("step", state, levels, dt / pieces, parameters, loads)[-1]

    def simulate(
        self,
        initial_state: np.ndarray,
        inputs: np.ndarray,
        dt: float,
        parameters: np.ndarray | None = None,
        loads: Sequence[PointLoad] = (),
    ) -> np.ndarray:
        """States after each of T steps of length `dt` [s].

        Args:
            initial_state: (nx,).
            inputs: (T, m) [Pa, N], each row held over its step.
            dt: at most a few tens of milliseconds: a step has one linearisation.
            parameters: (P,).
            loads: constant.

        Returns:
            (T, nx); NaN, with a RuntimeWarning that says why, where `step` would be.

        Raises:
            UserError: a wrong shape, a dt that is not above 0, or parameters of the wrong sign.
        """
        dt = self._arguments.step_length("simulate", dt)
        held = np.atleast_2d(self._arguments.floats("simulate", "inputs", inputs))
        if held.shape[1:] != (self.input_size,) or not len(held):
            raise ArgumentError(
                f"CosseratRod.simulate: inputs of shape {held.shape}: allowed is "
                f"(T, {self.input_size}), T >= 1"
            )
        # the last row repeated: what comes after the end is not looked at
        levels = np.concatenate((held, held[-1:]))[None]
        return self._simulate("simulate", initial_state, levels, dt, parameters, loads)

    def simulate_ramps(
        self,
        initial_state: np.ndarray,
        levels: np.ndarray,
        dt: float,
        *,
        substeps: int,
        loads: Sequence[PointLoad] = (),
    ) -> np.ndarray:
        """States after each of T steps in which the inputs go linearly from one level to the next.

        Args:
            initial_state: (nx,).
            levels: (T + 1, m) inputs at begin and end of the steps [Pa, N].
            dt: length of a step [s]; it has one linearisation, or one per sub-step near obstacles.
            substeps: of each step.
            loads: constant.

        Returns:
            (T, nx); NaN where `step` would be, and `retries.reason` says why.

        Raises:
            UserError: a wrong shape, or a dt that is not above 0.
        """
        dt = self._arguments.step_length("simulate_ramps", dt)
        given = self._arguments.floats("simulate_ramps", "levels", levels)
        if given.ndim != 2 or given.shape[1] != self.input_size or len(given) < 2:
            raise ArgumentError(
                f"CosseratRod.simulate_ramps: levels of shape {given.shape}: allowed is "
                f"(T + 1, {self.input_size}), T >= 1"
            )
        run = self._run(dt, substeps, 0, loads)
        state = self._state("simulate_ramps", initial_state)
        row = self.nominal_parameters
        return stepper.advance(state[None], given[None], row[None], run, retries=self.retries)[0]

    def derivative(
        self,
        state: np.ndarray,
        inputs: np.ndarray,
        parameters: np.ndarray | None = None,
        loads: Sequence[PointLoad] = (),
    ) -> np.ndarray:
        """Explicit state equation (20): time derivative (nx,) of the state."""
        point = self._point("derivative", state, inputs, parameters)
        return evaluation.rates(*point, *self._rod(loads))[0]

    def residual(
        self,
        state: np.ndarray,
        state_rate: np.ndarray,
        inputs: np.ndarray,
        parameters: np.ndarray | None = None,
        loads: Sequence[PointLoad] = (),
    ) -> np.ndarray:
        """Implicit state equation (19), zero when `state_rate` is the derivative at `state`.

        Runs the kernel's text in plain numpy, so complex numbers pass through (complex-step
        checks).

        Returns:
            (nx,): compatibility then balance of each interval, the ends of the segments from base
            to tip, the transmission condition at the base.
        """
        given = [np.asarray(each) for each in (state, state_rate, inputs)]
        dtype = np.result_type(*given, float)
        numbers = self._parameters("residual", parameters)
        x, rate, acting = (each.astype(dtype) for each in given)
        return residual.residual(x, rate, acting, numbers, *self._rod(loads))

    def linearize(
        self,
        state: np.ndarray,
        inputs: np.ndarray,
        parameters: np.ndarray | None = None,
        loads: Sequence[PointLoad] = (),
    ) -> tuple[np.ndarray, np.ndarray]:
        """Exact Jacobians of the derivative, (23)-(28) and (31): gravity, loads, tendons included.

        Returns:
            d(derivative)/d(state) (nx, nx) and d(derivative)/d(inputs) (nx, m) [1/Pa, 1/N].
        """
        size = self.state_size
        columns = slice(0, size + self.input_size)
        jacobian = self._tangents("linearize", state, inputs, parameters, loads, columns)
        return jacobian[:size, :size], jacobian[:size, size:]

    def linearize_parameters(
        self,
        state: np.ndarray,
        inputs: np.ndarray,
        parameters: np.ndarray | None = None,
        loads: Sequence[PointLoad] = (),
    ) -> np.ndarray:
        """Exact d(derivative)/d(parameters), (nx, P), in the order of `parameter_names`."""
        columns = slice(self.state_size + self.input_size, None)
        jacobian = self._tangents("linearize_parameters", state, inputs, parameters, loads, columns)
        return jacobian[: self.state_size]

    def linearize_step(
        self,
        state: np.ndarray,
        begin: np.ndarray,
        end: np.ndarray,
        dt: float,
        parameters: np.ndarray | None = None,
        loads: Sequence[PointLoad] = (),
    ) -> StepDerivatives:
        """A step with its exact derivatives, inputs going linearly from `begin` to `end` (m,).

        What is differentiated is the computed step itself, in the sub-steps that it takes, not the
        differential equation: learners and optimisers may rely on it to rounding.

        Raises:
            UserError: a wrong shape, a dt out of range, or parameters of the wrong sign.
        """
        dt = self._arguments.step_length("linearize_step", dt)
        if linearisations(dt) > 1:
            raise ArgumentError(
                f"CosseratRod.linearize_step: dt: {dt} s is not allowed: at most "
                f"{LONGEST_LINEARISATION} s, one linearisation"
            )
        point = self._point("linearize_step", state, begin, parameters)
        levels = np.stack((point[1], self._inputs("linearize_step", end)))
        run = self._run(dt, self._substeps(dt), 0, loads)
        substeps, fresh = stepper.substeps_of(point[0], levels, point[2], run)
        sizes = self.state_size, self.input_size, self.input_size, len(self.parameters)
        values, changes = tangents.step_tangents(
            point[0], levels, point[2], *self._rod(loads), dt, substeps, fresh,
            np.eye(sum(sizes)),
        )  # fmt: skip
        parts = np.split(changes.T, np.cumsum(sizes)[:-1], axis=1)
        return StepDerivatives.of(self.state_size, values, parts)

    def equilibrium(
        self,
        inputs: np.ndarray,
        parameters: np.ndarray | None = None,
        loads: Sequence[PointLoad] = (),
        near: np.ndarray | None = None,
    ) -> np.ndarray:
        """The steady state (nx,) reached by raising inputs (m,) and loads slowly from zero.

        Newton's method on the exact linearisation, inputs raised in as many pieces as it needs;
        with a state `near` (nx,) of another steady state, from there at once if that succeeds.

        Raises:
            EquilibriumError: with the inputs, if there is none.
            UserError: inputs or parameters of a wrong shape or sign, or not finite.
        """
        target = self._inputs("equilibrium", inputs)
        self._arguments.require_finite("equilibrium", "inputs", target)
        self._rod(loads)  # what cannot act is told before the search
        if parameters is not None:
            parameters = self._parameters("equilibrium", parameters, None)
        return statics.equilibrium(self, target, parameters, loads, near)

    def stability(
        self,
        state: np.ndarray,
        inputs: np.ndarray,
        parameters: np.ndarray | None = None,
        loads: Sequence[PointLoad] = (),
    ) -> Stability:
        """Whether small motions about a steady state die out, by the eigenvalues of (23)."""
        jacobian, _ = self.linearize(state, inputs, parameters, loads)
        return "stable" if np.linalg.eigvals(jacobian).real.max() < 0.0 else "unstable"

    def tip_pose(self, state: np.ndarray, parameters: np.ndarray | None = None) -> np.ndarray:
        """(4, 4) pose of the tip cap's outer face, base frame, eq. (29), rigid parts included."""
        return self.tip_pose_from_rod_tip(self.backbone(state, 2, parameters)[-1])

    def tip_pose_from_rod_tip(self, pose: np.ndarray) -> np.ndarray:
        """(4, 4) pose of the tip cap's outer face, from that of the rod's last node."""
        tip = pose.copy()
        tip[:3, 3] += self.robot.tip_cap_length * pose[:3, 2]
        return tip

    def backbone(
        self, state: np.ndarray, points: int, parameters: np.ndarray | None = None
    ) -> np.ndarray:
        """(points, 4, 4) poses evenly along the rod, base to tip, in the base frame."""
        if points < 2:
            raise UserError(f"points: {points} is not allowed: a backbone has at least 2")
        arc_lengths = np.linspace(0.0, self.robot.length, points)
        return self._poses("backbone", state, parameters, arc_lengths)

    def node_poses(self, state: np.ndarray, parameters: np.ndarray | None = None) -> np.ndarray:
        """(N + 1, 4, 4) poses of the nodes 0..N in the base frame; of a boundary, before it."""
        return self._poses("node_poses", state, parameters, self.node_arcs)

    def pose_at(
        self,
        state: np.ndarray,
        segment: int,
        fraction: float,
        parameters: np.ndarray | None = None,
    ) -> np.ndarray:
        """(4, 4) pose in the base frame at a fraction of a segment's length; 0 of a later segment
        is behind the connector."""
        place = np.array([fraction * self.robot.segments[segment].length])
        return self._poses_in("pose_at", state, parameters, np.array([segment]), place)[0]

    @cached_property
    def node_arcs(self) -> np.ndarray:
        """(N + 1,) arc lengths of the nodes from the rod's base; connectors do not count [m]."""
        ends, counts = self.robot.segment_ends, np.diff(self.grid.first_row) - 1
        parts = [np.linspace(a, b, n + 1) for (a, b), n in zip(pairwise(ends), counts, strict=True)]
        return np.concatenate((parts[0], *(part[1:] for part in parts[1:])))

    @cached_property
    def row_actuation(self) -> np.ndarray:
        """(R, 6, m) wrench per input at each row of the straight rod [N/Pa, N m/Pa; -, m]."""
        return discretise.actuation_of_rows(self.robot, self.grid)

    def base_wrench(
        self,
        state: np.ndarray,
        inputs: np.ndarray,
        parameters: np.ndarray | None = None,
        loads: Sequence[PointLoad] = (),
    ) -> np.ndarray:
        """(6,) force [N], then moment [N m], that the robot puts on the force-torque sensor.

        It is the total wrench below the base jump, x2(0-) + D_tau x2'(0-), carried from the rod's
        base to the sensor, (3) and (17). Inside the model the masses of base and sensor caps are
        nil.
        """
        point = self._point("base_wrench", state, inputs, parameters)
        wrench = evaluation.rates(*point, *self._rod(loads))[1]
        lever = self.base_height  # along z
        wrench[3] -= lever * wrench[1]
        wrench[4] += lever * wrench[0]
        return wrench

    def base_wrenches(
        self, states: np.ndarray, inputs: np.ndarray, parameters: np.ndarray
    ) -> np.ndarray:
        """(B, 6) as `base_wrench`, of states (B, nx), inputs (B, m) and parameters (B, P): float64,
        contiguous, finite or not."""
        self._require_rows("base_wrenches", states, inputs=inputs, parameters=parameters)
        wrenches = batches.base_wrenches(states, inputs, parameters, *self._rod(()))
        wrenches[:, 3] -= self.base_height * wrenches[:, 1]
        wrenches[:, 4] += self.base_height * wrenches[:, 0]
        return wrenches

    def poses_at(
        self, states: np.ndarray, segment: int, fraction: float, parameters: np.ndarray
    ) -> np.ndarray:
        """(B, 4, 4) as `pose_at`, of states (B, nx) and parameters (B, P): float64, contiguous."""
        self._require_rows("poses_at", states, parameters=parameters)
        place = fraction * self.robot.segments[segment].length
        return batches.poses_at(
            states, parameters, *self._rod(()), self.base_height, segment, place
        )  # fmt: skip

    def contact_forces(
        self, state: np.ndarray, parameters: np.ndarray | None = None
    ) -> tuple[np.ndarray, np.ndarray]:
        """Where the rod touches its obstacles, and how hard.

        Returns:
            (J, 3) points [m] and (J, 3) forces on the rod [N], base frame; J = 0 where it does not.
        """
        points, forces = self.contact_points(state, parameters)
        touching = forces.any(axis=1)
        return points[touching], forces[touching]

    def contact_points(
        self, state: np.ndarray, parameters: np.ndarray | None = None
    ) -> tuple[np.ndarray, np.ndarray]:
        """Where the rod may touch its obstacles, and how hard it does.

        Returns:
            (J, 3) points [m]: the middles of the N intervals, then the last node; (J, 3) forces on
            the rod [N], 0 where it does not touch; base frame. J = 0 for a rod without obstacles.
        """
        if self.obstacles is None:
            return np.zeros((0, 3)), np.zeros((0, 3))
        x = self._state("contact_points", state)
        numbers = self._parameters("contact_points", parameters)
        body_forces = evaluation.contact_forces(x, numbers, *self._rod(()))
        ends = self.grid.first_row[1:] - 1
        intervals = np.delete(body_forces, ends, axis=0)
        lengths = np.repeat(self.grid.interval_length, np.diff(self.grid.first_row) - 1)
        forces = np.vstack((intervals * lengths[:, None], body_forces[-1:]))
        middles = 0.5 * (self.node_arcs[1:] + self.node_arcs[:-1])
        arcs = np.append(middles, self.robot.length)
        poses = self._poses("contact_points", x, numbers, arcs)
        return poses[:, :3, 3], np.einsum("jkl,jl->jk", poses[:, :3, :3], forces)

    def pressure_wrench(self, pressures: np.ndarray) -> np.ndarray:
        """(6,) wrench of the inputs (m,) on an end of the first segment's actuators, eq. (7)."""
        return self.robot.actuation_matrix @ self._inputs("pressure_wrench", pressures)

    # -- inner workings ---------------------------------------------------------------------------

    def _simulate(self, method, initial_state, levels, dt, parameters, loads):
        """(T, nx) of levels (1, T + 1, m) and dt that are checked."""
        run = self._run(dt, self._substeps(dt), 1, loads)
        state, row = self._state(method, initial_state), self._parameters(method, parameters)
        lost = self.retries.lost
        states = stepper.advance(state[None], levels, row[None], run, retries=self.retries)[0]
        if self.retries.lost > lost:
            line = f"CosseratRod.{method}: the result is NaN: {self.retries.reason}"
            warnings.warn(line, RuntimeWarning, stacklevel=3)
        return states

    def _run(self, dt: float, substeps: int, held: int, loads: Sequence[PointLoad]) -> Run:
        body, grid, fittings, acting, obstacles = self._rod(loads)
        largest = self.largest_errors[0]
        return Run.of(body, grid, dt, substeps, held, fittings, acting, obstacles, largest)

    def _substeps(self, dt: float) -> int:
        return max(1, math.ceil(dt / self.max_substep - 1e-9))

    def _rod(
        self, loads: Sequence[PointLoad]
    ) -> tuple[Body, Grid, Fittings | None, NodeLoads | None, Obstacles | None]:
        """Body, grid, fittings, loads and obstacles as the kernels take them."""
        if not loads:
            return self.body, self.grid, self.fittings, self.loads, self.obstacles
        if self.body.payloads:
            raise ArgumentError("CosseratRod: loads are not allowed where a payload is estimated")
        body, fittings = self._fitted
        acting = point_loads.node_loads(self.grid, loads, body.forces)
        return body, self.grid, fittings, acting, self.obstacles

    @cached_property
    def _fitted(self) -> tuple[Body, Fittings]:
        """Body and fittings for loads, of a rod that may have no fittings of its own."""
        if self.fittings is not None:
            return self.body, self.fittings
        return self._body(by_rows=True), discretise.fittings_of(self.robot, self.grid)

    def _body(self, *, by_rows: bool) -> Body:
        return discretise.body_of(self.robot, self.grid, *self._estimated, by_rows=by_rows)

    def _tangents(self, method, state, inputs, parameters, loads, columns):
        """(nx + 6, ...) columns of the Jacobian of derivative and transmitted wrench at the base,
        by state, inputs and parameters."""
        point = self._point(method, state, inputs, parameters)
        directions = np.eye(sum(map(len, point)))[columns]
        return tangents.rates_tangents(*point, *self._rod(loads), directions)[1].T

    def _poses(self, method, state, parameters, arc_lengths):
        """(J, 4, 4) of arc lengths (J,) ascending from the rod's base [m]; connectors do not
        count, and the end of a segment is the place before its connector."""
        ends = self.robot.segment_ends
        of = np.searchsorted(ends[1:-1], arc_lengths - 1e-9 * self.robot.length)
        return self._poses_in(method, state, parameters, of, arc_lengths - ends[of])

    def _poses_in(self, method, state, parameters, of, places):
        """(J, 4, 4) at places (J,) from the starts of segments `of` (J,), ascending [m]."""
        x, numbers = self._state(method, state), self._parameters(method, parameters)
        # without fittings: strains do not depend on them, and their inertia takes time
        point = evaluation.point_of(x, self._no_inputs, numbers, self.body, self.grid, *3 * (None,))
        return evaluation.poses_along(
            point.s, point.section.compliance, self.grid, self.fittings, self.base_height, of,
            places,
        )  # fmt: skip

    def _point(self, method, state, inputs, parameters):
        """State, inputs and parameters, checked."""
        return (
            self._state(method, state),
            self._inputs(method, inputs),
            self._parameters(method, parameters),
        )

    def _state(self, method: str, state: np.ndarray) -> np.ndarray:
        return self._arguments.vector(method, "state", state, self.state_size)

    def _inputs(self, method: str, inputs: np.ndarray) -> np.ndarray:
        found = self._arguments.floats(method, "inputs", inputs)
        if found.shape != (self.input_size,):
            raise ArgumentError(
                f"CosseratRod.{method}: inputs of shape {found.shape}: robot {self.robot.name} "
                f"has {self.input_size} actuators"
            )
        return found

    def _require_rows(self, method: str, states: np.ndarray, **others: np.ndarray) -> None:
        """Rows of a batch have the lengths that compiled code reads without looking."""
        lengths = {
            "states": self.state_size,
            "inputs": self.input_size,
            "parameters": len(self.parameters),
        }
        for name, rows in {"states": states, **others}.items():
            if rows.shape != (wanted := (len(states), lengths[name])):
                raise ArgumentError(
                    f"CosseratRod.{method}: {name} of shape {rows.shape}: must be {wanted}"
                )

    def _parameters(
        self, method: str, parameters: np.ndarray | None, batch: int | None = 1
    ) -> np.ndarray:
        if parameters is None:
            return self.nominal_parameters
        found = self._arguments.vector(method, "parameters", parameters, len(self.parameters))
        self._arguments.require_signs(method, found, batch)
        return found
