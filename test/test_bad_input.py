"""Bad input: every field of every kind of file and of every node's settings, spoilt in turn."""

import copy
import math
import re

import pytest
import yaml
from kit.refusals import line_about, one_line

from softcr_control import controller_file
from softcr_control.controller_file import controller_settings, load_controller
from softcr_hardware.ethercat.terminals import load_station
from softcr_hardware.force_torque.mounting import load_mounting
from softcr_hardware.optitrack.calibration import load_calibration
from softcr_models import UserError, load_robot
from softcr_models.files import yaml_files
from softcr_models.files.config import config_directory
from softcr_models.files.yaml_files import available
from softcr_models.robots import robot
from softcr_models.robots.obstacle_files import load_obstacles
from softcr_runtime.settings import registry
from softcr_runtime.settings.node_settings import build_settings, declared_settings, setting_values
from softcr_simulation.errors.plant_errors import load_plant_errors
from softcr_simulation.scripted_loads import load_script
from softcr_tools.ros.executables import NODES
from softcr_tools.ros.run import settings_of
from softcr_tools.running.hardware_system import HardwareOptions
from softcr_tools.running.run_options import SimulationOptions

CONFIG = config_directory()


def load_any_robot(path):
    return load_robot(path, None)


def load_any_controller(name_or_path):
    file = load_controller(name_or_path)
    return controller_settings(registry.resolve("controller", file.type).Settings, file)


TWO_SEGMENTS = load_robot("two_segments")


def load_loads(path):
    return load_script(path, TWO_SEGMENTS)


KINDS = {
    "rod": ("robots/licher2025.yaml", load_any_robot),
    "tendons": ("robots/till_tendon.yaml", load_any_robot),
    "segments": ("robots/two_segments.yaml", load_any_robot),
    "strain": ("robots/pcs_two_segments.yaml", load_any_robot),
    "arm": ("robots/dalenberg_robot1.yaml", load_any_robot),
    "nempc": ("controllers/nempc.yaml", load_any_controller),
    "rod_mpc": ("controllers/rod_mpc.yaml", load_any_controller),
    "station": ("ethercat/licher2025.yaml", load_station),
    "regulators": ("ethercat/regulators.yaml", load_station),
    "calibration": ("optitrack/licher2025.yaml", load_calibration),
    "mounting": ("force_torque/licher2025.yaml", load_mounting),
    "obstacles": ("obstacles/ball.yaml", load_obstacles),
    "loads": ("loads/tip_pull.yaml", load_loads),
    "plant errors": ("plant_errors/hard.yaml", load_plant_errors),
}


def fields(content, place=()):
    """What holds it, its key and its place, of each field and item of nested content."""
    for key in list(content) if isinstance(content, dict) else range(len(content)):
        yield content, key, (*place, key)
        if isinstance(content[key], (dict, list)):
            yield from fields(content[key], (*place, key))


def spoilt(value):
    """Values of other types, those that Python would convert among them, and what is no finite
    number."""
    if isinstance(value, bool):
        return ["perhaps", 3.5, int(value), str(value).lower()]
    if isinstance(value, (int, float)):
        return ["many", math.nan, {"a": 1}, True, str(value)]
    return [3.5, True] if isinstance(value, str) else ["text", math.nan]


@pytest.mark.parametrize("kind", KINDS)
def test_each_field_of_a_file_that_is_spoilt_is_told_with_path_place_value_and_what_is_allowed(
    tmp_path, monkeypatch, kind
):
    shipped, load = KINDS[kind]
    whole = yaml.safe_load((CONFIG / shipped).read_text())
    path = tmp_path / "mine.yaml"
    path.touch()
    for module in (yaml_files, controller_file, robot):
        monkeypatch.setattr(module, "read_mapping", lambda *_: copy.deepcopy(whole))

    def told():
        """Places and what is said of them; empty where the content is taken."""
        try:
            load(path)
        except UserError as error:
            lines = str(error).splitlines()
            assert all(line.startswith(f"{path}: ") for line in lines), lines
            return [line.removeprefix(f"{path}: ").partition(": ")[::2] for line in lines]
        return []

    assert told() == []
    missing = 0
    for holder, key, place in list(fields(whole)):
        if key == "description":
            continue
        written, kept = ".".join(map(str, place)), holder[key]
        for value in spoilt(kept):
            holder[key] = value
            lines = told()
            said = " ".join(what for _, what in lines)
            near = written if isinstance(holder, dict) else ".".join(map(str, place[:-1]))
            assert any(f"{at}.".startswith(f"{near}.") for at, _ in lines), (written, lines)
            assert repr(value) in said or "missing" in said, (written, value, lines)
            assert re.search("must|allowed|missing|unknown", said), (written, value, lines)
        holder[key] = kept
        if isinstance(holder, list):
            continue
        entries = list(holder.items())
        del holder[key]
        missing += sum(what.startswith("missing; ") for _, what in told())
        holder[f"{key}x"] = kept
        misspelt = [what[:15] for at, what in told() if at == f"{written}x"]
        assert key == "type" or "unknown field; " in misspelt
        holder.clear()
        holder.update(entries)
    assert missing or kind in ("nempc", "rod_mpc", "plant errors", "mounting")


# each range of a number is left on both sides, and each value is given as another type
@pytest.mark.parametrize("node", NODES)
def test_each_setting_of_a_node_that_is_spoilt_is_told_with_name_value_and_what_is_allowed(node):
    model = settings_of(node, {})
    for name, setting in declared_settings(model).items():
        wrong = {"boolean": [3.5, "yes"], "string": [3.5, True]}.get(
            setting.kind, ["many", True, math.nan, math.inf]
        )
        if setting.choices:
            wrong.append("nosuch")
        for bound, beyond in ((setting.low, -1), (setting.high, 1)):
            if bound is not None and abs(bound) < 1e300:
                wrong.append(bound + beyond * max(1, abs(bound)))
        for value in wrong:
            given = [value] if setting.is_list else value
            with pytest.raises(UserError) as caught:
                build_settings(model, {name: given})
            *_, line = str(caught.value).splitlines()
            assert line == f"parameter {name} = {given!r}: must be {setting.allowed}"
        with pytest.raises(UserError, match=f"parameter {re.escape(name)}x = 1: unknown; did you"):
            build_settings(model, {f"{name}x": 1})
    values = setting_values(model())
    assert setting_values(build_settings(model, values)) == values


@pytest.mark.parametrize("options", [SimulationOptions, HardwareOptions])
def test_each_option_of_a_run_that_is_spoilt_is_told_with_name_value_and_what_is_allowed(options):
    declared = declared_settings(options)
    for name, setting in declared.items():
        wrong = {"boolean": ["maybe"], "integer": ["many", "3.5"], "number": ["many", "nan"]}
        for bound, beyond in ((setting.low, -1), (setting.high, 1)):
            if bound is not None and abs(bound) < 1e300:
                wrong[setting.kind] = [*wrong[setting.kind], f"{bound + beyond * max(1, bound)}"]
        for text in [*wrong.get(setting.kind, []), *(["nosuch"] if setting.choices else [])]:
            with one_line(says=text.split(".")[0]) as caught:
                options.of_options({name: text})
            assert str(caught.value).startswith(f"option {name} = "), str(caught.value)
            assert "must be " in str(caught.value)
        with pytest.raises(
            UserError, match=f"option {re.escape(name)}x = .*: unknown; did you mean"
        ):
            options.of_options({f"{name}x": "1"})


# Sentences as they must stand: kind of file; where it is changed; to what; field; what is said
REMOVED = object()
SPARE = {"terminal": 2, "channel": 3, "zero": 1.0, "pascal_per_volt": 2.5e4}  # it is none
SENTENCES = [
    ("rod", ("length",), "long", "length", "'long' is not allowed: must be a valid number"),
    ("rod", ("lenght",), 0.1, "lenght", "unknown field; did you mean length. allowed are "),
    ("rod", ("type",), REMOVED, "type", "missing; .* allowed are rod, arm"),
    ("rod", ("actuators", 1, "type"), "rope", "actuators.1.type", "'rope' .* are chamber, tendon"),
    ("rod", ("actuators", 1, "name"), "chamber_1", "actuators", r"names must differ, found \['c"),
    ("rod", ("sensors",), [{"type": "tip_pose", "noise": 0.0}], "sensors",
     r"must be pressure, base_wrench, tip_pose, each once, found \['tip_pose'\]"),
    ("rod", ("relaxation_times",), [0.1], "relaxation_times", r"\[0.1\] .* must have at least 6"),
    ("rod", ("pressure_limits", "minimum"), 2e5, "pressure_limits", "200000.0 must be below max"),
    ("rod", (3,), 3, "3", "unknown field"),
    ("arm", ("density",), -1.0, "density", "-1.0 is not allowed: must be greater than 0"),
    ("arm", ("routing",), "tangled", "routing", "'tangled' .* must be 'coupled' or 'independent'"),
    ("arm", ("actuators", 8, "rack"), 4, "actuators", "tendon_9 is fixed at rack 4, there are 3"),
    ("calibration", ("base_in_world", "quaternion"), [0, 0, 0, 2], "base_in_world.quaternion",
     r"\[0, 0, 0, 2\] is not allowed: x, y, z, w must have length 1, has 2.0000"),
    ("mounting", ("quaternion",), [0, 0, 0, 2], "quaternion", "must have length 1, has 2.0"),
    ("station", ("valve", "when_dead"), 10.0, "valve", "a dead host would leave the chambers full"),
    ("station", ("valve", "when_dead"), 4.9, "valve", "does not open the exhaust"),
    ("station", ("valve", "closed"), 10.0, "valve", "closed 10.0 V must lie between"),
    ("station", ("terminals", 1, "inputs"), 2, "", "channel 3: EL3164 has 2 inputs"),
    ("station", ("chambers", 2, "valve", "terminal"), 7, "", "there are 3 terminals"),
    ("station", ("chambers", 1, "sensor", "channel"), 1, "", "used twice"),
    ("station", ("chambers", 1, "name"), "chamber_1", "", "names must differ"),
    ("station", ("watchdog",), 0, "watchdog", "0 is not allowed"),
    ("station", ("chambers", 0, "second_sensor"), SPARE, "", "terminal 2 channel 3: this"),
    ("station", ("supply",), {"gauge": SPARE}, "", "gauge: terminal 2 channel 3: this"),
    ("station", ("guard",), {"equal_samples": 3}, "guard.equal_samples", "3 is not allowed"),
]  # fmt: skip

EVERYTHING_WRONG = {
    "rod": (
        "robots/licher2025.yaml",
        {("outer_diameter",): "outer_diamter", ("pressure_lag", "pole"): "poles"},
        {("gravity",): "[m/s^2]", ("tip_mass",): "[kg]", ("density",): "[kg/m^3]",
         ("actuators", 1, "area"): "[m^2]", ("sensors", 2, "noise"): ""},
    ),
    "station": (
        "ethercat/licher2025.yaml",
        {("chambers", 1, "valve", "channel"): "chanel"},
        {("flow", "fill_rate"): "[1/s]", ("chambers", 0, "sensor", "zero"): "[V]"},
    ),
}  # fmt: skip


@pytest.mark.parametrize("kind", EVERYTHING_WRONG)
def test_everything_that_is_missing_or_misspelt_is_told_at_once(tmp_path, kind):
    shipped, misspelt, missing = EVERYTHING_WRONG[kind]
    content = yaml.safe_load((CONFIG / shipped).read_text())
    for *way, last in (*misspelt, *missing):
        inside = content
        for part in way:
            inside = inside[part]
        value = inside.pop(last)
        if written := misspelt.get((*way, last)):
            inside[written] = value
    path = tmp_path / "mine.yaml"
    path.write_text(yaml.safe_dump(content))
    with pytest.raises(UserError) as caught:
        KINDS[kind][1](path)
    lines = dict(line.removeprefix(f"{path}: ").split(": ", 1)
                 for line in str(caught.value).splitlines())  # fmt: skip
    assert len(lines) == len(misspelt) + len(missing)
    for (*way, last), written in misspelt.items():
        line = lines[".".join(map(str, (*way, written)))]
        assert line.startswith(f"unknown field; did you mean {last}? ")
    for place, unit in missing.items():
        line = lines[".".join(map(str, place))]
        assert line.startswith("missing; this field is required")
        assert unit in line
        assert " has " in line  # an example


NOT_A_FILE = {
    "YAML with a bracket too few": (b"a: [1\nb: 2", "line 2: cannot be read as .* file: expected"),
    "YAML with a tab": (b"a:\n\tb: 1", "line 2: .*: found character"),
    "a field twice": (b"name: a\nname: b", "line 2: .*: name stands twice"),
    "a field inside twice": (b"a:\n  b: 1\n  b: 2", "line 3: .*: b stands twice"),
    "a Python object": (b"a: !!python/object:os.system x", "line 1: .*: could not determine"),
    "a date that is none": (b"a: !!timestamp 2020-13-45", "month"),
    "a list": (b"- 1\n- 2", "holds a list, must hold a mapping"),
    "text": (b"just text", "holds text, must hold a mapping"),
    "empty": (b"", "is empty, must hold a mapping"),
    "binary": (b"\xff\xfe\x00", "byte 0 is not text in UTF-8"),
    "a zero byte": (b"\x00", "special characters are not allowed"),
    "too deep": (b"a: " + b"[" * 5000, "nested too deeply"),
}


@pytest.mark.parametrize(("kind", "place", "value", "field", "says"), SENTENCES)
def test_what_is_said_of_a_mistake(tmp_path, kind, place, value, field, says):
    shipped, load = KINDS[kind]
    content = yaml.safe_load((CONFIG / shipped).read_text())
    inside = content
    for part in place[:-1]:
        inside = inside[part]
    if value is REMOVED:
        del inside[place[-1]]
    else:
        inside[place[-1]] = value
    path = tmp_path / "mine.yaml"
    line = line_about(load, path, content)
    assert line.startswith(f"{path}: {field}")
    assert re.search(says, line)


# every way with one kind, and every kind with one way: all are read by the same function
@pytest.mark.parametrize(
    ("kind", "what"), [("rod", what) for what in NOT_A_FILE] + [(kind, "a list") for kind in KINDS]
)
def test_what_is_no_such_file_says_why(tmp_path, kind, what):
    content, says = NOT_A_FILE[what]
    path = tmp_path / "mine.yaml"
    path.write_bytes(content)
    line = line_about(KINDS[kind][1], path)
    assert str(path) in line
    assert re.search(says, line)


@pytest.mark.parametrize("kind", KINDS)
def test_files_that_are_not_there_are_told_with_those_that_are(tmp_path, kind):
    shipped, load = KINDS[kind]
    name = shipped.removesuffix(".yaml").split("/")[1]
    line = line_about(load, "xyz")
    assert "'xyz': unknown; known are " in line
    assert name in line
    (tmp_path / "other.yaml").write_text("")
    line = line_about(load, tmp_path / "nemo.yaml")
    assert line.endswith("nemo.yaml: no such file; beside it are: other.yaml")
    (tmp_path / "folder.yaml").mkdir()
    line = line_about(load, tmp_path / "folder.yaml")
    assert "folder.yaml: cannot be read" in line
    assert "Is a directory" in line
    assert "unknown" in line_about(load, "a\0b")
    assert "cannot be read" in line_about(load, "./a\0b.yaml")


def test_a_long_value_is_shortened(tmp_path):
    content = yaml.safe_load((CONFIG / "robots/licher2025.yaml").read_text())
    content["length"] = "x" * 10_000
    path = tmp_path / "mine.yaml"
    assert len(line_about(load_robot, path, content)) < 300 + len(str(path))


def test_every_shipped_file_loads_and_robots_have_the_names_of_their_files():
    for name in available("robots"):
        assert load_any_robot(name).name == name
    for path in (CONFIG / "recordings").glob("*_guess.yaml"):
        assert load_any_robot(path).name == path.stem.removesuffix("_guess")
    for name in available("ethercat"):
        robot = "licher2025" if name == "regulators" else name  # the same robot, other valves
        load_station(name, load_robot(robot).chamber_names)
    others = {
        "controllers": lambda name: load_any_controller(name) and load_controller(name).description,
        "optitrack": load_calibration, "force_torque": load_mounting,
        "loads": lambda name: load_loads(name).loads,
        "obstacles": lambda name: load_obstacles(name).obstacles,
        "plant_errors": lambda name: load_plant_errors(name).changed(),
    }  # fmt: skip
    for folder, loaded in others.items():
        assert all(loaded(name) for name in available(folder)), folder
    folders = {path.relative_to(CONFIG).parts[0] for path in CONFIG.rglob("*.yaml")}
    assert folders == {"robots", "recordings", "ethercat", *others}


def test_the_content_of_a_file_is_not_changed_by_a_check():
    content = yaml.safe_load((CONFIG / "robots/licher2025.yaml").read_text())
    before = copy.deepcopy(content)
    type(load_robot("licher2025")).model_validate(content)
    assert content == before
