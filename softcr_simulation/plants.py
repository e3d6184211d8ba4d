"""Plants that a simulator runs: they follow commands and say what sensors read, as values.

A plant from outside is one class with the methods of `Plant`; see docs/howto/plant.md.
"""

from collections.abc import Mapping
from typing import Any, Protocol

import numpy as np
from pydantic import BaseModel, ConfigDict, Field, model_validator

from softcr_models.robots.obstacle_files import load_obstacles
from softcr_models.robots.robot import Robot
from softcr_models.rod.cosserat_rod import CosseratRod
from softcr_models.rod.description import has_tendon_lengths, pose_sensors
from softcr_models.rod.section import MAX_INTERVALS
from softcr_models.rod_model.rows import poses_of_rows
from softcr_runtime.blocks.block import Output
from softcr_runtime.blocks.values import Pose, StateEstimate
from softcr_simulation.errors.plant_errors import FOLDER, SAME_STRUCTURE
from softcr_simulation.errors.presets import errors_of
from softcr_simulation.plant import Measurement, SimulatedPlant, Surroundings
from softcr_simulation.scripted_loads import in_words, load_script
from softcr_simulation.structural_plant import StructuralPlant

BODY_POSES, LOADS = "mocap/body/poses", "simulation/truth/loads"
TENDON_LENGTHS = "tendon/lengths"
CONTACT_POINTS, CONTACT_WRENCH = (
    "simulation/truth/contact/points",
    "simulation/truth/contact/wrench",
)


_AS_IN_FILE = "geometry, gravity and material law of the robot file"

VENT_TIME = 0.3
"""In which full chambers vent, where commands have stopped [s]."""


class Plant(Protocol):
    """What the simulator runs; made as `Class(robot, settings, seed)`.

    A class may have `Settings`, a pydantic model, and `topics`, what it speaks on; without, it
    speaks on what the robot's own plant speaks on. Settings have defaults, so that `Class(robot,
    Class.Settings(), 0)` is a plant.

    Attributes:
        without_commands: what it does when commands stop, in words.
    """

    without_commands: str

    def reset(self) -> None:
        """Begin anew, at rest; seeded again."""
        ...

    def follow(self, command: np.ndarray) -> None:
        """From now on follow a command (m,), in the unit of the robot's inputs."""
        ...

    def idle(self) -> np.ndarray | None:
        """In each cycle after commands have stopped: do what is safe; returns what it then follows
        (m,), None where that is the last command."""
        ...

    def advance(self, duration: float) -> None:
        """Let `duration` [s] pass."""
        ...

    def measure(self, stamp: int) -> Mapping[str, Any]:
        """What sensors read at `stamp` [ns], and the truth, by topic.

        A value that belongs to another stamp is an `Output`; a (4, 4) matrix may stand for a pose.
        """
        ...


def _noise(what: str, most: float, unit: str) -> Any:
    """A setting: the standard deviation of a sensor's noise."""
    told = f"standard deviation of {what}; below 0: that of the robot file"
    return Field(-1.0, ge=-1.0, le=most, description=told, json_schema_extra={"unit": unit})


class RodPlantSettings(BaseModel):
    """A rod that differs from its file, and its sensors."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)

    plant_errors: str = Field(
        "",
        description="how body, pressures and sensors differ from what filter and controller "
        f"assume: a name of config/{FOLDER}, or a YAML file; empty: in nothing; empty and "
        f"{SAME_STRUCTURE}: a plant with the equations of their model",
        json_schema_extra={"folder": FOLDER},
    )
    errors: str = Field(
        "",
        description="plant errors that differ from plant_errors, separated by commas, such as "
        "bending_factor=0.95,lever_factor=[1.05,1,1],tip_noise=3e-4",
    )
    intervals: int = Field(
        0,
        ge=0,
        le=MAX_INTERVALS,
        description="number of intervals of the plant's rod; 0: 10, or 20 with plant errors other "
        "than same_structure",
    )
    mocap_latency: int = Field(
        0, ge=0, le=20, description="number of cycles by which the tip's pose is late"
    )
    loads: str = Field(
        "",
        description="forces and moments on the rod over time: a file of config/loads, or a YAML "
        "file; empty: none",
        json_schema_extra={"folder": "loads"},
    )
    obstacles: str = Field(
        "",
        description="planes and spheres that the rod may touch: a file of config/obstacles, or a "
        "YAML file; empty: none",
        json_schema_extra={"folder": "obstacles"},
    )

    @model_validator(mode="after")
    def _a_beam_is_alone(self) -> "RodPlantSettings":
        for name in () if self.has_equations_of_model else ("loads", "obstacles"):
            if value := getattr(self, name):
                raise ValueError(
                    f"{name} = {value!r}: has no meaning with plant_errors = "
                    f"{self.plant_errors!r}, whose file says all"
                )
        return self

    @property
    def has_equations_of_model(self) -> bool:
        """Whether the plant is a SimulatedPlant, and no StructuralPlant."""
        return self.plant_errors in ("", SAME_STRUCTURE)

    def surroundings(self, robot: Robot) -> Surroundings:
        """What its files say.

        Raises:
            UserError: one line about a file.
        """
        return Surroundings(
            load_script(self.loads, robot) if self.loads else None,
            load_obstacles(self.obstacles) if self.obstacles else None,
        )


class RodPlant:
    """The rod: finer, with its own parameters and lag of its inputs; see SimulatedPlant. With other
    plant errors than those of the same structure, a StructuralPlant."""

    Settings = RodPlantSettings
    topics: tuple[str, ...] = (
        "mocap/tip/pose",
        "pressure/state",
        "force_torque/wrench",
        "simulation/truth/tip/pose",
        "simulation/truth/rod",
    )
    without_commands = "chambers vented"
    _left_out = ""
    _lived = 0.0  # in the last cycle [s]

    def __init__(self, robot: Robot, settings: RodPlantSettings, seed: int = 0) -> None:
        """
        Args:
            robot: as its file has it.
            settings: how the plant and its sensors differ from it.
            seed: of the sensors' noise.
        """
        found = errors_of(robot, settings.plant_errors, settings.errors)
        latency = settings.mocap_latency
        plant: SimulatedPlant | StructuralPlant
        if settings.has_equations_of_model:
            count, around = settings.intervals or 10, settings.surroundings(robot)
            plant = SimulatedPlant(robot, found.errors, seed, count, around, latency)
        else:
            count = settings.intervals or 20
            plant = StructuralPlant(robot, found.errors, seed, count, latency)
        self._use(robot, plant)
        self._left_out = found.told

    @classmethod
    def of(cls, robot: Robot, plant: SimulatedPlant | StructuralPlant) -> "RodPlant":
        """Round a simulated plant of the robot that was made otherwise."""
        made = cls.__new__(cls)
        made._use(robot, plant)
        return made

    def _use(self, robot: Robot, plant: SimulatedPlant | StructuralPlant) -> None:
        self._robot, self.simulated = robot, plant
        around = plant.surroundings
        self.topics = (
            *type(self).topics,
            *((LOADS,) if around.loads is not None else ()),
            *((BODY_POSES,) if pose_sensors(robot) else ()),
            *((TENDON_LENGTHS,) if has_tendon_lengths(robot) else ()),
            *((CONTACT_POINTS, CONTACT_WRENCH) if around.obstacles is not None else ()),
        )

    def reset(self) -> None:
        self.simulated.reset()

    def follow(self, command: np.ndarray) -> None:
        """See Plant; (m,) gauge pressures [Pa]."""
        self.simulated.follow(command)

    def idle(self) -> np.ndarray | None:
        """See Plant; the chambers vent along a ramp, of a time that passes as the last one did."""
        plant = self.simulated
        step = plant.inputs.range * self._lived / VENT_TIME
        plant.follow(plant.command - np.clip(plant.command, -step, step))
        return plant.command

    def advance(self, duration: float) -> None:
        self._lived = duration
        self.simulated.advance(duration)

    def measure(self, stamp: int) -> dict[str, Any]:
        return rod_values(self.simulated.rod, self.simulated.measure(stamp))

    def describe(self) -> dict[str, Any]:
        """How the plant differs from the robot file."""
        if isinstance(self.simulated, StructuralPlant):
            told = self.simulated.describe() | {"robot": self._robot.model_dump(mode="json")}
            return told | ({"plant_errors_left_out": self._left_out} if self._left_out else {})
        errors, rod = self.simulated.errors, self.simulated.rod
        noises, around = self.simulated.noises, self.simulated.surroundings
        told = {}
        if around.loads is not None:
            told["loads"] = in_words(around.loads)
        if around.obstacles is not None:
            told["obstacles"] = around.obstacles.model_dump(mode="json")
        if others := {n: v for n, v in errors.changed_in_words().items() if n not in _TOLD_ALONE}:
            told["plant_errors"] = others
        heavier = {"payload_kg": errors.payload_mass} if errors.payload_mass else {}
        lengths = {}
        if has_tendon_lengths(rod.robot):
            lengths = {"tendon_length_noise_mm": 1e3 * noises.tendon_length}
        return told | {
            "plant_mismatch": {
                "bending_compliance": round(errors.bending_factor - 1.0, 12),
                "tip_mass": round(errors.tip_mass_factor - 1.0, 12),
                "damping": round(errors.damping_factor - 1.0, 12),
                "intervals": rod.intervals,
                "tip_noise_mm": 1e3 * noises.tip,
                **({"pressure_noise_pa": noises.pressure} if rod.robot.chambers else {}),
                **(
                    {"tension_noise_n": noises.tension} if "tension" in rod.robot.quantities else {}
                ),
                **({"angle_noise_rad": noises.angle} if rod.robot.motors else {}),
                **lengths,
                "mocap_latency_cycles": self.simulated.mocap_latency,
                **heavier,
            },
            "true_parameters": {
                "bending_compliance": rod.robot.bending_compliance,
                "tip_mass": rod.robot.tip_mass,
                "damping_factor": errors.damping_factor,
            },
            "intervals": rod.intervals,
            "robot": self._robot.model_dump(mode="json"),
            "in_words": {"exact": [_AS_IN_FILE]},
        }


_TOLD_ALONE = {
    "bending_factor", "tip_mass_factor", "damping_factor", "payload_mass", "tip_noise",
    "pressure_noise", "tension_noise", "tendon_length_noise",
}  # fmt: skip
"""Plant errors that `plant_mismatch` has in other words."""


def rod_values(rod: CosseratRod, measured: Measurement) -> dict[str, Any]:
    """What a plant's sensors read, and the truth, by topic; without a tip pose there is none of it.

    Args:
        rod: of the plant.
        measured: with it.
    """
    values = {
        "pressure/state": measured.pressures,
        "force_torque/wrench": measured.wrench,
        "simulation/truth/tip/pose": Pose.of(measured.true_tip_pose),
        "simulation/truth/rod": _true_rod(rod, measured),
    }
    if measured.loads is not None:
        values[LOADS] = measured.loads
    if measured.contact is not None:
        points, forces = measured.contact.points, measured.contact.wrenches[:, :3]
        total = np.concatenate((forces.sum(axis=0), np.cross(points, forces).sum(axis=0)))
        values |= {CONTACT_POINTS: measured.contact, CONTACT_WRENCH: total}
    if has_tendon_lengths(rod.robot):
        values[TENDON_LENGTHS] = measured.tendon_lengths
    if measured.tip_pose is None:
        return values
    stamp = measured.tip_stamp
    seen = {"mocap/tip/pose": Output("mocap/tip/pose", stamp, Pose.of(measured.tip_pose))}
    if measured.body_poses:
        along = tuple(map(Pose.of, measured.body_poses))
        seen[BODY_POSES] = Output(BODY_POSES, stamp, along)
    return {**seen, **values}


def _true_rod(rod: CosseratRod, measured: Measurement) -> StateEstimate:
    parameters = {
        "bending_compliance": rod.robot.bending_compliance,
        "tip_mass": rod.robot.tip_mass,
    }
    rows = poses_of_rows(rod, measured.node_poses)
    return StateEstimate(measured.state, parameters, poses=lambda: np.concatenate((rows[:1], rows)))


def _chosen(setting: float, of_the_file: float) -> float:
    """A noise that the plant was told, or the robot file's."""
    return setting if setting >= 0.0 else of_the_file
