"""A planar strain robot as a `Model` of known material or identified."""

from collections.abc import Sequence
from typing import Annotated, Any

import numpy as np
from pydantic import BaseModel, ConfigDict, Field

from softcr_models.errors import UserError
from softcr_models.model import TIP, Group, Inputs, Layout, OutputInfo, Parameter
from softcr_models.model_base import ModelBase
from softcr_models.rod.description import SHAPE
from softcr_papers.valadas2024.strain.arm import StrainArm, load_strain_arm
from softcr_papers.valadas2024.strain.dynamics import QUADRATURE, StrainDynamics
from softcr_papers.valadas2024.strain.integration import Integration, rodas, typical_state
from softcr_papers.valadas2024.strain.kinematics import transforms

_STEPS_OF_NEWTON = 60
_SAME_LENGTH = 1e-3  # lengths of one robot as found by different recordings differ by less [-]


class StrainModelSettings(BaseModel):
    """Numbers of a `LagrangianModel`."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    tolerance: Annotated[float, Field(gt=0.0, le=1e-2)] = Field(
        default=1e-5,
        description="tolerance of a step's error, relative to the typical size of a strain [-]",
    )
    longest_step: Annotated[float, Field(ge=0.0, le=0.1)] = Field(
        default=0.0,
        description="number of equal steps, with which results depend smoothly on inputs, as an "
        "optimiser's finite differences require; 0: steps adapted to the tolerance",
        json_schema_extra={"unit": "s"},
    )
    held_torques: bool = Field(
        default=False,
        description="whether the torque at the end of a step is held throughout it; false: linear",
    )
    quadrature: Annotated[int, Field(ge=2, le=40)] = Field(
        default=QUADRATURE, description="number of points per segment that carry its mass [-]"
    )
    points: Annotated[int, Field(ge=2, le=200)] = Field(
        default=21, description="number of points of the output shape, base to tip [-]"
    )
    model_file: str = Field(
        default="",
        description="robot file with the model's numbers, for example a learned one: a file of "
        "config/robots, or a YAML file; empty: the robot's own",
        json_schema_extra={"folder": "robots"},
    )


class LagrangianModel(ModelBase):
    """A strain robot; see `Model` and `Lagrangian`.

    The state is the strains that are kept, q (m,) [rad/m, -], and their rates. Inputs are the
    torques on them: linear in between, as of every model, or with `held_torques` that at a step's
    end throughout the step, as of drives that follow a command at once and hold it. The plane of
    the motion is that of x and z; outputs are `tip`, `shape` (points from base to tip), `strains`,
    and `marker_1` ... what cameras see, base to tip.

    Attributes:
        arm: the data.
        dynamics: the equations of motion.
        settings: of the model.
    """

    Settings = StrainModelSettings

    def __init__(self, arm: StrainArm, settings: StrainModelSettings | None = None) -> None:
        """
        Args:
            arm: the data.
            settings: of the model.
        """
        self.arm, self.settings = arm, settings or StrainModelSettings()
        self.dynamics = StrainDynamics(arm.numbers, self.settings.quadrature)
        self._size = self.dynamics.numbers.size
        self.state = strain_layout(self.dynamics)
        self.inputs = _torques(arm)
        self.parameters: tuple[Parameter, ...] = (
            Parameter("stiffness_factor", "-", 1.0, 0.2, 5.0),
            Parameter("damping_factor", "-", 1.0, 0.2, 5.0),
            Parameter("mass_factor", "-", 1.0, 0.2, 5.0),
        )
        pose = OutputInfo((3, 4), "m", "pose")
        self._markers = dict(zip(arm.bodies_seen, arm.marker_places.tolist(), strict=True))
        self._tells(
            {
                TIP: (pose, self._tips),
                SHAPE: (OutputInfo((self.settings.points, 3), "m", "points"), self._shapes),
                "strains": (
                    OutputInfo((self._size,), "rad/m, -", "vector"),
                    lambda states, _, __: states[:, : self._size].astype(float),
                ),
                **dict.fromkeys(self._markers, (pose, self._tips)),  # see observe
            }
        )
        own = self.settings
        self._how = Integration(tolerance=own.tolerance, fixed_step=own.longest_step or None)

    @classmethod
    def of_robot(cls, robot: Any, settings: StrainModelSettings | None = None) -> "LagrangianModel":
        """The model of a strain robot, with the numbers of another file where settings name one.

        Raises:
            UserError: the robot is of another kind, or the file is not of this robot.
        """
        if not isinstance(robot, StrainArm):
            name = getattr(robot, "name", type(robot).__name__)
            raise UserError(f"model 'strain': is for a robot of type strain, which {name} is not")
        if settings is None or not settings.model_file:
            return cls(robot, settings)
        return cls(described_by(robot, settings.model_file), settings)

    # -- Model ------------------------------------------------------------------------------------

    def observe(
        self,
        names: Sequence[str],
        states: np.ndarray,
        inputs: np.ndarray | None,
        parameters: np.ndarray,
    ) -> dict[str, np.ndarray]:
        """See Model; all markers that are named at once, which takes a fifth of the time."""
        others = [name for name in names if name not in self._markers]
        observed = super().observe(others, states, inputs, parameters)
        if seen := [name for name in names if name in self._markers]:
            rows, _ = self._arguments.observe("observe", states, parameters)
            at = [self._markers[name] for name in seen]
            places, number = np.unique(at, return_inverse=True)
            poses = self._at(rows, places)
            observed |= {name: poses[:, row] for name, row in zip(seen, number, strict=True)}
        return observed

    def equilibrium(self, inputs: np.ndarray, parameters: np.ndarray) -> np.ndarray:
        """See Model; by Newton's method from the straight robot.

        Raises:
            UserError: none is found.
        """
        acting, (stiff, _, heavy) = self._arguments.equilibrium(inputs, parameters)
        numbers, sizes = self.dynamics.numbers, self.state.scale[: self._size]
        small = 1e-5 * np.diag(sizes)

        def force(q: np.ndarray) -> np.ndarray:
            return stiff * numbers.stiffness * q + heavy * self.dynamics.gravity_force(q) - acting

        q = np.zeros(self._size)
        for _ in range(_STEPS_OF_NEWTON):
            slopes = (force(q + small) - force(q - small)).T / (2e-5 * sizes)
            change = np.linalg.lstsq(slopes, -force(q), rcond=None)[0]
            q = q + change * min(1.0, 1.0 / max(float(np.abs(change / sizes).max()), 1e-300))
            if np.abs(change / sizes).max() < 1e-10:
                return np.concatenate([q, np.zeros(self._size)])
        raise UserError(f"no steady state was found at inputs {acting.tolist()} N m, N")

    # -- Lagrangian -------------------------------------------------------------------------------

    def inertia(self, q: np.ndarray) -> np.ndarray:
        """(..., m, m) M."""
        return self.dynamics.inertia(q)

    def coriolis(self, q: np.ndarray, rate: np.ndarray) -> np.ndarray:
        """(..., m, m) C; M' - 2 C is skew-symmetric."""
        return self.dynamics.coriolis(q, rate)

    def gravity_force(self, q: np.ndarray) -> np.ndarray:
        """(..., m) g, on the left of Lagrange's equations."""
        return self.dynamics.gravity_force(q)

    def stiffness_matrix(self) -> np.ndarray:
        """(m, m) K."""
        return self.dynamics.stiffness_matrix()

    def damping_matrix(self) -> np.ndarray:
        """(m, m) D."""
        return self.dynamics.damping_matrix()

    def actuation(self, q: np.ndarray) -> np.ndarray:
        """(..., m, m) one."""
        return self.dynamics.actuation(q)

    def with_parameters(self, parameters: np.ndarray) -> StrainDynamics:
        """The equations of motion with parameters (P,) in the place of the nominal ones."""
        stiff, damped, heavy = np.asarray(parameters, float).tolist()
        own = self.dynamics.numbers
        changed = own.replace(
            stiffness=stiff * own.stiffness, damping=damped * own.damping, mass=heavy * own.mass,
            inertia=heavy * own.inertia, weight=heavy * own.weight,
        )  # fmt: skip
        return StrainDynamics(changed, self.dynamics.points)

    # -- inner workings ---------------------------------------------------------------------------

    def _states_after(
        self, states: np.ndarray, levels: np.ndarray, parameters: np.ndarray, dt: float
    ) -> np.ndarray:
        held = self.settings.held_torques
        if held:  # the kernel holds the level of a step's begin
            levels = np.concatenate([levels[:, 1:], levels[:, -1:]], axis=1)
        return rodas(self.dynamics, states, levels, parameters, dt, self._how, held)

    def _tips(self, states: np.ndarray, _: np.ndarray, __: np.ndarray) -> np.ndarray:
        q = self.dynamics.numbers.full(states[..., : self._size])
        return transforms(self.dynamics.kinematics.tip(q))

    def _shapes(self, states: np.ndarray, _: np.ndarray, __: np.ndarray) -> np.ndarray:
        """At even distances of the unloaded backbone."""
        length = self.dynamics.kinematics.length
        return self._at(states, np.linspace(0.0, length, self.settings.points))[..., 3].copy()

    def _at(self, states: np.ndarray, places: np.ndarray) -> np.ndarray:
        """(B, N, 3, 4) poses at places (N,) of the unloaded backbone [m]."""
        q = self.dynamics.numbers.full(states[:, : self._size])
        return transforms(self.dynamics.kinematics.poses(q, places))


def strain_layout(dynamics: StrainDynamics) -> Layout:
    """The groups of a state: strains that are kept, and their rates."""
    kinds, size = dynamics.numbers.active % 3, dynamics.numbers.size
    groups = [("bending", kinds == 0), ("linear_strains", kinds > 0)]
    return Layout(
        tuple(
            Group(name + ending, np.flatnonzero(chosen) + offset, unit)
            for ending, offset, of in (("", 0, ""), ("_rates", size, "/s"))
            for (name, chosen), unit in zip(groups, (f"rad/m{of}", f"-{of}"), strict=True)
            if chosen.any()
        ),
        typical_state(dynamics),
    )


def described_by(robot: StrainArm, file: str) -> StrainArm:
    """A robot with the segments, the convention and the gravity of another one's file.

    Raises:
        UserError: the file cannot be loaded, or has other torques or another length.
    """
    other = load_strain_arm(file)
    if other.actuator_names != robot.actuator_names:
        raise UserError(
            f"model_file {file}: is driven by {', '.join(other.actuator_names)}, but robot "
            f"{robot.name} by {', '.join(robot.actuator_names)}"
        )
    lengths = other.lengths.sum(), robot.lengths.sum()
    if abs(lengths[0] - lengths[1]) > _SAME_LENGTH * lengths[1]:
        raise UserError(
            f"model_file {file}: is {lengths[0]:g} m long, but robot {robot.name} {lengths[1]:g} m"
        )
    of_body = ("segments", "stiffness_convention", "gravity")
    return robot.model_copy(update={name: getattr(other, name) for name in of_body})


def _torques(arm: StrainArm) -> Inputs:
    numbers = arm.numbers
    high = np.array(arm.largest_torque)[numbers.active % 3]
    return Inputs(
        quantity="torque",
        names=numbers.names,
        unit="N m, N",
        low=-high,
        high=high,
        rate=2.0 * high / arm.fastest_full_range,
    )
