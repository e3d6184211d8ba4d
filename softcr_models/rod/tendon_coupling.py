"""Elastic tendons in the linear systems of the rod's time steps.

The tension of an elastic tendon depends on the strain all along it, which no block tridiagonal
matrix holds. With the wrench b_t that a unit of its tension puts on the rod, and the change of its
length c_t.d_s, which is -b_t times the lengths of the rows and the compliance because the two are
conjugate, its matrix is one of rank one, so of all tendons

    (alpha A - G - sum_t b_t k_t c_t^T) d = A r,    k_t = dT_t / d(stretch),

is solved by the matrix of `linear_solver` for one column per tendon and a system of the tendons'
stretches alone (Sherman, Morrison, Woodbury; Hager, SIAM Review 31 (1989) 221):

    (I - C^T Z K) y = C^T (alpha A - G)^-1 A r,    Z = (alpha A - G)^-1 B,

where y are the changes of the stretches; then (alpha A - G) d = A r + B K y. It is stable without
pivoting: -C^T Z is a compliance, and tensions that grow with the stretch only add to I.
"""

from typing import NamedTuple

import numpy as np

from softcr_models.rod.backbone import part_of, strain_from_wrench
from softcr_models.rod.contact import hold_still
from softcr_models.rod.inner import inlined, inner
from softcr_models.rod.linear_solver import solve
from softcr_models.rod.simd import local, square_root
from softcr_models.rod.tendons import set_column, set_stretches, share_of, unsmoothed


class Coupling(NamedTuple):
    """Elastic tendons at a linearisation, per lane.

    Attributes:
        columns: (T, R, 6) wrench per tension at each row [-; m].
        gains: (T,) k_t: of the tension by the stretch [N/m].
        matrix: (T, T) I - C^T Z K = L U in place, reciprocals of the pivots on the diagonal.
        changes: (T,) y.
        acting: (R, 6) B K y, or a column.
        still: (R, 6) zeros.
    """

    columns: np.ndarray
    gains: np.ndarray
    matrix: np.ndarray
    changes: np.ndarray
    acting: np.ndarray
    still: np.ndarray


@inner
def springs_of(fittings):
    """The springs of fittings, None without."""
    return None if fittings is None else fittings.springs


@inner
def _solve(e_rate, s_rate, acting, alpha, section, grid, extras, factors, d_e, d_s):
    """`solve`, once for all that is compiled here."""
    solve(e_rate, s_rate, acting, alpha, section, grid, extras, factors, d_e, d_s)


@inner
def couple(springs, s, alpha, section, grid, extras, factors, d_e, d_s):
    """Fills `extras.coupling` at elastic wrenches s (R, 6); d_e, d_s (R, 6) are room."""
    if springs is not None:
        coupling, fittings = extras.coupling, extras.fittings
        count, rows = springs.shape[0], grid.first_row[grid.segments]
        like = s[0, 0]
        _set_columns(coupling, s, section, grid, fittings)
        set_stretches(coupling.changes, s, section, grid, extras)
        for tendon in range(count):
            x = unsmoothed(springs, tendon, coupling.changes[tendon])
            root = square_root(x * x + springs[tendon, 3])
            coupling.gains[tendon] = 0.5 * springs[tendon, 1] * (1.0 + x / root)
        for i in range(rows):
            for k in range(6):
                coupling.still[i, k] = 0.0 * like
        hold_still(extras.obstacles, extras.contacts, grid)
        for tendon in range(count):
            for i in range(rows):
                for k in range(6):
                    coupling.acting[i, k] = coupling.columns[tendon, i, k]
            _solve(
                coupling.still, coupling.still, coupling.acting, alpha, section, grid, extras,
                factors, d_e, d_s,
            )  # fmt: skip
            _set_changes(coupling, d_s, section, grid, fittings)
            for row in range(count):
                change = coupling.changes[row] * coupling.gains[tendon]
                coupling.matrix[row, tendon] = -change
            coupling.matrix[tendon, tendon] += 1.0
        _factorise(coupling.matrix, count)


@inner
def solve_coupled(springs, e_rate, s_rate, alpha, section, grid, extras, factors, d_e, d_s):
    """Solves the system of this module's heading for the rates r = (e_rate, s_rate), of which
    (d_e, d_s) is the solution by the matrix without elastic tendons."""
    if springs is not None:
        coupling = extras.coupling
        count = springs.shape[0]
        _set_changes(coupling, d_s, section, grid, extras.fittings)
        _substitute(coupling.matrix, coupling.changes, count)
        for i in range(grid.first_row[grid.segments]):
            for k in range(6):
                coupling.acting[i, k] = 0.0 * s_rate[0, 0]
        for tendon in range(count):
            tension = coupling.gains[tendon] * coupling.changes[tendon]
            for i in range(grid.first_row[grid.segments]):
                for k in range(6):
                    coupling.acting[i, k] += coupling.columns[tendon, i, k] * tension
        _solve(e_rate, s_rate, coupling.acting, alpha, section, grid, extras, factors, d_e, d_s)


@inlined
def _set_columns(coupling, s, section, grid, fittings):
    like = s[0, 0]
    strain = local(like, (6,))
    room = (local(like, (6,)), local(like, (6,)), local(like, (6,)), local(like, (6,)))
    for a in range(grid.segments):
        part = part_of(room, a, section, grid)
        for i in range(grid.first_row[a], grid.first_row[a + 1]):
            strain_from_wrench(strain, s[i], part)
            for tendon in range(fittings.tendon_reaches.shape[0]):
                column = coupling.columns[tendon, i]
                for k in range(6):
                    column[k] = 0.0 * like
                if a <= fittings.tendon_reaches[tendon]:
                    set_column(column, strain, i, tendon, fittings)


@inlined
def _set_changes(coupling, d_s, section, grid, fittings):
    """changes (T,) = C^T d."""
    longer = local(d_s[0, 0], (6,))
    count = fittings.tendon_reaches.shape[0]
    for tendon in range(count):
        coupling.changes[tendon] = 0.0 * d_s[0, 0]
    for a in range(grid.segments):
        for i in range(grid.first_row[a], grid.first_row[a + 1]):
            share = share_of(i, a, grid)
            for k in range(6):
                longer[k] = share * section.compliance[a, k] * d_s[i, k]
            for tendon in range(count):
                for k in range(6):
                    coupling.changes[tendon] -= coupling.columns[tendon, i, k] * longer[k]


@inlined
def _factorise(a, count):
    """As `elimination.factorise`, of count x count."""
    for k in range(count):
        a[k, k] = 1.0 / a[k, k]
        for r in range(k + 1, count):
            a[r, k] *= a[k, k]
            for c in range(k + 1, count):
                a[r, c] -= a[r, k] * a[k, c]


@inlined
def _substitute(a, y, count):
    for r in range(1, count):
        for k in range(r):
            y[r] -= a[r, k] * y[k]
    for j in range(count):
        r = count - 1 - j
        for k in range(r + 1, count):
            y[r] -= a[r, k] * y[k]
        y[r] *= a[r, r]
