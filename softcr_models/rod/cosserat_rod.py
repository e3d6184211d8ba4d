"""The dynamic Cosserat rod of a robot: `CosseratRod`, the public face of this folder."""

import math
from itertools import pairwise

import numpy as np
from scipy.spatial.transform import Rotation

from softcr_models.arguments import ArgumentError, Arguments
from softcr_models.errors import UserError
from softcr_models.robot import BENDING, Robot
from softcr_models.rod import evaluation, kernel, stepper
from softcr_models.rod.kernel import MAX_INTERVALS, Grid, Section
from softcr_models.rod.parameters import PARAMETERS, ROD_PARAMETERS, SIGNS
from softcr_models.rod.state import RodState, state_size
from softcr_models.rod.stepper import Body, Retries, Run

# One linearisation serves at most this much time [s]: the paper's control period of 14.3 ms, and a
# little more, because the stamps of a 70 Hz loop scatter and a second one doubles the work.
LONGEST_LINEARISATION = 0.018


def linearisations(dt: float) -> int:
    """How many linearisations a step of `dt` [s] needs, at least 1."""
    return max(1, math.ceil(dt / LONGEST_LINEARISATION - 1e-9))


class EquilibriumError(ArithmeticError):
    """No steady state was found at the pressures asked for."""


class CosseratRod:
    """Collocation model of the Cosserat rod, Licher et al. 2025, Sec. III; any number of intervals.

    States are vectors of 12 (n + 1) numbers laid out as `RodState`. Poses are in the robot's base
    frame, which is the force-torque sensor's (CS)_fts of eq. (29): the rod itself starts above it
    by `base_height`. Pressures are gauge [Pa], one per chamber.

    The parameters a filter may estimate, `PARAMETERS`, can be given to most methods as a (3,)
    vector; they default to the robot's: `nominal_parameters`.

    Attributes:
        robot, intervals, max_substep: as given.
        state_size, input_size: 12 (n + 1) and m, the number of chambers.
        retries: how often a simulation was done again in finer steps, since this was made.
    """

    def __init__(self, robot: Robot, intervals: int = 5, max_substep: float = 0.005) -> None:
        """A rod of `intervals` collocation intervals.

        Args:
            robot: what it is made of.
            intervals: n; 5 as in the paper. A plant takes at least 10: the tip is then
                within about 1.5 mm of n = 20 in motion, with 5 within about 7 mm.
            max_substep: longest sub-step of the time integration [s].

        Raises:
            UserError: if a number is out of range.
        """
        if not 1 <= intervals <= MAX_INTERVALS:
            raise UserError(f"intervals: {intervals} is not allowed: 1 to {MAX_INTERVALS}")
        if not max_substep > 0.0:
            raise UserError(f"max_substep: {max_substep} s is not allowed: must be above 0")
        self.robot = robot
        self.intervals = intervals
        self.max_substep = max_substep
        self.retries = Retries()
        self.state_size = state_size(intervals)
        self.input_size = len(robot.chambers)
        self._arguments = Arguments("CosseratRod", self.state_size, self.input_size, SIGNS)
        self.base_height = _base_height(robot)
        self.nominal_parameters = np.array([each.nominal(robot) for each in ROD_PARAMETERS])
        self.body, self.grid = _discretise(robot, intervals)
        self._section = self._section_of(self.nominal_parameters)

    def rest_state(self) -> np.ndarray:
        """(12 (n + 1),) straight, unloaded, at rest: zeros."""
        return np.zeros(self.state_size)

    def step(
        self,
        state: np.ndarray,
        pressures: np.ndarray,
        dt: float,
        parameters: np.ndarray | None = None,
    ) -> np.ndarray:
        """The state after `dt` [s] under constant pressures (m,) [Pa].

        Raises:
            UserError: a wrong shape, a dt that is not above 0, or parameters of the wrong sign.
        """
        dt = self._arguments.step_length("step", dt)
        pieces = linearisations(dt)
        levels = np.empty((1, pieces + 1, self.input_size))
        levels[0] = self._pressures("step", pressures)
        return self._simulate("step", state, levels, dt / pieces, parameters)[-1]

    def simulate(
        self,
        initial_state: np.ndarray,
        pressures: np.ndarray,
        dt: float,
        parameters: np.ndarray | None = None,
    ) -> np.ndarray:
        """States after each of T steps of length `dt` [s].

        Args:
            initial_state: (12 (n + 1),).
            pressures: (T, m) [Pa], each row held over its step.
            dt: at most a few tens of milliseconds: a step has one linearisation.

        Returns:
            (T, 12 (n + 1)); NaN if its last row is not finite even in the finest steps.

        Raises:
            UserError: a wrong shape, a dt that is not above 0, or parameters of the wrong sign.
        """
        dt = self._arguments.step_length("simulate", dt)
        held = np.atleast_2d(self._arguments.floats("simulate", "pressures", pressures))
        if held.shape[1:] != (self.input_size,) or not len(held):
            raise ArgumentError(
                f"CosseratRod.simulate: pressures of shape {held.shape}: allowed is "
                f"(T, {self.input_size}), T >= 1"
            )
        # the last row repeated: what comes after the end is not looked at
        levels = np.concatenate((held, held[-1:]))[None]
        return self._simulate("simulate", initial_state, levels, dt, parameters)

    def derivative(
        self, state: np.ndarray, pressures: np.ndarray, parameters: np.ndarray | None = None
    ) -> np.ndarray:
        """Explicit state equation (20): time derivative (12 (n + 1),) of the state."""
        section = self._section_for("derivative", parameters)
        e, s, base = self._split(self._state("derivative", state))
        w = self._wrench("derivative", pressures)
        de, ds = evaluation.rates(e, s, w, section, self.grid)
        base_rate = ds[0] - (w + base - s[0]) * section.relaxation_rate
        return np.concatenate((de[1:].ravel(), ds.ravel(), base_rate))

    def residual(
        self,
        state: np.ndarray,
        state_rate: np.ndarray,
        pressures: np.ndarray,
        parameters: np.ndarray | None = None,
    ) -> np.ndarray:
        """Implicit state equation (19), zero when `state_rate` is the derivative at `state`.

        Runs the kernel's text in plain numpy, so complex numbers pass through (complex-step
        checks).

        Returns:
            (12 (n + 1),): compatibility then balance of each interval, the tip's transmission
            condition, the base's.
        """
        section = self._section_for("residual", parameters)
        e, s, base = self._split(np.asarray(state))
        de, ds, base_rate = self._split(np.asarray(state_rate))
        dtype = np.result_type(e, de, np.asarray(pressures), float)
        w = (self.robot.actuation_matrix @ np.asarray(pressures)).astype(dtype)
        compatibility = np.empty((self.intervals, 6), dtype)
        balance = np.empty((self.intervals, 6), dtype)
        tip = np.empty(6, dtype)
        kernel.implicit_residual(
            e.astype(dtype), s.astype(dtype), de.astype(dtype), ds.astype(dtype), w, section,
            self.grid, compatibility, balance, tip,
        )  # fmt: skip
        relaxation = section.relaxation
        at_base = s[0] + relaxation * ds[0] - w - base - relaxation * base_rate
        intervals = np.concatenate((compatibility, balance), axis=1)
        return np.concatenate((intervals.ravel(), tip, at_base))

    def linearize(
        self, state: np.ndarray, pressures: np.ndarray, parameters: np.ndarray | None = None
    ) -> tuple[np.ndarray, np.ndarray]:
        """Exact Jacobians of the derivative, (23)-(28) and (31), gravity included.

        Returns:
            d(derivative)/d(state) (12 (n + 1), 12 (n + 1)) and d(derivative)/d(pressures) [1/Pa].
        """
        size, chambers = self.state_size, self.input_size
        directions = np.zeros((size + chambers, size + 18 + 6 + self.intervals))
        tangent_e, tangent_s, tangent_w = self._direction_slices()[:3]
        directions[: 6 * self.intervals, tangent_e][:, 6:] = np.eye(6 * self.intervals)
        wrenches = slice(6 * self.intervals, size - 6)
        directions[wrenches, tangent_s] = np.eye(6 * (self.intervals + 1))
        directions[size:, tangent_w] = self.robot.actuation_matrix.T
        base = np.zeros((size + chambers, 6))
        base[size - 6 : size] = np.eye(6)
        jacobian = self._tangents(state, pressures, parameters, directions, base).T
        return jacobian[:, :size], jacobian[:, size:]

    def linearize_parameters(
        self, state: np.ndarray, pressures: np.ndarray, parameters: np.ndarray | None = None
    ) -> np.ndarray:
        """Exact d(derivative)/d(parameters), (12 (n + 1), 3), in the order of PARAMETERS."""
        directions = np.zeros((len(PARAMETERS), self.state_size + 18 + 6 + self.intervals))
        _, _, _, compliance, relaxation, density = self._direction_slices()
        directions[0, compliance] = self.body.bending_share
        directions[1, density] = self.body.tip_share
        directions[2, relaxation] = self.body.relaxation
        return self._tangents(state, pressures, parameters, directions, np.zeros((3, 6))).T

    def equilibrium(
        self, pressures: np.ndarray, parameters: np.ndarray | None = None
    ) -> np.ndarray:
        """The steady state (12 (n + 1),) reached by raising the pressures (m,) [Pa] slowly from
        zero.

        Newton's method on the exact linearisation, pressures raised in as many pieces as it needs.

        Raises:
            EquilibriumError: with the pressures, if there is none.
            UserError: pressures or parameters of a wrong shape or sign, or not finite.
        """
        target = self._pressures("equilibrium", pressures)
        self._arguments.require_finite("equilibrium", "pressures", target)
        if parameters is not None:
            parameters = self._parameters("equilibrium", parameters, None)
        state = self._newton(self.rest_state(), 0.0 * target, parameters)
        if state is None:
            raise EquilibriumError(
                "no steady state without pressure: the rod buckles under its weight"
            )
        reached, piece = 0.0, 1.0
        while reached < 1.0:
            fraction = min(1.0, reached + piece)
            candidate = self._newton(state, fraction * target, parameters)
            if candidate is not None:
                state, reached, piece = candidate, fraction, 2.0 * piece
            elif piece < 1e-3:
                raise EquilibriumError(f"no steady state found at pressures {target.tolist()} Pa")
            else:
                piece *= 0.5
        return state

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
        section = self._section_for("backbone", parameters)
        arc_lengths = np.linspace(0.0, self.robot.length, points)
        _, s, _ = self._split(self._state("backbone", state))
        poses = evaluation.poses_along(s, section.compliance, self.grid, arc_lengths)
        poses[:, 2, 3] += self.base_height
        return poses

    def node_poses(self, state: np.ndarray, parameters: np.ndarray | None = None) -> np.ndarray:
        """(n + 1, 4, 4) poses of the nodes 0..n in the base frame."""
        return self.backbone(state, self.intervals + 1, parameters)

    def base_wrench(
        self, state: np.ndarray, pressures: np.ndarray, parameters: np.ndarray | None = None
    ) -> np.ndarray:
        """(6,) force [N], then moment [N m], that the robot puts on the force-torque sensor.

        It is the total wrench below the base jump, x2(0-) + D_tau x2'(0-), carried from the rod's
        base to the sensor, (3) and (17). Inside the model the masses of base and sensor caps are
        nil.
        """
        section = self._section_for("base_wrench", parameters)
        e, s, _ = self._split(self._state("base_wrench", state))
        w = self._wrench("base_wrench", pressures)
        _, ds = evaluation.rates(e, s, w, section, self.grid)
        wrench = s[0] + section.relaxation * ds[0] - w
        lever = self.base_height  # along z
        wrench[3] -= lever * wrench[1]
        wrench[4] += lever * wrench[0]
        return wrench

    def pressure_wrench(self, pressures: np.ndarray) -> np.ndarray:
        """(6,) wrench of the pressures (m,) on an end of the chambers, eq. (7)."""
        return self._wrench("pressure_wrench", pressures)

    # -- inner workings ---------------------------------------------------------------------------

    def _simulate(self, method, initial_state, levels, dt, parameters):
        """(T, 12 (n + 1)) of levels (1, T + 1, m) and dt that are checked."""
        substeps = max(1, math.ceil(dt / self.max_substep - 1e-9))
        run = Run(self.body, self.grid, dt, substeps, held=1)
        state, row = self._state(method, initial_state), self._parameters(method, parameters)
        return stepper.advance(state[None], levels, row[None], run, retries=self.retries)[0]

    def _newton(self, state, pressures, parameters):
        """Newton's method for a steady state; None if it fails. Velocities stay zero."""
        wrenches = slice(6 * self.intervals, self.state_size)
        force, moment = self._load_scales()
        for _ in range(25):
            jacobian, _ = self.linearize(state, pressures, parameters)
            try:
                change = np.linalg.solve(jacobian, self.derivative(state, pressures, parameters))
            except np.linalg.LinAlgError:
                return None
            # the whole change by the larger scale: rounding of forces ends up in the moments
            size = np.abs(change[wrenches]).max() / max(force, moment)
            bent = np.abs(change[wrenches].reshape(-1, 6)[:, 3:]).max() / moment
            # a change of strain beyond this leaves Newton's reach
            if not np.isfinite(size) or max(size, bent) > 3.0:
                return None
            state = state - change
            state[: 6 * self.intervals] = 0.0
            if size < 1e-12:
                return state
        return None

    def _load_scales(self) -> tuple[float, float]:
        """The largest force [N] and moment [N m] that actuation or weight can load the rod with.

        Raises:
            EquilibriumError: nothing can.
        """
        robot = self.robot
        limits = robot.pressure_limits
        largest = max(abs(limits.minimum), abs(limits.maximum))
        loads = largest * np.abs(self.body.actuation).sum(axis=1)
        mass = self.body.line_density * robot.length + robot.tip_mass
        weight = mass * abs(robot.gravity)
        force = max(float(loads[:3].max()), weight)
        if not force > 0.0:
            raise EquilibriumError(
                f"robot {robot.name}: neither its pressures, at most {largest:g} Pa, nor its "
                f"weight, {weight:g} N, load it: a steady state has no scale"
            )
        # where nothing bends the rod, any scale of its moments will do
        moment = max(float(loads[3:].max()), weight * robot.length) or force * robot.length
        return force, moment

    def _direction_slices(self) -> tuple[slice, ...]:
        """Columns of `evaluation.rates_tangents`: e, s, w, compliance, relaxation, line density."""
        nodes = 6 * (self.intervals + 1)
        edges = np.cumsum([0, nodes, nodes, 6, 6, 6, self.intervals])
        return tuple(slice(a, b) for a, b in pairwise(edges))

    def _tangents(self, state, pressures, parameters, directions, base_directions):
        """(K, 12 (n + 1)) changes of the derivative along directions of state and section."""
        section = self._section_for("linearize", parameters)
        e, s, base = self._split(self._state("linearize", state))
        w = self._wrench("linearize", pressures)
        changes = evaluation.rates_tangents(e, s, w, section, self.grid, directions)
        nodes = 6 * (self.intervals + 1)
        _, tangent_s, tangent_w, _, relaxation, _ = self._direction_slices()
        rate = section.relaxation_rate
        base_rate = -(w + base - s[0]) * rate
        base_changes = changes[:, nodes : nodes + 6] - rate * (
            directions[:, tangent_w]
            + base_directions
            - directions[:, tangent_s][:, :6]
            + base_rate * directions[:, relaxation]
        )
        return np.concatenate((changes[:, 6:], base_changes), axis=1)

    def _section_for(self, method: str, parameters: np.ndarray | None) -> Section:
        if parameters is None:
            return self._section
        return self._section_of(self._parameters(method, parameters))

    def _section_of(self, parameters: np.ndarray) -> Section:
        compliance = self.body.compliance + self.body.bending_share * parameters[0]
        relaxation = self.body.relaxation * parameters[2]
        density = self.body.line_density + parameters[1] * self.body.tip_share
        return Section(
            compliance, 1.0 / compliance, relaxation, 1.0 / relaxation, density, 1.0 / density
        )

    def _split(self, state: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Velocities with clamped node 0 in front (n + 1, 6), wrenches (n + 1, 6), base (6,)."""
        parts = RodState(state)
        e = np.concatenate((np.zeros((1, 6), state.dtype), parts.velocities))
        return e, np.ascontiguousarray(parts.wrenches), parts.base_wrench

    def _state(self, method: str, state: np.ndarray) -> np.ndarray:
        return self._arguments.vector(method, "state", state, self.state_size)

    def _pressures(self, method: str, pressures: np.ndarray) -> np.ndarray:
        found = self._arguments.floats(method, "pressures", pressures)
        if found.shape != (self.input_size,):
            raise ArgumentError(
                f"CosseratRod.{method}: pressures of shape {found.shape}: robot {self.robot.name} "
                f"has {self.input_size} chambers"
            )
        return found

    def _wrench(self, method: str, pressures: np.ndarray) -> np.ndarray:
        return self.robot.actuation_matrix @ self._pressures(method, pressures)

    def _parameters(
        self, method: str, parameters: np.ndarray | None, batch: int | None = 1
    ) -> np.ndarray:
        if parameters is None:
            return self.nominal_parameters
        found = self._arguments.vector(method, "parameters", parameters, len(PARAMETERS))
        self._arguments.require_signs(method, found, batch)
        return found


def _base_height(robot: Robot) -> float:
    """From the force-torque sensor's origin to the rod's base [m]."""
    return robot.sensor_to_base_cap + robot.base_cap_length


def _discretise(robot: Robot, intervals: int) -> tuple[Body, Grid]:
    """A robot's constants on `intervals` equal intervals."""
    edges = np.linspace(0.0, robot.length, intervals + 1)
    tip_length = robot.length * robot.tip_mass_fraction
    covered = np.clip(edges[1:] - np.maximum(edges[:-1], robot.length - tip_length), 0.0, None)
    area = robot.cross_section_area
    body = Body(
        compliance=robot.compliances * (1.0 - BENDING),
        bending_share=BENDING,
        relaxation=np.array(robot.relaxation_times),
        line_density=robot.density * area,
        tip_share=covered / np.diff(edges) / tip_length,
        actuation=np.ascontiguousarray(robot.actuation_matrix),
        base_height=_base_height(robot),
        tip_cap_length=robot.tip_cap_length,
    )
    base_to_world = Rotation.from_euler("xyz", robot.base_orientation).as_matrix()
    inertia = robot.second_moment_of_area / area
    grid = Grid(
        intervals=intervals,
        interval_length=robot.length / intervals,
        gravity=robot.gravity * base_to_world[2],
        gravity_subintervals=robot.gravity_subintervals,
        strain_point=robot.gravity_strain_point,
        bending_inertia=inertia,
        torsion_inertia=2.0 * inertia,
    )
    return body, grid
