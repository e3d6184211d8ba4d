"""What of a run's plant is exact, and what differs from what filter and controller assume.

The plant's own description in the diagnostics is put into words; what it does not say is unknown.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from softcr_models.robots.kinds import KINDS
from softcr_models.robots.obstacle_files import obstacles_in_words
from softcr_runtime.settings.registry import entry, names
from softcr_simulation.errors.plant_errors import SAME_STRUCTURE, PlantErrors, about_field
from softcr_tools.report.page import PLANT_WORDS
from softcr_tools.report.run import Run

Lines = Iterator[tuple[str, str]]  # one of `PLANT_WORDS`, and a line under it

_UNITS = {"_mm": "mm", "_kg": "kg", "_pa": "Pa", "_n": "N", "_cycles": "cycles", "_percent": "%",
          "_rad": "rad"}  # fmt: skip
_ON_ANY_MODEL = (
    *(name for name in names("controller") if not entry("controller", name).takes),
    *names("estimator"),
)
"""Controllers and estimators that compute with the model that their settings name; those that are
named with a file bring their own."""
_OF_LAG = {"lag_pole", "lag_pole_factor", "vent_pole_factor", "valve_dead_band"}
_TOLD_OF_EVERY_PLANT = {
    "bending_factor", "tip_mass_factor", "damping_factor", "tip_noise", "pressure_noise",
    "force_noise", "moment_noise",
}  # fmt: skip
_ABSOLUTE = ("missing_poses", "lag_pole")  # no part of the file's value
_NOISES = {
    "pressure_noise": ("pressure readings", "Pa"),
    "force_noise": ("base force", "N"),
    "moment_noise": ("base moment", "N m"),
}


def plant(run: Run) -> dict[str, Any]:
    """What of the plant is exact, what differs and what it does not tell, in words.

    Returns:
        `simulated`: whether a simulator ran; `exact`, `differs`, `unknown`: lines.
    """
    lines: dict[str, list[str]] = {kind: [] for kind in PLANT_WORDS}
    for kind, line in _lines(run):
        lines[kind].append(line)
    return {"simulated": "simulator" in run.bag.nodes or len(run.true_tip) > 0, **lines}


def plant_in_words(run: Run) -> str:
    """A simulated plant in a few words: its errors by the name of their file, or its class, and
    what was added to it; empty on a bench, and where nothing was told."""
    settings = run.bag.said("simulator", "settings") or {}
    named, errors = settings.get("plant"), settings.get("plant_errors")
    if named and named not in KINDS:
        words = str(named).rpartition(":")[2]
    elif errors or run.bag.said("simulator", "plant_mismatch") is not None:
        words = Path(str(errors or SAME_STRUCTURE)).stem
    else:
        return ""
    told = run.bag.said("simulator", "plant_mismatch") or {}
    payload, added = told.get("payload_kg", settings.get("payload")), []
    if isinstance(payload, (int, float)) and payload:
        added.append(f"payload {payload:g} kg")
    for name in ("loads", "obstacles"):
        if settings.get(name):
            added.append(f"{name} {Path(str(settings[name])).stem}")
    return f"{words} with {' and '.join(added)}" if added else words


def _lines(run: Run) -> Lines:
    bag = run.bag
    if "simulator" not in bag.nodes:
        if len(run.true_tip):
            yield "unknown", "the simulator's own description was not recorded"
        return
    settings = bag.said("simulator", "settings") or {}
    mismatch = bag.said("simulator", "plant_mismatch")
    kind = str(settings.get("plant") or run.kind)
    own = str(bag.said("simulator", "plant_model") or kind)
    models = {role: _model(told, role, kind) for role, told in _settings_of(run).items()}
    if same := [role for role, model in models.items() if model == own]:
        yield "exact", f"same equations as the model of {' and '.join(same)} ({own})"
    others = [f"{role} {model}" for role, model in models.items() if model not in ("", own)]
    if others and (own in KINDS or own != kind):
        yield "differs", f"equations: plant {own}, {', '.join(others)}"
    in_words = bag.said("simulator", "in_words") or {}
    for word in PLANT_WORDS:
        yield from ((word, line) for line in in_words.get(word, ()))
    if own == kind and kind not in KINDS:
        yield "unknown", f"plant {kind} does not say how it differs from the models"
    if mismatch is None and kind == "rod":
        yield "unknown", "how the plant differs from the robot file"
    for role, told in _settings_of(run).items():
        if told.get("model_file"):
            yield "differs", f"numbers of the {role}'s model: those of {told['model_file']}"
    errors = bag.said("simulator", "plant_errors") or {}
    if kind == "rod" and mismatch and not _OF_LAG & {*mismatch, *errors}:
        yield "exact", _lag(run.bag.robot)
    for name, value in (mismatch or {}).items():
        yield from _intervals(run, int(value)) if name == "intervals" else [_told(name, value)]
    yield from _errors(run)
    if own != kind:
        for name, value in (bag.said("simulator", "true_parameters") or {}).items():
            yield "differs", f"{name.replace('_', ' ')} {value:g}"
    yield from _surroundings(run)
    for name, (what, unit) in _NOISES.items() if mismatch is not None else ():
        if name == "pressure_noise" and {"tension_noise_n", "angle_noise_rad"} & {*mismatch}:
            continue  # a robot of tendons, or one whose noise was told above
        if f"{name}_pa" not in mismatch and (noise := _noise(run, name)) is not None:
            yield _either(noise, f"{what}: noise {noise:g} {unit}", f"{what}: no noise")


def _lag(robot: dict[str, Any]) -> str:
    """How the inputs follow their commands, as the robot's file has it."""
    types = {each.get("type") for each in robot.get("actuators", ({},))}
    if not types <= {"tendon", "motor"}:
        return "pressure lag of the robot file"
    quantity = "tension" if "tendon" in types else "angle"
    if f"{quantity}_lag" in robot:
        return f"{quantity} lag of the robot file"
    return f"{quantity}s follow their commands within a cycle, as in the robot file"


def _settings_of(run: Run) -> dict[str, dict[str, Any]]:
    """Settings of the controller and of the estimator, as far as they were told."""
    nodes = {"controller": run.controller, "estimator": "estimator"}
    return {role: run.bag.said(node, "settings") or {} for role, node in nodes.items()}


def _model(settings: dict[str, Any], role: str, kind: str) -> str:
    """The model a node predicts with; of a class from elsewhere its own name; empty: not told."""
    runs = settings.get(role)
    if runs and runs not in _ON_ANY_MODEL:
        return str(runs).rpartition(":")[2]
    if "model" not in settings:
        return ""
    return str(settings["model"] or (kind if kind in KINDS else "rod"))


def _told(name: str, value: float) -> tuple[str, str]:
    """A difference in words: 0 is as in the file, or none."""
    ending = next((each for each in _UNITS if name.endswith(each)), "")
    words = name.removesuffix(ending).replace("_", " ")
    if ending or name in _ABSOLUTE:
        unit = _UNITS.get(ending, "")
        return _either(value, f"{words} {value:g} {unit}".rstrip(), f"no {words}")
    return _either(value, f"{words} {100 * value:+g} %", f"{words} of the robot file")


def _either(deviation: float | bool, differs: str, exact: str) -> tuple[str, str]:
    return ("differs", differs) if deviation else ("exact", exact)


def _intervals(run: Run, own: int) -> Lines:
    told = {role: settings.get("intervals") for role, settings in _settings_of(run).items()}
    theirs = {role: number for role, number in told.items() if number is not None}
    if theirs:
        line = f"intervals: plant {own}" + "".join(f", {role} {n}" for role, n in theirs.items())
        yield _either({*theirs.values()} != {own}, line, line)


def _surroundings(run: Run) -> Lines:
    """Loads and obstacles, of which filter and controller know nothing."""
    for line in run.loads:
        yield "differs", f"load {line}"
    for line in obstacles_in_words(run.bag.said("simulator", "obstacles")):
        yield "differs", f"obstacle {line}"


def _errors(run: Run) -> Lines:
    """What a structural plant's errors are beside the numbers of every plant."""
    errors = run.bag.said("simulator", "plant_errors")
    if errors is None:
        return
    yield "exact", "continuum of a Cosserat rod, chambers that act on its centre line by a lever"
    if left_out := run.bag.said("simulator", "plant_errors_left_out"):
        yield "exact", f"left out of the preset: {left_out}"
    for name, value in errors.items():
        if name not in PlantErrors.model_fields:
            yield "unknown", f"{name} {value}"
        elif name not in _TOLD_OF_EVERY_PLANT:
            unit = about_field(name).unit
            numbers = value if isinstance(value, list) else [value]
            told = ", ".join(f"{each:g}" for each in numbers)
            yield "differs", f"{name.replace('_', ' ')} {told}{'' if unit == '-' else f' {unit}'}"


def _noise(run: Run, name: str) -> float | None:
    """Of a sensor: as the plant's errors have it, or the robot file; None: neither does."""
    chosen = (run.bag.said("simulator", "plant_errors") or {}).get(name)
    if chosen is not None:
        return float(chosen)
    for sensor in run.bag.robot.get("sensors", ()):
        if sensor.get("type") == "base_wrench" and name in sensor:
            return float(sensor[name])
        if sensor.get("type") == "pressure" and name == "pressure_noise":
            return float(sensor["noise"])
    return None
