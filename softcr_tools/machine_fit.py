"""Whether a loop keeps up with the clock on this machine: its parts are timed before the start.

The same blocks run for a moment on virtual time, one after the other, each as fast as it computes.
Of their ticks the fast ones count: what this machine can do, whatever else it does meanwhile. It is
kept for the next start, by version and machine.
"""

import hashlib
import json
import platform
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from softcr_models.errors import UserError
from softcr_models.kernel_cache import cache_directory
from softcr_runtime.realtime import schedule_realtime
from softcr_runtime.registry import GRADIENT_MPC, NEMPC
from softcr_runtime.system import Computing, System
from softcr_runtime.virtual import CORES
from softcr_runtime.virtual_run import run_system
from softcr_tools.node_parameters import system_with_file
from softcr_tools.run_options import SimulationOptions
from softcr_tools.systems import simulation_system

TRIAL = 0.5
"""Virtual time for which the loop is run [s]."""
IN_TIME = 1.0
"""Periods that a tick of plant or estimator may take."""
RARELY = 4.0
"""Periods that an answer of a controller may take: its plans reach so far."""
EASILY = 2.0
"""Periods within which a controller that is chosen for the user answers."""
_FIRST = 5  # ticks that are not counted
_PRIORITY = 1


@dataclass(frozen=True)
class TickCost:
    """What a tick of a part takes here.

    Attributes:
        seconds: of the fast ones, a tenth of all [s].
        period: of the part [s].
    """

    seconds: float
    period: float

    @property
    def periods(self) -> float:
        """How many of its periods a tick takes [-]."""
        return self.seconds / self.period

    @property
    def words(self) -> str:
        """As `12.3 ms of 14.3 ms`."""
        return f"{1e3 * self.seconds:.3g} ms of {1e3 * self.period:.3g} ms"


def fitted(
    options: SimulationOptions, tell: Callable[[str], None], anyway: bool
) -> SimulationOptions:
    """Options whose loop keeps up with the clock here; those of other modes are left alone.

    Where the controller was not chosen and takes too long, `rod_mpc` takes its place.

    Args:
        options: of a run.
        tell: told a line about what was chosen.
        anyway: whether a loop that cannot keep up is run all the same.

    Raises:
        UserError: the loop cannot keep up, in one line with what its parts take.
    """
    if options.mode != "wall":
        return options
    system = _system(options)
    costs = tick_costs(system)
    controller = costs[system.controller]
    by_default = "controller" not in options.model_fields_set and options.controller == NEMPC
    if by_default and controller.periods > EASILY:
        tell(f"{GRADIENT_MPC}: {NEMPC} takes {controller.words}; it needs a faster processor")
        options = options.model_copy(update={"controller": GRADIENT_MPC})
        system = _system(options)
        costs = tick_costs(system)
    told = ", ".join(f"{name} {cost.words}" for name, cost in costs.items())
    unfit = [
        name
        for name, cost in costs.items()
        if cost.periods > (RARELY if name == system.controller else IN_TIME)
    ]
    work = sum(min(cost.periods, 1.0) for cost in costs.values())
    if not unfit and work <= CORES:
        tell(f"a tick takes here: {told}")
        return options
    slow = " and ".join(unfit) or f"all together, {work:.1f} of {CORES} cores,"
    line = f"robot {options.robot} does not keep up with the clock here: {told}; too slow: {slow}"
    if anyway:
        tell(line)
        return options
    raise UserError(f"{line}; --mode lockstep waits for all of them, --anyway starts it as it is")


def _system(options: SimulationOptions) -> System:
    """That will run, its parameters' file read; who starts it tells what of that says nothing."""
    return system_with_file(simulation_system(options, Path()), options, lambda line: None)


def tick_costs(system: System) -> dict[str, TickCost]:
    """By the names of plant, estimator and controller: what a tick takes, as measured now, or
    before by the same version on the same machine.

    Args:
        system: of a simulation.
    """
    kept = cache_directory() / f"tick_costs_{_key(system)}.json"
    with suppress(OSError, ValueError, TypeError, KeyError):
        return {name: TickCost(*pair) for name, pair in json.loads(kept.read_text()).items()}
    found = _measured(system)
    with suppress(OSError):  # it is measured again
        kept.parent.mkdir(parents=True, exist_ok=True)
        kept.write_text(
            json.dumps({name: (cost.seconds, cost.period) for name, cost in found.items()})
        )
    return found


def _measured(system: System) -> dict[str, TickCost]:
    timed = _timed(system)
    parts = tuple(replace(part, computing=Computing()) for part in system.parts if part.is_block)
    names = tuple(part.name for part in parts)
    short = replace(system, parts=parts, activation=names, duration=TRIAL, simulated_time=False)
    schedule_realtime(_PRIORITY)  # as nodes are, where the system permits it
    try:
        executor = run_system(short, lambda name, output: None, clock=time.perf_counter)
    finally:
        schedule_realtime(0)
    costs = {}
    for name in timed:
        ticks = executor.tick_times[name]
        # a loop so slow that it ticks a few times only is judged by those
        counted = ticks[_FIRST:] or ticks
        period = executor.block(name).settings.period
        costs[name] = TickCost(float(np.percentile(counted or [0.0], 10)), period)
    return costs


def _timed(system: System) -> tuple[str, ...]:
    """Plant, estimator where there is one, and controller."""
    roles = ("simulator", "estimator", system.controller)
    names = {part.name for part in system.parts if part.is_block}
    return tuple(name for name in roles if name in names)


def _key(system: System) -> str:
    """Of the settings of all parts, and the machine; the directory is the version's own."""
    told: list[object] = [platform.machine(), _processor(), CORES]
    for part in system.parts:
        if part.is_block:
            told += [part.runs, sorted(part.parameters.items(), key=str)]
    return hashlib.sha256(repr(told).encode()).hexdigest()[:16]


def _processor() -> str:
    with suppress(OSError):
        lines = Path("/proc/cpuinfo").read_text().splitlines()
        return next((line for line in lines if line.startswith("model name")), "")
    return platform.processor()
