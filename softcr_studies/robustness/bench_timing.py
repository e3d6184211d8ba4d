"""What the tip error owes to each figure of a bench: stamps, rates, delays, losses.

Tracking to 1.5 Hz in the simulation's loop, on the bench as it is shipped, and on benches that
differ from it in one figure, on the devices' drivers. Time is virtual: equal seeds give equal runs,
however slow the machine.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from pydantic import Field, model_validator

from softcr_hardware.plants import RodPlant
from softcr_models.errors import UserError
from softcr_runtime.registry import GRADIENT_MPC, NEMPC
from softcr_runtime.system import Parameters
from softcr_studies.cell import Seconds
from softcr_studies.closed_loop import closed_loop, mean_error_mm, tracked
from softcr_studies.robustness.virtual_bench import PERIOD, PLANT, POPULATION, Bench, run_bench
from softcr_studies.study import Cell, Metric, Result, Study, StudySettings

SETTLED = 2.0  # from here on the motion has faded in [s]


@dataclass(frozen=True)
class Simulation:
    """The loop of `make sim`: all sensors are read at the ticks, pressures follow the lag."""

    controller: str = GRADIENT_MPC
    delay: int = 1  # ticks from a sample to the pressures that answer it, 1 or 2


@dataclass(frozen=True)
class Variation:
    """A setup and its names."""

    key: str  # for `--only`
    what: str  # in words
    setup: Simulation | Bench

    @property
    def name(self) -> str:
        """Of the case."""
        return "simulation" if isinstance(self.setup, Simulation) else "bench"


def _bench(key: str, what: str, **differs: Any) -> Variation:
    return Variation(key, what, Bench(**differs))


VARIATIONS = (
    Variation("simulation", "as shipped", Simulation()),
    Variation("simulation-2", "answers after two periods", Simulation(delay=2)),
    _bench("bench", "as shipped"),
    _bench("delay-3", "answers after three periods (a rehearsal's)", delay=3),
    _bench("delay-4", "answers after four periods", delay=4),
    _bench("ideal-sensors", "sensors exact, read at the ticks",
           quantised=False, pressures_at_ticks=True, poses_at_ticks=True),
    _bench("exact-volts", "volts not quantised", quantised=False),
    _bench("pressures-at-ticks", "pressures read at the ticks, not at 200 Hz",
           pressures_at_ticks=True),
    _bench("poses-at-ticks", "exposures at the ticks, not at 120 Hz", poses_at_ticks=True),
    _bench("cameras-240", "cameras at 240 Hz", camera_rate=240.0),
    _bench("frames-lost", "10 % of the frames lost", frames_lost=0.1),
    _bench("poses-late", "poses stamped 0.11 ms late", poses_late=0.11e-3),
    _bench("poses-later", "poses stamped 1 ms late", poses_late=1e-3),
    _bench("pressures-early", "pressures stamped 0.2 ms early", pressures_early=0.2e-3),
    _bench("pressures-earlier", "pressures stamped 2 ms early", pressures_early=2e-3),
    _bench("valves-late", "valves begin 1 ms late", valves_late=1e-3),
    _bench("valves-later", "valves begin 3 ms late", valves_late=3e-3),
    _bench("at-once", "commands followed when seen, every 5 ms", delay=0),
    _bench("steps", "ramps planned over as steps", ramped=False),
    _bench("early-steps", "ramps planned over as steps, begun half a period early",
           ramped=False, valves_late=-0.5 * PERIOD),
    _bench("jitter", "commands 5 ms on their way, exponential", jitter=5e-3),
    _bench("slow-cameras", "poses 20 ms old when they come", camera_latency=20e-3),
    _bench("slow-answers", "13 ms for an estimate and its answer", computing=13e-3),
    _bench("answers-lost", "5 % of the answers lost", answers_lost=0.05),
    _bench("more-lost", "20 % of the answers lost", answers_lost=0.2),
    Variation("simulation-nempc", f"NEMPC, {POPULATION} candidates", Simulation(NEMPC)),
    _bench("bench-nempc", f"NEMPC, {POPULATION} candidates", controller=NEMPC),
)  # fmt: skip
"""What is run; every bench differs from "bench" in what its words say."""
_KEYS = tuple(each.key for each in VARIATIONS)


class Settings(StudySettings):
    """How long, and which variations."""

    seeds: int = StudySettings.of_seeds(3)
    duration: Seconds = Field(12.0, gt=SETTLED, le=3600.0, description="of a run")
    only: str = Field(
        "", description=f"run these alone, separated by commas; allowed are {', '.join(_KEYS)}"
    )  # fmt: skip

    @property
    def chosen(self) -> list[str]:
        """Keys of the variations."""
        return [word for word in map(str.strip, self.only.split(",")) if word] or list(_KEYS)

    @model_validator(mode="after")
    def _known(self) -> "Settings":
        for word in self.chosen:
            if word not in _KEYS:
                raise UserError(f"option --only: {word!r}: allowed are {', '.join(_KEYS)}")
        return self


class LatePlant(RodPlant):
    """A rod that follows each command a tick later."""

    _next = np.zeros(0)

    def reset(self) -> None:
        """See Plant."""
        super().reset()
        self._next = np.zeros(0)

    def follow(self, command: np.ndarray) -> None:
        """See Plant."""
        super().follow(self._next if len(self._next) else np.zeros_like(command))
        self._next = command


def variations(settings: Settings) -> Sequence[Variation]:
    """Those chosen."""
    return [each for each in VARIATIONS if each.key in settings.chosen]


def run(cell: Cell) -> Result:
    """One run of a variation."""
    setup, duration = cell.case.setup, cell.settings.duration
    if isinstance(setup, Bench):
        result = run_bench(cell, setup, duration)
        return {**result, "times": PERIOD * np.arange(len(result["error"]))}
    late = f"{LatePlant.__module__}:{LatePlant.__qualname__}"
    control: Parameters = {} if setup.delay == 1 else {"command_age": setup.delay * PERIOD}
    control |= {"population": POPULATION} if setup.controller == NEMPC else {}
    system = closed_loop(
        cell, setup.controller, "trajectory", plant="rod" if setup.delay == 1 else late,
        duration=duration,
        of={
            "plant": PLANT, "controller": control,
            "reference": {"trajectory_intervals": PLANT["intervals"], "duration": duration + 1.0},
        },
    )  # fmt: skip
    return tracked(cell, system)


STUDY = Study(
    name="robustness/bench-timing",
    source="",
    summary="what the tip error owes to each figure of a bench",
    run=run,
    cases=variations,
    methods=lambda variation: (variation.what,),
    settings=Settings,
    metrics=(
        Metric("mean tip error", "mm", mean_error_mm),
        Metric("settled tip error", "mm", lambda result: mean_error_mm(result, since=SETTLED)),
    ),
    exact="The plant has the model's equations on 20 intervals instead of 5, its bending "
    "compliance is 5 % lower and its tip mass 10 % higher; it makes no other error, and the "
    "reference is a motion of the nominal rod on 20 intervals. The tip is measured with 0.2 mm of "
    "noise, pressures without noise; on a bench volts have 16 bits, valves and chambers follow the "
    "emulators' flow law, and devices fail in nothing but what is told.",
    about={"rate_hz": 70.0, "reference": "trajectory to 1.5 Hz", "settled_after_s": SETTLED},
)
