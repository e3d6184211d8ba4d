"""One material for all segments: a few numbers instead of eight for each segment.

A homogeneous robot is E I, G A, E A, their damping, and what a length of it weighs, wherever its
segments end. A segment of length l has the stiffness l E I, l G A, l E A, since a torque on a
strain does work along the whole segment. What is shared is told by a matrix: the unknowns of the
`Basis` are it times the numbers of the material, so that its columns are those of the basis times
the matrix. Few unknowns let segments be many and short.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from softcr_models.errors import UserError
from softcr_papers.valadas2024.learning.basis import Basis, Rows
from softcr_papers.valadas2024.learning.regression import Regression, SolverSettings, solve_rows
from softcr_papers.valadas2024.strain.kinematics import STRAINS


@dataclass(frozen=True, eq=False)
class Material:
    """What was found.

    Attributes:
        names: (Q,) mass and inertia of each part per length [kg/m, kg m], then stiffness and
            damping of bending [N m^2, N m^2 s], shear and axial strain [N, N s].
        values, errors: (Q,) and their standard errors, NaN of a value at its bound.
        regression: what follows for the segments; its errors are those of the material.
    """

    names: tuple[str, ...]
    values: np.ndarray
    errors: np.ndarray
    regression: Regression

    def of(self, name: str) -> tuple[float, float]:
        """A value and its standard error.

        Raises:
            UserError: there is none of this name.
        """
        if name not in self.names:
            raise UserError(f"material: {name!r} is none of {', '.join(self.names)}")
        place = self.names.index(name)
        return float(self.values[place]), float(self.errors[place])


def regress_material(
    basis: Basis, rows: Rows, parts: Sequence[str], settings: SolverSettings | None = None
) -> Material:
    """Least squares of a material that all segments share.

    Args:
        basis: of the rows, with a known gravity.
        rows: the equations.
        parts: (S,) a name for each segment; those of the same name have the same mass and moment of
            inertia per length, as where a rigid tip is part of the last one.
        settings: of the least squares.

    Raises:
        UserError: parts do not fit, gravity is unknown, or the motion says nothing about a number.
    """
    names, shared = _shared(basis, parts)
    reduced = Rows(rows.columns @ shared, rows.torques, rows.overlap)
    found = solve_rows(names, reduced, settings)
    errors = np.abs(shared) @ found.errors  # each unknown follows from one number
    values = shared @ found.values
    regression = Regression(basis, values, errors, found.residuals, found.condition)
    return Material(names, found.values, found.errors, regression)


def _shared(basis: Basis, parts: Sequence[str]) -> tuple[tuple[str, ...], np.ndarray]:
    """(Q,) names and the matrix (P, Q): unknowns of the basis by numbers of the material."""
    count = len(basis.lengths)
    if len(parts) != count:
        raise UserError(f"parts {list(parts)}: must be one for each of {count} segments")
    if basis.gravity is None:
        raise UserError("material: weight must be mass times a known gravity")
    kinds = sorted({int(index) % 3 for index in basis.active})
    names = tuple(
        f"{quantity}_{each}"
        for quantity, of in (
            ("mass", dict.fromkeys(parts)), ("inertia", dict.fromkeys(parts)),
            ("stiffness", [STRAINS[kind] for kind in kinds]),
            ("damping", [STRAINS[kind] for kind in kinds]),
        )
        for each in of
    )  # fmt: skip
    matrix = np.zeros((len(basis.names), len(names)))
    for row, unknown in enumerate(basis.names):
        quantity, *_, segment = unknown.split("_")
        place = int(segment) - 1
        linear = quantity in ("stiffness", "damping")
        owner = unknown.split("_")[1] if linear else parts[place]
        share = basis.lengths[place] if linear else 1.0
        matrix[row, names.index(f"{quantity}_{owner}")] = share
    return names, matrix
