"""Three arms in motion that every simulator of continuum robots can describe.

Solid round soft segments of an incompressible material, E = 3 G, shear factor 1, whose viscosity
delays every strain alike (Kelvin and Voigt); straight tendons without friction. They start straight
and at rest; tensions are held for a period of 10 ms each.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np

from softcr_models.files.yaml_files import validated
from softcr_models.robots.robot import Robot

PERIOD = 0.01
YOUNG = 0.5e6
DENSITY = 1070.0
RELAXATION = 0.005
GRAVITY = 9.81
UPSIDE_DOWN = (np.pi, 0.0, 0.0)
HORIZONTAL = (0.0, 0.5 * np.pi, 0.0)


@dataclass(frozen=True)
class Tendon:
    """A straight tendon from the base to the end of segment `last`.

    Attributes:
        x, y: place in the section [m].
        last: index of a segment.
        top: largest tension [N].
        frequency: of the tension, which goes between 0 and `top` as 1 - cos does [Hz].
    """

    x: float
    y: float
    last: int
    top: float
    frequency: float


@dataclass(frozen=True)
class Arm:
    """An arm and its motion.

    Attributes:
        name: for tables.
        segments: (length, diameter) of each [m].
        tendons: none, or some.
        base_orientation: roll, pitch, yaw [rad].
        about: in words.
        young, density, relaxation: of the material [Pa, kg/m^3, s].
    """

    name: str
    segments: tuple[tuple[float, float], ...]
    tendons: tuple[Tendon, ...]
    base_orientation: tuple[float, float, float]
    about: str
    young: float = YOUNG
    density: float = DENSITY
    relaxation: float = RELAXATION

    @property
    def length(self) -> float:
        """Of all segments [m]."""
        return sum(length for length, _ in self.segments)

    @property
    def gravity(self) -> np.ndarray:
        """(3,) in the frame of the base [m/s^2]."""
        roll, pitch, _ = self.base_orientation
        up = [-np.sin(pitch), np.sin(roll) * np.cos(pitch), np.cos(roll) * np.cos(pitch)]
        return -GRAVITY * np.array(up)

    def tensions(self, periods: int) -> np.ndarray:
        """(T, tendons) of each period [N]."""
        middles = PERIOD * (np.arange(periods)[:, None] + 0.5)
        tops = np.array([each.top for each in self.tendons])
        phases = 2.0 * np.pi * middles * [each.frequency for each in self.tendons]
        return 0.5 * tops * (1.0 - np.cos(phases))

    def robot(self) -> Robot:
        """What our rod takes; an arm without tendons has one that is never pulled."""
        tendons = self.tendons or (Tendon(self.segments[0][1] / 3, 0.0, 0, 1.0, 1.0),)
        names = [f"segment_{index + 1}" for index in range(len(self.segments))]
        content = {
            "type": "rod", "name": self.name.replace(" ", "_"), "description": self.about,
            "segments": [
                self._segment(name, *size) for name, size in zip(names, self.segments, strict=True)
            ],
            "actuators": [
                {"type": "tendon", "name": f"tendon_{index + 1}", "to": names[each.last],
                 "angle": float(np.arctan2(each.y, each.x)),
                 "lever_arm": float(np.hypot(each.x, each.y))}
                for index, each in enumerate(tendons)
            ],
            "tendon_model": "exact", "tip_mass": 0.0, "tip_mass_fraction": 0.2,
            "sensor_to_base_cap": 0.0, "base_cap_length": 0.0, "tip_cap_length": 0.0,
            "base_orientation": self.base_orientation, "gravity": GRAVITY,
            "gravity_subintervals": 4, "gravity_strain_point": 0.5,
            "tension_limits": {"minimum": 0.0, "maximum": 20.0, "maximum_rate": 1000.0},
        }  # fmt: skip
        return validated(Robot, content, f"arm {self.name}")

    def order(self, periods: int) -> dict[str, Any]:
        """The arm as plain data, for processes that do not know this project."""
        return {
            "period": PERIOD, "tensions": self.tensions(periods), "gravity": self.gravity,
            "segments": [
                {"length": length, "diameter": diameter, "young": self.young,
                 "density": self.density, "relaxation": self.relaxation}
                for length, diameter in self.segments
            ],
            "tendons": [{"x": each.x, "y": each.y, "last": each.last} for each in self.tendons],
        }  # fmt: skip

    def _segment(self, name: str, length: float, diameter: float) -> dict[str, Any]:
        area, second_moment = np.pi / 4 * diameter**2, np.pi / 64 * diameter**4
        return {
            "name": name, "length": length, "outer_diameter": diameter, "inner_diameter": 0.0,
            "density": self.density, "shear_correction": 1.0,
            "relaxation_times": (self.relaxation,) * 6,
            "bending_compliance": 1.0 / (self.young * second_moment),
            "dilatation_compliance": 1.0 / (self.young * area),
        }  # fmt: skip


ARMS = (
    Arm("cantilever", ((0.2, 0.03),), (), HORIZONTAL, "a horizontal arm falls under its weight"),
    Arm(
        "tendon", ((0.2, 0.03),), (Tendon(0.012, 0.0, 0, 5.0, 1.0),), UPSIDE_DOWN,
        "a hanging arm is pulled to one side, 0 to 5 N at 1 Hz",
    ),
    Arm(
        "two segments", ((0.12, 0.03), (0.08, 0.02)),
        (Tendon(0.012, 0.0, 0, 4.0, 1.0), Tendon(0.0, 0.008, 1, 1.5, 2.0)), HORIZONTAL,
        "a horizontal arm of two segments; one tendon lifts the first, 0 to 4 N at 1 Hz, another "
        "pulls both to the side, 0 to 1.5 N at 2 Hz",
    ),
)  # fmt: skip
