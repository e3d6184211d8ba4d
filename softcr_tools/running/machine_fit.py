"""Whether a loop keeps up with the clock on this machine: its parts are timed before the start.

The same blocks run for a moment on virtual time, one after the other, each as fast as it computes.
Of their ticks the fast ones count: what this machine can do, whatever else it does meanwhile. It is
kept for the next start, by version and machine. How much of the cores can be had, and how fast they
are, is measured at each start, because quotas, other programs and what a host has for its virtual
cores come and go.
"""

import hashlib
import json
import math
import platform
import statistics
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import numpy as np

from softcr_models.errors import UserError
from softcr_models.kernel_cache import cache_directory
from softcr_models.robots.robot import Robot, load_robot
from softcr_runtime.blocks.system import Computing
from softcr_runtime.blocks.virtual import CORES
from softcr_runtime.blocks.virtual_run import run_system
from softcr_runtime.ros.realtime import schedule_realtime
from softcr_runtime.settings.registry import GRADIENT_MPC, NEMPC
from softcr_tools.running.free_cores import PRIORITY, cores_that_can_be_had
from softcr_tools.running.rod_substeps import with_needed_substeps
from softcr_tools.running.roles import ROLES, settings_of
from softcr_tools.running.run_options import RunOptions, SimulationOptions
from softcr_tools.running.virtual_up import VirtualSystem, VirtualSystemOf

Options = TypeVar("Options", bound=RunOptions)

TRIAL = 0.5
"""Length of the motion that is timed, on virtual time [s]."""
SHARED = 1.3
"""Factor on the time of a tick whose core others use as well: a loop took 1.24 cores whose parts,
timed one after the other, take 0.9."""
MOST = 0.85
"""Share of the cores that can be had which a loop may take; the rest is for bursts."""
RAREST = 4
"""Periods that an answer of a controller may take: its plans reach so far. Where all parts share a
process it is one, for not the controller is late then, but all of them."""
LOOKED_AT, PICTURES, THREADS = 0.3, 0.1, 0.1
"""Cores that recorder, pictures and the nodes' own threads take, and those of them that are free
without pictures, and where all parts share a process."""
FEWEST = 2
"""Times the fewest candidates, below which too little is left where a tick takes longer: with time
for 1.3 and 1.7 times as many a fifth and a tenth of the cycles were missed, with 2.2 a fortieth."""
COARSEST = 2
"""Intervals of each segment of a rod, where no finer one can be computed in time."""
MESSAGES = 80.0
"""Of a node's tick, what it does beside its block: so many times `sum(range(1000))`. Found, as what
is looked at, from the processor time of whole runs with nodes, at 70 and 200 Hz: about 0.65 ms
where the sum takes 8 us."""
FEW = 1.5
"""Cores below which parts share a process: on more they are quicker side by side."""
TOGETHER, SHARED_TOGETHER = 0.26, 1.9
"""Of MESSAGES, what is left where all parts share a process that keeps to one core; and the factor
on the time of a tick there, which is in place of SHARED. Found from loops of 50, 70 and 100 Hz that
took 0.66, 0.84, 0.79 and 0.95 of a core."""
MOST_TOGETHER = 0.78
"""In place of MOST there: no other core takes up what comes late, and a host of virtual cores may
be half as fast for seconds."""
CALM, CALM_OF_FEW = 0.83, 0.6
"""Share of all cores, and of few, above which a simulation runs at a slower rate. At a quota of one
core a loop of 70 Hz missed a tenth of its cycles and threw the robot in one run of three; at 50 Hz
it missed none in ten."""
SLOWER = 5 / 7, 1 / 2
"""Of its rate, at which it runs there."""
_FIRST = 5  # ticks that are not counted
_LEAST_BUDGET = 0.02  # of a controller [periods]


@dataclass(frozen=True)
class TickCost:
    """What a tick of a part takes here.

    Attributes:
        seconds: of the fast ones, a tenth of all [s].
        period: of the part [s].
        threads: that it uses.
    """

    seconds: float
    period: float
    threads: int = 1

    @property
    def words(self) -> str:
        """As `12.3 ms of 14.3 ms`."""
        return f"{1e3 * self.seconds:.3g} ms of {1e3 * self.period:.3g} ms"


@dataclass(frozen=True)
class LoopCost:
    """What a loop takes here.

    Attributes:
        ticks: of its parts, by name; the controller's is the last one.
        node: what a node does about each tick beside its block [s].
        others: cores that programs take which are none of its parts.
        candidates: of the controller in a tick; 0 where it has none.
        least: of them, those that it looks at however little time there is.
        share: of its period that it computes at most while it has more.
        known: whether it was measured in an earlier run.
        shared: factor on the time of a tick, see SHARED.
        rarest: periods that an answer may take, see RAREST.
        most: share of the cores that it may take, see MOST.
    """

    ticks: dict[str, TickCost]
    node: float
    others: float = LOOKED_AT
    candidates: int = 0
    least: int = 0
    share: float = 1.0
    known: bool = field(default=False, compare=False)
    shared: float = SHARED
    rarest: int = RAREST
    most: float = MOST

    @property
    def words(self) -> str:
        """What a tick of each part takes."""
        return ", ".join(f"{name} {cost.words}" for name, cost in self.ticks.items())

    def fit(self, cores: float) -> "Fit":
        """How it runs where so many cores can be had."""
        *others, (controller, answer) = self.ticks.items()
        slow = [name for name, cost in others if self._of_node(cost) > cost.period]
        taken = self.others + sum(self._of_node(cost) / cost.period for _, cost in others)
        left = self.most * cores - taken
        work = self._of_node(answer)
        periods = work / min(answer.threads, left) / answer.period if left > 0.0 else math.inf
        candidates = self.candidates
        # its threads compute at once for a share of a period: more than is left would be waited for
        share = min(self.share, max(left, 0.0) / answer.threads)
        if candidates and periods > share:
            candidates = max(int(candidates * share / periods), self.least)
            periods *= candidates / self.candidates
        every = math.ceil(periods) if periods <= self.rarest else self.rarest + 1
        if every > self.rarest and not slow:
            slow = [controller] if left > 0.5 * self.most * cores else ["all together"]
        busy = taken + min(work / answer.period, max(left, 0.0))
        return Fit(max(every, 1), slow, busy, candidates, share)

    def _of_node(self, cost: TickCost) -> float:
        return self.shared * (cost.seconds * cost.threads + self.node)


@dataclass(frozen=True)
class Fit:
    """How a loop runs.

    Attributes:
        every: periods that an answer of its controller takes, in whole ones.
        slow: parts that do not keep up; empty where all of them do.
        cores: that it keeps busy.
        candidates: that its controller looks at in a tick; 0 where it has none.
        share: of its period that it computes at most.
    """

    every: int
    slow: list[str]
    cores: float
    candidates: int
    share: float


class _Choice(NamedTuple):
    options: Any
    cost: LoopCost
    fit: Fit
    lines: tuple[str, ...] = ()  # about what was given up


def fitted(
    options: Options, virtual: VirtualSystemOf, tell: Callable[[str], None], anyway: bool
) -> Options:
    """Options whose loop keeps up with the clock here.

    Where nobody chose the controller or a number of its, and it takes more than a period or has
    time for hardly more than the fewest candidates, `rod_mpc` takes its place. Where that is not
    enough, all parts share a process on few cores, there are no pictures, and the rate is slower;
    where the loop is still too slow, the filter is simpler and rods are coarser, as far as nobody
    chose them.

    Args:
        options: of a run.
        virtual: makes the loop of them that is timed.
        tell: told a line about what was chosen.
        anyway: whether a loop that cannot keep up is run all the same.

    Raises:
        UserError: the loop cannot keep up, in one line with what its parts take.
    """
    cores = cores_that_can_be_had()
    chosen = _timed(options, virtual, cores)
    fewest = chosen.fit.every > 1 or 0 < chosen.fit.candidates < FEWEST * chosen.cost.least
    if chosen.fit.slow or (fewest and _is_nempc_by_default(options)) or _is_tight(chosen, cores):
        chosen = _gentler(chosen, virtual, cores) or chosen
    options, cost, fit, lines = chosen
    if lines:
        tell("\n".join(lines))
    words = f"a tick takes here: {cost.words}; of {cores:.1f} cores the loop takes {fit.cores:.1f}"
    if not fit.slow:
        if fit.candidates < cost.candidates:
            words += f"; {options.controller} has time for {fit.candidates} candidates"
        if fit.every > 1:
            words += f"; {options.controller} answers every {_ORDINALS[fit.every]} estimate"
        tell(words)
        less = cost.candidates and fit.share < cost.share
        return _with_budget(options, fit.share) if less else options
    line = f"robot {options.robot} does not keep up with the clock here: {words}; too slow: "
    line += " and ".join(fit.slow)
    if anyway:
        tell(line)
        return options
    raise UserError(f"{line}; {_instead(options)}--anyway starts it as it is")


def _timed(
    options: RunOptions, virtual: VirtualSystemOf, cores: float, lines: tuple[str, ...] = ()
) -> _Choice:
    """What a loop takes, and how it runs on so many cores; timed again before it is too slow."""
    cost = loop_cost(virtual(_short(options)))
    found = _choice(options, cost, cores, lines)
    less = found.fit.slow or found.fit.every > 1 or found.fit.candidates < cost.candidates
    if not (cost.known and less):
        return found
    return _choice(options, loop_cost(virtual(_short(options)), anew=True), cores, lines)


def _choice(options: RunOptions, cost: LoopCost, cores: float, lines: tuple[str, ...]) -> _Choice:
    """How a loop of known cost runs."""
    run = replace(cost, others=cost.others - PICTURES * (options.visuals == "off"))
    if _processes(options) == "one":
        run = replace(
            run,
            others=run.others - THREADS,
            node=run.node * TOGETHER,
            shared=SHARED_TOGETHER,
            rarest=1,
            most=MOST_TOGETHER,
        )
    fit = run.fit(cores)
    return _Choice(options, cost, fit, lines)


def _processes(options: RunOptions) -> str:
    """How a simulation shares processes; those of the bench are as they are."""
    return options.processes if isinstance(options, SimulationOptions) else ""


def _gentler(chosen: _Choice, virtual: VirtualSystemOf, cores: float) -> _Choice | None:
    """A loop that keeps up once as little as possible is given up of what nobody chose."""
    if _is_nempc_by_default(chosen.options):
        line = (
            f"{GRADIENT_MPC}: {NEMPC} takes {_last(chosen.cost).words}; it needs a faster processor"
        )
        gradient = chosen.options.model_copy(update={"controller": GRADIENT_MPC})
        chosen = _timed(gradient, virtual, cores, (line,))
    if cores < FEW and _processes(chosen.options) == "auto" and _wants_more(chosen, cores):
        line = "processes one: on so few cores messages between processes cost too much"
        chosen = _without(chosen, {"processes": "one"}, line, cores)  # nothing is lost by it
    found = [chosen]
    if chosen.options.visuals == "auto" and _wants_more(chosen, cores):
        line = "visuals off: there are no cores left for what is only looked at"
        found.append(_without(chosen, {"visuals": "off"}, line, cores))
    for lines, options in _rungs(found[-1]):
        if not _wants_more(found[-1], cores):
            break
        with suppress(UserError):  # there is no such rod
            found.append(_timed(options, virtual, cores, lines))
    return min(
        (each for each in found if not each.fit.slow),
        key=lambda each: (_is_tight(each, cores), each.fit.every),
        default=None,
    )


def _without(chosen: _Choice, update: dict[str, str], line: str, cores: float) -> _Choice:
    """The same loop where an option has another value, of which a line tells."""
    options = chosen.options.model_copy(update=update)
    return _choice(options, chosen.cost, cores, (*chosen.lines, line))


def _wants_more(chosen: _Choice, cores: float) -> bool:
    """Whether a loop would use more of the cores than it has, or nearly all of them."""
    return bool(chosen.fit.slow) or chosen.fit.every > 1 or _is_tight(chosen, cores)


def _is_tight(chosen: _Choice, cores: float) -> bool:
    """Whether a simulation at its usual rate leaves little of the cores; candidates take what is
    left."""
    options, _, fit, _ = chosen
    if fit.candidates or not _processes(options) or "rate_hz" in options.of("plant"):
        return False
    return fit.cores > (CALM_OF_FEW if cores < FEW else CALM) * cores


def _rungs(usual: _Choice) -> Iterator[tuple[tuple[str, ...], RunOptions]]:
    """Options that take less and less, and the lines of each."""
    slower = slowest = None
    for share in SLOWER if _processes(usual.options) else ():
        if slowest := _slower(usual, share):
            slower = slower or slowest
            yield slowest
    lines, options = slower or (usual.lines, usual.options)
    for line, coarser in _coarser(options, usual.cost):
        lines += (line,)
        yield lines, coarser
    if slowest:
        lines, options = slowest
        for line, coarser in _coarser(options, usual.cost):
            lines, options = (*lines, line), coarser
        yield lines, options


def _slower(usual: _Choice, share: float) -> tuple[tuple[str, ...], RunOptions] | None:
    """Options at a share of the rate and the lines of them, with as many sub-steps as that needs;
    None where the parts have several rates, or somebody chose one."""
    options = usual.options
    roles = [role for role in ROLES if "rate_hz" in settings_of(options, role)]
    periods = {each.period for each in usual.cost.ticks.values()}
    if len(periods) > 1 or any("rate_hz" in options.of(role) for role in roles):
        return None
    period = periods.pop()
    rate = float(round(share / period))
    for role in roles:
        told: dict[str, Any] = {"rate_hz": rate}
        if substeps := options.of(role).get("substeps"):
            told["substeps"] = math.ceil(substeps / (rate * period))
        options = options.told(role, told)
    line = f"rate {rate:g} Hz in place of {1.0 / period:g}: at the usual one nothing is left for "
    return (*usual.lines, f"{line}what comes late"), with_needed_substeps(options, lambda _: None)


def _coarser(options: RunOptions, cost: LoopCost) -> Iterator[tuple[str, RunOptions]]:
    """Options that take less and less, for which a rod is known less well, and a line of each."""
    robot = load_robot(options.robot, options.kinds)
    if not isinstance(robot, Robot):
        return
    unscented = options.estimator == "rod" and robot.pressure_chain is None
    if unscented and "filter" not in options.of("estimator"):
        options = options.told("estimator", {"filter": "ekf"})
        yield f"estimator.filter ekf: ukf takes {cost.ticks['estimator'].words}", options
    roles = [
        name
        for name in ("estimator", "controller", "reference")
        if "intervals" in settings_of(options, name)
    ]
    given = any("intervals" in options.of(name) for name in (*roles, "plant"))
    if len(robot.segments) > 1 and not given:
        for name in roles:
            options = options.told(name, {"intervals": COARSEST})
        said = " and ".join(f"{name}.intervals" for name in roles)
        yield f"{said} {COARSEST} of each segment: a coarser rod", options


def _with_budget(options: Options, share: float) -> Options:
    """Whose controller computes for a share of a period at most, where nobody chose how long."""
    its = {"budget": max(round(share, 3), _LEAST_BUDGET), **options.of("controller")}
    return options.told("controller", its)


def _is_nempc_by_default(options: RunOptions) -> bool:
    """Whether nobody chose the controller, nor a number or a file of its."""
    told = options.roles.get("controller", {}).keys() - {"substeps"}  # which every one has
    return options.controller == NEMPC and "controller" not in options.model_fields_set and not told


_ORDINALS = {2: "second", 3: "third", 4: "fourth"}


def _last(cost: LoopCost) -> TickCost:
    return list(cost.ticks.values())[-1]


def _instead(options: RunOptions) -> str:
    """What has no clock to keep up with, where the command offers that."""
    offered = "mode" in type(options).model_fields
    return "--mode virtual waits for all of them, " * offered


def _short(options: Options) -> Options:
    return options.model_copy(update={"duration": TRIAL})


def loop_cost(made: VirtualSystem, anew: bool = False) -> LoopCost:
    """What a loop takes, as measured now, or before by the same version on the same machine.

    Args:
        made: of which plant, where it has one, estimator, reference and controller are timed.
        anew: whether it is measured in any case: the machine may have been busy before. The less of
            both counts, with what was kept as it would be at the speed of now.
    """
    kept = cache_directory() / f"tick_costs_{_key(made)}.json"
    block = made.blocks[made.roles["controller"]]
    least = getattr(getattr(block, "controller", None), "least", 0)
    candidates = block.settings.population if least else 0
    others = LOOKED_AT + made.others, candidates, least, block.share
    before: dict[str, TickCost] = {}
    node, slower = math.inf, 1.0
    with suppress(OSError, ValueError, TypeError, KeyError, ZeroDivisionError):
        found = json.loads(kept.read_text())
        ticks = {name: TickCost(*cost) for name, cost in found["ticks"].items()}
        slower = max(MESSAGES * _usual_python() / float(found["node"]), 1.0)
        before, node = ticks, float(found["node"])
    now = {name: replace(cost, seconds=slower * cost.seconds) for name, cost in before.items()}
    if before and not anew:
        return LoopCost(now, slower * node, *others, known=True)
    schedule_realtime(PRIORITY)  # as nodes are, where the system permits it
    try:
        node = min(node, MESSAGES * _python())
        ticks = _measured(made)
        node = min(node, MESSAGES * _python())
    finally:
        schedule_realtime(0)
    best = {name: _less(cost, before.get(name, cost)) for name, cost in ticks.items()}
    with suppress(OSError):  # it is measured again
        kept.parent.mkdir(parents=True, exist_ok=True)
        costs = {name: (cost.seconds, cost.period, cost.threads) for name, cost in best.items()}
        kept.write_text(json.dumps({"ticks": costs, "node": node}))
    ticks = {name: _less(cost, now.get(name, cost)) for name, cost in ticks.items()}
    return LoopCost(ticks, slower * node, *others)


def _less(one: TickCost, other: TickCost) -> TickCost:
    return min(one, other, key=lambda cost: cost.seconds)


def _measured(made: VirtualSystem) -> dict[str, TickCost]:
    parts = tuple(replace(part, computing=Computing()) for part in made.system.parts)
    short = replace(made.system, parts=parts, simulated_time=False)
    executor = run_system(
        short,
        lambda name, output: None,
        clock=time.perf_counter,
        make=lambda part: made.blocks[part.name],
    )
    costs = {}
    for name in _parts_timed(made):
        ticks = executor.tick_times[name]
        # a loop so slow that it ticks a few times only is judged by those
        counted = ticks[_FIRST:] or ticks
        block = made.blocks[name]
        typical = float(np.percentile(counted or [0.0], 10))
        costs[name] = TickCost(typical, block.settings.period, min(block.threads, CORES))
    return costs


def _python() -> float:
    """What a thousand additions take in Python [s]."""
    best = math.inf
    for _ in range(50):
        begin = time.perf_counter()
        sum(range(1000))
        best = min(best, time.perf_counter() - begin)
    return best


def _usual_python() -> float:
    """Median of the same over a tenth of a second, in which the host may be slower than at best."""
    found = []
    for _ in range(20):
        found.append(_python())
        time.sleep(0.005)
    return statistics.median(found)


def _parts_timed(made: VirtualSystem) -> tuple[str, ...]:
    """Names of the parts that are timed, the controller last."""
    roles = ("plant", "estimator", "reference", "controller")
    return tuple(made.roles[role] for role in roles if role in made.roles)


def _key(made: VirtualSystem) -> str:
    """Of robot and settings of all parts, and the machine; the directory is the version's own."""
    told: list[object] = [platform.machine(), _processor(), CORES]
    for name in _parts_timed(made):
        block = made.blocks[name]
        told += [name, type(block).__qualname__, block.settings, block.robot]
    return hashlib.sha256(repr(told).encode()).hexdigest()[:16]


def _processor() -> str:
    with suppress(OSError):
        lines = Path("/proc/cpuinfo").read_text().splitlines()
        return next((line for line in lines if line.startswith("model name")), "")
    return platform.processor()
