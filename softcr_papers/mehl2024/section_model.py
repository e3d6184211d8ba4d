"""One pneumatic section of constant curvature as a `Model`, with the sensor it stands on.

Mehl et al., eqs. (1) to (7), by `dynamics`; time by position Verlet with sub-steps, in one compiled
loop over all candidates.
"""

import math
from typing import Annotated, Any, ClassVar

import numpy as np
from pydantic import BaseModel, ConfigDict, Field
from scipy.optimize import root

from softcr_models.errors import UserError
from softcr_models.model import TIP, Group, Layout, OutputInfo, Parameter
from softcr_models.model_base import ModelBase
from softcr_models.robots.robot import Robot
from softcr_models.rod.description import BASE_WRENCH, SHAPE, rod_inputs
from softcr_models.rod_model.rod_model import rod_robot
from softcr_papers.constant_curvature.kernel import kernels
from softcr_papers.constant_curvature.kinematics import ConstantCurvatureChain
from softcr_papers.mehl2024.dynamics import ConstantCurvatureModel

STIFFNESS_RANGE = 5.0
"""An estimated bending stiffness stays within nominal / range and nominal * range [-]: it takes up
what the assumption of constant curvature leaves out."""

_SAFE_TURN = 0.7
"""The fastest vibration turns by so much in a sub-step at most [rad]; the method's limit is 2."""


class SectionSettings(BaseModel):
    """Numbers of a `ConstantCurvatureSection`."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    longest_step: Annotated[float, Field(gt=0.0, le=0.02)] = Field(
        default=0.005, description="largest sub-step of the integration [s]"
    )
    points: Annotated[int, Field(ge=2, le=200)] = Field(
        default=6, description="number of points of the output shape, base to tip [-]"
    )


class ConstantCurvatureSection(ModelBase):
    """A robot's only section as a model of six states; see `Model` and `Lagrangian`.

    The state is q = [Delta_x, Delta_y, dL] [m] and its rates [m/s]. Outputs are in the frame of the
    force-torque sensor under the base: `tip`, the outer face of the tip cap; `shape`, points from
    the arc's base to its end; `base_wrench`, what the sensor reads. Inputs are those of the rod.

    Attributes:
        section: the numbers and equations.
        base_height: from the sensor's origin up to the arc's base [m].
        tip_cap_length: from the arc's end to the tip [m].
        settings: of the integration and the outputs.
    """

    Settings = SectionSettings
    kernels: ClassVar = ("constant_curvature",)

    def __init__(
        self,
        section: ConstantCurvatureModel,
        robot: Robot,
        settings: SectionSettings | None = None,
    ) -> None:
        """
        Args:
            section: the numbers, for example identified ones.
            robot: gives pressure limits, lag and the rigid parts.
            settings: of the integration and the outputs.
        """
        self.section, self.settings = section, settings or SectionSettings()
        self.base_height = robot.sensor_to_base_cap + robot.base_cap_length
        self.tip_cap_length = robot.tip_cap_length
        self._chain = ConstantCurvatureChain(1, section.radius)
        self._actuation = np.ascontiguousarray(section.actuation, dtype=float)
        self._stiffness = np.array([*[section.bending_stiffness] * 2, section.elongation_stiffness])
        self._damping = np.array([*[section.bending_damping] * 2, section.elongation_damping])
        # a bend of 1 rad, a fifth of the length, both in a tenth of a second
        size = np.array([section.radius, section.radius, 0.2 * section.rest_length])
        self.state = Layout(
            (
                Group("coordinates", np.arange(3), "m"),
                Group("rates", np.arange(3, 6), "m/s"),
            ),
            np.concatenate([size, 10.0 * size]),
        )
        self.inputs = rod_inputs(robot)
        self.parameters = _parameters(section)
        self._tells(
            {
                TIP: (OutputInfo((3, 4), "m", "pose"), self._tips),
                SHAPE: (OutputInfo((self.settings.points, 3), "m", "points"), self._shapes),
                BASE_WRENCH: (
                    OutputInfo((6,), "N, N m", "wrench", needs_inputs=True), self._wrenches
                ),
            }
        )  # fmt: skip
        self._longest_step = min(self.settings.longest_step, _SAFE_TURN / self._fastest())

    @classmethod
    def of_robot(
        cls, robot: Any, settings: SectionSettings | None = None
    ) -> "ConstantCurvatureSection":
        """The section of a robot's geometry and material; see `ConstantCurvatureModel.of_robot`.

        Raises:
            UserError: the robot is not driven by pressure.
        """
        rod = rod_robot(robot, "constant_curvature")
        return cls(ConstantCurvatureModel.of_robot(rod), rod, settings)

    # -- Model ------------------------------------------------------------------------------------

    def equilibrium(self, inputs: np.ndarray, parameters: np.ndarray) -> np.ndarray:
        """See Model.

        Raises:
            UserError: there is none that the search from the straight pose finds.
        """
        acting, numbers = self._arguments.equilibrium(inputs, parameters)
        stiffness, tip_mass, _ = numbers
        section = self.section.replace(bending_stiffness=stiffness, tip_mass=tip_mass)
        driven, still = section.actuation_force(acting), np.zeros(3)

        def forces(q: np.ndarray) -> np.ndarray:
            return driven + section.internal_force(q, still) - _gravity_force(section, q)

        found = root(forces, driven / self._stiffness, tol=1e-13)
        scale = np.abs(driven).max() + section.mass * np.linalg.norm(section.gravity) + 1e-3
        if not np.abs(forces(found.x)).max() < 1e-8 * scale:
            raise UserError(f"no steady state was found at inputs {acting.tolist()} Pa")
        return np.concatenate([found.x, still])

    # -- Lagrangian -------------------------------------------------------------------------------

    def inertia(self, q: np.ndarray) -> np.ndarray:
        """(..., 3, 3) M [kg]."""
        points = self.section.mass_points(q, np.zeros_like(q))
        return sum(mass * _transposed(along) @ along for mass, _, along, _ in points)

    def coriolis(self, q: np.ndarray, rate: np.ndarray) -> np.ndarray:
        """(..., 3, 3) C [N s/m]; M' - 2 C is skew-symmetric."""
        points = self.section.mass_points(q, rate)
        return sum(mass * _transposed(along) @ change for mass, _, along, change in points)

    def gravity_force(self, q: np.ndarray) -> np.ndarray:
        """(..., 3) g [N], on the left of Lagrange's equations."""
        return _gravity_force(self.section, q)

    def stiffness_matrix(self) -> np.ndarray:
        """(3, 3) K [N/m]."""
        return np.diag(self._stiffness)

    def damping_matrix(self) -> np.ndarray:
        """(3, 3) D [N s/m]."""
        return np.diag(self._damping)

    def actuation(self, q: np.ndarray) -> np.ndarray:
        """(..., 3, m) A [N/Pa]."""
        return np.broadcast_to(self._actuation, (*np.shape(q)[:-1], *self._actuation.shape))

    # -- inner workings ---------------------------------------------------------------------------

    def _states_after(
        self, states: np.ndarray, levels: np.ndarray, parameters: np.ndarray, dt: float
    ) -> np.ndarray:
        section = self.section
        out = np.empty((len(levels), levels.shape[1] - 1, 6))
        substeps = math.ceil(dt / self._longest_step - 1e-9)
        kernels().section_rollout(
            states, levels, parameters, self._actuation, section.gravity, section.rest_length,
            section.radius, section.mass, self._stiffness, self._damping, dt, substeps, out,
        )  # fmt: skip
        return out

    def _tips(self, states: np.ndarray, _: np.ndarray, __: np.ndarray) -> np.ndarray:
        lengths = np.array([self.section.rest_length])
        poses = self._chain.pose(states[..., :3], lengths)[..., :3, :]
        poses[..., 3] += self.tip_cap_length * poses[..., 2]
        poses[..., 2, 3] += self.base_height
        return poses

    def _shapes(self, states: np.ndarray, _: np.ndarray, __: np.ndarray) -> np.ndarray:
        lengths = np.array([self.section.rest_length])
        poses = self._chain.backbone(states[:, :3], lengths, self.settings.points)
        points = poses[..., :3, 3].copy()
        points[..., 2] += self.base_height
        return points

    def _wrenches(
        self, states: np.ndarray, inputs: np.ndarray, parameters: np.ndarray
    ) -> np.ndarray:
        """(B, 6) against the base reaction, about the sensor's origin."""
        section = self.section
        q, rate = states[:, :3], states[:, 3:]
        stiffness = np.repeat(self._stiffness[None], len(parameters), axis=0)
        stiffness[:, :2] = parameters[:, :1]
        force = section.actuation_force(inputs) - stiffness * q
        force = force - parameters[:, 2:] * self._damping * rate
        _, reaction = kernels().fixed_base_motion(
            q, rate, force, section.rest_length, section.radius, section.mass, parameters[:, 1],
            section.gravity, np.zeros(6),
        )  # fmt: skip
        wrenches: np.ndarray = -reaction
        wrenches[:, 3] -= self.base_height * wrenches[:, 1]
        wrenches[:, 4] += self.base_height * wrenches[:, 0]
        return wrenches

    def _fastest(self) -> float:
        """Highest angular frequency at the straight pose with the stiffest parameters [rad/s].

        There the inertia is diagonal: the centre of gravity is half way up, and leans by L / (6 r)
        of Delta, the tip by L / (2 r). Written out, because nothing compiled may run here.
        """
        section = self.section
        bounds = {each.name: each for each in self.parameters}
        tip_mass = bounds["tip_mass"].low
        across = section.rest_length / section.radius
        bending = across**2 * (section.mass / 36.0 + tip_mass / 4.0)
        axial = 0.25 * section.mass + tip_mass
        return math.sqrt(
            max(
                bounds["bending_stiffness"].high / bending,
                section.elongation_stiffness / axial,
            )
        )


def _parameters(section: ConstantCurvatureModel) -> tuple[Parameter, ...]:
    stiffness, tip_mass = section.bending_stiffness, section.tip_mass
    return (
        Parameter(
            "bending_stiffness", "N/m", stiffness,
            stiffness / STIFFNESS_RANGE, stiffness * STIFFNESS_RANGE, noise=0.04, deviation=0.1,
        ),
        # linear: a tip may have no mass at all
        Parameter(
            "tip_mass", "kg", tip_mass, 0.5 * tip_mass, 2.0 * tip_mass + section.mass, "linear",
            noise=1e-3, deviation=0.1, scale=tip_mass + 0.5 * section.mass,
        ),
        Parameter("damping_factor", "-", 1.0, 0.2, 5.0, noise=1e-3, deviation=0.1),
    )  # fmt: skip


def _gravity_force(section: ConstantCurvatureModel, q: np.ndarray) -> np.ndarray:
    points = section.mass_points(q, np.zeros_like(q))
    return -sum(mass * _transposed(along) @ section.gravity for mass, _, along, _ in points)


def _transposed(matrices: np.ndarray) -> np.ndarray:
    return np.swapaxes(matrices, -1, -2)
