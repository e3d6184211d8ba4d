"""Every YAML file of softcr: the shipped ones load, and mistakes are one line each."""

import copy
import re

import pytest
import yaml

from softcr_control.controller_file import controller_settings, load_controller
from softcr_hardware.ethercat.terminals import load_station
from softcr_hardware.force_torque.mounting import load_mounting
from softcr_hardware.optitrack.calibration import load_calibration
from softcr_models import UserError, load_robot
from softcr_models.files.config import config_directory
from softcr_models.files.yaml_files import available
from softcr_models.robots.obstacle_files import load_obstacles
from softcr_runtime.settings import registry
from softcr_simulation.errors.plant_errors import load_plant_errors
from softcr_simulation.scripted_loads import load_script

CONFIG = config_directory()


def load_any_robot(path):
    return load_robot(path, None)


def load_any_controller(name_or_path):
    file = load_controller(name_or_path)
    return controller_settings(registry.resolve("controller", file.type).Settings, file)


KINDS = {
    "rod": ("robots/licher2025.yaml", load_any_robot),
    "arm": ("robots/dalenberg_robot1.yaml", load_any_robot),
    "nempc": ("controllers/nempc.yaml", load_any_controller),
    "rod_mpc": ("controllers/rod_mpc.yaml", load_any_controller),
    "station": ("ethercat/licher2025.yaml", load_station),
    "calibration": ("optitrack/licher2025.yaml", load_calibration),
}

REMOVED = object()

# kind of file; where it is changed; to what; field of the line; what else the line says
WRONG = [
    ("rod", ("length",), "long", "length", "'long' is not allowed: must be a valid number"),
    ("rod", ("length",), True, "length", "True is not allowed: must be a number"),
    ("rod", ("length",), float("nan"), "length", "nan is not allowed: must be a finite number"),
    ("rod", ("length",), REMOVED, "length", "missing; this field is required"),
    ("rod", ("lenght",), 0.1, "lenght", "unknown field; did you mean length. allowed are "),
    ("rod", ("type",), "snake", "type", "'snake' is not allowed: must be one of rod, arm"),
    ("rod", ("type",), REMOVED, "type", "missing; .* allowed are rod, arm"),
    ("rod", ("actuators",), [], "actuators", r"\[\] is not allowed: must have at least 1"),
    ("rod", ("actuators",), 3, "actuators", "3 is not allowed: must be a list"),
    ("rod", ("actuators", 1), 3, "actuators.1", "3 is not allowed: must be a mapping of type, nam"),
    ("rod", ("actuators", 1, "area"), -1.0, "actuators.1.area", "-1.0 is not allowed: .*than 0"),
    ("rod", ("actuators", 1, "angel"), 1.0, "actuators.1.angel", "unknown field; .*angle, area"),
    ("rod", ("actuators", 1, "type"), "rope", "actuators.1.type", "'rope' .* are chamber, tendon"),
    ("rod", ("actuators", 1, "type"), REMOVED, "actuators.1.type", "missing"),
    ("rod", ("actuators", 1, "name"), "chamber_1", "actuators", r"names must differ, found \['c"),
    ("rod", ("sensors", 2, "type"), "nose", "sensors.2.type",
     "'nose' is not allowed: allowed are pressure, tension, tendon_length, base_wrench, tip_pose"),
    ("rod", ("sensors", 2, "type"), REMOVED, "sensors.2.type",
     "missing; allowed are pressure, tension, tendon_length, base_wrench, tip_pose, pose"),
    ("rod", ("sensors", 2, "noise"), -1.0, "sensors.2.noise",
     "-1.0 is not allowed: must be greater than or equal to 0"),
    ("rod", ("sensors", 1, "noise"), 1.0, "sensors.1.noise",
     "unknown field; did you mean force_noise. allowed are type, force_noise, moment_noise"),
    ("rod", ("sensors",), [{"type": "tip_pose", "noise": 0.0}], "sensors",
     r"must be pressure, base_wrench, tip_pose, each once, found \['tip_pose'\]"),
    ("rod", ("relaxation_times",), [0.1], "relaxation_times", r"\[0.1\] .* must have at least 6"),
    ("rod", ("pressure_lag", "poles"), 3, "pressure_lag.poles", "unknown field; .* gain, pole"),
    ("rod", ("pressure_lag", "pole"), REMOVED, "pressure_lag.pole", "missing"),
    ("rod", ("pressure_limits", "minimum"), 2e5, "pressure_limits", "200000.0 must be below max"),
    ("rod", (3,), 3, "3", "unknown field"),
    ("arm", ("density",), -1.0, "density", "-1.0 is not allowed: must be greater than 0"),
    ("arm", ("density",), REMOVED, "density", "missing"),
    ("arm", ("wheels",), 4, "wheels", "unknown field; allowed are .*racks"),
    ("arm", ("routing",), "tangled", "routing", "'tangled' .* must be 'coupled' or 'independent'"),
    ("arm", ("actuators", 8, "rack"), 4, "actuators", "tendon_9 is fixed at rack 4, there are 3"),
    ("arm", ("actuators", 8, "rack"), True, "actuators.8.rack", "True is not allowed"),
    ("arm", ("actuators", 8, "name"), "tendon_1", "actuators", "names must differ"),
    ("arm", ("sensors", 0, "type"), "nose", "sensors.0.type", "'nose' .* must be 'rack_poses'"),
    ("nempc", ("population",), "many", "population", "'many' is not allowed"),
    ("nempc", ("popluation",), 10, "popluation", "unknown field; .*population"),
    ("nempc", ("costs", "tip_position"), float("nan"), "costs.tip_position", "nan is not allowed"),
    ("nempc", ("costs",), None, "costs", "None is not allowed: must be a mapping of state"),
    ("rod_mpc", ("knots",), "all", "knots", "'all' is not .* must be a list"),
    ("rod_mpc", ("nempc",), {}, "nempc", "unknown field; allowed are horizon, .*knots"),
    ("station", ("flow", "supply"), REMOVED, "flow.supply", "missing; this field is required"),
    ("station", ("surprise",), 1, "surprise", "unknown field; allowed are .*terminals"),
    ("station", ("chambers", 1, "valve", "chanel"), 1, "chambers.1.valve.chanel", "unknown field"),
    ("station", ("flow", "supply"), True, "flow.supply", "True is not allowed: must be a number"),
    ("station", ("valve", "when_dead"), float("nan"), "valve.when_dead", "nan is not allowed"),
    ("calibration", ("base_in_world", "position"), [1, 2], "base_in_world.position",
     r"\[1, 2\] is not allowed: must have at least 3 items"),
    ("calibration", ("base_in_world", "quaternion"), [0, 0, 0, 2], "base_in_world.quaternion",
     r"\[0, 0, 0, 2\] is not allowed: x, y, z, w must have length 1, has 2.0000"),
    ("calibration", ("base_in_world",), REMOVED, "base_in_world", "missing"),
    ("calibration", ("pose",), 1, "pose", "unknown field; allowed are .*tip_in_body"),
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
    "too deep": (b"a: " + b"[" * 20000, "nested too deeply"),
}


def line_about(load, path):
    with pytest.raises(UserError) as caught:
        load(path)
    line = str(caught.value)
    assert "\n" not in line
    return line


@pytest.mark.parametrize(
    ("kind", "place", "value", "field", "says"),
    WRONG,
    ids=[f"{row[0]} {'.'.join(map(str, row[1]))} {i}" for i, row in enumerate(WRONG)],
)
def test_a_mistake_is_named_with_file_field_value_and_what_is_allowed(
    tmp_path, kind, place, value, field, says
):
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
    path.write_text(yaml.safe_dump(content))
    line = line_about(load, path)
    assert line.startswith(f"{path}: {field}: ")
    assert re.search(says, line)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("what", NOT_A_FILE)
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
    path.write_text(yaml.safe_dump(content))
    assert len(line_about(load_robot, path)) < 300 + len(str(path))


def test_every_shipped_file_loads_and_robots_have_the_names_of_their_files():
    loaded = {path.relative_to(CONFIG) for path in CONFIG.rglob("*.yaml")}
    for name in available("robots"):
        assert load_any_robot(name).name == name
    for name in available("controllers"):
        assert load_any_controller(name)
        assert load_controller(name).description
    for name in available("ethercat"):
        robot = "licher2025" if name == "regulators" else name  # the same robot, other valves
        load_station(name, load_robot(robot).chamber_names)
    for name in available("optitrack"):
        load_calibration(name)
    for name in available("force_torque"):
        load_mounting(name)
    for name in available("loads"):
        assert load_script(name, load_robot("two_segments")).loads
    for name in available("obstacles"):
        assert load_obstacles(name).obstacles
    for name in available("plant_errors"):
        assert load_plant_errors(name).changed()
    folders = {
        "robots", "controllers", "ethercat", "force_torque", "loads", "obstacles", "optitrack",
        "plant_errors",
    }  # fmt: skip
    assert {path.parts[0] for path in loaded} == folders


def test_the_content_of_a_file_is_not_changed_by_a_check():
    content = yaml.safe_load((CONFIG / "robots/licher2025.yaml").read_text())
    before = copy.deepcopy(content)
    type(load_robot("licher2025")).model_validate(content)
    assert content == before
