"""Compiling kernels ahead of time, so that no node does it while a robot waits.

Kernels are compiled once per version and processor; later processes load them. They come in sets,
for nobody needs all: `python -m softcr_models.warm_up rod fittings` compiles these two, in as many
processes as there are cores. A set of another room is named by its place,
`softcr_simulation.warm_up:PLANT`.

A new kernel belongs into the set of those who call it: let a part call it, or add a part. Where a
part is `last`, whatever its calls reach is compiled, be it told here or not.
"""

import fcntl
import hashlib
import heapq
import multiprocessing
import multiprocessing.connection
import os
import signal
import subprocess
import sys
import timeit
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from importlib import import_module
from importlib.metadata import entry_points
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import TYPE_CHECKING, cast

import numpy as np

from softcr_models.kernel_cache import cache_directory
from softcr_models.models import make_model
from softcr_models.robots.kinds import AnyRobot
from softcr_models.robots.robot import Robot, load_robot
from softcr_models.rod.obstacles import Sphere

if TYPE_CHECKING:
    from softcr_models.rod.cosserat_rod import CosseratRod

ROD, CHAIN, FITTINGS, CONTACT = "rod", "chain", "fittings", "contact"
MOTORS, HYPERELASTIC = "motors", "hyperelastic"

ENTRY_POINTS = "softcr.kernels"
"""Group of the entry points by which installed packages, the papers among them, add sets."""

_TELLS = "--tell"  # to print which share is done, a line each time, for `ensure_warm`
_TELL_PERIOD = 0.2  # [s]
_LOOP_HERE = 1.5e-5  # [s] of `_pace` on the machine on which `Part.seconds` were measured
_TRUSTED = 5.0  # what the pace counts for beside what parts have taken [s]
_NEARLY = 0.97  # of a part that takes longer than it should


@dataclass(frozen=True)
class Part:
    """Kernels that one process compiles.

    Attributes:
        name: of its own among all parts.
        compile: calls the kernels.
        seconds: of one core that compiling them takes: their share in what is told [s].
        writes: which functions: numba keeps an index of each function's machine code, which two
            processes must not write at the same time.
        last: whether its calls load kernels of other parts, so that these come first.
        sources: files and folders with the text of the kernels, beside the folder of the rod.
    """

    name: str
    compile: Callable[[], object]
    seconds: float
    writes: str = ""
    last: bool = False
    sources: tuple[Path, ...] = ()

    @property
    def mark(self) -> Path:
        """The file that says that its kernels of this version are compiled."""
        digest = hashlib.sha256()
        for source in self.sources:
            for file in sorted(source.rglob("*.py")) if source.is_dir() else (source,):
                digest.update(f"{file} {file.stat().st_mtime_ns}".encode())
                digest.update(file.read_bytes())
        return cache_directory() / f"complete_{self.name}_{digest.hexdigest()[:8]}"


def needed_kernels(robot: AnyRobot, *, loads: bool = False, obstacles: bool = False) -> list[str]:
    """The sets of kernels that a robot's models call.

    Args:
        robot: as loaded from its file.
        loads: whether forces act on it, be they a simulator's or estimated ones.
        obstacles: whether a simulated one may touch something.
    """
    sets = [*robot.kernels]
    if ROD in sets:
        from softcr_models.rod.discretise import needs_fittings

        rod = cast(Robot, robot)
        if rod.motors:
            sets += [MOTORS]
        elif rod.neo_hookean:
            sets += [HYPERELASTIC]
        elif loads or needs_fittings(rod):
            sets += [FITTINGS]
    return sets + [CONTACT] * obstacles


def is_warm(sets: Sequence[str] = (ROD,)) -> bool:
    """Whether the compiled kernels of this version lie on this machine already."""
    return not _missing(sets)


def expected_seconds(sets: Sequence[str]) -> float:
    """How long compiling what is missing will take about, on the cores of this machine [s]."""
    ends = [0.0] * _cores()
    for part in _missing(sets):
        heapq.heapreplace(ends, ends[0] + part.seconds)
    return _pace() * max(ends)


def ensure_warm(
    sets: Sequence[str] = (ROD,), tell: Callable[[float], object] | None = None
) -> bool:
    """Compile the kernels in processes of their own, unless they lie on this machine already.

    A process that compiles a kernel itself computes other last bits than one that loads it, so
    whoever promises equal bits calls this first, before it touches a kernel. The order in which
    Python hashes words reaches the compiler too, so it is fixed, and each part is compiled in a
    process that has compiled nothing before.

    Args:
        sets: of kernels.
        tell: is called with the share that is done, 0 to 1, several times a second.

    Returns:
        Whether they are there.
    """
    if is_warm(sets):
        return True
    compiling = [sys.executable, "-m", "softcr_models.warm_up", _TELLS, *sets]
    environment = os.environ | {"PYTHONHASHSEED": "0"}
    with subprocess.Popen(compiling, env=environment, stdout=subprocess.PIPE, text=True) as process:
        for line in process.stdout or ():
            if tell is not None:
                tell(float(line))
    return process.returncode == 0


def warm_up(sets: Sequence[str], tell: Callable[[float], object] = lambda share: None) -> bool:
    """Compile what is missing, each part in a process of its own.

    Another process that is at it is waited for.

    Args:
        sets: of kernels.
        tell: see `ensure_warm`.

    Returns:
        Whether all of it was compiled.
    """
    directory = cache_directory()
    directory.mkdir(parents=True, exist_ok=True)
    with open(directory / "compiling.lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # let go when the file is closed
        return _Compilation(_missing(sets)).run(tell)


class _Compilation:
    """Processes that compile parts, the longest first."""

    def __init__(self, parts: Iterable[Part]) -> None:
        self._waiting = list(parts)
        self._running: dict[Part, BaseProcess] = {}
        self._used: dict[Part, float] = {}  # processor time of what runs [s]
        self._total = sum(part.seconds for part in self._waiting)
        self._done, self._took = 0.0, 0.0  # [s] as expected, and as it was
        self._pace = _pace()
        self._good = True

    def run(self, tell: Callable[[float], object]) -> bool:
        """Compile all parts; whether it worked."""
        import softcr_models.prediction  # noqa: F401  (once, and not in every process)
        from softcr_models.rod import compilation

        compilation.ANNOUNCES_NOTHING = True
        fork = multiprocessing.get_context("fork")
        share = 0.0
        while self._waiting or self._running:
            while len(self._running) < _cores() and (part := self._next()) is not None:
                process = fork.Process(target=_compile, args=(part,), daemon=True)
                process.start()
                self._running[part], self._used[part] = process, 0.0
            sentinels = [process.sentinel for process in self._running.values()]
            multiprocessing.connection.wait(sentinels, _TELL_PERIOD)
            self._collect()
            share = max(share, self._share())
            tell(share)
        return self._good

    def _next(self) -> Part | None:
        """The next part to be started; None if what is left must wait for one that runs."""
        written = {part.writes for part in self._running if part.writes}
        others_run = any(not part.last for part in (*self._waiting, *self._running))
        free = (
            part
            for part in self._waiting
            if part.writes not in written and not (part.last and others_run)
        )
        if (part := next(free, None)) is not None:
            self._waiting.remove(part)
        return part

    def _collect(self) -> None:
        for part, process in list(self._running.items()):
            if process.exitcode is None:
                self._used[part] = _processor_time(process) or self._used[part]
                continue
            del self._running[part]
            self._done += part.seconds
            self._took += self._used.pop(part)
            if process.exitcode == 0:
                part.mark.touch()
            else:
                self._good = False

    def _share(self) -> float:
        """What is done of all, by seconds; of a part that runs by how long parts took so far."""
        slowness = (self._took + _TRUSTED * self._pace) / (self._done + _TRUSTED)
        begun = sum(
            part.seconds * min(used / (part.seconds * slowness), _NEARLY)
            for part, used in self._used.items()
        )
        return (self._done + begun) / self._total if self._total else 1.0


def _compile(part: Part) -> None:
    """In a process of its own, which the one that started it ends."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    part.compile()


def _processor_time(process: BaseProcess) -> float:
    """Of a process until now [s]; 0 of one that has just ended."""
    try:
        fields = Path(f"/proc/{process.pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return 0.0
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def _cores() -> int:
    return len(os.sched_getaffinity(0))


def _pace() -> float:
    """How much longer this machine takes than the one on which `Part.seconds` were measured."""
    return min(timeit.repeat("sum(range(1000))", number=100, repeat=5)) / 100.0 / _LOOP_HERE


def _missing(sets: Sequence[str]) -> list[Part]:
    """The parts that are not there yet, the longest first."""
    parts = {part.name: part for each in sets for part in parts_of(each)}
    missing = [part for part in parts.values() if not part.mark.is_file()]
    return sorted(missing, key=lambda part: -part.seconds)


def parts_of(name: str) -> tuple[Part, ...]:
    """The parts of a set: of one here or of a package by its name, of another room's by its place.

    Raises:
        KeyError: there is no such set.
    """
    module, colon, attribute = name.partition(":")
    if name in _SETS:
        return _SETS[name]
    found: tuple[Part, ...]
    if colon:
        found = getattr(import_module(module), attribute)
    else:
        found = entry_points(group=ENTRY_POINTS)[name].load()
    return found


def added_sets() -> tuple[str, ...]:
    """The sets that packages add."""
    return tuple(sorted(entry_points(group=ENTRY_POINTS).names))


# -- the sets of models ----------------------------------------------------------------------------

_MODELS = Path(__file__).parent


def _bare() -> "CosseratRod":
    from softcr_models.rod.cosserat_rod import CosseratRod

    return CosseratRod(load_robot("licher2025"))


def _fitted(robot: str) -> "CosseratRod":
    from softcr_models.rod.cosserat_rod import CosseratRod

    return CosseratRod(load_robot(robot), 2)


def _touching() -> "CosseratRod":
    from softcr_models.rod.cosserat_rod import CosseratRod

    obstacles = [Sphere((0.0, 0.0, 1.0), 0.01)]
    return CosseratRod(load_robot("licher2025"), 2, obstacles=obstacles)


def _rollout(rod_of: Callable[[], "CosseratRod"], single: bool) -> None:
    from softcr_models.prediction import RodPrediction

    model = RodPrediction(rod_of(), single_precision=single)
    levels = np.zeros((2, 2, model.input_size))
    model.rollout_tips(model.rod.rest_state(), levels, model.nominal_parameters, 0.01)


def _step(rod_of: Callable[[], "CosseratRod"]) -> None:
    rod = rod_of()
    rod.step(rod.rest_state(), np.zeros(rod.input_size), 0.01)


def _equations(rod_of: Callable[[], "CosseratRod"]) -> None:
    rod = rod_of()
    state, inputs = rod.rest_state(), np.zeros(rod.input_size)
    rod.derivative(state, inputs)
    rod.base_wrench(state, inputs)
    rod.node_poses(state)
    rod.contact_points(state)
    if rod.fittings is not None:  # robots of several segments have sensors along their bodies
        rod.poses_at(state[None], 0, 0.5, rod.nominal_parameters[None])


def _tips(rod_of: Callable[[], "CosseratRod"]) -> None:
    from softcr_models.prediction import RodPrediction

    model = RodPrediction(rod_of())
    states = np.zeros((2, model.state_size))
    for each in (states, states.astype(np.float32)):
        model.tip_poses(each, model.nominal_parameters[None])


def _tangents(rod_of: Callable[[], "CosseratRod"]) -> None:
    rod = rod_of()
    rod.linearize_parameters(rod.rest_state(), np.zeros(rod.input_size))


def _chain() -> None:
    make_model(ROD, load_robot("licher2025_chain")).warm_up()


def _rod_parts(
    name: str, rod_of: Callable[[], "CosseratRod"], seconds: Mapping[str, float]
) -> tuple[Part, ...]:
    calls: Mapping[str, Callable[[], None]] = {
        "float32": partial(_rollout, rod_of, True),
        "float64": partial(_rollout, rod_of, False),
        "step": partial(_step, rod_of),
        "equations": partial(_equations, rod_of),
        "tips": partial(_tips, rod_of),
        "tangents": partial(_tangents, rod_of),
    }
    return tuple(
        Part(f"{name}_{what}", calls[what], seconds[what], writes=what) for what in seconds
    )


_OF_ROD = {
    "float32": 11.0, "float64": 11.0, "step": 11.0, "equations": 7.5, "tangents": 5.7, "tips": 4.0,
}  # fmt: skip
_OF_FITTED = _OF_ROD | {"equations": 12.0}
_SETS: Mapping[str, tuple[Part, ...]] = {
    ROD: _rod_parts(ROD, _bare, _OF_ROD),
    FITTINGS: _rod_parts(FITTINGS, partial(_fitted, "two_segments"), _OF_FITTED),
    HYPERELASTIC: _rod_parts(HYPERELASTIC, partial(_fitted, "tentacle"), _OF_FITTED),
    MOTORS: _rod_parts(MOTORS, partial(_fitted, "asl_trunk"), _OF_FITTED),
    CONTACT: _rod_parts(CONTACT, _touching, {"step": 22.0, "equations": 19.0}),
    CHAIN: (Part(CHAIN, _chain, 1.0, CHAIN, last=True, sources=(_MODELS / CHAIN,)),),
}


def _main(arguments: Sequence[str]) -> int:
    sets = [each for each in arguments if each != _TELLS] or [ROD]
    signal.signal(signal.SIGTERM, lambda number, _: sys.exit(128 + number))
    try:
        if _TELLS in arguments:
            return 0 if warm_up(sets, lambda share: print(share, flush=True)) else 1
        return 0 if warm_up(sets) else 1
    except KeyboardInterrupt:
        return 128 + signal.SIGINT


if __name__ == "__main__":
    sys.exit(_main(sys.argv[1:]))
