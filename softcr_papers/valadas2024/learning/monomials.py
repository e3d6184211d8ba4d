"""The paper's own basis: every monomial of the expanded Lagrangian of constant-strain segments.

Valadas et al. (2024), Section III-B1. With p = x + i y and z = sigma_sh + i (1 + sigma_ax) a point
of a segment is at E z (exp(i kappa u) - 1) / (i kappa) from the segment's begin, E the exponential
of the turns before it. Mass and gravity are integrals of products of its derivatives, so each entry
of M and the potential of gravity are sums of

    kappa^p sigma_sh^r sigma_ax^t ... cos or sin (n_1 kappa_1 l_1 + n_2 kappa_2 l_2 + ...),

with p below 0 as well. Each such monomial, times the two rates that its entry of M belongs to, is a
basis function f of L = sum pi f. The sums are finite at kappa = 0, single monomials are not: frames
near it have to be left out. `basis` has no such limits, and is the default.
"""

import itertools
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import numpy as np

from softcr_models.errors import UserError
from softcr_models.strain.numbers import StrainNumbers, strain_name
from softcr_papers.valadas2024.learning.basis import Rows

Key = tuple[tuple[int, ...], tuple[int, ...], int, int]
"""Powers (3 S) of the strains, multiples (S) of kappa l in an exponential, power of u, multiple of
kappa u in an exponential of the segment at hand."""

Sum = Mapping[Key, complex]


@dataclass(frozen=True)
class Monomial:
    """One basis function f(q, q').

    Attributes:
        powers: (n,) of the strains.
        turns: (S,) multiples of kappa l in the cosine or sine; all 0: there is none.
        sine: whether it is a sine.
        rates: indices of the two rates it is multiplied by; None: of the potential.
    """

    powers: tuple[int, ...]
    turns: tuple[int, ...]
    sine: bool
    rates: tuple[int, int] | None

    def __str__(self) -> str:
        """Such as bending_1^-3 shear_1 sin(1) bending_1' axial_1'."""
        words = [
            strain_name(k) + (f"^{power}" if power != 1 else "")
            for k, power in enumerate(self.powers)
            if power
        ]
        if any(self.turns):
            words.append(f"{'sin' if self.sine else 'cos'}{self.turns}".replace(",)", ")"))
        words += [strain_name(k) + "'" for k in self.rates or ()]
        return " ".join(words) or "1"


@dataclass(frozen=True, eq=False)
class MonomialBasis:
    """The library of a robot, and the coefficients that known numbers give.

    Attributes:
        lengths: (S,) of the segments [m].
        monomials: (F,) of kinetic energy, weight and springs; dampers of all strains follow them.
        mass, inertia, weight: (F, S) the coefficient of each per unit of a segment's density.
    """

    lengths: np.ndarray
    monomials: tuple[Monomial, ...]
    mass: np.ndarray
    inertia: np.ndarray
    weight: np.ndarray

    @property
    def names(self) -> tuple[str, ...]:
        """(F + n,) of the unknowns."""
        strains = range(3 * len(self.lengths))
        return (*map(str, self.monomials), *(f"damping_{strain_name(k)}" for k in strains))

    def coefficients(self, numbers: StrainNumbers) -> np.ndarray:
        """(F + n,) pi and the damping, of numbers with all strains kept."""
        found = self.mass @ numbers.mass + self.inertia @ numbers.inertia
        found = found + self.weight @ numbers.weight
        size = 3 * len(self.lengths)
        found[len(found) - size :] = -0.5 * numbers.stiffness
        return np.concatenate([found, numbers.damping])

    def columns(
        self, strains: np.ndarray, rates: np.ndarray, accelerations: np.ndarray
    ) -> np.ndarray:
        """(..., n, F + n) Psi of Eq. (6).

        Args:
            strains, rates, accelerations: (..., n); no bending may be 0.
        """
        n = strains.shape[-1]
        out = np.zeros((*strains.shape, len(self.monomials) + n))
        for column, monomial in enumerate(self.monomials):
            value, slope = _values(monomial, strains, self.lengths)
            if monomial.rates is None:
                out[..., column] = -slope
                continue
            a, b = monomial.rates
            change = (slope * rates).sum(axis=-1)
            out[..., column] -= slope * (rates[..., a] * rates[..., b])[..., None]
            for one, other in ((a, b), (b, a)):
                force = value * accelerations[..., other] + change * rates[..., other]
                out[..., one, column] += force
        for k in range(n):
            out[..., k, len(self.monomials) + k] = rates[..., k]
        return out


@dataclass(frozen=True, eq=False)
class MonomialFit:
    """Coefficients found; they predict torques and are no `LagrangianModel`.

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
        size = 3 * len(self.basis.lengths)
        stiffness: np.ndarray = -2.0 * self.values[-2 * size : -size]
        return stiffness

    def torque(
        self, strains: np.ndarray, rates: np.ndarray, accelerations: np.ndarray
    ) -> np.ndarray:
        """(..., n) of a motion whose bending is never 0."""
        torques: np.ndarray = self.basis.columns(strains, rates, accelerations) @ self.values
        return torques


def monomial_basis(lengths: np.ndarray, down: np.ndarray | None = None) -> MonomialBasis:
    """The library of segments of these lengths (S,) [m]; `down` (2,) is along gravity.

    Raises:
        UserError: there are more than three segments, which have too many monomials to regress.
    """
    lengths = np.asarray(lengths, float)
    segments, n = len(lengths), 3 * len(lengths)
    if not 1 <= segments <= 3:
        raise UserError(f"monomials of {segments} segments: must be 1 to 3")
    along = np.array([0.0, 1.0]) if down is None else np.asarray(down, float)
    found: dict[Monomial, np.ndarray] = defaultdict(lambda: np.zeros((3, segments)))
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
        # Re(conj(down) p), the way along gravity, is minus the potential of a unit weight
        way = _product({_key(n, segments): complex(along[0], -along[1])}, point)
        for monomial, value in _real(_integral(way, i, lengths), None):
            found[monomial][2, i] += value
    kept = {
        monomial: values
        for monomial, values in found.items()
        if np.abs(values).max() > 1e-300
        and (monomial.rates is not None or any(monomial.powers) or any(monomial.turns))
    }
    springs = [
        Monomial(tuple(2 * (k == e) for k in range(n)), (0,) * segments, False, None)
        for e in range(n)
    ]
    everything = np.stack([*kept.values(), *[np.zeros((3, segments))] * n])
    return MonomialBasis(lengths, (*kept, *springs), *np.moveaxis(everything, 1, 0))


def fit_monomials(rows: Rows, basis: MonomialBasis, ridge: float = 0.0) -> np.ndarray:
    """(F + n,) least squares, Eq. (7), by singular values of scaled columns.

    Args:
        rows: the equations, of `monomial_rows`.
        basis: the library.
        ridge: added to the squares of the scaled columns' singular values.
    """
    flat = rows.columns.reshape(-1, rows.columns.shape[-1])
    sizes = np.linalg.norm(flat, axis=0)
    sizes = np.where(sizes > 0.0, sizes, 1.0)
    left, singular, right = np.linalg.svd(flat / sizes, full_matrices=False)
    shares = singular / (singular**2 + ridge)
    # what rounding makes of columns that are sums of others
    shares = np.where(singular > 1e-13 * singular[0], shares, 0.0)
    found: np.ndarray = (right.T @ (shares * (left.T @ rows.torques.ravel()))) / sizes
    return found


def learn_monomials(
    basis: MonomialBasis,
    strains: np.ndarray,
    rates: np.ndarray,
    accelerations: np.ndarray,
    torques: np.ndarray,
    least_bending: float = 3.0,
    ridge: float = 0.0,
) -> MonomialFit:
    """The regression of the paper on its own basis.

    Args:
        basis: the library.
        strains, rates, accelerations, torques: (F, n) of frames.
        least_bending: frames with a smaller bending of any segment are left out [rad/m].
        ridge: see `fit_monomials`.

    Raises:
        UserError: too few frames are left.
    """
    far = (np.abs(strains[:, 0::3]) >= least_bending).all(axis=1)
    chosen = [each[far] for each in (strains, rates, accelerations, torques)]
    unknowns = len(basis.names)
    if chosen[0].size < unknowns:
        raise UserError(
            f"regression of {unknowns} monomials: {int(far.sum())} frames bend by "
            f"{least_bending:g} rad/m or more everywhere; record a motion that bends more"
        )
    columns = basis.columns(*chosen[:3])
    rows = Rows(columns[None], chosen[3][None], 1)
    return MonomialFit(basis, fit_monomials(rows, basis, ridge), float(far.mean()))


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


def _real(one: Sum, rates: tuple[int, int] | None) -> Iterable[tuple[Monomial, float]]:
    """The real part, in cosines and sines of turns whose first multiple is positive."""
    for (powers, turns, _, _), c in one.items():
        first = next((x for x in turns if x), 0)
        sign = -1.0 if first < 0 else 1.0
        turned = tuple(int(sign) * x for x in turns)
        yield Monomial(powers, turned, False, rates), c.real
        if first:
            yield Monomial(powers, turned, True, rates), -sign * c.imag


def _values(
    monomial: Monomial, strains: np.ndarray, lengths: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """A monomial's value (...) without its rates, and its derivative (..., n) by the strains."""
    strains.shape[-1]
    angle = (strains[..., 0::3] * lengths) @ np.array(monomial.turns, float)
    wave, slope_of_wave = np.cos(angle), -np.sin(angle)
    if monomial.sine:
        wave, slope_of_wave = np.sin(angle), np.cos(angle)
    factors = [strains[..., k] ** float(p) if p else None for k, p in enumerate(monomial.powers)]
    product = np.ones(strains.shape[:-1])
    for factor in factors:
        product = product if factor is None else product * factor
    slope = np.zeros(strains.shape)
    for k, power in enumerate(monomial.powers):
        if power:
            others = wave.copy()
            for other, factor in enumerate(factors):
                if factor is not None and other != k:
                    others = others * factor
            slope[..., k] += power * strains[..., k] ** float(power - 1) * others
    for segment, multiple in enumerate(monomial.turns):
        slope[..., 3 * segment] += product * slope_of_wave * multiple * lengths[segment]
    return product * wave, slope
