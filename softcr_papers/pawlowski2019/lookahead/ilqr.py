"""iLQR: linear-quadratic problems along the motion that the last one led to, Pawlowski (2019),
Sec. 4.2.3 and Algorithm 4.

As printed, Algorithm 4 leads states to zero, though the task is a tip, and leaves out what the
linearised motion has beside A and B; see `printed`. Here every pass linearises the model along all
of the motion; see `riccati`.
"""

from typing import ClassVar

import numpy as np
from pydantic import Field

from softcr_control.predictive.horizon import Problem
from softcr_papers.pawlowski2019.lookahead.plan import Plan
from softcr_papers.pawlowski2019.lookahead.riccati import RiccatiMpc
from softcr_papers.pawlowski2019.lookahead.settings import LookaheadSettings
from softcr_runtime.blocks.budget import Budget


class IlqrSettings(LookaheadSettings):
    """Numbers of the algorithm."""

    iterations: int = Field(
        default=1,
        ge=1,
        le=50,
        description="largest number of iterations in a step; each step continues from the last one",
    )
    tolerance: float = Field(
        default=1e-3,
        ge=0.0,
        lt=1.0,
        description="relative decrease of the cost below which an iteration is the last [-]",
    )


class Ilqr(RiccatiMpc):
    """See the module; a `Controller`."""

    Settings: ClassVar[type[LookaheadSettings]] = IlqrSettings
    settings: IlqrSettings

    def _solved(self, plan: np.ndarray, problem: Problem, budget: Budget) -> Plan | None:
        settings = self.settings
        return self._improved(plan, problem, settings.iterations, settings.tolerance, budget)
