"""The loop of `softcr up` with random valid robots: each is followed, or told of before the start.

A robot is a steel wire of 0.2 mm, a silicone arm of 30 mm, or what is between, of one to four
segments, with tendons or chambers. A process runs the command as a person would, on virtual time,
with a robot file that nobody has tuned; what it says, its exit code, its summary and its bag tell
what became of the robot.
"""

import json
import math
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

import numpy as np
import yaml
from pydantic import Field

from softcr_models.warm_up import ROD, ensure_warm
from softcr_runtime.bags.reading import Bag
from softcr_runtime.settings.node_settings import Seconds
from softcr_runtime.settings.registry import GRADIENT_MPC
from softcr_studies.frame.study import (
    Cell,
    Metric,
    Result,
    Results,
    Row,
    Seeds,
    Study,
    StudySettings,
)

_PROGRAM = ("-m", "softcr_tools.cli")  # imports studies, so no study may import it
_WARNED = re.compile(r"robot \S+ may .*not be followed: .*")
_POSES = ("simulation/truth/tip/pose", "estimate/tip/pose")
_INTERRUPTED = 130
_NEVER_ENDED = 60.0  # of the processor after it was asked to end [s]
_FOUND, _SHARE = "found", "share"

TRACKS, REFUSED, WARNED, SLOW, UNDECIDED = (
    "tracks", "refused before the start", "NOT good, and told so before the start",
    "tracks until the time was over", "not begun when the time was over",
)  # fmt: skip
NOT_GOOD, STOPPED, TRACEBACK, NAN, STUCK = (
    "NOT good without a word before the start", "stopped", "traceback", "not a number",
    "never ended",
)  # fmt: skip
FAULTS = (NOT_GOOD, STOPPED, TRACEBACK, NAN, STUCK)
"""What must become of no robot."""


class Settings(StudySettings):
    """How many robots, for how long."""

    seeds: Seeds = 1
    robots: int = Field(500, ge=1, le=100_000, description="number of robots")
    first: int = Field(0, ge=0, description="number of the first robot")
    duration: Seconds = Field(2.0, ge=1.0, le=3600.0, description="duration of a run")
    processor_seconds: Seconds = Field(
        60.0, gt=0.0, le=1e5, description="time of a processor after which a run is ended early"
    )
    filter: Literal["auto", "ukf", "ekf"] = Field("ekf", description="of the estimator")


def random_robot_content(number: int) -> dict[str, Any]:
    """The robot file of a steel wire of 0.2 mm, a silicone arm of 30 mm, or what is between.

    It has one to four segments, with tendons or chambers that bend one by up to 2.5 rad in as
    little as 50 ms.
    """
    random = np.random.default_rng((20, number))

    def between(low: float, high: float) -> float:
        return float(np.exp(random.uniform(np.log(low), np.log(high))))

    diameter = between(2e-4, 3e-2)
    ranges = ((2e-3, 1e9, 2e11), (8e-3, 1e6, 1e9), (1.0, 5e4, 2e6))
    modulus = next(between(low, high) for most, low, high in ranges if diameter < most)
    density = 7800.0 if modulus > 5e10 else 1100.0
    chambers = diameter > 8e-3 and random.random() < 0.6
    count = int(random.integers(1, 5))
    lever = (0.4 if diameter > 4e-3 else float(random.uniform(2, 8))) * diameter
    area, second_moment = np.pi / 4 * diameter**2, np.pi / 64 * diameter**4
    longest = 40 if diameter > 4e-3 else 120
    segments: list[dict[str, Any]] = [
        {
            "name": f"s{k}", "length": float(random.uniform(8, longest)) * diameter,
            "outer_diameter": diameter, "inner_diameter": 0.0, "density": density,
            "bending_compliance": 1.0 / (modulus * second_moment),
            "dilatation_compliance": 1.0 / (modulus * area),
            "relaxation_times": [between(5e-4, 1e-2)] * 6,
            "routing_radius": max(1.01 * lever, 0.5 * diameter),
        }
        for k in range(count)
    ]  # fmt: skip
    moment = random.uniform(0.3, 2.5) * modulus * second_moment
    moment /= min(segment["length"] for segment in segments)
    duration = between(0.05, 0.5)
    chamber_area = 0.06 * area
    actuators: list[dict[str, Any]] = []
    for k in range(count):
        for i in range(3):
            place: dict[str, Any] = {"name": f"a{k}{i}", "angle": 2 * np.pi / 3 * i, "to": f"s{k}"}
            if chambers:
                section = {"area": chamber_area, "lever_arm": 0.3 * diameter, "from": f"s{k}"}
                actuators.append({"type": "chamber", **place, **section})
            else:
                actuators.append({"type": "tendon", **place, "lever_arm": lever})
    content: dict[str, Any] = {
        "type": "rod", "name": f"random{number}", "segments": segments, "actuators": actuators,
        "tip_mass": 0.1 * density * area * segments[-1]["length"], "tip_mass_fraction": 0.2,
        "sensor_to_base_cap": 0.0, "base_cap_length": 0.0, "tip_cap_length": 0.0,
        "base_orientation": random.uniform(-np.pi, np.pi, 3).tolist(),
        "gravity": 9.81, "gravity_subintervals": 4, "gravity_strain_point": 0.5,
    }  # fmt: skip
    most = moment / (0.3 * diameter * chamber_area if chambers else lever)
    limits = {"minimum": 0.0, "maximum": most, "maximum_rate": most / duration}
    if chambers:
        content |= {"pressure_limits": limits, "pressure_lag": {"gain": 20.0, "pole": 20.0}}
    else:
        model = "exact" if random.random() < 0.5 else "constant"
        content |= {"tension_limits": limits, "tendon_model": model}
    return content


def run(cell: Cell) -> Result:
    """What became of one robot; see `outcome`."""
    ensure_warm((
        ROD, "softcr_simulation.warm_up:PLANT", "softcr_estimation.warm_up:FILTER",
        "softcr_control.warm_up:MINIMUM",
    ))  # fmt: skip
    settings, number = cell.settings, int(cell.case.split()[-1])
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / f"random{number}.yaml"
        file.write_text(yaml.safe_dump(random_robot_content(number)))
        arguments = (
            "up", "simulation", "--mode", "virtual", "--robot", file, "--controller", cell.method,
            "--duration", settings.duration, "--estimator.filter", settings.filter,
            "--results", folder,
        )  # fmt: skip
        said, code, spent = _told([*map(str, arguments)], settings.processor_seconds)
        return outcome(said, code, Path(folder) / "latest") | {"processor": spent}


def _told(arguments: list[str], most: float) -> tuple[str, int, float]:
    """Runs the command; after so many seconds of a processor it is asked to end as by Ctrl-C.

    Returns:
        What it said, its exit code, and the seconds.
    """
    surroundings = os.environ | {"COLUMNS": "2000", "OPENBLAS_NUM_THREADS": "1"}
    with tempfile.TemporaryFile("w+") as words:
        process = subprocess.Popen(
            [sys.executable, *_PROGRAM, *arguments], stdout=words, stderr=words,
            stdin=subprocess.DEVNULL, env=surroundings, preexec_fn=_hears_interrupts,
        )  # fmt: skip
        asked, spent = False, 0.0
        while process.poll() is None:
            time.sleep(0.1)
            spent = _processor_seconds(process.pid) or spent
            if spent > most and not asked:
                asked = True
                process.send_signal(signal.SIGINT)
            elif spent > most + _NEVER_ENDED:
                process.kill()
        words.seek(0)
        return words.read(), process.returncode, spent


def _hears_interrupts() -> None:
    """In a new process: what a shell starts in the background ignores them, and its children do."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


def _processor_seconds(process: int) -> float:
    """Of a process that runs, so far [s]; 0 of one that does not."""
    try:
        told = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return 0.0
    return (int(told[11]) + int(told[12])) / os.sysconf("SC_CLK_TCK")


def outcome(said: str, code: int, results: Path) -> dict[str, Any]:
    """What became of a robot.

    Args:
        said: what the command printed.
        code: its exit code.
        results: directory of the run, if there was one.

    Returns:
        found, one of the words above; note, the same with the line that tells why; share, the mean
        tip error over the length [%], NaN of a robot that did not move.
    """
    lines = [line.strip() for line in said.splitlines() if line.strip()]
    last = lines[-1] if lines else f"exit code {code}"
    summary, told = {}, results / "summary.json"
    if told.is_file():
        summary = json.loads(told.read_text())
    if "Traceback" in said:
        found, why = TRACEBACK, last
    elif code < 0:
        found, why = STUCK, last
    elif not summary:
        begun = any(line.startswith("on virtual time") for line in lines)
        found, why = (UNDECIDED, "") if code == _INTERRUPTED else (REFUSED, last)
        if begun and found == REFUSED:
            found = STOPPED
    else:
        found, why = _of_a_run(summary, lines, code, results / "bag")
    share = summary.get("tip_aed_percent_of_length")
    why = re.sub(r"\brandom\d+\b", "it", why.removeprefix("softcr: error: "))
    why = why.replace("robot it", "the robot")
    return {
        _FOUND: found, "note": f"{found}: {why}" if why else found,
        _SHARE: math.nan if share is None else float(share),
    }  # fmt: skip


def _of_a_run(
    summary: Mapping[str, Any], lines: Sequence[str], code: int, bag: Path
) -> tuple[str, str]:
    """What became of a robot whose run has a summary, and why."""
    verdict = summary["verdict"]
    if not _all_finite(bag):
        return NAN, verdict["line"]
    if verdict["good"]:
        return (TRACKS if summary["ended_by"] == "duration" else SLOW), ""
    warned = next((line for line in lines if _WARNED.fullmatch(line)), "")
    if warned:
        return WARNED, warned
    return (STOPPED if code else NOT_GOOD), verdict["line"]


def _all_finite(path: Path) -> bool:
    """Whether all poses of a bag are numbers."""
    bag = Bag(path)
    topics = [topic for topic in _POSES if bag.find(topic)]
    poses = (message.decode().pose for message in bag.messages(*topics))
    places = (getattr(pose, "pose", pose).position for pose in poses)
    return all(np.isfinite((place.x, place.y, place.z)).all() for place in places)


def _totals(results: Results) -> Iterable[Row]:
    """How many robots came to what."""
    for (method,) in {(cell.method,) for cell in results.cells}:
        found = [results[cell] for cell in results.cells if cell.method == method]
        counts = Counter(str(each[_FOUND]) for each in found)
        for words in (TRACKS, SLOW, REFUSED, WARNED, UNDECIDED, *FAULTS):
            must = 0.0 if words in FAULTS else None
            yield Row.of(
                f"of {len(found)} robots", method, words, [counts[words]], "robots", must=must
            )


STUDY = Study(
    name="robustness/random-robots",
    source="",
    summary="random valid robots in the closed loop: followed, or told of before the start",
    run=run,
    cases=lambda settings: [f"robot {settings.first + k}" for k in range(settings.robots)],
    methods=(GRADIENT_MPC,),
    settings=Settings,
    metrics=(Metric("mean tip error", "% of the length", _SHARE),),
    exact="The plant is the one of `softcr up simulation`: typical errors for a robot with "
    "chambers, the same equations with other numbers for one with tendons. A run that is ended "
    "early counts as far as it came.",
    further_rows=_totals,
)
