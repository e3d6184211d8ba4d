"""How deep the bodies of many rods reach into a margin around obstacles, in one compiled call.

Controllers that keep a whole body away from things ask this for every candidate and every tick.
Strains are constant over half an interval, at their value in its middle: points are within a tenth
of a millimetre of those of `CosseratRod.node_poses`, at half the exponentials.
"""

import numba
import numpy as np
from numba.extending import register_jitable

from softcr_models.rod.backbone import start_pose
from softcr_models.rod.compilation import COMPILE_OPTIONS, may_use_threads
from softcr_models.rod.cosserat_rod import CosseratRod
from softcr_models.rod.obstacles import ContactLaw, Plane, Sphere, obstacles_of
from softcr_models.rod.twists import advance_pose, cross_connector

_HALVES = 2  # points of each interval


class Clearance:
    """Margins that a rod's body shall keep from planes and spheres.

    Points are the nodes and the middles of the intervals, base to tip, without the base, which
    never moves; each is as thick as the segment round it.

    Attributes:
        points: J, how many there are.
        obstacles: O, how many there are.
    """

    def __init__(
        self, rod: CosseratRod, things: tuple[Plane | Sphere, ...], clearance: float
    ) -> None:
        """
        Args:
            rod: whose body it is.
            things: to keep away from, base frame.
            clearance: between its skin and theirs [m].

        Raises:
            ArgumentError: an obstacle of no size or with numbers that are not finite.
        """
        found = obstacles_of(rod.robot, rod.base_height, things, ContactLaw())
        self._planes, self._spheres = found.planes, found.spheres
        self._rod = rod
        counts = np.diff(rod.grid.first_row) - 1
        self._margins = np.repeat(found.radius, _HALVES * counts) + clearance
        first, identity, none = rod.fittings, np.eye(6)[None], np.zeros((1, 3))
        self._adjoint = identity if first is None else first.adjoint
        self._translation = none if first is None else first.translation
        self.points, self.obstacles = len(self._margins), len(things)

    def depths(self, states: np.ndarray, parameters: np.ndarray) -> np.ndarray:
        """(B, J, O) how much is missing to the clearance at each point, 0 where nothing is [m].

        Args:
            states: (B, nx), of any float type; NaN of what is not finite.
            parameters: (P,) of the rod.
        """
        rod, body = self._rod, self._rod.body
        bending = parameters[: body.bendings]
        compliance = body.compliance + body.bending_share * bending.reshape(-1, 1)
        first = 6 * rod.total_intervals
        rows = rod.total_intervals + rod.segments
        wrenches = np.asarray(states[:, first : first + 6 * rows], float).reshape(-1, rows, 6)
        out = np.empty((len(wrenches), self.points, self.obstacles))
        compute = _depths if may_use_threads() else _depths_alone
        compute(
            wrenches, compliance, rod.grid.interval_length, rod.grid.first_row, self._adjoint,
            self._translation, body.base_height, self._margins, self._planes, self._spheres, out,
        )  # fmt: skip
        return out


@register_jitable
def _missing(out, position, margin, planes, spheres):
    """out (O,) = what is missing at a point."""
    for j in range(len(planes)):
        gap = -planes[j, 3]
        for k in range(3):
            gap += planes[j, k] * position[k]
        out[j] = max(margin - gap, 0.0) if gap == gap else gap
    for j in range(len(spheres)):
        square = 0.0
        for k in range(3):
            square += (position[k] - spheres[j, k]) ** 2
        gap = np.sqrt(square) - spheres[j, 3]
        out[len(planes) + j] = max(margin - gap, 0.0) if gap == gap else gap


@numba.njit(parallel=True, **COMPILE_OPTIONS)
def _depths(
    wrenches, compliance, lengths, first_row, adjoint, translation, base_height, margins, planes,
    spheres, out,
):  # fmt: skip
    for b in numba.prange(len(wrenches)):
        rotation, position, strain = np.empty((3, 3)), np.empty(3), np.empty(6)
        start_pose(rotation, position, 0.0)
        position[2] = base_height
        point = 0
        for a in range(len(lengths)):
            if a > 0:
                cross_connector(rotation, position, adjoint[a - 1], translation[a - 1])
            for i in range(first_row[a], first_row[a + 1] - 1):
                for half in range(_HALVES):
                    part = (half + 0.5) / _HALVES
                    for k in range(6):
                        mean = wrenches[b, i, k] + part * (
                            wrenches[b, i + 1, k] - wrenches[b, i, k]
                        )
                        strain[k] = compliance[a, k] * mean
                    strain[2] += 1.0
                    advance_pose(rotation, position, strain, lengths[a] / _HALVES)
                    _missing(out[b, point], position, margins[point], planes, spheres)
                    point += 1


_depths_alone = numba.njit(**COMPILE_OPTIONS)(_depths.py_func)
"""For processes that have lost their threads in a fork; it is compiled there."""
