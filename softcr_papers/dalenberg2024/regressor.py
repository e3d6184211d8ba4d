"""The tip's velocity as a linear function of the sections' rest lengths (Dalenberg, Theorem 1).

With c_i = [Delta_x (1 - cos theta), Delta_y (1 - cos theta), |Delta| sin theta] d / |Delta|^2 in
the axes A_(i-1) of section i's begin, the tip is x = x_base + C (L_0 + dL), where
C = [A_0 c_1 | ... | A_(n-1) c_n] depends on the bending alone. Therefore

    x' = Y L_0 + Phi        Y = dC/dt        Phi = Y dL + C dL'

The thesis does not print Y and Phi; this closed form is derived
from (1) and (3). The orientation does not
depend on any length: its regressor is zero (Remark 1).
"""

import numpy as np

from softcr_papers.constant_curvature.kernel import length_columns
from softcr_papers.constant_curvature.kinematics import ConstantCurvatureChain


def regressor(
    chain: ConstantCurvatureChain, q: np.ndarray, rate: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Y (..., 3, n) [1/s] and Phi (..., 3) [m/s] of (10), in the axes the chain's poses have.

    Args:
        chain: the sections.
        q, rate: (..., 3 n) coordinates [m] and their rates [m/s].
    """
    elongations, elongation_rates = np.asarray(q)[..., 2::3], np.asarray(rate)[..., 2::3]
    columns, columns_rate = length_columns(q, rate, chain.radius, chain.base)
    known = columns_rate @ elongations[..., None] + columns @ elongation_rates[..., None]
    return columns_rate, known[..., 0]
