"""Controller, filter and model as one loop: what is compared on plants that are not the model.

The chain's loop is the headline of `make sim`: robot `licher2025_chain`, whose filter finds what
lies between a pressure's reading and the rod. The paper's filter estimates the state and the
bending compliance alone, with the noises and sigma points printed in Table VI: they serve it better
than those of the shipped filter, which are tuned to estimate more.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

from softcr_control.reference.references import SampledReference
from softcr_estimation import ModelEstimatorSettings
from softcr_models import load_robot
from softcr_runtime.blocks.system import Parameters
from softcr_runtime.settings.registry import GRADIENT_MPC, NEMPC
from softcr_studies.frame.cell import Cell, Result
from softcr_studies.frame.study import Must
from softcr_studies.loops import lock_in
from softcr_studies.loops.tracking_loop import Case, run_loop
from softcr_studies.tuning.parameters import FILTER, filter_settings, published_values

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


NO_SILENT_LOCK_IN = [Must(lock_in.SILENT_TIP, 1.0, 0.3, method=method) for method in WHOLE]


def run_whole(cell: Cell, case: Case, source: SampledReference, loop: Loop) -> Result:
    """One run of `run_loop`, with the cell's random numbers."""
    return run_loop(
        load_robot(loop.robot), case, source, loop.controller,
        (cell.stream("plant"), cell.stream("controller")),
        parameters=loop.parameters, filter_settings=loop.filter, bag=cell.bag,
    )  # fmt: skip
