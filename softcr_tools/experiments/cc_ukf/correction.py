"""What constant curvature gets wrong, learned from the part the model was identified on.

A rod is no arc, so a filter whose model is one errs in the same way whenever it stands and moves in
the same way. One part's truth tells how: coordinates and rates are corrected by a least-squares
polynomial, of second order in the coordinates, of first order in rates and pressures. The filter
does not know of it. It is another filter for whoever has such a recording, and is reported apart.
"""

from dataclasses import dataclass, replace

import numpy as np

from softcr_models.constant_curvature.dynamics import ConstantCurvatureModel
from softcr_tools.experiments.cc_ukf.plant import DT, SensedRun
from softcr_tools.experiments.cc_ukf.scores import LEFT_OUT, Seen


@dataclass(frozen=True, eq=False)
class OutputCorrection:
    """Added to what a filter says.

    Attributes:
        model: of the filter, for the tip.
        scale: (9,) of coordinates [m], rates [m/s] and pressures [Pa].
        weights: (16, 6) from the polynomial's terms to corrections of coordinates and rates.
    """

    model: ConstantCurvatureModel
    scale: np.ndarray
    weights: np.ndarray

    @classmethod
    def fitted(
        cls, model: ConstantCurvatureModel, run: SensedRun, seen: Seen
    ) -> "OutputCorrection":
        """The correction that is best on a part whose truth is known, from LEFT_OUT on."""
        first = round(LEFT_OUT / DT)
        scale = np.abs(_inputs(run, seen)).max(axis=0) + 1e-12
        found = np.hstack([seen.coordinates, seen.rates])
        missing = np.hstack([run.coordinates, run.rates]) - found
        terms = _terms(_inputs(run, seen) / scale)
        weights = np.linalg.lstsq(terms[first:], missing[first:], rcond=1e-6)[0]
        return cls(model, scale, weights)

    def applied(self, run: SensedRun, seen: Seen) -> Seen:
        """What the filter says of a part, corrected; the part's truth is not looked at."""
        added = _terms(_inputs(run, seen) / self.scale) @ self.weights
        coordinates, rates = seen.coordinates + added[:, :3], seen.rates + added[:, 3:]
        return replace(
            seen,
            coordinates=coordinates,
            rates=rates,
            tips=self.model.tip(coordinates),
            velocities=self.model.tip_velocity(coordinates, rates),
        )


def _inputs(run: SensedRun, seen: Seen) -> np.ndarray:
    """(T, 9) what the correction is a function of."""
    return np.hstack([seen.coordinates, seen.rates, run.pressures])


def _terms(inputs: np.ndarray) -> np.ndarray:
    """(T, 16) the polynomial's terms."""
    rows, columns = np.triu_indices(3)
    products = inputs[:, rows] * inputs[:, columns]
    return np.hstack([np.ones((len(inputs), 1)), inputs, products])
