"""Motions of a strain model under torques that are held: compiled RODAS, Tsit5, SciPy's methods.

Strain models are stiff: bending of a light section is slow, its damped shear and stretch are fast.
The default is RODAS with adapted steps; the explicit method of Tsitouras is what Valadas et al.
(2024) integrate with, and needs steps of some 20 microseconds; Radau and BDF are independent
references.
"""

from dataclasses import dataclass
from typing import Literal

import numpy as np
from scipy.integrate import solve_ivp

from softcr_models.errors import UserError
from softcr_papers.valadas2024.strain.dynamics import StrainDynamics, quadrature
from softcr_papers.valadas2024.strain.kernel import kernels

Method = Literal["rodas", "tsit5", "radau", "bdf"]

TYPICAL = (60.0, 0.3, 0.3)
"""Size of each kind of strain; a velocity is a hundred times it per second."""


@dataclass(frozen=True)
class Integration:
    """How a motion is computed.

    Attributes:
        method: see the module.
        tolerance: of a step's error relative to the typical size of each state; RODAS and SciPy's.
        fixed_step: of equal steps [s]; None: RODAS and SciPy adapt theirs. Tsit5 must have one.
    """

    method: Method = "rodas"
    tolerance: float = 1e-6
    fixed_step: float | None = None

    def __post_init__(self) -> None:
        """Raises UserError for numbers that are not allowed."""
        if not 0.0 < self.tolerance < 1.0:
            raise UserError(f"tolerance {self.tolerance}: must be above 0 and below 1")
        if self.fixed_step is not None and not 0.0 < self.fixed_step < np.inf:
            raise UserError(f"fixed_step {self.fixed_step} s: must be above 0")
        if self.method == "tsit5" and self.fixed_step is None:
            raise UserError("integration by tsit5: fixed_step is missing, it has no error control")
        if self.method in ("radau", "bdf") and self.fixed_step is not None:
            raise UserError(f"integration by {self.method}: fixed_step is not allowed, it adapts")


def typical_state(dynamics: StrainDynamics) -> np.ndarray:
    """(2 m,) size of strains and their rates."""
    strains = np.array(TYPICAL)[dynamics.numbers.active % 3]
    return np.concatenate([strains, 100.0 * strains])


def simulate(
    dynamics: StrainDynamics,
    states: np.ndarray,
    torques: np.ndarray,
    dt: float,
    how: Integration | None = None,
) -> np.ndarray:
    """(B, T + 1, 2 m) states, the first ones included, under torques that are held for dt each.

    A motion whose state becomes infinite is NaN from there on.

    Args:
        dynamics: the equations.
        states: (B, 2 m) or (2 m,) strains and rates at the start.
        torques: (B, T, m), or (T, m) for all.
        dt: time for which each torque is held, and between two states [s].
        how: the method; None: RODAS with a tolerance of 1e-6.

    Raises:
        UserError: shapes that do not fit.
    """
    how, m = how or Integration(), dynamics.numbers.size
    begin, held = np.atleast_2d(np.asarray(states, float)), np.asarray(torques, float)
    if held.ndim == 2:
        held = np.broadcast_to(held, (len(begin), *held.shape))
    if begin.ndim != 2 or begin.shape[1] != 2 * m:
        raise UserError(f"states of shape {begin.shape}: allowed is (B, {2 * m})")
    if held.ndim != 3 or held.shape[2] != m or len(held) != len(begin) or not held.shape[1]:
        raise UserError(f"torques of shape {held.shape}: allowed is ({len(begin)}, T, {m})")
    if not 0.0 < dt < np.inf:
        raise UserError(f"dt {dt} s: must be finite and above 0")
    if how.method == "rodas":
        rolled = rodas(dynamics, begin, np.concatenate([held, held[:, -1:]], axis=1), None, dt, how)
    elif how.method == "tsit5":
        assert how.fixed_step is not None
        rolled = _tsit5(dynamics, begin, held, dt, how.fixed_step)
    else:
        rolled = np.stack(
            [_scipy(dynamics, *each, dt, how) for each in zip(begin, held, strict=True)]
        )
    return np.concatenate([begin[:, None], rolled], axis=1)


def rodas(
    dynamics: StrainDynamics,
    states: np.ndarray,
    levels: np.ndarray,
    factors: np.ndarray | None,
    dt: float,
    how: Integration,
    held: bool = True,
) -> np.ndarray:
    """(B, T, 2 m) states after each of T steps, compiled.

    Args:
        dynamics: the equations.
        states: (B, 2 m) or (1, 2 m).
        levels: (B, T + 1, m) torques at the grid points.
        factors: (B, 3) or (1, 3) of stiffness, of damping, of mass and weight; None: one each.
        dt: length of a step [s].
        how: tolerance and fixed step.
        held: whether torques are held from grid point to grid point, or linear in between.
    """
    numbers = dynamics.numbers
    out = np.empty((len(levels), levels.shape[1] - 1, 2 * numbers.size))
    kernels().rollout(
        np.array(states, float, order="C"), np.array(levels, float, order="C"),
        np.ones((1, 3)) if factors is None else np.array(factors, float, order="C"),
        numbers.active, numbers.lengths, numbers.mass, numbers.inertia, numbers.weight,
        numbers.down, *quadrature(dynamics.points), numbers.stiffness, numbers.damping,
        typical_state(dynamics), dt, how.tolerance, how.fixed_step or 0.0, held, out,
    )  # fmt: skip
    return out


# Ch. Tsitouras, Runge-Kutta pairs of order 5(4) satisfying only the first column simplifying
# assumption, Computers and Mathematics with Applications 62 (2011); the fifth-order method.
_TSIT5 = (
    (),
    (0.161,),
    (-0.008480655492356989, 0.335480655492357),
    (2.8971530571054935, -6.359448489975075, 4.3622954328695815),
    (5.325864828439257, -11.748883564062828, 7.4955393428898365, -0.09249506636175525),
    (5.86145544294642, -12.92096931784711, 8.159367898576159, -0.071584973281401,
     -0.028269050394068383),
)  # fmt: skip
_TSIT5_WEIGHTS = (0.09646076681806523, 0.01, 0.4798896504144996, 1.379008574103742,
                  -3.290069515436081, 2.324710524099774)  # fmt: skip


def _slope(dynamics: StrainDynamics, states: np.ndarray, torques: np.ndarray) -> np.ndarray:
    q, rate = np.split(states, 2, axis=-1)
    return np.concatenate([rate, dynamics.acceleration(q, rate, torques)], axis=-1)


def _tsit5(
    dynamics: StrainDynamics, states: np.ndarray, held: np.ndarray, dt: float, step: float
) -> np.ndarray:
    pieces = max(1, int(np.ceil(dt / step - 1e-9)))
    h, now, out = dt / pieces, states, []
    with np.errstate(over="ignore", invalid="ignore"):
        for torque in np.moveaxis(held, 1, 0):
            for _ in range(pieces):
                slopes: list[np.ndarray] = []
                for shares in _TSIT5:
                    moved = [share * slope for share, slope in zip(shares, slopes, strict=True)]
                    slopes.append(_slope(dynamics, now + h * sum(moved), torque))
                now = now + h * sum(w * s for w, s in zip(_TSIT5_WEIGHTS, slopes, strict=True))
                now = np.where(np.isfinite(now).all(axis=1, keepdims=True), now, np.nan)
            out.append(now)
    return np.stack(out, axis=1)


def _scipy(
    dynamics: StrainDynamics, state: np.ndarray, held: np.ndarray, dt: float, how: Integration
) -> np.ndarray:
    out, sizes = np.full((len(held), len(state)), np.nan), typical_state(dynamics)
    for number, torque in enumerate(held):
        found = solve_ivp(
            lambda _, y, torque=torque: _slope(dynamics, y, torque), (0.0, dt), state,
            {"radau": "Radau", "bdf": "BDF"}[how.method],
            rtol=how.tolerance, atol=how.tolerance * sizes,
        )  # fmt: skip
        if not found.success or not np.isfinite(found.y[:, -1]).all():
            break
        out[number] = state = found.y[:, -1]
    return out
