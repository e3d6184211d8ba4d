"""What is tuned, in which ranges, and what Licher et al. 2025 printed for it."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from softcr_estimation.estimator_settings import (
    ALL_GAINS,
    ALL_OFFSETS,
    ModelEstimatorSettings,
)
from softcr_runtime.settings.node_settings import build_settings
from softcr_runtime.settings.registry import GRADIENT_MPC
from softcr_studies.frame.search import Range
from softcr_studies.loops.tracking_loop import PERIOD

Values = Mapping[str, Any]
"""Name of a parameter -> its value."""


@dataclass(frozen=True)
class Parameter:
    """One number that is tuned."""

    name: str  # of the setting: "section.setting"
    range: Range
    symbol: str = ""  # its name in Table VI or VII, if it stands there
    published: tuple[Any, ...] = ()  # what stands there, for each of KINDS
    seconds: float = 0.0  # of a noise that stands there as noise^2 seconds

    @property
    def label(self) -> str:
        """As the paper's table says it, or the setting's name."""
        return self.symbol or self.name

    @property
    def told(self) -> str:
        """Its range in words, in the table's unit."""
        if self.range.choices:
            return ", ".join(map(str, self.range.choices))
        low, high = self.printed(self.range.low), self.printed(self.range.high)
        return f"{low:.3g} ... {high:.3g}" + ", log" * self.range.log

    def printed(self, value: Any) -> Any:
        """A setting in the table's unit: R, or a random walk's gain in a tick, is a variance."""
        return value**2 * self.seconds if self.seconds else value

    def setting(self, printed: Any) -> Any:
        """The way back."""
        return math.sqrt(printed / self.seconds) if self.seconds else printed


def published_values(space: Sequence[Parameter]) -> dict[str, Any]:
    """What the paper printed for simulation, as settings: q and R as noises."""
    return {each.name: each.setting(each.published[0]) for each in space if each.published}


def _log(low: float, high: float) -> Range:
    return Range(low, high, log=True)


def filter_settings(values: Values) -> ModelEstimatorSettings:
    """The filter's settings from values by dotted name; raises UserError where one is wrong."""
    return build_settings(ModelEstimatorSettings, values, "setting")


# Table VI. q are variances per tick of normalised states; the paper's normalisation is not printed,
# ours is `prediction.state_scale`. R is a variance [m^2]. What has no symbol is ours.
FILTER = (
    Parameter("state_noises.velocity", _log(1e-4, 0.1), "q_velo", (8.92e-6,), PERIOD),
    Parameter("state_noises.angular_velocity", _log(1e-4, 0.1), "q_angvel", (2.76e-5,), PERIOD),
    Parameter("state_noises.force", _log(1e-4, 0.1), "q_force", (1.26e-5,), PERIOD),
    Parameter("state_noises.force_z", _log(1e-4, 0.1), "q_forceZ", (0.0436,), PERIOD),
    Parameter("state_noises.torque", _log(1e-4, 0.1), "q_torque", (1.49e-7,), PERIOD),
    Parameter("noises.bending_compliance", _log(1e-5, 1e-2), "q_cbend", (1.11e-5,), PERIOD),
    Parameter("position_noise", _log(5e-5, 1e-3), "R", (2.59e-8,), 1.0),
    Parameter("alpha", _log(0.1, 2.0), "alpha", (0.1,)),
    Parameter("beta", Range(0.0, 2.0), "beta", (1.097,)),
    Parameter("kappa", Range(0.0, 20.0), "kappa", (10.13,)),
    Parameter("noises.tip_mass", _log(1e-5, 1e-2)),
    Parameter("noises.damping_factor", _log(1e-5, 1e-2)),
    Parameter(f"noises.{ALL_OFFSETS}", _log(0.02, 50.0)),
    Parameter(f"noises.{ALL_GAINS}", _log(1e-6, 1e-2)),
)

# Table VII, which prints other numbers for the bench
NEMPC = (
    Parameter("nempc.parents", Range(0.02, 0.6), "parent quota", (0.3897, 0.3)),
    Parameter("nempc.strangers", Range(0.0, 0.4), "stranger quota", (0.101, 0.3)),
    Parameter("nempc.mutation_probability", Range(0.05, 1.0), "mutation prob", (0.145, 0.4)),
    Parameter("nempc.segments", Range(1, 3, whole=True), "N_segments", (1, 1)),
    Parameter("nempc.mutation_noise", _log(1e-3, 0.2), "mutation noise factor", (0.0366, 0.003)),
    Parameter("costs.input_rate", _log(1e-3, 50.0), "R factor", (2.39, 40)),
    Parameter("nempc.first_knot_fixed", Range(choices=(False, True)), "fixed knot", (False,)),
)
WEIGHTS = (
    Parameter("costs.velocity", _log(1e-3, 100.0), "q_velo", (0.192,)),
    Parameter("costs.angular_velocity", _log(1e-3, 100.0), "q_angvel", (0.0504,)),
    Parameter("costs.force", _log(1e-3, 100.0), "q_force", (0.746,)),
    Parameter("costs.force_z", _log(1e-3, 100.0), "q_forceZ", (14.6,)),
    Parameter("costs.torque", _log(1e-3, 100.0), "q_torque", (0.186,)),
)

# Ours; knots as text, because a study keeps no lists
ROD_MPC = (
    Parameter(
        f"{GRADIENT_MPC}.knots", Range(choices=("1 7", "2 7", "3 7", "2 4 7", "1 3 7", "2 5 7"))
    ),
    Parameter("costs.input_rate", _log(1e-3, 5.0)),
    Parameter(f"{GRADIENT_MPC}.damping", _log(1e-9, 1e-2)),
)
