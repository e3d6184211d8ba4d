"""What follows from a robot's segments and actuators: arrays of all segments, single numbers."""

from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from softcr_models.robots import routing
from softcr_models.robots.parts import Chamber, Motor, RodActuator, Tendon
from softcr_models.robots.segments import Payload, Segment


class SegmentArrays:
    """Part of `Robot`: what follows from its segments and actuators. K segments, m inputs.

    Properties of one number (`outer_diameter`, `density`, `compliances`, ...) are those of the
    FIRST segment; `length` is that of all segments, `segment_...` are arrays of all of them.
    """

    if TYPE_CHECKING:  # fields of Robot
        segments: tuple[Segment, ...]
        actuators: tuple[RodActuator, ...]
        payload: Payload | None

    # -- segments ---------------------------------------------------------------------------------

    @property
    def segment_names(self) -> tuple[str, ...]:
        """(K,) their own names, or segment_1, segment_2, ..."""
        return tuple(each.name or f"segment_{k + 1}" for k, each in enumerate(self.segments))

    @cached_property
    def segment_ends(self) -> np.ndarray:
        """(K + 1,) arc lengths of the segments' ends, from 0; connectors do not count [m]."""
        return np.concatenate(([0.0], np.cumsum([each.length for each in self.segments])))

    @cached_property
    def segment_areas(self) -> np.ndarray:
        """(K,) area of material: the annulus minus the chambers through that segment [m^2]."""
        areas = []
        for k, segment in enumerate(self.segments):
            inside = (
                actuator.area
                for actuator, (first, last) in zip(self.actuators, self.reaches, strict=True)
                if isinstance(actuator, Chamber) and first <= k <= last
            )
            areas.append(segment.annulus - sum(inside))
        return np.array(areas)

    @property
    def rigid_mass(self) -> float:
        """Mass of connectors and payload; without `tip_mass` [kg]."""
        bodies = (*(each.connector for each in self.segments), self.payload)
        return sum(body.mass for body in bodies if body is not None)

    @cached_property
    def segment_second_moments(self) -> np.ndarray:
        """(K,) of the whole annulus [m^4]; see `second_moment_of_area`."""
        return np.array([segment.second_moment for segment in self.segments])

    @cached_property
    def segment_compliances(self) -> np.ndarray:
        """(K, 6) diagonals of C, linear first: two shears, dilatation, two bendings, torsion."""
        areas = self.segment_areas.tolist()
        return np.stack(
            [each.compliances(area) for each, area in zip(self.segments, areas, strict=True)]
        )

    @cached_property
    def segment_relaxation_times(self) -> np.ndarray:
        """(K, 6) diagonals of D_tau [s]."""
        return np.array([segment.relaxation_times for segment in self.segments])

    # -- actuators --------------------------------------------------------------------------------

    @property
    def chambers(self) -> tuple[Chamber, ...]:
        """The actuators that are pressure chambers."""
        return tuple(each for each in self.actuators if isinstance(each, Chamber))

    @property
    def chamber_names(self) -> tuple[str, ...]:
        """Names of the chambers, in the order of every pressure vector."""
        return tuple(chamber.name for chamber in self.chambers)

    @property
    def tendons(self) -> tuple[Tendon, ...]:
        """The tendons of all actuators, in their order; a motor may pull two."""
        return tuple(tendon for each in self.actuators for tendon in each.tendons)

    @property
    def quantities(self) -> tuple[str, ...]:
        """(m,) what drives each actuator: pressure, tension or angle."""
        return tuple(each.quantity for each in self.actuators)

    @property
    def input_units(self) -> tuple[str, ...]:
        """(m,) SI unit of each input."""
        return tuple(each.unit for each in self.actuators)

    @property
    def motors(self) -> tuple[Motor, ...]:
        """The actuators that are motors."""
        return tuple(each for each in self.actuators if isinstance(each, Motor))

    @property
    def actuator_names(self) -> tuple[str, ...]:
        """Names of all actuators, in the order of every vector of inputs."""
        return tuple(actuator.name for actuator in self.actuators)

    @cached_property
    def reaches(self) -> tuple[routing.Reach, ...]:
        """(m,) first and last segment that each actuator runs through, as indices."""
        return routing.reaches(self.actuators, self.segment_names)

    @cached_property
    def segment_actuation(self) -> np.ndarray:
        """(K, 6, m) wrench per input on a section [N/Pa; N m/Pa] or, of tendons, [-; m].

        Of inputs that are constant along a segment; zero columns for helical and tapered tendons
        (`actuation_at` has them) and for actuators that do not run through a segment.
        """
        matrices = []
        for k in range(len(self.segments)):
            columns = [
                routing.constant_column(each) if first <= k <= last else np.zeros(6)
                for each, (first, last) in zip(self.actuators, self.reaches, strict=True)
            ]
            matrices.append(np.array(columns).T)
        return np.ascontiguousarray(matrices)

    @property
    def has_varying_actuation(self) -> bool:
        """Whether a tendon is helical or tapered."""
        return any(routing.varies(actuator) for actuator in self.actuators)

    def actuation_at(self, segment: int, arc_lengths: np.ndarray) -> np.ndarray:
        """(J, 6, m) as `segment_actuation`, of every input, as in the straight rod; of a motor
        [N/rad; N m/rad] once the rod has given way to each of its tendons alone.

        Args:
            segment: index, from 0 at the base.
            arc_lengths: (J,) places in that segment, from the base; connectors do not count [m].
        """
        matrices = np.repeat(self.segment_actuation[segment][None], len(arc_lengths), axis=0)
        columns = routing.tendon_columns(self.tendon_offsets(segment, arc_lengths))
        for i, (place, reach) in enumerate(
            zip(self.tendon_inputs, self.tendon_reaches, strict=True)
        ):
            if segment > reach:
                continue
            if isinstance(self.actuators[place], Motor):
                matrices[:, :, place] += self._tensions_per_angle[i] * columns[:, i]
            elif routing.varies(self.actuators[place]):
                matrices[:, :, place] = columns[:, i]
        return matrices

    @cached_property
    def _tensions_per_angle(self) -> np.ndarray:
        """(tendons,) of a motor's tendon that pulls the straight rod alone [N/rad]; else 0."""
        compliance = np.zeros(len(self.tendons))
        for a, segment in enumerate(self.segments):
            middle = np.array([self.segment_ends[a] + 0.5 * segment.length])
            columns = routing.tendon_columns(self.tendon_offsets(a, middle))[0]
            gives = segment.length * (columns**2 @ self.segment_compliances[a])
            compliance += np.where(a <= self.tendon_reaches, gives, 0.0)
        winding, stiffness = self.tendon_springs[:, :2].T
        return winding * stiffness / (1.0 + stiffness * compliance)

    def tendon_offsets(self, segment: int, arc_lengths: np.ndarray) -> np.ndarray:
        """(J, tendons, 2, 3) place r in the section [m], and r_s, its derivative by arc length.

        A tendon that ends before a segment is told as if it went on: see `tendon_reaches`.

        Args:
            segment: index, from 0 at the base; angles are those in each segment's own frame.
            arc_lengths: (J,) places in that segment, from the base; connectors do not count [m].
        """
        places = np.atleast_1d(np.asarray(arc_lengths, float))
        ends = self.segment_ends[self.tendon_reaches + 1]
        offsets = [
            routing.tendon_offset(tendon, end, places)
            for tendon, end in zip(self.tendons, ends.tolist(), strict=True)
        ]
        return np.stack(offsets, axis=1) if offsets else np.zeros((len(places), 0, 2, 3))

    @cached_property
    def tendon_inputs(self) -> np.ndarray:
        """(tendons,) their places in a vector of inputs."""
        places = [i for i, each in enumerate(self.actuators) for _ in each.tendons]
        return np.array(places, dtype=int)

    @cached_property
    def tendon_springs(self) -> np.ndarray:
        """(tendons, 4) of `softcr_models.rod.section.Fittings.springs`; zeros without a motor."""
        rows = [row for each in self.actuators for row in each.springs]
        return np.array(rows).reshape(-1, 4)

    @cached_property
    def tendon_reaches(self) -> np.ndarray:
        """(tendons,) index of the last segment that each runs through."""
        return np.array([last for _, last in self.reaches], dtype=int)[self.tendon_inputs]

    # -- single numbers: of the first segment, but for the length ---------------------------------

    @property
    def length(self) -> float:
        """Sum of the segments' reference lengths; connectors do not count [m]."""
        return sum(segment.length for segment in self.segments)

    @property
    def outer_diameter(self) -> float:
        """Of the first segment [m]."""
        return self.segments[0].outer_diameter

    @property
    def inner_diameter(self) -> float:
        """Of the first segment [m]."""
        return self.segments[0].inner_diameter

    @property
    def density(self) -> float:
        """Of the first segment [kg/m^3]."""
        return self.segments[0].density

    @property
    def bending_compliance(self) -> float:
        """Of the first segment; the mean, where those about x and y differ [rad/(N m m)]."""
        about_x, about_y = self.segments[0].bending_compliances
        return 0.5 * (about_x + about_y)

    @property
    def dilatation_compliance(self) -> float:
        """Of the first segment [m/(N m)]."""
        return self.segments[0].dilatation_compliance

    @property
    def shear_compliance(self) -> float | None:
        """Of the first segment, where it was given [1/N]."""
        return self.segments[0].shear_compliance

    @property
    def torsion_compliance(self) -> float | None:
        """Of the first segment, where it was given [rad/(N m m)]."""
        return self.segments[0].torsion_compliance

    @property
    def shear_correction(self) -> float:
        """Timoshenko's factor of the first segment [-]."""
        return self.segments[0].shear_correction

    @property
    def relaxation_times(self) -> tuple[float, ...]:
        """(6,) diagonal of D_tau of the first segment [s]."""
        return self.segments[0].relaxation_times

    @property
    def cross_section_area(self) -> float:
        """Area of the first segment's material, pi/4 (d_o^2 - d_i^2) - sum of chambers [m^2]."""
        return float(self.segment_areas[0])

    @property
    def second_moment_of_area(self) -> float:
        """Of the whole annulus of the first segment [m^4]; for rotary inertia and torsion.

        The chambers are not subtracted: the lever arm that Licher et al. 2025 print cannot be their
        place inside the body. With the annulus the linearisation of their robot at rest has the
        fastest eigenvalue -3.0e5 1/s and the slowest pair -0.97 +- 16.2i.
        """
        return self.segments[0].second_moment

    @property
    def compliances(self) -> np.ndarray:
        """(6,) diagonal of C of the first segment, as `segment_compliances`."""
        matrix: np.ndarray = self.segment_compliances[0]
        return matrix

    @property
    def actuation_matrix(self) -> np.ndarray:
        """(6, m) wrench per input on the first segment: w_p = matrix @ pressures, eq. (7)."""
        matrix: np.ndarray = self.segment_actuation[0]
        return matrix
