"""What of a run's plant is exact, and what differs from what filter and controller assume.

An error in a simulation says little before it is known what the plant shares with the model. The
plant's own description in the diagnostics is put into words here; what it does not say is said to
be unknown.
"""

from typing import Any

from softcr_tools.report.run import Run

_FILE = {
    "rod": "geometry, gravity and material law of the robot file",
    "arm": "bodies that bend with constant curvature, as the model's sections do",
}
_UNITS = {"_mm": "mm", "_pa": "Pa", "_cycles": "cycles", "_percent": "%"}
_ON_ANY_MODEL = ("nempc", "rod_mpc", "rod")  # the house's controllers and its filter
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
    bag = run.bag
    told: dict[str, list[str]] = {"exact": [], "differs": [], "unknown": []}
    exact, differs, unknown = told.values()
    if "simulator" not in bag.nodes:
        simulated = len(run.true_tip) > 0
        unknown += ["the simulator's own description was not recorded"] * simulated
        return {"simulated": simulated, **told}
    settings = bag.said("simulator", "settings") or {}
    mismatch = bag.said("simulator", "plant_mismatch")
    roles = (("controller", run.controller), ("estimator", "estimator"))
    kind = str(settings.get("plant") or ("arm" if run.is_tendon_driven else "rod"))
    own = str(bag.said("simulator", "plant_model") or kind)
    models = {role: _model(bag.said(node, "settings") or {}, role, kind) for role, node in roles}
    same = [role for role, model in models.items() if model == own]
    exact += [f"same equations as the model of {' and '.join(same)} ({own})"] * bool(same)
    if own in _FILE or own != kind:
        others = [f"{role} {model}" for role, model in models.items() if model not in ("", own)]
        differs += [f"equations: plant {own}, {', '.join(others)}"] * bool(others)
    if kind in _FILE and own == kind:
        exact.append(_FILE[kind])
    elif own == kind:
        unknown.append(f"plant {kind} does not say how it differs from the models")
    if mismatch is None:
        unknown += ["how the plant differs from the robot file"] * (kind == "rod")
    exact += ["pressure lag of the robot file"] * ("lag_pole" not in (mismatch or ["lag_pole"]))
    for name, value in (mismatch or {}).items():
        if name == "intervals":
            _compare_intervals(run, int(value), exact, differs)
        else:
            (differs if value else exact).append(_told(name, value))
    for name, value in (
        (bag.said("simulator", "true_parameters") or {}).items() if own != kind else ()
    ):
        differs.append(f"{name.replace('_', ' ')} {value:g}")
    if kind == "arm":
        _compare_arm(run, exact, differs)
    for name, (what, unit) in _NOISES.items() if mismatch is not None else ():
        if f"{name}_pa" not in mismatch and (noise := _noise(run, settings, name)) is not None:
            line = f"{what}: noise {noise:g} {unit}" if noise else f"{what}: no noise"
            (differs if noise else exact).append(line)
    return {"simulated": True, **told}


def _model(settings: dict[str, Any], role: str, kind: str) -> str:
    """The model a node predicts with; of a class from elsewhere its own name; empty: not told."""
    runs = settings.get(role)
    if runs and runs not in _ON_ANY_MODEL:
        return str(runs).rpartition(":")[2]
    if "model" not in settings:
        return ""
    return str(settings["model"] or (kind if kind in _FILE else "rod"))


def _told(name: str, value: float) -> str:
    """A difference in words: 0 is as in the file, or none."""
    ending = next((each for each in _UNITS if name.endswith(each)), "")
    words = name.removesuffix(ending).replace("_", " ")
    if ending:
        return f"{words} {value:g} {_UNITS[ending]}" if value else f"no {words}"
    if name in _ABSOLUTE:
        return f"{words} {value:g}" if value else f"no {words}"
    return f"{words} {100 * value:+g} %" if value else f"{words} of the robot file"


def _compare_intervals(run: Run, own: int, exact: list[str], differs: list[str]) -> None:
    nodes = (("controller", run.controller), ("estimator", "estimator"))
    told = {role: (run.bag.said(node, "settings") or {}).get("intervals") for role, node in nodes}
    theirs = {role: number for role, number in told.items() if number is not None}
    if theirs:
        line = "".join(f", {role} {number}" for role, number in theirs.items())
        (exact if {*theirs.values()} == {own} else differs).append(f"intervals: plant {own}{line}")


def _compare_arm(run: Run, exact: list[str], differs: list[str]) -> None:
    payload, noise = (run.bag.said("simulator", name) for name in ("payload", "tip_noise_mm"))
    if run.arm is not None:
        bodies, sections = len(run.arm.bodies), len(run.arm.racks)
        line = f"{bodies} bodies, the controller's model {sections} sections"
        (exact if bodies == sections else differs).append(line)
    if payload is not None:
        line = f"payload {payload:g} kg, unknown to the controller" if payload else "no payload"
        (differs if payload else exact).append(line)
    if noise is not None:
        (differs if noise else exact).append(_told("tip_noise_mm", noise))
    exact.append("tendon lengths are read without noise")


def _noise(run: Run, settings: dict[str, Any], name: str) -> float | None:
    """Of a sensor: as the plant was told, or below 0 as the robot file has it; None: not told."""
    chosen = settings.get(name)
    if chosen is None or chosen >= 0.0:
        return chosen
    for sensor in run.bag.robot.get("sensors", ()):
        if sensor.get("type") == "base_wrench" and name in sensor:
            return float(sensor[name])
        if sensor.get("type") == "pressure" and name == "pressure_noise":
            return float(sensor["noise"])
    return None
