"""What is tuned, in which ranges, and what Licher et al. 2025 printed for it."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
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
    """One number that is tuned.

    Attributes:
        name: of the setting; for controllers "section.setting" of their file.
        range: of the search.
        symbol: its name in Table VI or VII; empty: not there.
        published: what stands there, by kind; empty: nothing.
        printed, setting: from ours to the table's unit, and back.
    """

    name: str
    range: Range
    symbol: str = ""
    published: Mapping[Kind, Any] = field(default_factory=dict)
    printed: Callable[[Any], Any] = lambda value: value
    setting: Callable[[Any], Any] = lambda value: value

    @property
    def told(self) -> str:
        """Its range in words, in the table's unit."""
        if self.range.choices:
            return ", ".join(map(str, self.range.choices))
        low, high = self.printed(self.range.low), self.printed(self.range.high)
        return f"{low:.3g} ... {high:.3g}" + ", log" * self.range.log


def published_values(space: Sequence[Parameter]) -> dict[str, Any]:
    """What the paper printed for simulation, as settings: q and R as noises."""
    return {
        parameter.name: parameter.setting(parameter.published["simulation"])
        for parameter in space
        if parameter.published
    }


def positions_of(space: Sequence[Parameter], values: Values) -> np.ndarray:
    """(P,) where values stand in their ranges, 0 to 1; what lies outside stands on the edge."""
    shares = []
    for parameter in space:
        low, high, to_axis, _ = _axis(parameter.range)
        value = min(max(values[parameter.name], low), high)
        shares.append((to_axis(value) - to_axis(low)) / (to_axis(high) - to_axis(low)))
    return np.array(shares)


def values_at(space: Sequence[Parameter], position: np.ndarray) -> dict[str, float]:
    """The values (name -> number) that stand at a position (P,) of 0 to 1."""
    values = {}
    for parameter, share in zip(space, position.tolist(), strict=True):
        low, high, to_axis, from_axis = _axis(parameter.range)
        value = from_axis(to_axis(low) + share * (to_axis(high) - to_axis(low)))
        values[parameter.name] = min(max(value, low), high)
    return values


def _axis(
    ends: Range,
) -> tuple[float, float, Callable[[float], float], Callable[[float], float]]:
    """Ends of the range, and the way to the axis that is even in it and back."""
    ways = (math.log, math.exp) if ends.log else (float, float)
    return ends.low, ends.high, *ways


def _variance(name: str, symbol: str, published: float, seconds: float, *ends: float) -> Parameter:
    """A noise that stands in the table as noise^2 seconds: R, or a random walk's gain in a tick."""
    return Parameter(
        name,
        _log(*ends),
        symbol,
        {"simulation": published},
        printed=lambda noise: noise**2 * seconds,
        setting=lambda variance: math.sqrt(variance / seconds),
    )


def _log(low: float, high: float) -> Range:
    return Range(low, high, log=True)


def _both(simulation: Any, bench: Any) -> dict[Kind, Any]:
    return {"simulation": simulation, "bench": bench}


# Table VI. q are variances per tick of normalised states; the paper's normalisation is not printed,
# ours is `prediction.state_scale`. R is a variance [m^2]. What has no symbol is ours.
FILTER = (
    _variance("velocity_noise", "q_velo", 8.92e-6, PERIOD, 1e-4, 0.1),
    _variance("angular_velocity_noise", "q_angvel", 2.76e-5, PERIOD, 1e-4, 0.1),
    _variance("force_noise", "q_force", 1.26e-5, PERIOD, 1e-4, 0.1),
    _variance("force_z_noise", "q_forceZ", 0.0436, PERIOD, 1e-4, 0.1),
    _variance("torque_noise", "q_torque", 1.49e-7, PERIOD, 1e-4, 0.1),
    _variance("bending_compliance_noise", "q_cbend", 1.11e-5, PERIOD, 1e-5, 1e-2),
    _variance("tip_position_noise", "R", 2.59e-8, 1.0, 5e-5, 1e-3),
    Parameter("alpha", _log(0.1, 2.0), "alpha", {"simulation": 0.1}),
    Parameter("beta", Range(0.0, 2.0), "beta", {"simulation": 1.097}),
    Parameter("kappa", Range(0.0, 20.0), "kappa", {"simulation": 10.13}),
    Parameter("tip_mass_noise", _log(1e-5, 1e-2)),
    Parameter("damping_factor_noise", _log(1e-5, 1e-2)),
    Parameter("pressure_offset_noise", _log(0.02, 50.0)),
    Parameter("pressure_gain_noise", _log(1e-6, 1e-2)),
)

# Table VII, which prints other numbers for the bench
NEMPC = (
    Parameter("nempc.parents", Range(0.02, 0.6), "parent quota", _both(0.3897, 0.3)),
    Parameter("nempc.strangers", Range(0.0, 0.4), "stranger quota", _both(0.101, 0.3)),
    Parameter("nempc.mutation_probability", Range(0.05, 1.0), "mutation prob", _both(0.145, 0.4)),
    Parameter("nempc.segments", Range(1, 3, whole=True), "N_segments", _both(1, 1)),
    Parameter("nempc.mutation_noise", _log(1e-3, 0.2), "mutation noise factor",
              _both(0.0366, 0.003)),
    Parameter("costs.input_rate", _log(1e-3, 50.0), "R factor", _both(2.39, 40)),
    Parameter("nempc.first_knot_fixed", Range(choices=(False, True)), "fixed knot",
              {"simulation": False}),
)  # fmt: skip
WEIGHTS = (
    Parameter("costs.velocity", _log(1e-3, 100.0), "q_velo", {"simulation": 0.192}),
    Parameter("costs.angular_velocity", _log(1e-3, 100.0), "q_angvel", {"simulation": 0.0504}),
    Parameter("costs.force", _log(1e-3, 100.0), "q_force", {"simulation": 0.746}),
    Parameter("costs.force_z", _log(1e-3, 100.0), "q_forceZ", {"simulation": 14.6}),
    Parameter("costs.torque", _log(1e-3, 100.0), "q_torque", {"simulation": 0.186}),
)

# Ours; knots as text, because a study keeps no lists
ROD_MPC = (
    Parameter(
        f"{GRADIENT_MPC}.knots", Range(choices=("1 8", "2 8", "3 8", "2 4 8", "1 3 8", "2 5 8"))
    ),
    Parameter("costs.input_rate", _log(1e-3, 5.0)),
    Parameter(f"{GRADIENT_MPC}.damping", _log(1e-9, 1e-2)),
)
