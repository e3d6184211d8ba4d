"""Silent lock-in: a filter that is sure of something that is not so, and says nothing.

An estimate counts from LATEST after the beginning of a run, or an event, on. It is locked in
silently where the truth lies outside the ellipsoid that holds it with the probability of three
standard deviations, and the filter tells no warning at that moment.
"""

import numpy as np
from scipy.stats import chi2, norm

from softcr_studies.frame.study import Metric, Result

LATEST = 3.0
"""After so long a filter should have found the truth, or warn [s]."""

_SIGMAS = 3.0
_TIP = float(np.sqrt(chi2.ppf(1.0 - 2.0 * norm.sf(_SIGMAS), 3)))
"""Of three dimensions, with the probability of 3 standard deviations of one [-]."""

_BOUNDS = {"tip_sigmas": _TIP, "compliance_sigmas": _SIGMAS}

SILENT_TIP = "tip outside 3 sigma, no warning"
SILENT_COMPLIANCE = "compliance outside 3 sigma, no warning"
WARNED = "warned"


def _after(result: Result, name: str) -> np.ndarray:
    late: np.ndarray = result["times"] >= result.get("event", 0.0) + LATEST
    rows: np.ndarray = result[name][late]
    return rows


def silent_percent(result: Result, name: str) -> float:
    """Share of the estimates that are locked in silently [%]; `name` as in `run_loop`."""
    outside = _after(result, name) > _BOUNDS[name]
    return float(100.0 * np.mean(outside & ~_after(result, "warned")))


METRICS = (
    Metric(SILENT_TIP, "%", lambda result: silent_percent(result, "tip_sigmas")),
    Metric(SILENT_COMPLIANCE, "%", lambda result: silent_percent(result, "compliance_sigmas")),
    Metric(WARNED, "%", lambda result: float(100.0 * np.mean(_after(result, "warned")))),
)
"""Of results of `run_loop`; `event` [s] in them says when the robot changed."""

EXPLAINED = (
    f"Silent lock-in counts estimates from {LATEST:g} s after the beginning, or the event, on: the "
    "share of them whose truth lies outside what the filter believes with the probability of three "
    "standard deviations (0.27 % of a sound filter's estimates do) while it tells no warning. A "
    "plant of other structure has no true bending compliance in the model's sense: what its file "
    "says is compared. "
)
