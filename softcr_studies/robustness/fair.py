"""The paper's form, our controller on the paper's filter, and ours whole: on the same plants.

A controller that is compared on a plant which is its own model gains from that most. So the plant
of the model's structure stands beside two that have errors without a name in the model.
"""

from dataclasses import replace

from softcr_control.reference.settings import ReferenceSettings
from softcr_models import load_robot
from softcr_simulation.errors.plant_errors import load_plant_errors
from softcr_studies.frame.study import Cell, Must, Result, Study
from softcr_studies.loops.compared_loops import (
    LOCK_IN_EXPLAINED,
    LOCK_IN_METRICS,
    LOOPS,
    NO_SILENT_LOCK_IN,
    ON_PRESETS,
    OURS,
    PLAIN,
    musts_of_both,
    run_whole,
)
from softcr_studies.loops.tracking_loop import FAST, Case, reference_of
from softcr_studies.loops.tracking_study import METRICS, SETTLED_TIP

DURATION = 6.0  # [s]
SAME = replace(FAST, name="same_structure", duration=DURATION)
AT_REST = replace(
    SAME, name="same_structure, at rest", reference=ReferenceSettings(kind="setpoint")
)
STRUCTURAL = tuple(
    replace(FAST, name=name, duration=DURATION, errors=load_plant_errors(name))
    for name in ("typical", "hard")
)
COMPLIANCE = "compliance error, at the end"


def run(cell: Cell) -> Result:
    """One run of a loop."""
    source = reference_of(load_robot(PLAIN), cell.case)
    return run_whole(cell, cell.case, source, LOOPS[cell.method])


def methods(case: Case) -> tuple[str, ...]:
    """All loops; at rest, where it is the estimate that counts, ours alone."""
    return (OURS,) if case.name == AT_REST.name else tuple(LOOPS)


STUDY = Study(
    name="robustness/fair",
    source="",
    summary="the paper's form, our controller on its filter, and ours whole, on three plants",
    run=run,
    cases=(SAME, AT_REST, *STRUCTURAL),
    methods=methods,
    metrics=(*METRICS, *LOCK_IN_METRICS),
    musts=(
        *musts_of_both(SETTLED_TIP, {SAME.name: (0.13, 0.11)} | ON_PRESETS),
        *NO_SILENT_LOCK_IN,
        Must(COMPLIANCE, 1.0, 0.5, case=AT_REST.name, method=OURS),
    ),
    exact="same_structure has the model's equations, integrator and material law on 20 intervals "
    "instead of 5, 5 % less bending compliance and 10 % more tip mass, both of which our filter "
    "estimates; typical and hard are chains of beam elements with an integrator of their own, and "
    "have all that their files in config/plant_errors say. nempc_licher2025 has the costs of the "
    "paper and the numbers of its Table VII but for the weight on moments, 20 instead of 0.186. "
    "The paper's filter estimates state and bending compliance, with the noises and sigma points "
    "of its Table VI. Ours without a chain estimates tip mass, damping, and offsets and gains of "
    "the pressure sensors beside, and reopens; with the chain also hysteresis, hoses, angles, a "
    "stiffness that changes and the marker. All controllers estimate the lag of the pressures. "
    "The reference is a motion of the nominal rod to 1.5 Hz; at rest, the setpoint of Experiment "
    "4b. Errors count from 2 s on. " + LOCK_IN_EXPLAINED,
    about={"settled_from_s": 2.0, "duration_s": DURATION},
)
