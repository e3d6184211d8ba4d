"""`softcr experiment apcc-kinematic`: the readings of the thesis's kinematic simulation.

The law needs a configuration for its Jacobian, and the thesis does not say which
(docs/constant_curvature.md). All readings are run and shown, the ones that diverge among them.
What is required is asked of the first: commanded configuration, straight start. A length error is
that of the section whose length is farthest off.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from softcr_control.apcc import ApccSettings
from softcr_tools.experiments.apcc.kinematic_run import (
    GAINS,
    TRUE_LENGTHS,
    KinematicTrace,
    bent_start,
    law,
    simulate,
    straight_start,
)
from softcr_tools.experiments.results import Row

LAST = 5.0
"""The tip's error counts over so many seconds at the end [s]."""

COARSE = 0.01
_SLOW = tuple(0.02 * gain for gain in GAINS)


@dataclass(frozen=True)
class Reading:
    """One way to fill in what the thesis leaves open.

    Attributes:
        case, method: in the table.
        settings: of the controller.
        dt: time step [s]; None for the run's fine one.
        longer: this many times the usual length.
    """

    case: str
    method: str
    settings: ApccSettings
    dt: float | None = None
    longer: int = 1


_STRAIGHT, _BENT = "straight start", "bent starts, 10 ms"
_ROUGH, _LONG = "straight, 10 ms", "straight, 10 ms, 3 T"
REQUIRED, FIXED = 0, 1
READINGS = (
    Reading(_STRAIGHT, "commanded q", law()),
    Reading(_STRAIGHT, "fixed lengths", law().without_adaptation()),
    Reading(_STRAIGHT, "q known", law(state="true")),
    Reading(_ROUGH, "commanded q", law(), COARSE),
    Reading(_ROUGH, "... no objective", law(objective_gain=0.0), COARSE),
    Reading(_ROUGH, "inferred q", law(state="inferred"), COARSE),
    Reading(_LONG, "inferred q, Γ / 50", law(gains=_SLOW, state="inferred"), COARSE, longer=3),
)


def steps_of(dt: float, seconds: float, seeds: int) -> int:
    """How many ticks a run of the experiment has."""
    straight = sum(reading.longer * seconds / (reading.dt or dt) for reading in READINGS)
    return round(straight + 2 * seeds * seconds / COARSE)


def run_readings(dt: float, seconds: float, tick: Callable[[], None]) -> list[KinematicTrace]:
    """A trace for each of READINGS."""
    start = straight_start()
    return [
        simulate(reading.settings, start, reading.dt or dt, reading.longer * seconds, tick)
        for reading in READINGS
    ]


def run_bent(
    seeds: int, seconds: float, tick: Callable[[], None]
) -> tuple[list[KinematicTrace], list[KinematicTrace]]:
    """Adaptive and fixed traces from random starts."""
    adaptive, fixed = (
        [simulate(settings, bent_start(seed), COARSE, seconds, tick) for seed in range(seeds)]
        for settings in (law(), law().without_adaptation())
    )
    return adaptive, fixed


def rows_of_readings(traces: Sequence[KinematicTrace], seconds: float) -> list[Row]:
    """The table's rows; the first reading's carry what is required."""
    rival = tip_rms(traces[FIXED])
    rows = []
    for number, (reading, trace) in enumerate(zip(READINGS, traces, strict=True)):
        asked = number == REQUIRED

        def row(
            quantity: str,
            value: float,
            unit: str,
            limit: float | None = None,
            reading: Reading = reading,
            asked: bool = asked,
        ) -> Row:
            bound = limit if asked else None
            return Row(reading.case, reading.method, quantity, None, value, 0.0, unit, 1, bound)

        if trace.diverged:
            rows.append(row("diverges after", float(trace.times[-1]), "s"))
            continue
        rms = tip_rms(trace)
        rows.append(row("tip RMS, last 5 s", 1e3 * rms, "mm", 1.0))
        if number != FIXED:
            rows.append(row("... of the fixed one's", 100.0 * rms / rival, "%", 5.0))
            for end in range(1, reading.longer + 1):
                at = np.searchsorted(trace.times, end * seconds) - 1
                worst = np.abs(trace.lengths[at] - TRUE_LENGTHS).max()
                when = f", {end * seconds:g} s" if reading.longer > 1 else ""
                rows.append(row(f"length error{when}", 1e3 * worst, "mm", 3.0))
        rows += [
            row("E_shape at the end", 1e3 * float(trace.shapes[-1]), "mm"),
            row("sensors' distance, end", 1e3 * float(trace.linear[-1].max()), "mm"),
            row("sensors' angle, end", 1e3 * float(trace.angular[-1].max()), "mrad"),
        ]
    return rows


def rows_of_bent(adaptive: Sequence[KinematicTrace], fixed: Sequence[KinematicTrace]) -> list[Row]:
    """How much of the result hangs on the start; runs that diverged are counted, then left out."""
    seeds = len(adaptive)

    def row(method: str, quantity: str, values: list[float], unit: str) -> Row:
        mean, sd = (float(np.mean(values)), float(np.std(values))) if values else (np.nan, np.nan)
        return Row(_BENT, method, quantity, None, mean, sd, unit, seeds)

    rows = []
    for method, traces in (("commanded q", adaptive), ("fixed lengths", fixed)):
        kept = [trace for trace in traces if not trace.diverged]
        rows.append(row(method, "runs that diverge", [float(seeds - len(kept))], ""))
        rows.append(row(method, "tip RMS, last 5 s", [1e3 * tip_rms(t) for t in kept], "mm"))
        if traces is adaptive:
            worst = [1e3 * float(np.abs(t.lengths[-1] - TRUE_LENGTHS).max()) for t in kept]
            rows.append(row(method, "length error", worst, "mm"))
    return rows


def tip_rms(trace: KinematicTrace) -> float:
    """Root mean square of the tip's distance over the last seconds [m]."""
    counted = trace.times > trace.times[-1] - LAST
    return float(np.sqrt(np.mean(trace.errors[counted] ** 2)))
