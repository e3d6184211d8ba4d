"""What is tuned, in which ranges, and what Licher et al. 2025 printed for it."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from softcr_runtime.registry import GRADIENT_MPC
from softcr_studies.search import Range
from softcr_studies.table import Kind
from softcr_studies.tracking_loop import PERIOD

Values = Mapping[str, Any]
"""Name of a parameter -> its value."""


@dataclass(frozen=True)
class Parameter:
    """One number that is tuned."""

    name: str  # of the setting; for controllers "section.setting" of their file
    range: Range
    symbol: str = ""  # its name in Table VI or VII, if it stands there
    published: Mapping[Kind, Any] = field(default_factory=dict)  # what stands there
    printed: Callable[[Any], Any] = lambda value: value  # from ours to the table's unit
    setting: Callable[[Any], Any] = lambda value: value  # and back

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


def published_values(space: Sequence[Parameter]) -> dict[str, Any]:
    """What the paper printed for simulation, as settings: q and R as noises."""
    printed = [each for each in space if each.published]
    return {each.name: each.setting(each.published["simulation"]) for each in printed}


def positions_of(space: Sequence[Parameter], values: Values) -> np.ndarray:
    """(P,) where values stand in their ranges, 0 to 1; what lies outside stands on the edge."""
    return np.array([each.range.share_of(values[each.name]) for each in space])


def values_at(space: Sequence[Parameter], position: np.ndarray) -> dict[str, float]:
    """The values (name -> number) that stand at a position (P,) of 0 to 1."""
    pairs = zip(space, position.tolist(), strict=True)
    return {each.name: each.range.value_at(share) for each, share in pairs}


def _log(low: float, high: float) -> Range:
    return Range(low, high, log=True)


def _simulated(name: str, symbol: str, printed: Any, range_: Range) -> Parameter:
    """Of which the paper prints the value for simulation alone, as ours is."""
    return Parameter(name, range_, symbol, {"simulation": printed})


def _both(name: str, symbol: str, simulation: Any, bench: Any, range_: Range) -> Parameter:
    return Parameter(name, range_, symbol, {"simulation": simulation, "bench": bench})


def _variance(
    name: str, symbol: str, published: float, low: float, high: float, seconds: float = PERIOD
) -> Parameter:
    """A noise that stands in the table as noise^2 seconds: R, or a random walk's gain in a tick."""
    return replace(
        _simulated(name, symbol, published, _log(low, high)),
        printed=lambda noise: noise**2 * seconds,
        setting=lambda variance: math.sqrt(variance / seconds),
    )


# Table VI. q are variances per tick of normalised states; the paper's normalisation is not printed,
# ours is `prediction.state_scale`. R is a variance [m^2]. What has no symbol is ours.
FILTER = (
    _variance("velocity_noise", "q_velo", 8.92e-6, 1e-4, 0.1),
    _variance("angular_velocity_noise", "q_angvel", 2.76e-5, 1e-4, 0.1),
    _variance("force_noise", "q_force", 1.26e-5, 1e-4, 0.1),
    _variance("force_z_noise", "q_forceZ", 0.0436, 1e-4, 0.1),
    _variance("torque_noise", "q_torque", 1.49e-7, 1e-4, 0.1),
    _variance("bending_compliance_noise", "q_cbend", 1.11e-5, 1e-5, 1e-2),
    _variance("tip_position_noise", "R", 2.59e-8, 5e-5, 1e-3, seconds=1.0),
    _simulated("alpha", "alpha", 0.1, _log(0.1, 2.0)),
    _simulated("beta", "beta", 1.097, Range(0.0, 2.0)),
    _simulated("kappa", "kappa", 10.13, Range(0.0, 20.0)),
    Parameter("tip_mass_noise", _log(1e-5, 1e-2)),
    Parameter("damping_factor_noise", _log(1e-5, 1e-2)),
    Parameter("pressure_offset_noise", _log(0.02, 50.0)),
    Parameter("pressure_gain_noise", _log(1e-6, 1e-2)),
)

# Table VII, which prints other numbers for the bench
NEMPC = (
    _both("nempc.parents", "parent quota", 0.3897, 0.3, Range(0.02, 0.6)),
    _both("nempc.strangers", "stranger quota", 0.101, 0.3, Range(0.0, 0.4)),
    _both("nempc.mutation_probability", "mutation prob", 0.145, 0.4, Range(0.05, 1.0)),
    _both("nempc.segments", "N_segments", 1, 1, Range(1, 3, whole=True)),
    _both("nempc.mutation_noise", "mutation noise factor", 0.0366, 0.003, _log(1e-3, 0.2)),
    _both("costs.input_rate", "R factor", 2.39, 40, _log(1e-3, 50.0)),
    _simulated("nempc.first_knot_fixed", "fixed knot", False, Range(choices=(False, True))),
)
WEIGHTS = (
    _simulated("costs.velocity", "q_velo", 0.192, _log(1e-3, 100.0)),
    _simulated("costs.angular_velocity", "q_angvel", 0.0504, _log(1e-3, 100.0)),
    _simulated("costs.force", "q_force", 0.746, _log(1e-3, 100.0)),
    _simulated("costs.force_z", "q_forceZ", 14.6, _log(1e-3, 100.0)),
    _simulated("costs.torque", "q_torque", 0.186, _log(1e-3, 100.0)),
)

# Ours; knots as text, because a study keeps no lists
ROD_MPC = (
    Parameter(
        f"{GRADIENT_MPC}.knots", Range(choices=("1 8", "2 8", "3 8", "2 4 8", "1 3 8", "2 5 8"))
    ),
    Parameter("costs.input_rate", _log(1e-3, 5.0)),
    Parameter(f"{GRADIENT_MPC}.damping", _log(1e-9, 1e-2)),
)
