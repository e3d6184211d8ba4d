"""The chain of `kinematics` on torch tensors, on whatever device they lie: Dalenberg, (1), (3).

For batches on a GPU, and for whoever wants derivatives by torch: everything is smooth through the
straight pose, and so are its derivatives. Stumpff's functions c_k are explained in `kernel`.
"""

import math

import torch

_BORDER, _TERMS, _COUNT = 4.0, 12, 5  # border and terms as in `kernel`; c_0 to c_4


def stumpff(z: torch.Tensor) -> list[torch.Tensor]:
    """Stumpff's functions c_0 to c_4 of z (...) >= 0, each (...)."""
    inside = z < _BORDER
    # where() computes both sides: each gets numbers at which it and its derivatives are finite
    theta = torch.where(inside, _BORDER, z).sqrt()
    closed = [theta.cos(), theta.sin() / theta]
    for k in range(_COUNT - 2):
        closed.append((1.0 / math.factorial(k) - closed[k]) / theta**2)
    series = _series(torch.where(inside, z, 0.0))
    return [torch.where(inside, *pair) for pair in zip(series, closed, strict=True)]


def _series(z: torch.Tensor) -> list[torch.Tensor]:
    functions = []
    for k in range(_COUNT - 1, -1, -1):  # the two highest by their series, the others by recursion
        if k > _COUNT - 3:
            total = torch.ones_like(z)
            for j in range(_TERMS, 0, -1):
                total = 1.0 - z * total / ((k + 2 * j - 1) * (k + 2 * j))
            functions.append(total / math.factorial(k))
        else:
            functions.append(1.0 / math.factorial(k) - z * functions[-2])
    return functions[::-1]


def chain_pose_and_jacobian(
    q: torch.Tensor,
    rest_lengths: torch.Tensor,
    coverage: torch.Tensor,
    radius: float,
    base: torch.Tensor,
) -> tuple[torch.Tensor, torch.Tensor]:
    """Pose (..., 4, 4) of a point of a chain and its Jacobian (..., 6, 3 n), linear rows first.

    The Jacobian maps q' [m/s] to velocity [m/s] and angular velocity [rad/s] in the axes poses are
    given in, as `ConstantCurvatureChain.motion`. Arguments broadcast over leading axes; they lie on
    one device and have one precision.

    Args:
        q: (..., 3 n) coordinates [m].
        rest_lengths: (..., n) L_0 [m].
        coverage: (..., n) how much of each section lies between base and point, 0 to 1.
        radius: scaling radius d [m].
        base: (4, 4) pose of the chain's base.
    """
    sections = rest_lengths.shape[-1]
    batch = torch.broadcast_shapes(q.shape[:-1], rest_lengths.shape[:-1], coverage.shape[:-1])
    shapes = q.unflatten(-1, (sections, 3)).expand(*batch, sections, 3)
    units = q.new_tensor([1.0 / radius, 1.0 / radius, 1.0])
    rotation, position = base[:3, :3].expand(*batch, 3, 3), base[:3, 3].expand(*batch, 3)
    moved, turned, ends = [], [], []
    for section in range(sections):
        part = coverage[..., section, None]
        u, v, elongation = (part * units * shapes[..., section, :]).unbind(-1)
        length = elongation + part[..., 0] * rest_lengths[..., section]
        turn, local, by_shape, by_turn = _arc(u, v, length)
        moved.append(rotation @ by_shape * (part * units)[..., None, :])
        turned.append(rotation @ by_turn * (part * units)[..., None, :])
        position = position + (rotation @ local[..., None])[..., 0]
        rotation = rotation @ turn
        ends.append(position)
    columns = []
    for along, around, end in zip(moved, turned, ends, strict=True):
        # a section moves what lies beyond it by turning it, too
        beyond = (position - end)[..., None].expand_as(around)
        columns.append(torch.cat([along + torch.cross(around, beyond, dim=-2), around], dim=-2))
    upper = torch.cat([rotation, position[..., None]], dim=-1)
    lower = q.new_tensor([0.0, 0.0, 0.0, 1.0]).expand(*batch, 1, 4)
    return torch.cat([upper, lower], dim=-2), torch.cat(columns, dim=-1)


def _arc(
    u: torch.Tensor, v: torch.Tensor, length: torch.Tensor
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor, torch.Tensor]:
    """End of an arc bent by (u, v) (...) [rad], length (...) [m] long, in the axes of its begin.

    Returns:
        Rotation (..., 3, 3), position (..., 3) [m], and derivatives by (u, v, length): of the
        position (..., 3, 3), and angular velocity per rate (..., 3, 3), the left Jacobian of SO(3).
    """
    c0, c1, c2, c3, c4 = stumpff(u * u + v * v)
    c1_z, c2_z = 0.5 * (c3 - c2), 0.5 * (2.0 * c4 - c3)
    zero, across = torch.zeros_like(u), 2.0 * length * u * v * c2_z
    rotation = _matrix(
        [1.0 - c2 * u * u, -c2 * u * v, c1 * u],
        [-c2 * u * v, 1.0 - c2 * v * v, c1 * v],
        [-c1 * u, -c1 * v, c0],
    )
    by_shape = _matrix(
        [length * (c2 + 2.0 * u * u * c2_z), across, u * c2],
        [across, length * (c2 + 2.0 * v * v * c2_z), v * c2],
        [2.0 * length * u * c1_z, 2.0 * length * v * c1_z, c1],
    )
    by_turn = _matrix(
        [-c3 * u * v, c3 * u * u - 1.0, zero],
        [1.0 - c3 * v * v, c3 * u * v, zero],
        [-c2 * v, c2 * u, zero],
    )
    position = length[..., None] * by_shape[..., :, 2]
    return rotation, position, by_shape, by_turn


def _matrix(*rows: list[torch.Tensor]) -> torch.Tensor:
    """(..., 3, 3) of entries (...)."""
    return torch.stack([torch.stack(row, dim=-1) for row in rows], dim=-2)
