"""Strains that are too stiff to matter: Valadas et al. (2024), Section III-B3, Eq. (8)."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from softcr_models.errors import UserError
from softcr_papers.valadas2024.learning.regression import Regression
from softcr_papers.valadas2024.strain.numbers import strain_name


@dataclass(frozen=True)
class Stiffest:
    """How stiff a strain may be at most.

    A strain of a segment with the area A and second moment of area I is dropped when its stiffness
    exceeds I E, f A G or A E. The paper's 168 N of shear are those of f = 4/3 and G = 0.1 MPa, of
    which it prints neither.

    Attributes:
        radius: of the cross-section [m].
        youngs_modulus: E^max [Pa].
        shear_modulus: G^max [Pa].
        shear_factor: f [-].
        integrated: whether stiffnesses are those of the whole segment, times its length.
    """

    radius: float = 0.02
    youngs_modulus: float = 1e8
    shear_modulus: float = 1e5
    shear_factor: float = 4.0 / 3.0
    integrated: bool = False

    def __post_init__(self) -> None:
        """Raises UserError for numbers that are not allowed."""
        for name in ("radius", "youngs_modulus", "shear_modulus", "shear_factor"):
            if not 0.0 < getattr(self, name) < np.inf:
                raise UserError(f"{name} {getattr(self, name)}: must be finite and above 0")

    def of(self, lengths: np.ndarray) -> np.ndarray:
        """(3 S,) largest stiffness: [N m^2] of bending, [N] of shear and axial strain."""
        area = np.pi * self.radius**2
        bending = area * self.radius**2 / 4.0 * self.youngs_modulus
        shear = self.shear_factor * area * self.shear_modulus
        one = np.array([bending, shear, area * self.youngs_modulus])
        factors = np.asarray(lengths) if self.integrated else np.ones(len(lengths))
        return np.outer(factors, one).ravel()


@dataclass(frozen=True, eq=False)
class Removal:
    """A strain that was dropped.

    Attributes:
        name: of the strain.
        stiffness, largest: what was found, and what is allowed [N m^2] or [N].
    """

    name: str
    stiffness: float
    largest: float


@dataclass(frozen=True, eq=False)
class Sparsified:
    """The regression with the strains that are kept.

    Attributes:
        regression: the last one.
        first: the one with all strains.
        removed: strains that were dropped, in this order.
        negative: names of kept strains whose stiffness was found below 0, which Eq. (8) never
            drops: the motion says too little about them.
    """

    regression: Regression
    first: Regression
    removed: tuple[Removal, ...]
    negative: tuple[str, ...]


def sparsify(
    regression_of: Callable[[np.ndarray], Regression],
    lengths: np.ndarray,
    limits: Stiffest | None,
) -> Sparsified:
    """Drops the strain that exceeds its limit most, regresses again, until none does.

    Args:
        regression_of: the regression with the strains of these indices (m,) alone.
        lengths: (S,) of the segments [m].
        limits: largest stiffnesses; None: every strain is kept.

    Raises:
        UserError: no strain would be left.
    """
    active = np.arange(3 * len(lengths))
    largest = np.full(len(active), np.inf) if limits is None else limits.of(lengths)
    first = found = regression_of(active)
    removed: list[Removal] = []
    while True:
        stiffness = found.of("stiffness")
        ratios = stiffness / largest[active]
        worst = int(np.argmax(ratios))
        if ratios[worst] <= 1.0:
            names = tuple(map(strain_name, active[stiffness < 0.0]))
            return Sparsified(found, first, tuple(removed), names)
        index = int(active[worst])
        removed.append(Removal(strain_name(index), float(stiffness[worst]), largest[index]))
        active = np.delete(active, worst)
        if not len(active):
            raise UserError(
                "sparsification: every strain is stiffer than its limit; give larger moduli"
            )
        found = regression_of(active)
