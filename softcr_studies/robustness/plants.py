"""What each idealisation of the simulation is worth: the loop with and without a pressure chain, on
plants that are not the model.

Experiment 4a's reference on structural plants: named ones, and every field of `PlantErrors` at both
ends of its spread, one at a time. All have the usual plant's compliance and tip mass beside.
"""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import matplotlib.pyplot as plt
import numpy as np

from softcr_models import load_robot
from softcr_simulation.errors.plant_errors import PlantErrors, about_field, load_plant_errors
from softcr_studies.frame.study import Cell, Metric, Result, Results, Study, StudySettings
from softcr_studies.loops.closed_loop import mean_error_mm
from softcr_studies.loops.compared_loops import (
    LOCK_IN_EXPLAINED,
    LOCK_IN_METRICS,
    LOOPS,
    NO_SILENT_LOCK_IN,
    ON_PRESETS,
    OURS,
    PLAIN,
    WHOLE,
    WITHOUT,
    musts_of_both,
    run_whole,
)
from softcr_studies.loops.tracking_loop import FAST, SETTLED, Case, reference_of
from softcr_studies.loops.tracking_study import METRICS, SETTLED_TIP

DURATION = 6.0  # [s]
OF_EVENT = 8.0  # where something happens [s]
PICKED_UP = 3.0  # a payload [s]
CARRIED, DROPPED = 0.5, 3.0  # from when, and until when [s]
_USUAL: dict[str, Any] = {"bending_factor": 0.95, "tip_mass_factor": 1.1, "tip_noise": 2e-4}
_DEGREE = np.pi / 180.0

_NAMED: Mapping[str, Mapping[str, Any]] = {
    "same structure": {},
    "mass at the tip (fraction 0.05)": {"tip_mass_fraction": 0.05},
    "base tilted 2 deg": {"base_tilt": (2.0 * _DEGREE, 0.0)},
    "dilatation compliance +10 %": {"dilatation_factor": 1.1},
    "compliance -10 % at 15/m": {"stiffness_curvature": -0.1},
    "compliance -20 % at 15/m": {"stiffness_curvature": -0.2},
    "length +1 %": {"length_factor": 1.01},
    "length +2 %": {"length_factor": 1.02},
    "length -2 %": {"length_factor": 0.98},
    "chamber 2 angle +1 deg": {"chamber_angle_error": (0.0, _DEGREE, 0.0)},
    "chamber 2 angle +3 deg": {"chamber_angle_error": (0.0, 3.0 * _DEGREE, 0.0)},
    "play +-0.3 kPa": {"play_half_width": 300.0},
    "play +-1 kPa": {"play_half_width": 1000.0},
    "play +-0.4, 1.0, 1.6 kPa": {"play_half_width": (400.0, 1000.0, 1600.0)},
    "smooth loop 12 % to 6 kPa, creep 8 %": {
        "hysteresis_share": 0.12, "hysteresis_radius_min": 500.0,
        "hysteresis_radius_max": 6000.0, "creep_share": 0.08, "creep_time": 1.5,
    },
    "pressure noise 0.2 kPa": {"pressure_noise": 200.0},
    "tip noise 1 mm": {"tip_noise": 1e-3},
    "valve dead band 0.5 kPa": {"valve_dead_band": 500.0},
    "hose, pole 60 1/s": {"hose_pole": 60.0},
    "hose, pole 30 1/s": {"hose_pole": 30.0},
    "+20 g picked up at 3 s": {"payload_mass": 0.02, "payload_picked_up": PICKED_UP},
    "-20 g at 3 s": {"payload_mass": -0.02, "payload_picked_up": PICKED_UP},
    "+50 g picked up at 3 s": {"payload_mass": 0.05, "payload_picked_up": PICKED_UP},
    "20 g dropped at 3 s": {
        "payload_mass": 0.02, "payload_picked_up": CARRIED, "payload_dropped": DROPPED,
    },
    "50 g dropped at 3 s": {
        "payload_mass": 0.05, "payload_picked_up": CARRIED, "payload_dropped": DROPPED,
    },
    "tip force 0.05 N": {"tip_force": (0.05, 0.0, 0.0)},
}  # fmt: skip

NAMED = {name: PlantErrors(**{**_USUAL, **errors}) for name, errors in _NAMED.items()}
"""Name -> plant."""

PRESETS = ("typical", "hard")


def _ends() -> Iterator[tuple[str, PlantErrors]]:
    """Of every field the ends of its spread that are errors: what it is, and the plant with it.

    A field that is given for each chamber is one of the first chamber.
    """
    for name, declared in PlantErrors.model_fields.items():
        about = about_field(name)
        usual = declared.default
        if about.spread is None or name in _NEEDS:
            continue
        for end in about.spread:
            if end == (usual[0] if isinstance(usual, tuple) and usual else usual):
                continue
            value: Any = end
            if about.each == "input":
                value = (end, *usual, *usual)
            elif isinstance(usual, tuple):
                value = (end,) * max(1, len(usual))
            told = f"{name} = {end:g}{'' if about.unit == '-' else f' {about.unit}'}"
            yield told, PlantErrors(**{**_USUAL, **_BESIDE.get(name, {}), name: value})


_NEEDS = ("creep_time", "payload_picked_up", "tip_force_from")
"""Fields that say nothing alone, and are varied with no others."""

_BESIDE: dict[str, dict[str, Any]] = {
    "creep_share": {"creep_time": 2.0},
    "hysteresis_radius_min": {"hysteresis_share": 0.08},
    "hysteresis_radius_max": {"hysteresis_share": 0.08},
    "outlier_size": {"outlier_share": 0.001},
    "payload_mass": {"payload_picked_up": PICKED_UP},
}
"""What stands beside a field that says nothing without it."""


def _case(name: str, errors: PlantErrors) -> Case:
    duration = OF_EVENT if errors.payload_mass else DURATION
    return replace(FAST, name=name, duration=duration, errors=errors, beam=True)


def cases(settings: StudySettings | None = None) -> list[Case]:
    """Named plants, presets, and every field at both ends of its spread."""
    named = [_case(name, errors) for name, errors in NAMED.items()]
    presets = [_case(name, load_plant_errors(name)) for name in PRESETS]
    return named + presets + [_case(name, errors) for name, errors in _ends()]


def methods(case: Case) -> tuple[str, ...]:
    """Both controllers on named plants and presets; on a single field, `rod_mpc` alone."""
    both = case.name in NAMED or case.name in PRESETS
    return (WITHOUT, *WHOLE) if both else (WITHOUT, OURS)


def run(cell: Cell) -> Result:
    """One run of the loop, see `run_loop`; `event` is when a payload is dropped, or picked up if it
    is kept [s]."""
    source = reference_of(load_robot(PLAIN), cell.case)
    result = dict(run_whole(cell, cell.case, source, LOOPS[cell.method]))
    errors = cell.case.errors
    if errors.payload_mass:
        result["event"] = errors.payload_dropped or errors.payload_picked_up
    return result


def _after(result: Result, seconds: float) -> np.ndarray | None:
    """Errors later than so long after the event [mm]."""
    if "event" not in result:
        return None
    later: np.ndarray = 1e3 * result["error"][result["times"] >= result["event"] + seconds]
    return later


def _peak(result: Result) -> float | None:
    after = _after(result, 0.0)
    return None if after is None else float(after.max())


def _later(result: Result) -> float | None:
    after = _after(result, 1.5)
    return None if after is None else float(after.mean())


def _recovered(result: Result) -> float | None:
    """From the event on until the mean over 0.2 s stays below 0.5 mm; to the end if it does not."""
    after = _after(result, 0.0)
    if after is None:
        return None
    period = float(result["times"][1] - result["times"][0])
    window = round(0.2 / period)
    above = np.flatnonzero(np.convolve(after, np.full(window, 1.0 / window), "valid") >= 0.5)
    return 0.0 if not len(above) else float((above[-1] + 1) * period)


def draw(results: Results, directory: Path) -> None:
    """A bar for every plant: its settled error, on a logarithmic axis."""
    errors = {
        case: float(np.mean([mean_error_mm(each, SETTLED) for each in found]))
        for (case, method), found in results.by_method().items()
        if method == OURS
    }
    names = sorted(errors, key=lambda name: errors[name])
    figure, plot = plt.subplots(figsize=(8.0, 0.2 * len(names) + 1.0), layout="constrained")
    colours = ["C3" if name in PRESETS else "C0" if name in NAMED else "C7" for name in names]
    plot.barh(names, [errors[name] for name in names], color=colours)
    plot.set_xscale("log")
    plot.set_xlabel(f"{OURS}: settled tip error [mm]")
    plot.axvline(errors.get("same structure", np.nan), color="black", linewidth=0.8)
    plot.margins(y=0.005)
    plot.tick_params(axis="y", labelsize=7)
    figure.savefig(directory / "plants.png", dpi=80)
    plt.close(figure)


RECOVERED = "time to 0.5 mm after the event, at most to the end"
_KEPT = (SETTLED_TIP, "filter's tip error", "compliance error, at the end")


_ASKED = {
    "same structure": (0.13, 0.11),
    "length +2 %": (0.4, 0.2),
    "length -2 %": (0.4, 0.2),
    "base tilted 2 deg": (0.4, 0.2),
    "chamber 2 angle +3 deg": (0.4, 0.2),
    "mass at the tip (fraction 0.05)": (0.4, 0.2),
    "dilatation compliance +10 %": (0.4, 0.2),
    "compliance -20 % at 15/m": (0.4, 0.2),
    "play +-1 kPa": (0.5, 0.25),
    "play +-0.4, 1.0, 1.6 kPa": (0.5, 0.25),
    "smooth loop 12 % to 6 kPa, creep 8 %": (0.5, 0.25),
    "hose, pole 30 1/s": (0.7, 0.25),
    **ON_PRESETS,
}  # [mm], and what is hoped for
_ASKED_TIMES = {"+20 g picked up at 3 s": (0.6, 0.4), "+50 g picked up at 3 s": (1.0, 0.6)}  # [s]


STUDY = Study(
    name="robustness/plants",
    source="",
    summary="controllers on plants that are not the model: what each idealisation is worth",
    run=run,
    cases=cases,
    methods=methods,
    metrics=(
        *(metric for metric in METRICS if metric.quantity in _KEPT),
        *LOCK_IN_METRICS,
        Metric("peak after the event", "mm", _peak),
        Metric(RECOVERED, "s", _recovered),
        Metric("mean from 1.5 s after the event on", "mm", _later),
    ),
    musts=(
        *musts_of_both(SETTLED_TIP, _ASKED),
        *musts_of_both(RECOVERED, _ASKED_TIMES),
        *NO_SILENT_LOCK_IN,
    ),
    exact="The plant is a chain of 20 beam elements with an integrator of its own, the model a rod "
    "of 5 intervals; both are the same continuum, a Cosserat rod of a linear viscoelastic material "
    "with the file's geometry, chambers and lag, as far as a row does not say otherwise. Beside "
    "what a row says, bending compliance is 5 % lower and tip mass 10 % higher (typical and hard: "
    "all that their files say), the tip is measured with 0.2 mm of noise in each coordinate and "
    "pressures with none. In the later rows a field of a plant's errors stands at one end of its "
    "spread, one that is given for each chamber in the first chamber alone. A payload sits on the "
    "outer face of the tip's cap, and the model's tip mass along the last fifth of the rod, where "
    "no mass has both its weight and its inertia. The reference is a motion of the nominal rod. "
    "Errors count from 2 s on. Filters have the pressure chain where the method says so. "
    + LOCK_IN_EXPLAINED,
    about={"settled_from_s": SETTLED, "duration_s": DURATION},
    draw=draw,
)
