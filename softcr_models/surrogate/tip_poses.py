"""Where the tip is, (29), for a whole population of tensors at once, on any device.

The kernel of `softcr_models.rod` walks along one rod after the other. Here every sub-interval of
every rod makes its step at once, and neighbouring steps are composed in pairs until one is left: a
few dozen operations whatever the batch, which is what a GPU wants. A test holds both together.
"""

import math
from typing import ClassVar, NamedTuple

import numpy as np
import torch
from scipy.spatial.transform import Rotation

from softcr_models.rod.cosserat_rod import CosseratRod
from softcr_models.rod.state import RodState
from softcr_models.surrogate.ddpinn import rod_intervals


class _Step(NamedTuple):
    """Rigid motions: translation and unit quaternion, components in front."""

    position: torch.Tensor  # (3, ...) [m]
    scalar: torch.Tensor  # (...)
    vector: torch.Tensor  # (3, ...)

    def part(self, which: slice) -> "_Step":
        """Some of them, along the first dimension after the components."""
        return _Step(self.position[:, which], self.scalar[which], self.vector[:, which])


class TipPoses:
    """Poses of the tip cap's outer face in the base frame, of coordinates y with x = mean + D y.

    Strains are linear in the state, so they are one product away from any linear coordinates.

    Args:
        rod: that the states belong to.
        mean: (nx,).
        decode: (nx, k), D; the identity for states themselves.
    """

    parameter: ClassVar[str] = "bending_compliance"
    """The estimated parameter that poses depend on."""

    def __init__(self, rod: CosseratRod, mean: torch.Tensor, decode: torch.Tensor) -> None:
        grid, body = rod.grid, rod.body
        parts = grid.gravity_subintervals
        fractions = (np.arange(parts) + grid.strain_point) / parts
        nodes = RodState(np.eye(rod.state_size), rod.segments).wrenches
        lower, of = rod_intervals(rod)
        before, after = nodes[:, lower], nodes[:, lower + 1]
        wrenches = before[:, :, None] + fractions[:, None] * (after - before)[:, :, None]
        rows = wrenches.reshape(rod.state_size, -1, 6).transpose(2, 1, 0)  # component, point, state
        segment = np.repeat(of, parts)  # of each point
        lengths = grid.interval_length[segment] / parts
        points = torch.as_tensor((lengths[:, None] * rows).reshape(-1, rod.state_size))
        points = points.to(mean.device)
        self._shape = rows.shape[:2]
        self._lengths = mean.new_tensor(lengths)[:, None]
        self._matrix = (points @ decode.double()).to(mean.dtype)
        self._offset = (points @ mean.double())[:, None].to(mean.dtype)
        self._compliance = mean.new_tensor(body.compliance[segment].T)[:, :, None]
        self._bending = mean.new_tensor(body.bending_share[segment].T)[:, :, None]
        self._connectors = _connectors(rod, mean)
        self._ends = [int(end) for end in np.cumsum(np.bincount(segment))]
        self._base_height, self._cap = float(body.base_height), float(body.tip_cap_length)

    def __call__(self, coordinates: torch.Tensor, bending_compliance: torch.Tensor) -> torch.Tensor:
        """(B, 3, 4) rotation beside position [m].

        Args:
            coordinates: (B, k).
            bending_compliance: () of all of them [rad/(N m m)].
        """
        compliance = self._compliance + self._bending * bending_compliance
        strains = torch.addmm(self._offset, self._matrix, coordinates.T)
        strains = compliance * strains.view(*self._shape, -1)
        strains[2] += self._lengths
        steps = _steps(strains[:3], strains[3:])
        if any(each is not None for each in self._connectors):
            steps = self._with_connectors(steps)
        return self._poses(_composed(steps))

    def _with_connectors(self, steps: _Step) -> _Step:
        """The steps of all segments, (3, points, B), each followed by its connector's."""
        batch, begin, parts = steps.scalar.shape[1], 0, []
        for end, connector in zip(self._ends, self._connectors, strict=True):
            parts.append(steps.part(slice(begin, end)))
            if connector is not None:
                parts.append(_Step(*(each.expand(*each.shape[:-1], batch) for each in connector)))
            begin = end
        return _Step(
            torch.cat([each.position for each in parts], dim=1),
            torch.cat([each.scalar for each in parts]),
            torch.cat([each.vector for each in parts], dim=1),
        )

    def _poses(self, tip: _Step) -> torch.Tensor:
        """Matrices of the motions from the rod's base to its end, rigid parts added."""
        w, (x, y, z), (px, py, pz) = tip.scalar, tip.vector, tip.position
        right = 2 * (x * z + w * y), 2 * (y * z - w * x), 1 - 2 * (x * x + y * y)
        rows = (
            1 - 2 * (y * y + z * z), 2 * (x * y - w * z), right[0], px + self._cap * right[0],
            2 * (x * y + w * z), 1 - 2 * (x * x + z * z), right[1], py + self._cap * right[1],
            2 * (x * z - w * y), 2 * (y * z + w * x), right[2],
            pz + self._base_height + self._cap * right[2],
        )  # fmt: skip
        return torch.stack(rows, dim=-1).view(-1, 3, 4)


def _connectors(rod: CosseratRod, like: torch.Tensor) -> list[_Step | None]:
    """(K,) motion across the connector after each segment, (3, 1, 1); None where there is none."""
    found: list[_Step | None] = []
    for segment in rod.robot.segments:
        if segment.connector is None:
            found.append(None)
            continue
        x, y, z, w = Rotation.from_matrix(segment.connector.rotation_matrix).as_quat()
        offset, vector = like.new_tensor(segment.connector.offset), like.new_tensor([x, y, z])
        found.append(
            _Step(offset[:, None, None], like.new_full((1, 1), float(w)), vector[:, None, None])
        )
    return found


def _steps(move: torch.Tensor, turn: torch.Tensor) -> _Step:
    """Exp of SE(3), (1), of (3, ...) each; its last part is the kernel's series, for |turn| < 1.

    Quaternions are unit ones at any angle, so that no candidate overflows by being bent too far.
    """
    squared = (turn * turn).sum(dim=0)
    half = 0.5 * squared.sqrt()
    sine = torch.sinc(half / math.pi)  # sin(half) / half
    sideways = _cross(turn, move)
    curved = _cross(turn, sideways)
    position = torch.addcmul(move, sine * sine, sideways, value=0.5)
    position = torch.addcmul(position, _series(squared, 20, 42, 72), curved, value=1 / 6)
    return _Step(position, half.cos(), 0.5 * sine * turn)


def _composed(steps: _Step) -> _Step:
    """All of them, (3, points, B), one after the other, (3, B): pairs, pairs of pairs, ..."""
    while len(steps.scalar) > 1:
        odd = len(steps.scalar) % 2
        last = steps.part(slice(len(steps.scalar) - odd, None))
        pairs = steps.part(slice(0, len(steps.scalar) - odd))
        steps = _product(pairs.part(slice(0, None, 2)), pairs.part(slice(1, None, 2)))
        if odd:
            steps = _Step(
                torch.cat((steps.position, last.position), dim=1),
                torch.cat((steps.scalar, last.scalar)),
                torch.cat((steps.vector, last.vector), dim=1),
            )
    return _Step(steps.position[:, 0], steps.scalar[0], steps.vector[:, 0])


def _product(first: _Step, second: _Step) -> _Step:
    """The first motion, and the second one in the frame it leads to."""
    w, v = first.scalar, first.vector
    sideways = _cross(v, second.position)
    turned = torch.addcmul(second.position, w, sideways, value=2.0)
    turned = torch.add(turned, _cross(v, sideways), alpha=2.0)
    scalar = w * second.scalar - (v * second.vector).sum(dim=0)
    vector = torch.addcmul(_cross(v, second.vector), w, second.vector)
    return _Step(first.position + turned, scalar, torch.addcmul(vector, second.scalar, v))


def _cross(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    """a x b of (3, ...)."""
    return torch.linalg.cross(a, b, dim=0)


def _series(t: torch.Tensor, *divisors: float) -> torch.Tensor:
    """1 - t / d0 (1 - t / d1 (1 - ...))."""
    one = t.new_ones(())
    total = one
    for divisor in reversed(divisors):
        total = torch.addcmul(one, t, total, value=-1.0 / divisor)
    return total
