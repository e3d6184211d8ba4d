"""Numbers in another unit are refused where files are read, and the line proposes right ones."""

import math
import re
import warnings

import pytest
import yaml
from kit.refusals import line_about, one_line

from softcr_control.reference.references import from_file
from softcr_control.reference.settings import ReferenceSettings
from softcr_estimation.estimator_settings import ModelEstimatorSettings
from softcr_hardware.optitrack.calibration import load_calibration
from softcr_models import UserError, load_robot
from softcr_models.files.config import config_directory
from softcr_models.files.csv_files import read_columns
from softcr_models.files.number_types import number_in, whole_number_in, within
from softcr_models.files.yaml_files import read_mapping
from softcr_models.models import make_model
from softcr_models.robots.obstacle_files import load_obstacles
from softcr_models.rod.description import rod_inputs
from softcr_runtime.settings.node_settings import NodeSettings, declared_settings, parsed


def written(tmp_path, folder, name, place, value):
    """A shipped file with another value at a place, as a file."""
    content = yaml.safe_load((config_directory() / folder / f"{name}.yaml").read_text())
    here = content
    for part in place[:-1]:
        here = here[part]
    here[place[-1]] = value
    path = tmp_path / f"{name}.yaml"
    path.write_text(yaml.safe_dump(content))
    return path


def any_robot(path):
    return load_robot(path, ("rod", "arm", "strain"))


ACTUATOR, SEGMENT = ("actuators", 1), ("segments", 0)
# of robots, then of other kinds of files: folder/name; place; value; what is said
CASES = [
    ("robots/licher2025", (*ACTUATOR, "angle"), 120.0, "120 degrees would be 2.0944 rad"),
    ("robots/tendon_arm", (*ACTUATOR, "angle"), 90.0, "90 degrees would be 1.5708 rad"),
    ("robots/licher2025", ("base_orientation",), [180.0, 0.0, 0.0], "degrees would be 3.14159 rad"),
    ("robots/two_segments", (*SEGMENT, "connector", "rotation"), [0.0, 90.0, 0.0], "1.5708 rad"),
    ("robots/dalenberg_robot1", ("base_orientation",), [180.0, 0.0, 0.0], "3.14159 rad"),
    ("robots/dalenberg_robot1", (*ACTUATOR, "angle"), 120.0, "2.0944 rad"),
    ("robots/licher2025", ("length",), 124.9, "124.9 mm would be 0.1249 m"),
    ("robots/licher2025", ("outer_diameter",), 42.4, "42.4 mm would be 0.0424 m"),
    ("robots/licher2025", ("actuators", 0, "area"), 235.6, "235.6 mm2 would be 0.0002356 m^2"),
    ("robots/two_segments", (*SEGMENT, "connector", "length"), 12.0, "0.012 m"),
    ("robots/two_segments", ("payload", "centre_of_mass"), [4.0, 0.0, 10.0], "0.004 m"),
    ("robots/licher2025", ("tip_cap_length",), 10.0, "10 mm would be 0.01 m"),
    ("robots/licher2025", ("sensors", 2, "noise"), 0.2, "0.2 mm would be 0.0002 m"),
    ("robots/licher2025", ("pressure_limits", "maximum"), 100.0, "100 kPa would be 100000 Pa"),
    ("robots/licher2025", ("density",), 1.07, "1.07 g/cm^3 would be 1070 kg/m^3"),
    ("robots/licher2025", ("tip_mass",), 66.8, "66.8 g would be 0.0668 kg"),
    ("robots/licher2025", ("gravity",), 9810.0, "9810 mm/s^2 would be 9.81 m/s^2"),
    ("robots/licher2025", ("bending_compliance",), 49.9e6, "Young's modulus is 0.1"),
    ("robots/dalenberg_robot1", ("youngs_modulus",), 0.15, "0.15 MPa would be 150000 Pa"),
    ("robots/pcs_one_segment", (*SEGMENT, "shear_modulus"), 0.2, "0.2 MPa would be 200000 Pa"),
    ("obstacles/ball", ("obstacles", 0, "centre"), [60.0, 0.0, 90.0], "60 mm would be 0.06 m"),
    ("optitrack/licher2025", ("base_in_world", "position"), [300.0, 800.0, -200.0], "0.3 m"),
]
LOADERS = {"robots": any_robot, "obstacles": load_obstacles, "optitrack": load_calibration}


@pytest.mark.parametrize(("file", "place", "value", "told"), CASES)
def test_another_unit_is_refused_and_the_right_number_proposed(tmp_path, file, place, value, told):
    path = written(tmp_path, *file.split("/"), place, value)
    line = line_about(LOADERS[file.split("/")[0]], path)
    assert str(path) in line
    assert told in line


def test_a_range_says_what_is_allowed_and_what_may_be_meant():
    require = within(0.0, 2.0, "m", mm=1e-3).func
    assert require(2.0) == 2.0
    with pytest.raises(ValueError, match=r"^must be from 0 to 2 m; 125 mm would be 0.125 m$"):
        require(125.0)
    with pytest.raises(ValueError, match=r"^must be from 0 to 2 m$"):
        require(-1.0)
    with pytest.raises(ValueError, match="must be from"):
        require((0.0, math.nan))


def test_limits_that_press_a_rod_to_nothing_are_told_when_it_is_loaded(tmp_path):
    path = written(tmp_path, "robots", "tendon_arm", ("tension_limits", "maximum"), 60.0)
    with pytest.warns(UserWarning, match=r"may press segment segment_1 with 240 N, and 78.54 N"):
        load_robot(path)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        load_robot("tendon_arm")


def test_numbers_are_those_of_yaml_1_2(tmp_path):
    """Core schema of YAML 1.2.2, section 10.3.2; PyYAML knows 1.1, where 0100 is 64."""
    path = tmp_path / "numbers.yaml"
    path.write_text(
        "a: 0100\nb: 16:40\nc: 1e3\nd: -0x1F\ne: 0x1F\nf: 0o17\ng: yes\nh: ~\ni:\nj: .5\nk: -.inf\n"
        "l: 2026-01-01\nm: True\nn: +12\no: 1.\n"
    )
    assert read_mapping(path, "test") == {
        "a": 100, "b": "16:40", "c": 1000.0, "d": "-0x1F", "e": 31, "f": 15, "g": "yes", "h": None,
        "i": None, "j": 0.5, "k": -math.inf, "l": "2026-01-01", "m": True, "n": 12, "o": 1.0,
    }  # fmt: skip


@pytest.mark.parametrize(
    ("robot", "given", "said"),
    [
        ("licher2025", {"mean": 35.0}, "mean = 35.0: the .* 1e.05 Pa; 35 kPa would be 35000"),
        ("licher2025", {"mean": 100.0}, "100 kPa would be 100000 Pa"),
        ("licher2025", {"amplitude": 0.2}, "amplitude = 0.2: .*; 0.2 bar would be 20000 Pa"),
        ("licher2025", {"kind": "setpoint", "inputs": (45.0, 25.0, 15.0)}, "45 kPa would be 45000"),
        ("tendon_arm", {"mean": 200.0}, "mean = 200.0: .*; 200 mN would be 0.2 N"),
    ],
)
def test_inputs_of_a_reference_in_another_unit_are_refused(robot, given, said):
    inputs = rod_inputs(load_robot(robot))
    with one_line(said):
        ReferenceSettings(**given).input_samples(0.1, inputs)


@pytest.mark.parametrize(
    ("columns", "row", "said"),
    [
        ("tip_x,tip_y,tip_z", "30,10,110", "tip_positions: .*; 110 mm would be 0.11 m"),
        ("tip_x,tip_y,tip_z", "3,1,11", "tip_positions: .*; 11 cm would be 0.11 m"),
        ("pressure_1,pressure_2,pressure_3", "35,10,50", "pressures: .*; 50 kPa would be 50000 Pa"),
        ("pressure_1,pressure_2,pressure_3", "0.3,0,0.5", "pressures: .*; 0.5 bar would be 50000"),
    ],
)
def test_a_file_of_a_reference_in_another_unit_is_refused(tmp_path, columns, row, said):
    path = tmp_path / "motion.csv"
    path.write_text(f"time,{columns}\n0,{row}\n1,{row}\n")
    model = make_model("rod", load_robot("licher2025"), {"intervals": 2})
    with one_line(said) as caught:
        from_file(model, path, 0.1)
    assert str(caught.value).startswith(f"{path}: ")


def test_inputs_of_a_reference_that_may_be_meant_are_taken():
    inputs = rod_inputs(load_robot("licher2025"))
    for given in ({"mean": 35e3}, {"amplitude": 0.0}, {"mean": 2e5}, {"amplitude": 500.0}):
        assert len(ReferenceSettings(duration=1.0, **given).input_samples(0.1, inputs))


@pytest.mark.parametrize("text", ["1_0", "١٢", "0x10", "16:40", "1e", "ten", "", "1 0", "+-1"])
def test_numbers_of_people_are_those_of_yaml(tmp_path, text):
    """Options, CSV cells and lists of initial values take no other ones that Python would take."""
    setting = declared_settings(NodeSettings)
    for name in ("rate_hz", "seed"):
        with pytest.raises(UserError, match=re.escape(f"{name} = {text!r}: must be a")):
            parsed(setting[name], text, name)
    path = tmp_path / "samples.csv"
    path.write_text(f'a,b\n1,1\n"{text}",2\n', encoding="utf-8")
    with pytest.raises(UserError, match=r"samples.csv, line 3: a = .*: must be a finite number"):
        read_columns(path, {"a": "m", "b": "m"}.get)
    with pytest.raises(UserError, match="begins_with: "):
        _ = ModelEstimatorSettings(begins_with=f"tip_mass={text}").initial_values


def test_a_number_that_begins_with_zero_is_decimal():
    assert number_in("0100") == 100.0
    assert whole_number_in("0100") == 100
    assert [number_in(text) for text in ("1e3", ".5", "-2.", "+1E-3")] == [1e3, 0.5, -2.0, 1e-3]
