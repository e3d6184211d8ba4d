"""The study speed/gpu on a machine where softcr is not installed and time is short.

    python -m softcr_studies.speed.gpu_kit --output FOLDER

Every part runs in a process of its own, for its own time at most: one that fails or hangs, or an
error that leaves the GPU unusable, does not stop the others. After each measurement all of them are
written to FOLDER/table.json, which `softcr study page` reads at results/studies/speed/gpu/latest;
what is printed is in FOLDER/log.txt, too. A second call with --parts measures these again and keeps
the others, in the same folder or in another one --begin-with the first.
"""

import argparse
import ctypes
import json
import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

if TYPE_CHECKING:
    from softcr_studies.frame.cell import Cell, Result
    from softcr_studies.speed.gpu_batches import GpuEffort

# What computes is imported by the parts' processes alone: the one that watches them needs nothing.

LIMITS = {"machine": 40.0, "code": 60.0, "tests": 120.0, "batches": 60.0, "loops": 150.0,
          "network": 40.0, "training": 150.0}  # fmt: skip
"""Part, in the order in which they run -> seconds that it may take."""

KERNELS = (
    ("-m", "softcr_models.warm_up", "rod", "fittings"),
    ("-c", "from softcr_studies.speed.gpu_loops import rehearse; rehearse()"),
)
"""What compiles the processor's kernels beside the first parts: arguments of Python, a process
each. They share a cache."""

COMPILING = 60.0
"""Parts after the machine code wait so long for these at most [s]."""

_HERE = "softcr_studies.speed.gpu_kit"
_CELLS, _TABLE, _LOG, _MACHINE = "cells.json", "table.json", "log.txt", "machine.json"


# -- the process that watches ---------------------------------------------------------------------


@dataclass
class Log:
    """Lines with the time since the beginning, on the terminal and in a file."""

    file: IO[str]
    begun: float = field(default_factory=time.monotonic)

    def __call__(self, line: str) -> None:
        """One line."""
        told = f"[{time.monotonic() - self.begun:6.1f} s] {line}"
        print(told, flush=True)
        self.file.write(told + "\n")
        self.file.flush()


def watch(command: Sequence[str], limit: float, log: Callable[[str], None], **more: Any) -> str:
    """Runs a command in a process group of its own, and ends all of it when its time is up.

    Args:
        command: what is run.
        limit: [s].
        log: told of every line it writes.
        more: of `subprocess.Popen`.

    Returns:
        Why it is not what it should be; empty: it has ended well.
    """
    process = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace",
        start_new_session=True, **more,
    )  # fmt: skip
    assert process.stdout is not None
    lines = process.stdout

    def listen() -> None:
        for line in lines:
            log(line.rstrip("\n"))

    listener = threading.Thread(target=listen, daemon=True)
    listener.start()
    try:
        code = process.wait(max(limit, 0.1))
        reason = "" if code == 0 else f"ended with code {code}"
    except subprocess.TimeoutExpired:
        reason = f"took longer than {limit:.0f} s"
    finally:
        _end(process)
    listener.join(5.0)
    return reason


def _end(process: "subprocess.Popen[str]") -> None:
    """The process and what it has started."""
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def declare_package(folder: Path) -> list[str]:
    """Where Python finds what the package declares, models and studies of papers among it.

    Returns:
        The folder, where the package is not installed and its declarations were written; else none.
    """
    with suppress(PackageNotFoundError):
        version("softcr")
        return []
    folder.mkdir(parents=True, exist_ok=True)
    command = [sys.executable, "setup.py", "-q", "egg_info", "--egg-base", str(folder)]
    subprocess.run(command, cwd=Path(__file__).parents[2], check=True)
    return [str(folder)]


def environment(folder: Path) -> dict[str, str]:
    """Of the parts: where pinocchio lies beside packages that `pip --target` has put somewhere,
    what the package declares where it is not installed, and an OpenMP library where the system has
    none (in `folder`)."""
    found = dict(os.environ, PYTHONUNBUFFERED="1", OPENBLAS_NUM_THREADS="1")
    python = f"python{sys.version_info.major}.{sys.version_info.minor}"
    inner = f"cmeel.prefix/lib/{python}/site-packages"
    places = [place for place in sys.path if place]
    paths = [path for place in places for path in (place, f"{place}/{inner}")
             if path == place or Path(path).is_dir()]  # fmt: skip
    paths += declare_package(folder)
    found["PYTHONPATH"] = os.pathsep.join(dict.fromkeys(paths))
    try:
        ctypes.CDLL("libgomp.so.1")
    except OSError:
        own = [path for place in places for path in Path(place).glob("pykdtree.libs/libgomp-*")]
        if own:
            folder.mkdir(parents=True, exist_ok=True)
            for name in ("libgomp.so.1", "libgomp.so.1.0.0"):
                (folder / name).unlink(missing_ok=True)
                (folder / name).symlink_to(own[0].resolve())
            before = found.get("LD_LIBRARY_PATH")
            found["LD_LIBRARY_PATH"] = os.pathsep.join([str(folder), *([before] if before else [])])
    return found


def run_parts(
    parts: Sequence[str],
    command: Callable[[str], Sequence[str]],
    seconds: float,
    log: Callable[[str], None],
    ready: Callable[[str, float], None] = lambda part, left: None,
    **more: Any,
) -> dict[str, str]:
    """Runs parts one after the other, whatever becomes of each.

    Args:
        parts: names of LIMITS.
        command: of a part.
        seconds: for all of them [s].
        log: told of every line.
        ready: called before a part with its name and what is left [s].
        more: of `subprocess.Popen`.

    Returns:
        part -> why it is not complete, of those that are not.
    """
    end, broken = time.monotonic() + seconds, {}
    for part in parts:
        ready(part, end - time.monotonic())
        limit = min(LIMITS[part], end - time.monotonic())
        if limit < 1.0:
            broken[part] = "no time was left"
            log(f"{part}: {broken[part]}")
            continue
        log(f"{part}: begins, for {limit:.0f} s at most")
        begun = time.monotonic()
        if reason := watch(command(part), limit, log, **more):
            broken[part] = reason
        log(f"{part}: {reason or 'done'} after {time.monotonic() - begun:.0f} s")
    return broken


class Kernels:
    """The processor's kernels, compiled in the background."""

    def __init__(self, env: Mapping[str, str], commands: Sequence[Sequence[str]]) -> None:
        """Begins at once: a process for each of the commands, which are arguments of Python."""
        told = {**env, "PYTHONHASHSEED": "0"}
        self._begun = time.monotonic()
        self._running = [
            subprocess.Popen(
                [sys.executable, *each], env=told, text=True,
                stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True,
            )
            for each in commands
        ]  # fmt: skip

    def wait(self, seconds: float, log: Callable[[str], None]) -> None:
        """Until they are there, or so long [s]."""
        end = time.monotonic() + seconds
        for process in self._running:
            with suppress(subprocess.TimeoutExpired):
                process.wait(max(0.0, end - time.monotonic()))
        if self._running:
            good = all(process.returncode == 0 for process in self._running)
            log(f"kernels of the processor: {'compiled' if good else 'not all compiled'} "
                f"after {time.monotonic() - self._begun:.0f} s")  # fmt: skip
        self.stop()

    def stop(self) -> None:
        """Ends what still compiles."""
        for process in self._running:
            _end(process)
        self._running = []


# -- the process of a part ------------------------------------------------------------------------


class Measurements:
    """What was measured so far, in a folder: FOLDER/cells.json and the table made of it."""

    def __init__(self, folder: Path, effort: "GpuEffort") -> None:
        """With what an earlier call has left there."""
        self._folder, self._effort = folder, effort
        self._found: dict[tuple[str, str], Result] = {}
        with suppress(OSError, ValueError, KeyError, TypeError):
            for each in json.loads((folder / _CELLS).read_text(encoding="utf-8")):
                self._found[each["case"], each["method"]] = each["result"]

    def add(self, case: str, method: str, result: "Result") -> None:
        """Keeps a result, and writes everything again."""
        self._found[case, method] = result
        told = [{"case": case, "method": method, "result": dict(result)}
                for (case, method), result in self._found.items()]  # fmt: skip
        _write(self._folder / _CELLS, json.dumps(told, indent=1) + "\n")
        self.write_table()

    def has(self, case: str, method: str) -> bool:
        """Whether there is a result of this cell."""
        return (case, method) in self._found

    def drop(self, cells: Mapping[tuple[str, str], Any]) -> None:
        """Forgets what an earlier call has found of these."""
        for cell in cells:
            self._found.pop(cell, None)

    def write_table(self) -> None:
        """The study's table of what is there."""
        from softcr_studies.frame.cell import Cell
        from softcr_studies.frame.results import Results
        from softcr_studies.frame.table import write_table
        from softcr_studies.speed import gpu

        cells = [Cell(*cell, 0, self._effort) for part in gpu.PARTS.values() for cell in part
                 if cell in self._found]  # fmt: skip
        results = Results(self._effort, _Kept(self._found))  # type: ignore[arg-type]
        results.cells += dict.fromkeys(cells)
        draft = self._folder / f"{_TABLE}.draft"
        write_table(draft, _about(self._folder, self._effort), gpu.STUDY.rows(results))
        draft.replace(self._folder / _TABLE)


@dataclass(frozen=True)
class _Kept:
    """Results by cell, as a study's store gives them."""

    found: "Mapping[tuple[str, str], Result]"

    def __getitem__(self, cell: "Cell") -> "Result":
        return self.found[cell.case_name, cell.method]


def measure_part(part: str, folder: Path, effort: "GpuEffort") -> None:
    """All measurements of a part; a line for each, as it is done."""
    from softcr_studies.frame.cell import Cell
    from softcr_studies.speed import gpu

    if not gpu.PARTS[part]:
        raise SystemExit(f"{part}: nothing is declared: no entry points of softcr are found")
    kept = Measurements(folder, effort)
    kept.drop(gpu.PARTS[part])
    for case, method in gpu.PARTS[part]:
        begun = time.monotonic()
        result = gpu.measured(Cell(case, method, 0, effort))
        kept.add(case, method, result)
        print(f"{case}, {method}: {_line(result)} ({time.monotonic() - begun:.1f} s)", flush=True)


def note_missing(parts: Mapping[str, str], folder: Path, effort: "GpuEffort") -> None:
    """Writes why they are not there for the measurements that parts did not come to."""
    from softcr_studies.speed import gpu

    kept = Measurements(folder, effort)
    for part, reason in parts.items():
        for case, method in gpu.PARTS.get(part, ()):
            if not kept.has(case, method):
                kept.add(case, method, {"skipped": f"the part {part} {reason}"})


def tell_machine(folder: Path) -> None:
    """Card, driver, CUDA, PyTorch, processor: printed, and kept for the table."""
    from softcr_models.devices import what_cuda_lacks
    from softcr_studies.frame.machine import describe_machine

    told = describe_machine()
    try:
        import torch

        told["versions"] |= {"torch": torch.__version__, "cuda": str(torch.version.cuda)}
    except ImportError:
        pass
    if lacks := what_cuda_lacks("torch"):
        print(f"no GPU: {lacks}: the processor's rows alone are measured", flush=True)
    else:
        device = torch.cuda.get_device_properties(0)
        told["card"] = {
            "name": device.name,
            "multiprocessors": device.multi_processor_count,
            "memory_gib": round(device.total_memory / 2**30, 1),
            "capability": f"{device.major}.{device.minor}",
            "driver": _driver(),
        }
    print(json.dumps(told, indent=1), flush=True)
    _write(folder / _MACHINE, json.dumps(told))


def _driver() -> str:
    """Version of NVIDIA's driver, as nvidia-smi says it."""
    command = ["nvidia-smi", "--query-gpu=driver_version", "--format=csv,noheader"]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=20)
    except (OSError, subprocess.TimeoutExpired):
        return "unknown"
    return done.stdout.strip().partition("\n")[0] or "unknown"


def _about(folder: Path, effort: "GpuEffort") -> dict[str, Any]:
    """What stands beside the rows; see `softcr_studies.frame.runner`."""
    from softcr_studies.frame.catalogue import file_of
    from softcr_studies.frame.code_version import code_version
    from softcr_studies.frame.machine import describe_machine
    from softcr_studies.speed.gpu import STUDY

    try:
        machine = json.loads((folder / _MACHINE).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        machine = describe_machine()
    return {
        "experiment": STUDY.name,
        "source": STUDY.source,
        "summary": STUDY.summary,
        "exact": STUDY.exact,
        **effort.model_dump(mode="json", exclude={"seeds", "periods"}),
        "code": code_version(file_of(STUDY.name)),
        "machine": machine,
    }


def _line(result: "Result") -> str:
    """The figures of a result in a line."""
    if "skipped" in result:
        return str(result["skipped"])
    told = [f"{name} {value:.4g}" for name, value in result.items()
            if isinstance(value, int | float)]  # fmt: skip
    return ", ".join(told)


def _write(path: Path, text: str) -> None:
    """A file that is there whole or not at all."""
    draft = path.with_name(f"{path.name}.draft")
    draft.write_text(text, encoding="utf-8")
    draft.replace(path)


# -- the command ----------------------------------------------------------------------------------


def _options(words: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog=f"python -m {_HERE}",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--output", type=Path, default=Path("results/gpu"), help="folder")
    parser.add_argument(
        "--begin-with", type=Path, metavar="FOLDER", help="of an earlier call, whose figures stay"
    )
    parser.add_argument(
        "--parts", nargs="+", choices=list(LIMITS), default=list(LIMITS), help="in their order"
    )
    parser.add_argument("--seconds", type=float, default=470.0, help="for all parts together")
    parser.add_argument(
        "--set", nargs="*", default=[], metavar="NAME=VALUE",
        help="of the study: repeats, seconds, largest, loop_seconds, training_seconds",
    )  # fmt: skip
    parser.add_argument("--measure", help=argparse.SUPPRESS)
    parser.add_argument("--missing", help=argparse.SUPPRESS)
    return parser.parse_args(words)


def _effort(given: Sequence[str]) -> "GpuEffort":
    from softcr_runtime.settings.node_settings import build_settings
    from softcr_studies.speed.gpu_batches import GpuEffort

    values = {name: json.loads(value) for name, value in (each.split("=", 1) for each in given)}
    return build_settings(GpuEffort, values, "option")


def main(words: Sequence[str]) -> int:
    """The command; returns 1 where a part is not complete."""
    chosen = _options(words)
    folder = chosen.output
    folder.mkdir(parents=True, exist_ok=True)
    if chosen.measure == "machine":
        tell_machine(folder)
        return 0
    if chosen.measure:
        measure_part(chosen.measure, folder, _effort(chosen.set))
        return 0
    if chosen.missing:
        note_missing(json.loads(chosen.missing), folder, _effort(chosen.set))
        return 0
    if chosen.begin_with is not None:
        for name in (_CELLS, _MACHINE):
            if (chosen.begin_with / name).is_file() and not (folder / name).exists():
                shutil.copy(chosen.begin_with / name, folder)
    env = environment(folder.absolute() / "libraries")
    given = ["--output", str(folder), *(["--set", *chosen.set] if chosen.set else [])]
    with (folder / _LOG).open("a", encoding="utf-8") as file:
        log = Log(file)
        parts = [part for part in LIMITS if part in chosen.parts]
        kernels = Kernels(env, KERNELS)

        def ready(part: str, left: float) -> None:
            if part not in ("machine", "code"):
                kernels.wait(min(COMPILING, left / 2), log)

        try:
            broken = run_parts(
                parts, lambda part: [sys.executable, "-m", _HERE, "--measure", part, *given],
                chosen.seconds, log, ready, env=env,
            )  # fmt: skip
        finally:
            kernels.stop()
        if broken:
            missing = [sys.executable, "-m", _HERE, "--missing", json.dumps(broken), *given]
            watch(missing, 60.0, log, env=env)
        log(f"table: {folder / _TABLE}")
    return 1 if broken else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
