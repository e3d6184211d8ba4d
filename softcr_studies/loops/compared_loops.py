"""Controller, filter and model as one loop: what is compared on plants that are not the model.

The chain's loop is the headline of `make sim`: robot `licher2025_chain`, whose filter finds what
lies between a pressure's reading and the rod. The paper's filter estimates the state and the
bending compliance alone, with the noises and sigma points printed in Table VI: they serve it better
than those of the shipped filter, which are tuned to estimate more.

A filter may be sure of something that is not so, and say nothing: silent lock-in. An estimate
counts from LOCKED_IN_FROM after the beginning of a run, or an event, on. It is locked in silently
where the truth lies outside the ellipsoid that holds it with the probability of three standard
deviations, and the filter tells no warning at that moment.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
from scipy.stats import chi2, norm

from softcr_control.reference.references import SampledReference
from softcr_estimation import ModelEstimatorSettings
from softcr_models import load_robot
from softcr_runtime.blocks.system import Parameters
from softcr_runtime.settings.registry import GRADIENT_MPC, NEMPC
from softcr_studies.frame.study import Cell, Metric, Must, Result
from softcr_studies.loops.tracking_loop import Case, run_loop
from softcr_studies.tuning.parameters import FILTER, filter_settings, published_values

LOCKED_IN_FROM = 3.0
"""After so long a filter should have found the truth, or warn [s]."""

_SIGMAS = 3.0
_TIP = float(np.sqrt(chi2.ppf(1.0 - 2.0 * norm.sf(_SIGMAS), 3)))
"""Of three dimensions, with the probability of 3 standard deviations of one [-]."""

_BOUNDS = {"tip_sigmas": _TIP, "compliance_sigmas": _SIGMAS}

SILENT_TIP = "tip outside 3 sigma, no warning"
SILENT_COMPLIANCE = "compliance outside 3 sigma, no warning"
WARNED = "warned"


def _after(result: Result, name: str) -> np.ndarray:
    late: np.ndarray = result["times"] >= result.get("event", 0.0) + LOCKED_IN_FROM
    rows: np.ndarray = result[name][late]
    return rows


def silent_percent(result: Result, name: str) -> float:
    """Share of the estimates that are locked in silently [%]; `name` as in `run_loop`."""
    outside = _after(result, name) > _BOUNDS[name]
    return float(100.0 * np.mean(outside & ~_after(result, "warned")))


LOCK_IN_METRICS = (
    Metric(SILENT_TIP, "%", lambda result: silent_percent(result, "tip_sigmas")),
    Metric(SILENT_COMPLIANCE, "%", lambda result: silent_percent(result, "compliance_sigmas")),
    Metric(WARNED, "%", lambda result: float(100.0 * np.mean(_after(result, "warned")))),
)
"""Of results of `run_loop`; `event` [s] in them says when the robot changed."""

LOCK_IN_EXPLAINED = (
    f"Silent lock-in counts estimates from {LOCKED_IN_FROM:g} s after the beginning, or the event, "
    "on: the share of them whose truth lies outside what the filter believes with the probability "
    "of three standard deviations (0.27 % of a sound filter's estimates do) while it tells no "
    "warning. A plant of other structure has no true bending compliance in the model's sense: what "
    "its file says is compared. "
)

PLAIN, CHAINED = "licher2025", "licher2025_chain"
"""The robot without and with the chain; plants and references are the same."""

EVERYTHING = ModelEstimatorSettings()
"""The shipped filter, which estimates all that its model has."""

OF_PAPER = filter_settings(
    {"parameters": ("bending_compliance",), "reopening": False, **published_values(FILTER)}
)
"""State and bending compliance alone, as in Licher et al. 2025, Sec. V-A and Table VI."""


@dataclass(frozen=True)
class Loop:
    """Who controls, and what finds the state.

    Attributes:
        controller: name of the registry.
        parameters: of its block.
        robot: as filter and controller know it.
        filter: numbers of the filter.
    """

    controller: str
    robot: str = CHAINED
    filter: ModelEstimatorSettings = EVERYTHING
    parameters: Parameters = field(default_factory=dict)


_PRINTED: Parameters = {"controller_file": "nempc_licher2025"}

LOOPS: Mapping[str, Loop] = {
    "nempc_licher2025, paper's filter": Loop(NEMPC, PLAIN, OF_PAPER, _PRINTED),
    "rod_mpc, paper's filter": Loop(GRADIENT_MPC, PLAIN, OF_PAPER),
    "rod_mpc, chain": Loop(GRADIENT_MPC),
    "nempc, chain": Loop(NEMPC),
    "rod_mpc, no chain": Loop(GRADIENT_MPC, PLAIN),
}
"""The paper's form, our controller on the paper's filter, ours whole with either controller, and
ours without a chain."""

OURS, EVOLUTIONARY, WITHOUT = "rod_mpc, chain", "nempc, chain", "rod_mpc, no chain"
WHOLE = (OURS, EVOLUTIONARY)
"""Ours with the chain: of these much is asked, others stand beside them."""

ON_PRESETS = {"typical": (0.4, 0.25), "hard": (0.9, 0.5)}
"""Bound and goal of the settled tip error [mm]."""


def musts_of_both(quantity: str, asked: Mapping[str, tuple[float, float]]) -> list[Must]:
    """Bound and goal by case, for either controller with the chain."""
    return [
        Must(quantity, *bounds, case=case, method=method)
        for method in WHOLE
        for case, bounds in asked.items()
    ]


NO_SILENT_LOCK_IN = [Must(SILENT_TIP, 1.0, 0.3, method=method) for method in WHOLE]


def run_whole(cell: Cell, case: Case, source: SampledReference, loop: Loop) -> Result:
    """One run of `run_loop`, with the cell's random numbers."""
    return run_loop(
        load_robot(loop.robot), case, source, loop.controller,
        (cell.stream("plant"), cell.stream("controller")),
        parameters=loop.parameters, filter_settings=loop.filter, bag=cell.bag,
    )  # fmt: skip
