"""Elimination of 6 x 6 blocks without pivoting, in place."""

from softcr_models.rod.inner import inlined


@inlined
def factorise(a):
    """a = L U in place without pivoting; reciprocals of the pivots on the diagonal."""
    for k in range(6):
        a[k, k] = 1.0 / a[k, k]
        for r in range(k + 1, 6):
            a[r, k] *= a[k, k]
            for c in range(k + 1, 6):
                a[r, c] -= a[r, k] * a[k, c]


@inlined
def substitute(a, y):
    """y (6,) = (L U)^-1 y in place."""
    for r in range(1, 6):
        for k in range(r):
            y[r] -= a[r, k] * y[k]
    for j in range(6):
        r = 5 - j
        for k in range(r + 1, 6):
            y[r] -= a[r, k] * y[k]
        y[r] *= a[r, r]


@inlined
def substitute_matrix(a, y):
    """y (6, 6) = (L U)^-1 y in place."""
    for r in range(1, 6):
        for k in range(r):
            for c in range(6):
                y[r, c] -= a[r, k] * y[k, c]
    for j in range(6):
        r = 5 - j
        for k in range(r + 1, 6):
            for c in range(6):
                y[r, c] -= a[r, k] * y[k, c]
        for c in range(6):
            y[r, c] *= a[r, r]
