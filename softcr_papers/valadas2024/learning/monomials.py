"""The paper's own basis: every monomial of the expanded Lagrangian of constant-strain segments.

Valadas et al. (2024), Section III-B1. With p = x + i y and z = sigma_sh + i (1 + sigma_ax) a point
of a segment is at E z (exp(i kappa u) - 1) / (i kappa) from the segment's begin, E the exponential
of the turns before it. Mass and gravity are integrals of products of its derivatives, so each entry
of M and the potential of gravity are sums of

    kappa^p sigma_sh^r sigma_ax^t ... cos or sin (n_1 kappa_1 l_1 + n_2 kappa_2 l_2 + ...),

with p below 0 as well. Each such monomial, times the two rates that its entry of M belongs to, is a
basis function f of L = sum pi f. The sums are finite at kappa = 0, single monomials are not:
`learn_monomials` leaves frames near it out, and a prediction bends by `LEAST_PREDICTED` at least
inside the basis functions, both as in the authors' public code. `basis` has no such limits.
"""

import itertools
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

import numpy as np

from softcr_models.errors import UserError
from softcr_papers.valadas2024.strain.numbers import StrainNumbers

LEAST_LEARNED = 3.0
"""Frames with a smaller bending of any segment are left out of the regression [rad/m]."""

LEAST_PREDICTED = 6.0
"""Bending of each segment that the basis functions of a prediction see at least [rad/m]."""

_LOST = 1e4  # strain beyond which a prediction has run away
_STEP = 1e-4  # of predictions, as in the authors' public code [s]

Key = tuple[tuple[int, ...], tuple[int, ...], int, int]
"""Powers (3 S) of the strains, multiples (S) of kappa l in an exponential, power of u, multiple of
kappa u in an exponential of the segment at hand."""

Sum = Mapping[Key, complex]
_Name = tuple[tuple[int, ...], tuple[int, ...], bool, tuple[int, int] | None]


@dataclass(frozen=True, eq=False)
class MonomialBasis:
    """The library of a robot, and the coefficients that known numbers give.

    Attributes:
        lengths: (S,) of the segments [m].
        powers: (F, n) of the strains, of kinetic energy, weight and springs; dampers of all
            strains follow them as unknowns.
        turns: (F, S) multiples of kappa l in the cosine or sine; all 0: there is none.
        sine: (F,) whether it is a sine.
        rates: (F, 2) indices of the two rates it is multiplied by; -1: of the potential.
        mass, inertia, weight: (F, S) the coefficient of each per unit of a segment's density.
    """

    lengths: np.ndarray
    powers: np.ndarray
    turns: np.ndarray
    sine: np.ndarray
    rates: np.ndarray
    mass: np.ndarray
    inertia: np.ndarray
    weight: np.ndarray

    @property
    def unknowns(self) -> int:
        """F + n."""
        return len(self.powers) + self.powers.shape[1]

    def coefficients(self, numbers: StrainNumbers) -> np.ndarray:
        """(F + n,) pi and the damping, of numbers with all strains kept."""
        found = self.mass @ numbers.mass + self.inertia @ numbers.inertia
        found = found + self.weight @ numbers.weight
        found[len(found) - len(numbers.stiffness) :] = -0.5 * numbers.stiffness
        return np.concatenate([found, numbers.damping])

    def columns(
        self, strains: np.ndarray, rates: np.ndarray, accelerations: np.ndarray
    ) -> np.ndarray:
        """(..., n, F + n) Psi of Eq. (6).

        Args:
            strains, rates, accelerations: (..., n); no bending may be 0.
        """
        count, n = self.powers.shape
        values, slopes = self.values_and_slopes(strains)
        out = np.zeros((*strains.shape, count + n))
        np.negative(np.moveaxis(slopes, -1, -2), out=out[..., :count])
        moving = np.flatnonzero(self.rates[:, 0] >= 0)
        a, b = self.rates[moving].T
        out[..., moving] *= (rates[..., a] * rates[..., b])[..., None, :]
        change = (slopes[..., moving, :] @ rates[..., None])[..., 0]
        for one, other in ((a, b), (b, a)):
            force = values[..., moving] * accelerations[..., other] + change * rates[..., other]
            out[..., one, moving] += force
        out[..., range(n), range(count, count + n)] = rates
        return out

    def values_and_slopes(self, strains: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Monomials (..., F) without their rates, and derivatives (..., F, n) by the strains."""
        angles = (strains[..., 0::3] * self.lengths) @ self.turns.T
        cos, sin = np.cos(angles), np.sin(angles)
        waves = np.where(self.sine, sin, cos)
        turning = np.where(self.sine, cos, -sin)[..., None] * (self.turns * self.lengths)
        factors = strains[..., None, :] ** self.powers.astype(float)
        product = factors.prod(axis=-1)
        slopes = np.zeros((*product.shape, strains.shape[-1]))
        for k, powers in enumerate(self.powers.T):
            used = np.flatnonzero(powers)
            others = np.delete(factors[..., used, :], k, axis=-1).prod(axis=-1)
            slope = powers[used] * strains[..., k, None] ** (powers[used] - 1.0)
            slopes[..., used, k] = slope * others * waves[..., used]
        slopes[..., 0::3] += product[..., None] * turning
        return product * waves, slopes


@dataclass(frozen=True, eq=False)
class MonomialFit:
    """Coefficients found; they predict torques and motions and are no `LagrangianModel`.

    Attributes:
        basis: what they are of.
        values: (F + n,).
        used: share of the frames that were far enough from straight.
    """

    basis: MonomialBasis
    values: np.ndarray
    used: float

    @property
    def stiffness(self) -> np.ndarray:
        """(n,) [N m^2], [N]."""
        size = self.basis.powers.shape[1]
        stiffness: np.ndarray = -2.0 * self.values[-2 * size : -size]
        return stiffness

    def torque(
        self, strains: np.ndarray, rates: np.ndarray, accelerations: np.ndarray
    ) -> np.ndarray:
        """(..., n) of a motion whose bending is never 0."""
        torques: np.ndarray = self.basis.columns(strains, rates, accelerations) @ self.values
        return torques

    def predicted(self, start: np.ndarray, torques: np.ndarray, hold: float) -> np.ndarray:
        """(T + 1, n) strains of a motion from rest; NaN from where it runs away.

        Args:
            start: (n,) strains.
            torques: (T, n), each held for a time.
            hold: that time [s].
        """
        n, basis = len(start), self.basis
        moving = np.flatnonzero(basis.rates[:, 0] >= 0)
        a, b = basis.rates[moving].T
        # of a frame: M, and what the rates and the strains make of each pair of rates
        pairs = np.zeros((2, n, len(moving)))
        pairs[0, a, range(len(moving))] = pairs[1, b, range(len(moving))] = 1.0
        values = self.values[: len(basis.powers)]
        damping, stiffness = self.values[len(basis.powers) :], self.stiffness

        def motion(state: np.ndarray, torque: np.ndarray) -> np.ndarray:
            strains, rates = state[:n].copy(), state[n:]
            strains[::3] = np.copysign(
                np.maximum(np.abs(strains[::3]), LEAST_PREDICTED), strains[::3]
            )
            found, slopes = basis.values_and_slopes(strains)
            one = (pairs[0] * (values * found)[moving]) @ pairs[1].T
            weighed = values[:, None] * slopes
            change = weighed[moving] @ rates
            force = torque - damping * rates - stiffness * (state[:n] - strains)
            force += weighed.sum(axis=0) - weighed[moving].sum(axis=0)
            force += (rates[a] * rates[b]) @ weighed[moving]
            force -= pairs[0] @ (change * rates[b]) + pairs[1] @ (change * rates[a])
            return np.r_[rates, np.linalg.solve(one + one.T, force)]

        state, out = np.r_[start, np.zeros(n)], np.full((len(torques) + 1, n), np.nan)
        out[0], steps = start, max(round(hold / _STEP), 1)
        for k, torque in enumerate(torques):
            with np.errstate(all="ignore"):  # of one that runs away
                for _ in range(steps):
                    state = _stepped(motion, state, torque, hold / steps)
            if not np.abs(state[:n]).max() < _LOST:
                break
            out[k + 1] = state[:n]
        return out


def _stepped(
    motion: Callable[[np.ndarray, np.ndarray], np.ndarray],
    state: np.ndarray, torque: np.ndarray, step: float,
) -> np.ndarray:  # fmt: skip
    """A step [s] of the classical Runge-Kutta method."""
    one = motion(state, torque)
    two = motion(state + 0.5 * step * one, torque)
    three = motion(state + 0.5 * step * two, torque)
    four = motion(state + step * three, torque)
    stepped: np.ndarray = state + step / 6.0 * (one + 2.0 * (two + three) + four)
    return stepped


def learn_monomials(
    basis: MonomialBasis,
    strains: np.ndarray,
    rates: np.ndarray,
    accelerations: np.ndarray,
    torques: np.ndarray,
) -> MonomialFit:
    """The regression of the paper, Eq. (7), on its own basis, by singular values.

    Args:
        basis: the library.
        strains, rates, accelerations, torques: (F, n) of frames.

    Raises:
        UserError: too few frames are left.
    """
    far = (np.abs(strains[:, 0::3]) >= LEAST_LEARNED).all(axis=1)
    chosen = [each[far] for each in (strains, rates, accelerations, torques)]
    if chosen[0].size < basis.unknowns:
        raise UserError(
            f"regression of {basis.unknowns} monomials: {int(far.sum())} frames bend by "
            f"{LEAST_LEARNED:g} rad/m or more everywhere; record a motion that bends more"
        )
    flat = basis.columns(*chosen[:3]).reshape(-1, basis.unknowns)
    sizes = np.linalg.norm(flat, axis=0)
    sizes = np.where(sizes > 0.0, sizes, 1.0)
    # columns that are sums of others to rounding add nothing
    values = np.linalg.lstsq(flat / sizes, chosen[3].ravel(), rcond=1e-13)[0] / sizes
    return MonomialFit(basis, values, float(far.mean()))


def monomial_basis(lengths: np.ndarray) -> MonomialBasis:
    """The library of segments of these lengths (S,) [m]; gravity is along the straight robot.

    Raises:
        UserError: there are more than three segments, which have too many monomials to regress.
    """
    lengths = np.asarray(lengths, float)
    segments, n = len(lengths), 3 * len(lengths)
    if not 1 <= segments <= 3:
        raise UserError(f"monomials of {segments} segments: must be 1 to 3")
    found: dict[_Name, np.ndarray] = defaultdict(lambda: np.zeros((3, segments)))
    for i in range(segments):
        point = _point(i, lengths)
        slopes = [_derivative(point, k, i, lengths) for k in range(n)]
        turns = [_turn(k, i, lengths, n, segments) for k in range(n)]
        for a, b in itertools.combinations_with_replacement(range(n), 2):
            half = 0.5 if a == b else 1.0
            for kind, (one, other) in enumerate(((slopes[a], slopes[b]), (turns[a], turns[b]))):
                energy = _integral(_product(_conjugate(one), other), i, lengths)
                for monomial, value in _real(energy, (a, b)):
                    found[monomial][kind, i] += half * value
        # Re(conj(i) p), the way along gravity, is minus the potential of a unit weight
        way = _product({_key(n, segments): -1j}, point)
        for monomial, value in _real(_integral(way, i, lengths), None):
            found[monomial][2, i] += value
    kept = {
        monomial: values
        for monomial, values in found.items()
        if np.abs(values).max() > 1e-300
        and (monomial[3] is not None or any(monomial[0]) or any(monomial[1]))
    }
    springs = [(tuple(2 * (k == e) for k in range(n)), (0,) * segments, False, None)
               for e in range(n)]  # fmt: skip
    powers, turns_, sine, rates = zip(*kept, *springs, strict=True)
    everything = np.stack([*kept.values(), *[np.zeros((3, segments))] * n])
    return MonomialBasis(
        lengths, np.array(powers), np.array(turns_), np.array(sine),
        np.array([each or (-1, -1) for each in rates]), *np.moveaxis(everything, 1, 0),
    )  # fmt: skip


# -- sums of exponentials -------------------------------------------------------------------------


def _key(n: int, segments: int) -> Key:
    return (0,) * n, (0,) * segments, 0, 0


def _product(one: Sum, other: Sum) -> Sum:
    out: dict[Key, complex] = defaultdict(complex)
    for (p1, n1, m1, k1), c1 in one.items():
        for (p2, n2, m2, k2), c2 in other.items():
            powers = tuple(x + y for x, y in zip(p1, p2, strict=True))
            turns = tuple(x + y for x, y in zip(n1, n2, strict=True))
            out[powers, turns, m1 + m2, k1 + k2] += c1 * c2
    return out


def _conjugate(one: Sum) -> Sum:
    return {(p, tuple(-x for x in n), m, -k): c.conjugate() for (p, n, m, k), c in one.items()}


def _with(values: tuple[int, ...], place: int, change: int) -> tuple[int, ...]:
    return (*values[:place], values[place] + change, *values[place + 1 :])


def _point(i: int, lengths: np.ndarray) -> Sum:
    """p of the point at u of segment i."""
    segments, n = len(lengths), 3 * len(lengths)
    out: dict[Key, complex] = defaultdict(complex)
    for j in range(i + 1):
        powers, turns, _, _ = _key(n, segments)
        turns = tuple(int(s < j) for s in range(segments))
        inverse = _with(powers, 3 * j, -1)
        end = (turns, 0, 1) if j == i else (_with(turns, j, 1), 0, 0)
        for place, factor in ((3 * j + 1, 1.0), (None, 1j), (3 * j + 2, 1j)):
            at = inverse if place is None else _with(inverse, place, 1)
            out[(at, *end)] += factor / 1j
            out[at, turns, 0, 0] -= factor / 1j
    return out


def _turn(k: int, i: int, lengths: np.ndarray, n: int, segments: int) -> Sum:
    """The derivative of theta by strain k at u of segment i."""
    powers, turns, _, _ = _key(n, segments)
    if k % 3 or k // 3 > i:
        return {}
    return {(powers, turns, 1, 0): 1.0} if k // 3 == i else {_key(n, segments): lengths[k // 3]}


def _derivative(one: Sum, k: int, i: int, lengths: np.ndarray) -> Sum:
    """By strain k, at u of segment i."""
    out: dict[Key, complex] = defaultdict(complex)
    for (powers, turns, m, multiple), c in one.items():
        if powers[k]:
            out[_with(powers, k, -1), turns, m, multiple] += c * powers[k]
        if k % 3 == 0:
            segment = k // 3
            if turns[segment]:
                out[powers, turns, m, multiple] += 1j * turns[segment] * lengths[segment] * c
            if segment == i and multiple:
                out[powers, turns, m + 1, multiple] += 1j * multiple * c
    return out


def _integral(one: Sum, i: int, lengths: np.ndarray) -> Sum:
    """Over u from 0 to the length of segment i."""
    out: dict[Key, complex] = defaultdict(complex)
    for (powers, turns, m, multiple), c in one.items():
        if multiple == 0:
            out[powers, turns, 0, 0] += c * lengths[i] ** (m + 1) / (m + 1)
            continue
        end = _with(turns, i, multiple)
        for power in range(m, -1, -1):  # by parts, until u has gone
            powers, c = _with(powers, 3 * i, -1), c / (1j * multiple)
            out[powers, end, 0, 0] += c * lengths[i] ** power
            if power == 0:
                out[powers, turns, 0, 0] -= c
            c = -power * c
    return out


def _real(one: Sum, rates: tuple[int, int] | None) -> Iterable[tuple[_Name, float]]:
    """The real part, in cosines and sines of turns whose first multiple is positive."""
    for (powers, turns, _, _), c in one.items():
        first = next((x for x in turns if x), 0)
        sign = -1 if first < 0 else 1
        turned = tuple(sign * x for x in turns)
        yield (powers, turned, False, rates), c.real
        if first:
            yield (powers, turned, True, rates), -sign * c.imag
