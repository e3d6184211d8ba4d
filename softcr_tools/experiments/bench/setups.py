"""What is varied: the simulation's loop, a bench in its figures, and the list of both."""

from dataclasses import dataclass, replace

from softcr_runtime.registry import GRADIENT_MPC
from softcr_tools.experiments.tracking.loop import PERIOD
from softcr_tools.rehearse import RehearsalOptions

POPULATION: int = RehearsalOptions.model_fields["population"].default
"""Candidates of the NEMPC."""


@dataclass(frozen=True)
class Simulation:
    """The loop of `make sim`: all sensors are read at the ticks, pressures follow the lag.

    Attributes:
        controller: its name.
        delay: ticks from a sample to the pressures that answer it.
    """

    controller: str = GRADIENT_MPC
    delay: int = 1


@dataclass(frozen=True)
class Bench:
    """The loop of `softcr up hardware`, with the figures of its shipped settings.

    Attributes:
        controller: its name.
        delay: age of a command when the valves begin to follow it [periods]; 0: they follow what
            they see at once, and the controller aims at that.
        ramped: whether the controller plans over the valves' ramps as ramps; else as steps.
        quantised: whether volts, to valves and from sensors, are counts of 16 bits.
        cycle_rate: of the valves' loop [Hz].
        pressure_rate: of published pressures, which is how often the valves' node looks for
            commands as well [Hz].
        pressures_at_ticks: whether pressures are published at the ticks instead, of the moment.
        pressures_early: stamps of pressures are earlier than the truth by so much [s].
        camera_rate: of exposures [Hz].
        poses_at_ticks: whether exposures are at the ticks instead.
        poses_late: stamps of poses are later than the truth by so much [s].
        frames_lost: share of the frames that do not come.
        camera_latency: from an exposure to its pose [s].
        computing: for an estimate and its answer, half of it for each: they are made side by side
            [s].
        valves_late: the valves begin later than told by so much, which nobody knows [s].
        jitter: mean of what a command takes to the valves' node, exponential [s].
        answers_lost: share of the controller's answers.
    """

    controller: str = GRADIENT_MPC
    delay: int = 2
    ramped: bool = True
    quantised: bool = True
    cycle_rate: float = 1000.0
    pressure_rate: float = 200.0
    pressures_at_ticks: bool = False
    pressures_early: float = 0.0
    camera_rate: float = 120.0
    poses_at_ticks: bool = False
    poses_late: float = 0.0
    frames_lost: float = 0.0
    camera_latency: float = 0.005
    computing: float = 0.003
    valves_late: float = 0.0
    jitter: float = 0.0
    answers_lost: float = 0.0


Setup = Simulation | Bench


@dataclass(frozen=True)
class Variation:
    """A setup and its names.

    Attributes:
        name: for `--only`.
        what: in words.
        setup: what runs.
    """

    name: str
    what: str
    setup: Setup


_SIMULATION, _BENCH = Simulation(), Bench()
_IDEAL_SENSORS = replace(_BENCH, quantised=False, pressures_at_ticks=True, poses_at_ticks=True)

VARIATIONS = (
    Variation("simulation", "as shipped", _SIMULATION),
    Variation("simulation-2", "answers after two periods", replace(_SIMULATION, delay=2)),
    Variation("bench", "as shipped", _BENCH),
    Variation("delay-3", "answers after three periods (a rehearsal's)", replace(_BENCH, delay=3)),
    Variation("delay-4", "answers after four periods", replace(_BENCH, delay=4)),
    Variation("ideal-sensors", "sensors exact, read at the ticks", _IDEAL_SENSORS),
    Variation("exact-volts", "volts not quantised", replace(_BENCH, quantised=False)),
    Variation("pressures-at-ticks", "pressures read at the ticks, not at 200 Hz",
              replace(_BENCH, pressures_at_ticks=True)),
    Variation("poses-at-ticks", "exposures at the ticks, not at 120 Hz",
              replace(_BENCH, poses_at_ticks=True)),
    Variation("cameras-240", "cameras at 240 Hz", replace(_BENCH, camera_rate=240.0)),
    Variation("frames-lost", "10 % of the frames lost", replace(_BENCH, frames_lost=0.1)),
    Variation("poses-late", "poses stamped 0.11 ms late", replace(_BENCH, poses_late=0.11e-3)),
    Variation("poses-later", "poses stamped 1 ms late", replace(_BENCH, poses_late=1e-3)),
    Variation("pressures-early", "pressures stamped 0.2 ms early",
              replace(_BENCH, pressures_early=0.2e-3)),
    Variation("pressures-earlier", "pressures stamped 2 ms early",
              replace(_BENCH, pressures_early=2e-3)),
    Variation("valves-late", "valves begin 1 ms late", replace(_BENCH, valves_late=1e-3)),
    Variation("valves-later", "valves begin 3 ms late", replace(_BENCH, valves_late=3e-3)),
    Variation("at-once", "commands followed when seen, every 5 ms", replace(_BENCH, delay=0)),
    Variation("steps", "ramps planned over as steps", replace(_BENCH, ramped=False)),
    Variation("early-steps", "ramps planned over as steps, begun half a period early",
              replace(_BENCH, ramped=False, valves_late=-0.5 * PERIOD)),
    Variation("jitter", "commands 5 ms on their way, exponential", replace(_BENCH, jitter=5e-3)),
    Variation("slow-cameras", "poses 20 ms old when they come",
              replace(_BENCH, camera_latency=20e-3)),
    Variation("slow-answers", "13 ms for an estimate and its answer",
              replace(_BENCH, computing=13e-3)),
    Variation("answers-lost", "5 % of the answers lost", replace(_BENCH, answers_lost=0.05)),
    Variation("more-lost", "20 % of the answers lost", replace(_BENCH, answers_lost=0.2)),
    Variation("simulation-nempc", f"NEMPC, {POPULATION} candidates", Simulation("nempc")),
    Variation("bench-nempc", f"NEMPC, {POPULATION} candidates", Bench("nempc")),
)  # fmt: skip
"""What is offered; every bench differs from "bench" in what its words say."""
