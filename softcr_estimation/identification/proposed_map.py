"""A column map as the names of columns suggest it, as YAML with a comment at each guess."""

import json
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain
from pathlib import Path

import numpy as np
import yaml

from softcr_estimation.identification.recorded_tables import Table, read_tables
from softcr_models.files.csv_files import UNITS
from softcr_models.identification.measured_groups import groups_of
from softcr_models.model import Inputs
from softcr_models.robots.robot import Robot
from softcr_models.rod.description import rod_inputs

_TIME = re.compile(
    r"(?i)(.*[/._ ])?(t|time|times|timestamp|stamp|sec|seconds|zeit)(_?(s|ms|us|ns))?"
)
_RATE = re.compile(r"(?i)rate|fs|frequency|sampling_?rate|hz")
_TRIAL = re.compile(r"(?i)(trial|run|experiment|episode|sequence)(_?(id|no|number|name))?")
_OF_INPUT = (  # word in a name -> unit that such columns usually have
    ("pressure", "kPa"), ("effort", ""), ("valve", ""), ("tension", "N"), ("force", "N"),
    ("torque", "N m"), ("angle", "rad"),
    ("motor", "rad"), ("length", "m"), ("volt", "V"), ("press", "kPa"), ("command", ""),
    ("input", ""),
)  # fmt: skip
_SHORT_INPUTS = re.compile(r"(?i)(u|p|q|f|tau|cmd)(_?\d+.*)?")
_ENDINGS = ("Pa", "kPa", "MPa", "bar", "mbar", "psi", "V", "mN", "Nmm", "Nm", "N", "deg", "rad",
            "mm", "cm", "m")  # fmt: skip
_U = re.compile(r"(?i)u(_?\d+)?")
_ASKED = re.compile(r"(?i)cmd|command|desired|target|reference|setpoint")
_QUATERNION = re.compile(r"(?i)(.*[._ ])?(q|orientation|rot)?[._ ]?[xyzw]")
_POSITION = re.compile(
    r"(?i)position|pos|marker|tip|disc|plate|tracker|mocap|rigid|body|pose|xyz|y"
)
_MOST_VOLTS = 12.0
_USUAL = {"Pa": ("Pa", "kPa", "bar", "psi"), "N": ("N",), "rad": ("rad", "deg")}
"""SI unit in which an actuator acts -> units of which the likeliest is proposed."""
_DISTANCES = {"m": (0.003, 2.0), "cm": (2.0, 200.0), "mm": (200.0, 5000.0)}
"""Usual distances of a tip from its base [unit]."""


def proposed_map(path: Path, robot: Robot | None) -> str:
    """YAML of a column map for a file.

    Where no column looks like an input or a position, its place is empty, and below are the ranges
    of all that are left to choose from.

    Args:
        path: of a recording.
        robot: that was recorded; None: its inputs and sensors are guessed as well.

    Raises:
        UserError: the file cannot be read.
    """
    trials = read_tables(path)
    name, table = next(iter(trials.items()))
    left = [each for each in table.names if each in table.own or each in table.columns]
    lines = [f"# Proposed from {path}; a comment stands at each guess.",
             f"# Columns: {_shown(table.names)}"]  # fmt: skip
    if len(trials) > 1:
        lines.append(f"# Trials: {_shown(trials)}; columns are those of {_shown([name])}.")
    lines += _time(table, left)
    lines += _trial(table, left)
    of_positions = list(_triples(table, left)) or list(_of_bodies(table, left))
    taken = {column for _, columns in of_positions for column in columns}
    of_inputs = _inputs(table, [each for each in left if each not in taken], robot)
    of_positions = [
        (stem, columns) for stem, columns in of_positions if not {*columns} & {*of_inputs}
    ]
    lines += (
        _of_inputs(table, of_inputs, robot)
        if of_inputs
        else [
            "inputs: []  # none is named like one: a {column: NAME, unit: UNIT} for each actuator"
        ]
    )
    lines += (
        _of_positions(table, of_positions, robot)
        if of_positions
        else ["positions: {}  # none looks like one: tip: {columns: [X, Y, Z], unit: UNIT}"]
    )
    lines.append("payload: 0.0  # [kg]; or by file or trial, as {NAME: 0.1}")
    used = {*of_inputs, *(name for _, columns in of_positions for name in columns)}
    if unused := [each for each in left if each not in used]:
        lines += ["# Not used:", *(f"#   {_shown([each])}{_range(table, each)}" for each in unused)]
    return "\n".join(lines) + "\n"


def _time(table: Table, left: list[str]) -> list[str]:
    """The lines, and its column no longer among those left."""
    if table.own:
        return ["# Messages of a bag have their own stamps."]
    for name in left:
        if (match := _TIME.fullmatch(name)) is None:
            continue
        left.remove(name)
        steps = np.diff(table.columns[name])
        period = float(np.median(steps[np.isfinite(steps)])) if len(steps) else 0.0
        told = table.units.get(name) or match[4] or ""
        sizes = {"s": 1.0, "ms": 1e-3, "us": 1e-6, "ns": 1e-9}
        fitting = [unit for unit, size in sizes.items() if 5e-4 <= period * size <= 0.5]
        unit = told if told in sizes else next(iter(fitting), "s")
        guess = "" if told else f"  # guessed: {period:g} between rows"
        return [f"time: {{column: {_quoted(name)}, unit: {unit}}}{guess}"]
    for name in left:
        steps = np.diff(table.columns[name])
        if (
            len(steps)
            and (steps > 0.0).all()
            and 5e-4 <= (period := float(np.median(steps))) <= 0.5
        ):
            left.remove(name)
            guess = f"  # guessed: it grows, by {period:g} from row to row"
            return [f"time: {{column: {_quoted(name)}, unit: s}}{guess}"]
    for name, value in table.numbers.items():
        if _RATE.fullmatch(name):
            return [f"time: {{rate: {value:g}}}  # guessed from {name} [Hz]"]
    return ["# No column of times: each row is taken for a configuration at rest.",
            "# time: {rate: 100.0}   # [Hz], if rows are evenly spaced in time"]  # fmt: skip


def _trial(table: Table, left: list[str]) -> list[str]:
    named = [each for each in (*left, *table.texts) if _TRIAL.fullmatch(each)]
    for name in named:
        if name in left:
            left.remove(name)
    return [f"trial: {_quoted(named[0])}"] if named else []


def _triples(table: Table, left: Sequence[str]) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Stem and columns of what looks like a position: three or two of one stem."""
    stems: dict[str, dict[str, str]] = defaultdict(dict)
    for name in left:
        match = re.fullmatch(r"(?i)(.*?)[._ ]?([xyz])", name)
        if match and not re.search(r"(?i)orient|quat|rot|vel|twist|force|moment|torque", match[1]):
            stems[match[1]][match[2].lower()] = name
    found = False
    for stem, axes in stems.items():
        if len(axes) > 1 and not (stem.endswith("q") and f"{stem}w" in left):
            found = True
            yield stem, tuple(axes[axis] for axis in sorted(axes))
    if found:
        return
    for stem, names in _numbered(left).items():
        if not _POSITION.fullmatch(stem) and not _POSITION.search(stem):
            continue
        by_pairs = len(names) == 2 or (len(names) % 3 and not len(names) % 2)
        width = 2 if by_pairs else 3
        if len(names) % width:
            continue
        for k in range(0, len(names), width):
            several = f"{stem}_{k // width + 1}" if len(names) > width else stem
            yield several, tuple(names[k : k + width])


def _of_bodies(table: Table, left: Sequence[str]) -> Iterator[tuple[str, tuple[str, ...]]]:
    """The three columns before each four that are a quaternion, whatever they are called."""
    names = [each for each in left if each in table.columns]
    for k in range(3, len(names) - 3):
        four = np.stack([table.columns[each] for each in names[k : k + 4]])
        if (np.abs(np.linalg.norm(four, axis=0) - 1.0) < 1e-3).all() and not (four == 1.0).any():
            yield f"body_{names[k - 3]}", tuple(names[k - 3 : k])


def _range(table: Table, name: str) -> str:
    values = _values(table, name)
    known = values[np.isfinite(values)]
    return f": {known.min():.4g} to {known.max():.4g}" if known.size else ": empty"


def _numbered(left: Sequence[str]) -> dict[str, list[str]]:
    """Columns STEM_1, STEM_2, ... and STEM_1_1, ... by stem."""
    stems: dict[str, list[str]] = defaultdict(list)
    for name in left:
        if match := re.fullmatch(r"(.*?)[._ ]?\d+(?:_\d+)?", name):
            stems[match[1]].append(name)
    return stems


def _inputs(table: Table, left: Sequence[str], robot: Robot | None) -> list[str]:
    """As many columns as the robot has actuators, measured before asked for."""
    named: dict[str, list[str]] = defaultdict(list)
    for name in left:
        plain = name.lower()
        word = next((word for word, _ in _OF_INPUT if word in plain), "")
        short = _SHORT_INPUTS.fullmatch(name)
        if (word or short) and not re.search(r"(?i)orient|quat|vel|force[._]?[xyz]$", name):
            named[re.sub(r"\d+", "", plain)].append(name)
    count = len(robot.actuators) if robot else 0
    fitting = [each for each in named.values() if not count or len(each) == count]
    fitting = fitting or ([[*chain(*named.values())][:count]] if named else [])
    fitting.sort(key=lambda names: bool(_ASKED.search(names[0]) or _U.fullmatch(names[0])))
    return fitting[0] if fitting else []


def _of_inputs(table: Table, names: Sequence[str], robot: Robot | None) -> list[str]:
    lines = ["inputs:  # in the order of the robot's actuators"]
    actuators = [each.name for each in robot.actuators] if robot else []
    if robot is not None and len(names) != len(actuators):
        lines.append(
            f"  # {robot.name} has {len(actuators)} actuators, {', '.join(actuators)}; "
            f"found are {len(names)} columns"
        )
    highest = max(float(np.nanmax(np.abs(_values(table, each)), initial=0.0)) for each in names)
    limits = rod_inputs(robot) if robot else None
    for place, name in enumerate(names):
        told, why = _unit(table, name, highest, robot, place, limits)
        more = ""
        if told == "V":
            most = float(np.max(limits.high)) if limits else 1e5
            more = f", gain: {most / max(highest, 1e-9):.2e}"
            why += "; gain [Pa/V] or [N/V] guessed, so that the highest is the robot's limit"
        elif told in UNITS["N m"] or (told in UNITS["m"] and "rad" in _acting(robot, place)):
            more, why = ", spool_radius: 0.01", why + "; spool_radius [m]: a guess"
        who = f"{actuators[place]}: " if place < len(actuators) else ""
        lines.append(f"  - {{column: {_quoted(name)}, unit: {_quoted(told)}{more}}}  # {who}{why}")
    return lines


def _unit(
    table: Table, name: str, highest: float, robot: Robot | None, place: int, limits: Inputs | None
) -> tuple[str, str]:
    """The unit of an input, and why."""
    if unit := table.units.get(name):
        return unit, "unit as the file has it"
    for ending in _ENDINGS:
        if re.search(rf"[_. ]{ending}(_?\d+)?$", name):
            return ending, "unit from the name"
    word = next((unit for word, unit in _OF_INPUT if word in name.lower() and unit), "")
    if _U.fullmatch(name) and highest <= _MOST_VOLTS:
        return "V", f"guessed: up to {highest:.3g}"
    if limits is not None and robot is not None and place < len(robot.actuators):
        acts, most = _acting(robot, place), float(np.max(limits.high))
        sizes = {unit: UNITS[acts][unit] for unit in _USUAL[acts]}
        reached = {unit: max(highest, 1e-9) * size / most for unit, size in sizes.items()}
        near = {  # above its limit no robot is driven
            unit: abs(np.log(share)) + (2.0 if share > 1.1 else 0.0)
            for unit, share in reached.items()
        }
        best = min(near, key=lambda unit: near[unit])
        if word in ("N", "N m", "V", "m") and acts != "Pa":
            return word, f"guessed from the name: up to {highest:.3g}"
        if not 0.25 < reached[best] < 4.0 and highest <= _MOST_VOLTS:
            return "V", f"guessed: up to {highest:.3g}, in no unit near the limit {most:.3g}"
        return best, f"guessed: up to {highest:.3g}, the robot's limit is {most:.3g} SI"
    if re.fullmatch(r"(?i)q(_?\d+)?", name):
        word = "rad" if highest < 7.0 else "deg"
    return word or "Pa", f"guessed: up to {highest:.3g}"


def _of_positions(
    table: Table, positions: Sequence[tuple[str, tuple[str, ...]]], robot: Robot | None
) -> list[str]:
    sensors = [each.output for each in groups_of(robot) if each.unit == "m"] if robot else ["tip"]
    names = _named(positions, sensors)
    lines, width = ["positions:"], len(positions[0][1])
    for (stem, columns), sensor in zip(positions, names, strict=True):
        off = "" if sensor and len(columns) == width else "# "
        told = table.units.get(columns[0], "")
        far = float(np.sqrt(sum(np.nanmax(_values(table, one) ** 2) for one in columns)))
        unit = told or _of_distance(far, robot)
        why = "unit as the file has it" if told else f"guessed: up to {far:.3g} from the origin"
        more = ", scale: 1.0e-3" if unit == "px" else ""
        listed = ", ".join(map(_quoted, columns))
        who = sensor or f"SENSOR_OF_{re.sub('[^A-Za-z0-9]', '_', stem)}"
        if not sensor:
            why = "a sensor of type pose in the robot file may be called so"
        what = f"columns: [{listed}], unit: {_quoted(unit)}{more}"
        lines.append(f"  {off}{who}: {{{what}}}  # {why}; sensor guessed")
    axes = "[x, y, z]" if width == 3 else "[x, z]"
    origin = ", ".join(["0.0"] * width)
    lines.append(
        f"frame: {{axes: {axes}, origin: [{origin}]}}  # a guess: which axes of the base frame "
        "(z along the straight rod, to the tip) the columns are, and where the base is [m]"
    )
    return lines


def _named(positions: Sequence[tuple[str, tuple[str, ...]]], sensors: Sequence[str]) -> list[str]:
    """The sensor of each position, by its name or its place; empty without one."""
    found = [next((each for each in sensors if each.lower() in stem.lower()), "")
             for stem, _ in positions]  # fmt: skip
    along = [each for each in (*sensors[1:], *sensors[:1]) if each not in found]
    if not any(found) and len(positions) <= len(along):
        return along[len(along) - len(positions) :]  # base to tip, the tip is the last one
    if "tip" not in found and "" in found:
        found[len(found) - 1 - found[::-1].index("")] = "tip"
    return [name if name not in found[:k] else "" for k, name in enumerate(found)]


def _of_distance(far: float, robot: Robot | None) -> str:
    if robot is not None:
        sizes: Mapping[str, float] = {"m": 1.0, "cm": 1e-2, "mm": 1e-3}
        near = {unit: abs(np.log(max(far, 1e-9) * size / robot.length)) for unit, size in
                sizes.items()}  # fmt: skip
        best = min(near, key=lambda unit: near[unit])
        return best if near[best] < np.log(30.0) else "px"
    return next((unit for unit, (low, high) in _DISTANCES.items() if low <= far < high), "px")


def _values(table: Table, name: str) -> np.ndarray:
    return np.asarray(table.own[name].values if name in table.own else table.columns[name], float)


def _quoted(name: str) -> str:
    """A name as YAML has it."""
    plain = re.fullmatch(r"[A-Za-z_/][\w/. ]*", name) and yaml.safe_load(name) == name
    return name if plain and name not in "yn" else json.dumps(name)


def _shown(names: Iterable[str]) -> str:
    """Names of a file in a comment, which none of them can end."""
    return "".join(each if each.isprintable() else "?" for each in ", ".join(names))


def _acting(robot: Robot | None, place: int) -> str:
    """SI unit in which an actuator acts; empty where there is none."""
    return robot.input_units[place] if robot and place < len(robot.actuators) else ""
