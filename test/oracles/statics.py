"""Statics of an arm as a boundary value problem along its length: nothing is discretised.

In each segment y = (p, quaternion, Lambda) with Lambda the total internal wrench in the section's
frame: p' = R nu, R' = R u^, Lambda' = ad(xi)^T Lambda + [mu gamma; 0], where xi = xi_0 + C s and
s = Lambda + w(xi). Arrays hold one point per row.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy.integrate import solve_bvp, solve_ivp
from scipy.optimize import root
from scipy.spatial.transform import Rotation

from oracles.arms import Arm, tendon_wrenches

STRAIGHT = np.array([0.0, 0.0, 1.0, 0.0, 0.0, 0.0])


@dataclass(frozen=True)
class Rest:
    """An arm at rest: last node's position and quaternion (w x y z), wrench on the mounting."""

    tip: np.ndarray
    quaternion: np.ndarray
    base: np.ndarray


def shooting(arm: Arm, tolerance: float = 1e-11) -> Rest:
    """The rest reached by raising loads and actuation together from nothing."""
    guess, reached, step = np.zeros(6), 0.0, 1.0
    while reached < 1.0:
        share = min(1.0, reached + step)
        part = arm.loaded(share)
        found = root(lambda base, part=part: shoot(part, base, tolerance)[1], guess, tol=1e-13)
        if np.abs(found.fun).max() < 1e-9:
            guess, reached, step = found.x, share, 2.0 * step
        else:
            step *= 0.5
            assert step > 1e-3, "no rest found"
    end, _ = shoot(arm, guess, tolerance)
    return Rest(end[:3], _signed(end[3:7]), guess)


def shoot(arm: Arm, base: np.ndarray, tolerance: float) -> tuple[np.ndarray, np.ndarray]:
    """End (13,) of an arm whose mounting bears `base` (6,), and what is wrong at its tip (6,)."""
    y = np.concatenate(([0, 0, 0, 1, 0, 0, 0], base))
    starts = arm.starts()
    for index in range(len(arm.segments)):
        y = solve_ivp(
            lambda s, y, index=index: _slopes(arm, index, np.array([s]), y[None])[0],
            starts[index : index + 2], y, method="DOP853", rtol=tolerance, atol=0.1 * tolerance,
        ).y[:, -1]  # fmt: skip
        if index + 1 < len(arm.segments):
            y = _across(arm, index, y)
    return y, _tip_error(arm, y)


def collocation(arm: Arm, tolerance: float = 1e-8, points: int = 11) -> Rest:
    """The same by SciPy's collocation, all segments at once on [0, 1], from the straight arm."""
    count = len(arm.segments)
    starts = arm.starts()
    grid = np.linspace(0.0, 1.0, points)
    guess = np.zeros((13 * count, points))
    guess[3::13] = 1.0
    for index, segment in enumerate(arm.segments):
        guess[13 * index + 2] = starts[index] + segment.length * grid
    for share in (0.25, 0.5, 0.75, 1.0):
        part = arm.loaded(share)
        found = solve_bvp(
            _all_slopes(part), _all_ends(part), grid, guess,
            tol=tolerance if share == 1.0 else 1e-3, max_nodes=20_000,
        )  # fmt: skip
        assert found.success, found.message
        grid, guess = found.x, found.y
    end = guess[-13:, -1]
    return Rest(end[:3], _signed(end[3:7]), guess[7:13, 0])


def _all_slopes(arm: Arm) -> Callable[[np.ndarray, np.ndarray], np.ndarray]:
    starts = arm.starts()

    def slopes(t: np.ndarray, y: np.ndarray) -> np.ndarray:
        return np.concatenate(
            [
                each.length
                * _slopes(arm, i, starts[i] + t * each.length, y[13 * i : 13 * i + 13].T).T
                for i, each in enumerate(arm.segments)
            ]
        )

    return slopes


def _all_ends(arm: Arm) -> Callable[[np.ndarray, np.ndarray], np.ndarray]:
    def ends(begin: np.ndarray, end: np.ndarray) -> np.ndarray:
        wrong = [begin[:7] - [0, 0, 0, 1, 0, 0, 0]]
        for i in range(len(arm.segments) - 1):
            wrong.append(begin[13 * i + 13 : 13 * i + 26] - _across(arm, i, end[13 * i :][:13]))
        return np.concatenate((*wrong, _tip_error(arm, end[-13:])))

    return ends


def _slopes(arm: Arm, index: int, arc_lengths: np.ndarray, y: np.ndarray) -> np.ndarray:
    """(J, 13) of y (J, 13) in one segment."""
    segment = arm.segments[index]
    force, moment = y[:, 7:10], y[:, 10:13]
    strain = _strains(arm, index, arc_lengths, y[:, 7:13])
    nu, u = strain[:, :3], strain[:, 3:]
    rotation = _matrices(y[:, 3:7])
    scalar, vector = y[:, 3:4], y[:, 4:7]
    up = np.einsum("jki,k->ji", rotation, arm.up)
    return np.concatenate(
        (
            np.einsum("jik,jk->ji", rotation, nu),
            -0.5 * np.sum(vector * u, axis=1, keepdims=True),
            0.5 * (scalar * u + np.cross(vector, u)),
            np.cross(force, u) + segment.line_density * up,
            np.cross(force, nu) + np.cross(moment, u),
        ),
        axis=1,
    )


def _strains(arm: Arm, index: int, arc_lengths: np.ndarray, total: np.ndarray) -> np.ndarray:
    """(J, 6) strains at total internal wrenches (J, 6): Newton where tendons follow the strain."""
    segment = arm.segments[index]
    strain = np.broadcast_to(STRAIGHT, total.shape)
    for _ in range(30):
        wrench, slope = tendon_wrenches(arm, index, arc_lengths, strain)
        wanted = STRAIGHT + segment.compliance * (total + segment.wrench + wrench)
        matrix = np.eye(6) - segment.compliance[:, None] * slope
        change = np.linalg.solve(matrix, (wanted - strain)[..., None])[..., 0]
        strain = strain + change
        if np.abs(change).max() < 1e-13:
            break
    return strain


def _across(arm: Arm, index: int, y: np.ndarray) -> np.ndarray:
    """(13,) at the start of the next segment, of that at the end of this one."""
    connector = arm.segments[index].connector
    rotation = _matrices(y[None, 3:7])[0]
    total = y[7:13] - connector.body.weight(rotation.T @ arm.up)
    turned = Rotation.from_quat(np.roll(y[3:7], -1)) * Rotation.from_matrix(connector.rotation)
    quaternion = np.roll(turned.as_quat(), 1)
    quaternion *= np.linalg.norm(y[3:7]) * np.sign(quaternion @ y[3:7] or 1.0)
    return np.concatenate(
        (
            y[:3] + rotation @ connector.translation,
            quaternion,
            np.linalg.solve(connector.adjoint().T, total),
        )
    )


def _tip_error(arm: Arm, y: np.ndarray) -> np.ndarray:
    rotation = _matrices(y[None, 3:7])[0]
    load = arm.follower + arm.payload.weight(rotation.T @ arm.up)
    load[:3] += rotation.T @ arm.dead_force
    return y[7:13] - load


def _matrices(quaternions: np.ndarray) -> np.ndarray:
    """(J, 3, 3) of quaternions (J, 4), w first, of any length."""
    w, x, y, z = (quaternions / np.linalg.norm(quaternions, axis=1)[:, None]).T
    rows = (
        (1 - 2 * (y * y + z * z), 2 * (x * y - w * z), 2 * (x * z + w * y)),
        (2 * (x * y + w * z), 1 - 2 * (x * x + z * z), 2 * (y * z - w * x)),
        (2 * (x * z - w * y), 2 * (y * z + w * x), 1 - 2 * (x * x + y * y)),
    )
    return np.array(rows).transpose(2, 0, 1)


def _signed(quaternion: np.ndarray) -> np.ndarray:
    quaternion = quaternion / np.linalg.norm(quaternion)
    return quaternion if quaternion[0] >= 0.0 else -quaternion
