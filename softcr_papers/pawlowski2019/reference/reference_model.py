"""The implicit integrator of the reference solvers as a `Model`."""

import math
from typing import Annotated, Any

import numpy as np
from pydantic import BaseModel, ConfigDict, Field

from softcr_models.errors import UserError
from softcr_models.model import TIP, Group, Layout, OutputInfo, Parameter, nominal_parameters
from softcr_models.model_base import ModelBase
from softcr_models.robots.robot import Robot
from softcr_models.rod.description import SHAPE, rod_inputs
from softcr_models.rod_model.rod_model import rod_robot
from softcr_papers.pawlowski2019.lie import se3
from softcr_papers.pawlowski2019.reference.actuator_lines import section_wrench
from softcr_papers.pawlowski2019.reference.implicit_motion import (
    TOLERANCE,
    ImplicitMotion,
    ImplicitState,
    Space,
    StepFailed,
)
from softcr_papers.pawlowski2019.reference.kernel import implicit_kernels
from softcr_papers.pawlowski2019.reference.numbers import numbers_of
from softcr_papers.pawlowski2019.reference.reference_rod import Loads, ReferenceRod
from softcr_papers.pawlowski2019.reference.statics import Method, NoEquilibrium, equilibrium
from softcr_papers.pawlowski2019.reference.steady import base_pose


class ReferenceSettings(BaseModel):
    """Numbers of a `ReferenceModel`."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    points: Annotated[int, Field(ge=3, le=400)] = Field(
        default=20, description="number of points along the rod, including both ends [-]"
    )
    longest_step: Annotated[float, Field(gt=0.0, le=0.1)] = Field(
        default=0.05,
        description="largest time step of the integration; far below it the scheme needs "
        "viscosity or more points",
        json_schema_extra={"unit": "s"},
    )
    space: Space = Field(
        default="euler",
        description="how the rod is integrated along its length: as in the thesis, or by the "
        "midpoint rule",
    )
    kirchhoff: bool = Field(default=False, description="whether shear and stretch are fixed")


class ReferenceModel(ModelBase):
    """A rod of one segment by midpoint in time and shooting in space; see `Model`.

    The state is the strains (P, 6) of the points and their velocities (P, 6), linear first, in the
    sections' frames. Outputs, in the robot's base frame: `tip`, and `shape`, the points. A step
    that is not found is NaN, as are those after it.

    Attributes:
        body: the numbers of the rod.
        motion: the integrator.
        settings: of it.
        nominal_parameters: (P,) values.
    """

    Settings = ReferenceSettings

    def __init__(self, robot: Robot, settings: ReferenceSettings | None = None) -> None:
        """
        Args:
            robot: of one segment, without payload, tip mass and flow.
            settings: of the integration.

        Raises:
            UserError: the robot has what the reference solvers do not know.
        """
        own = self.settings = settings or ReferenceSettings()
        rod = ReferenceRod.of_robot(robot)
        self.body = rod.kirchhoff() if own.kirchhoff else rod
        self.motion = ImplicitMotion(self.body, own.points, own.longest_step, own.space)
        self.state = _layout(rod, len(self.motion.places))
        self.inputs = rod_inputs(robot)
        self.parameters: tuple[Parameter, ...] = tuple(
            Parameter(f"{name}_factor", "-", 1.0, 0.2, 5.0)
            for name in ("stiffness", "damping", "mass")
        )
        self.nominal_parameters = nominal_parameters(self.parameters)
        self._tells(
            {
                TIP: (OutputInfo((3, 4), "m", "pose"), self._tips),
                SHAPE: (OutputInfo((own.points, 3), "m", "points"), self._shapes),
            }
        )
        self._columns = _columns(self.body, self.motion.places)

    @classmethod
    def of_robot(cls, robot: Any, settings: ReferenceSettings | None = None) -> "ReferenceModel":
        """The model of a rod of one segment.

        Raises:
            UserError: the robot is no rod, or has what the reference solvers do not know.
        """
        return cls(rod_robot(robot, "reference"), settings)

    def equilibrium(self, inputs: np.ndarray, parameters: np.ndarray) -> np.ndarray:
        """See Model; of the same scheme in space.

        Raises:
            UserError: none is found, or a tension is below zero.
        """
        acting, (stiff, _, heavy) = self._arguments.equilibrium(inputs, parameters)
        rod = self.body.scaled(stiff, 1.0, heavy)
        loads, size = Loads(inputs=acting), 6 * len(self.motion.places)
        euler = self.settings.space == "euler"
        method: Method = "explicit_euler" if euler else "explicit_midpoint"
        # a step so long that nothing moves: the strains between the points as well
        still = ImplicitMotion(rod, self.settings.points, 1e9, self.settings.space)
        state: ImplicitState = still.rest_state()
        before = state.strains.copy()
        try:
            state.base_wrench[:] = equilibrium(rod, loads, method, still.points).base_wrench
            still.advance(state, loads, 1)
        except (NoEquilibrium, StepFailed) as problem:
            raise UserError(f"no steady state was found: {problem}") from None
        strains = 0.5 * (state.strains + before)
        return np.concatenate((strains.ravel(), np.zeros(size)))

    def tip_poses(self, states: np.ndarray, parameters: np.ndarray) -> np.ndarray:
        """(B, 3, 4) of states (B, nx), base frame [m]."""
        return self.observe((TIP,), states, None, parameters)[TIP]

    def warm_up(self) -> None:
        numbers = self.nominal_parameters
        state = self.equilibrium(self.inputs.rest, numbers)
        levels = np.tile(self.inputs.rest, (2, 2, 1))
        self.rollout_tips(state, levels, numbers, self.settings.longest_step)
        self.observe(tuple(self.outputs), state[None], None, numbers[None])

    def _states_after(
        self, states: np.ndarray, levels: np.ndarray, parameters: np.ndarray, dt: float
    ) -> np.ndarray:
        rod, motion = self.body, self.motion
        out = np.empty((len(levels), levels.shape[1] - 1, self.state.size))
        base, substeps = base_pose(rod), math.ceil(dt / self.settings.longest_step - 1e-9)
        # numbers of their own, since the loop writes into them
        numbers = numbers_of(rod, Loads(), motion.places)._replace(
            bent=int(any(line.acting == "tangent" for line in rod.lines))
        )
        implicit_kernels().rollout(
            substeps, motion.space == "midpoint", dt, motion.interval,
            np.vstack((base[:3, :3], base[None, :3, 3])), numbers, *self._columns, rod.inertia,
            rod.viscosity, rod.drag, rod.scales, TOLERANCE, states, levels, parameters, out,
        )  # fmt: skip
        return out

    def _shapes(self, states: np.ndarray, _: np.ndarray, __: np.ndarray) -> np.ndarray:
        return np.stack([pose[..., :3, 3] for pose in self._chain(states)], axis=-2)

    def _tips(self, states: np.ndarray, _: np.ndarray, __: np.ndarray) -> np.ndarray:
        end = self._chain(states)[-1]
        tip = end[..., :3, :].copy()
        tip[..., 3] += self.body.tip_cap_length * tip[..., 2]
        return tip

    def _chain(self, states: np.ndarray) -> list[np.ndarray]:
        """N poses (..., 4, 4) of states (..., nx), from the base on."""
        places, stages = len(self.motion.places), 1 if self.settings.space == "euler" else 2
        strains = states[..., : 6 * places].reshape(*states.shape[:-1], places, 6)
        steps = se3.exp(self.motion.interval * strains[..., stages - 1 : -1 : stages, :])
        poses = [np.broadcast_to(base_pose(self.body), (*states.shape[:-1], 4, 4))]
        for j in range(steps.shape[-3]):
            poses.append(poses[-1] @ steps[..., j, :, :])
        return poses


def _layout(rod: ReferenceRod, places: int) -> Layout:
    """A bend of 1 rad, strains of a tenth, and these in a tenth of a second."""
    linear = np.tile(np.arange(6) < 3, places)
    bend = 1.0 / rod.length
    size = np.where(linear, 0.1, bend)
    speed = np.where(linear, rod.length, 1.0) * 10.0
    count = len(linear)
    return Layout(
        (
            Group("strains", np.flatnonzero(linear), "-"),
            Group("curvatures", np.flatnonzero(~linear), "rad/m"),
            Group("velocities", count + np.flatnonzero(linear), "m/s"),
            Group("rates", count + np.flatnonzero(~linear), "rad/s"),
        ),
        np.concatenate((size, speed)),
    )


def _columns(rod: ReferenceRod, places: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """(P, m, 6), (P, m), (m,) of lines per input: along the section, the tangent, at the end."""
    count = len(rod.lines)
    section, tangent = np.zeros((len(places), count, 6)), np.zeros((len(places), count))
    end = np.zeros(count)
    for i, line in enumerate(rod.lines):
        running = line.pull * line.runs_at(places, rod.length)
        if line.acting == "section":
            wrench = -section_wrench(line.offset(places), np.asarray(rod.rest_strain, float))
            section[:, i] = running[:, None] * wrench
        elif line.acting == "tangent":
            tangent[:, i] = running
        else:
            end[i] = line.pull
    return section, tangent, end
