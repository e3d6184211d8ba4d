"""Recordings of somebody else: tables of any columns, a map that says what they are, one that is
proposed, and a line for each mistake."""

from pathlib import Path

import numpy as np
import pytest
import yaml
from kit.bags import TYPESTORE, joint_state, pose_stamped
from kit.refusals import one_line
from kit.rosbags_bags import write_with_rosbags
from rosbags.rosbag2 import StoragePlugin
from scipy.spatial.transform import Rotation

from softcr_estimation.identification.column_map import ColumnMap, Trial, load_map, read_trials
from softcr_estimation.identification.proposed_map import proposed_map
from softcr_estimation.identification.recorded_tables import read_tables
from softcr_estimation.identification.signals import Signals
from softcr_estimation.identification.trials import motions_of, payload_of, read_parts
from softcr_models import UserError, load_robot
from softcr_models.identification.motion_fit import loaded
from softcr_models.identification.rod_identification import static_configurations
from softcr_models.rod.cosserat_rod import CosseratRod
from softcr_tools.cli import main

ROBOT = load_robot("licher2025")
ROWS, PERIOD = 80, 0.02
TIMES = PERIOD * np.arange(ROWS)
PRESSURES = 30e3 * np.stack([np.abs(np.sin(TIMES + k)) for k in range(3)], axis=1)  # [Pa]
TIPS = 0.05 * np.stack([np.sin(TIMES), np.cos(TIMES), 2.0 + TIMES], axis=1)  # base frame [m]
MAP = {
    "time": {"column": "t", "unit": "s"},
    "inputs": [{"column": f"p{k + 1}", "unit": "kPa"} for k in range(3)],
    "positions": {"tip": {"columns": ["a", "b", "c"], "unit": "mm"}},
    "frame": {"axes": ["x", "-z", "y"], "origin": [0.1, 0.2, 0.3]},
}
ANGLES = np.full((ROWS, 6), 0.8)
XYZ = {"tip": {"columns": ["x", "y", "z"], "unit": "m"}}


def table():
    """Columns a, b, c of TIPS in a frame with x, y, z of the base along a, c, -b [mm]."""
    columns = TIPS[:, [0, 2, 1]] * [1.0, -1.0, 1.0] + [0.1, 0.2, 0.3]
    return np.hstack((TIMES[:, None], 1e-3 * PRESSURES, 1e3 * columns))


def csv(path, head="t,p1,p2,p3,a,b,c", values=None, lines=()):
    values = table() if values is None else values
    rows = [",".join(f"{each:.9g}" for each in row) for row in values]
    path.write_text("\n".join([*lines, head, *rows]).replace("nan", "") + "\n")
    return path


def trials(paths, **changes):
    return read_trials(paths, ColumnMap.model_validate({**MAP, **changes}), ROBOT)


def test_units_axes_and_origin_come_to_the_base_frame(tmp_path):
    (trial,) = trials([csv(tmp_path / "run.csv")], payload={"run": 0.1})
    assert trial.name == "run"
    assert trial.payload == 0.1
    np.testing.assert_allclose(trial.content.inputs.values, PRESSURES, rtol=1e-6)
    np.testing.assert_allclose(trial.content.outputs["tip position"].values, TIPS, atol=1e-8)
    (motion,) = motions_of([trial])
    assert motion.period == pytest.approx(PERIOD)
    np.testing.assert_allclose(motion.outputs["tip position"], TIPS[: len(motion)], atol=1e-8)


@pytest.mark.parametrize(
    ("robot", "found", "unit", "more", "reading"),
    [
        ("licher2025", PRESSURES, "Pa", {}, PRESSURES),
        ("licher2025", PRESSURES, "bar", {}, 1e-5 * PRESSURES),
        ("licher2025", PRESSURES, "psi", {}, PRESSURES / 6894.757293),
        ("licher2025", PRESSURES, "V", {"gain": 5e3, "zero": 1.0}, 1.0 + PRESSURES / 5e3),
        ("asl_trunk", ANGLES, "rad", {}, ANGLES),
        ("asl_trunk", ANGLES, "deg", {}, ANGLES * 180.0 / np.pi),
        ("asl_trunk", ANGLES, "mm", {"spool_radius": 0.01}, 10.0 * ANGLES),
    ],
)
def test_inputs_of_any_unit(tmp_path, robot, found, unit, more, reading):
    """Pressures, and motors by their angles or by what they wind."""
    names = [f"m{k}" for k in range(reading.shape[1])]
    inputs = [{"column": name, "unit": unit, **more} for name in names]
    rows = np.hstack((TIMES[:, None], reading, TIPS))
    path = csv(tmp_path / "run.csv", ",".join(["t", *names, "x,y,z"]), rows)
    content = {"inputs": inputs, "positions": XYZ, "time": MAP["time"]}
    (trial,) = read_trials([path], ColumnMap.model_validate(content), load_robot(robot))
    np.testing.assert_allclose(trial.content.inputs.values, found, rtol=1e-6)


@pytest.mark.parametrize(("factor", "unit"), [(1.0, "rad"), (180.0 / np.pi, "deg")])
def test_a_proposed_map_knows_motors(tmp_path, factor, unit):
    robot = load_robot("asl_trunk")
    waves = np.sin(TIMES[:, None] + np.arange(6)) * robot.input_limits[0].maximum
    rows = np.hstack((TIMES[:, None], factor * waves, TIPS))
    path = csv(tmp_path / "run.csv", "t,q1,q2,q3,q4,q5,q6,tip_x,tip_y,tip_z", rows)
    proposed = yaml.safe_load(proposed_map(path, robot))
    assert [each["unit"] for each in proposed["inputs"]] == [unit] * 6


@pytest.mark.parametrize("odd", ['"', ": {b", "\\1", "\n- y", " # no", " "])
def test_a_proposed_map_holds_any_name(tmp_path, odd):
    names = [f"pressure_{k}{odd}" for k in range(3)]
    arrays = dict(zip(names, 1e-3 * PRESSURES.T, strict=True))
    path = tmp_path / "run.npz"
    np.savez(path, time=TIMES, **arrays, **{f"tip_{a}": TIPS[:, k] for k, a in enumerate("xyz")})
    told = yaml.safe_load(proposed_map(path, ROBOT))
    assert [each["column"] for each in told["inputs"]] == names
    assert set(told) == {"time", "inputs", "positions", "frame", "payload"}


def test_torques_of_spools_are_tensions(tmp_path):
    inputs = [{"column": f"m{k}", "unit": "N m", "spool_radius": 0.01} for k in range(4)]
    rows = np.hstack((0.004 * np.ones((ROWS, 4)), 0.5 * TIPS))
    path = csv(tmp_path / "run.csv", "m0,m1,m2,m3,x,y,z", rows)
    known = ColumnMap.model_validate({"inputs": inputs, "positions": XYZ})
    (trial,) = read_trials([path], known, load_robot("tendon_arm"))
    np.testing.assert_allclose(trial.content.inputs, 0.4, rtol=1e-6)
    assert not isinstance(trial.content, Signals)  # without a time each row is a rest


def test_two_coordinates_of_a_camera_leave_the_third_unknown(tmp_path):
    values = table()[:, :6]
    values[:, 4:] = 1e3 * TIPS[:, [0, 2]] / 0.5  # pixels of half a millimetre
    positions = {"tip": {"columns": ["a", "b"], "unit": "px", "scale": 0.5e-3}}
    path = csv(tmp_path / "run.csv", "t,p1,p2,p3,a,b", values)
    (trial,) = trials([path], positions=positions, frame={"axes": ["x", "z"]})
    found = trial.content.outputs["tip position"].values
    np.testing.assert_allclose(found[:, [0, 2]], TIPS[:, [0, 2]], atol=1e-8)
    assert np.isnan(found[:, 1]).all()
    (motion,) = motions_of([trial])
    assert np.isfinite(motion.outputs["tip position"][:, 0]).all()


def test_arrays_hold_trials_by_prefix_or_number_or_are_one(tmp_path):
    y, u = np.ones((9, 3)), np.ones((9, 2))
    for names, expected in (
        (("{}_y", "{}_u"), ("a_1", "b")), (("y{}", "u{}"), ("0", "1")),
    ):  # fmt: skip
        arrays = {name.format(trial): values[: 9 - k] for k, trial in enumerate(expected)
                  for name, values in zip(names, (y, u), strict=True)}  # fmt: skip
        np.savez(tmp_path / "all.npz", rate=50.0, **arrays)
        found = read_tables(tmp_path / "all.npz")
        assert tuple(found) == expected
        assert list(found[expected[0]].columns) == ["y_1", "y_2", "y_3", "u_1", "u_2"]
        assert found[expected[1]].numbers == {"rate": 50.0}
    np.savez(tmp_path / "one.npz", tension=u, markers=np.ones((9, 2, 3)))
    (one,) = read_tables(tmp_path / "one.npz").values()
    assert list(one.columns)[2:4] == ["markers_1_1", "markers_1_2"]


def test_trials_of_a_column_are_held_out_by_name(tmp_path):
    numbered = np.hstack((np.vstack((table(), table())), np.repeat([[1], [2]], ROWS, axis=0)))
    path = csv(tmp_path / "all.csv", "t,p1,p2,p3,a,b,c,trial", numbered)
    known = ColumnMap.model_validate({**MAP, "trial": "trial"})
    fitted, judged = read_parts([path], ["2"], known, ROBOT)
    assert [each.name for each in fitted] == ["1"]
    assert [each.name for each in judged] == ["2"]
    other = csv(tmp_path / "other.csv")
    with pytest.raises(UserError, match="column trial is missing"):
        read_parts([path], [str(other)], known, ROBOT)
    with pytest.raises(UserError, match="--hold-out 3: no such file or trial; there are 1, 2"):
        read_parts([path], ["3"], known, ROBOT)


def test_gaps_are_cut_where_inputs_are_silent_and_empty_where_positions_are(tmp_path):
    values = np.tile(table(), (4, 1))
    values[:, 0] = PERIOD * np.arange(len(values))
    values[30, 1:4] = np.nan
    values[70:90, 1:4] = np.nan
    values[20:40, 4:] = np.nan
    (trial,) = trials([csv(tmp_path / "run.csv", values=values)])
    first, second = motions_of([trial])
    assert (first.name, second.name) == ("run, part 1", "run, part 2")
    assert len(first) == 70
    np.testing.assert_allclose(first.inputs[30], 0.5 * (first.inputs[29] + first.inputs[31]))
    assert np.isnan(first.outputs["tip position"][20:40]).all()
    assert np.isfinite(first.outputs["tip position"][41:]).all()


def changed(column, change):
    values = table()
    values[:, column] = change(values[:, column])
    return values


def jump(row, by):
    def moved(times):
        return times + by * (np.arange(len(times)) >= row)

    return moved


@pytest.mark.parametrize(
    ("values", "changes", "line"),
    [
        (changed([1, 2, 3], lambda p: 1e3 * p), {}, r"reach 3e\+07 Pa, but the robot's limit is"),
        (changed([1, 2, 3], lambda p: 1e-3 * p), {}, "the units of the column map are too small"),
        (changed([4, 5, 6], lambda y: 1e3 * y), {}, "m from the base, but the robot is"),
        (changed([4, 5, 6], lambda y: 1e-3 * (y - [100, 200, 300])),
         {"frame": {"axes": ["x", "-z", "y"]}}, "the unit in the column map is too small"),
        (changed(0, jump(20, -0.3)), {}, r"clock jumps from 0.38 to 0.1 s at sample 21"),
        (changed(0, jump(20, 1e7)), {}, r"clock jumps from 0.38 to 1e\+07 s at sample 21"),
        (changed(0, lambda t: 1e3 * t), {}, "20 s between samples, .*; the times seem to be in ms"),
        (table()[:3], {}, "3 samples, at least 8 are needed"),
        (changed(2, lambda p: np.nan * p), {}, "inputs, columns p1, p2, p3: 0 samples hold"),
        (changed(5, lambda p: np.nan * p), {}, "no position was recorded"),
        (table(), {"payload": {"walk": 0.1}}, "payload of walk: no such file or trial; .*run"),
        (table(), {"time": {"column": "time"}}, "column time is missing; it has t, p1"),
        (table(), {"inputs": MAP["inputs"][:2]}, "2 inputs, but licher2025 has 3 actuators"),
        (table(), {"positions": {"middle": MAP["positions"]["tip"]}}, "no such sensor; it has tip"),
        (table(), {"inputs": [{**each, "unit": "N"} for each in MAP["inputs"]]},
         "unit 'N' is not allowed for actuator chamber_1: must be one of Pa, kPa"),
        (table(), {"inputs": [{**each, "unit": "V"} for each in MAP["inputs"]]},
         r"V needs a gain \[Pa/V\]"),
    ],
)  # fmt: skip
def test_a_mistake_is_one_line(tmp_path, values, changes, line):
    with one_line(line):
        trials([csv(tmp_path / "run.csv", values=values)], **changes)


@pytest.mark.parametrize(
    ("change", "line"),
    [
        ({"inputs": [MAP["inputs"][0]] * 3}, "column p1: used twice"),
        ({"frame": {"axes": ["x", "-x", "y"]}}, "an axis stands twice"),
        ({"frame": {"axes": ["x", "y"]}}, "positions.tip.columns: 3, but frame.axes has 2"),
        ({"time": {"column": "t", "rate": 5.0}}, "either a column or a rate"),
        ({"payload": {"run": -1.0}}, "payload"),
        ({"positions": {"tip": {"columns": ["a", "b", "c"], "unit": "px"}}}, "the size of a pixel"),
    ],
)
def test_a_map_that_cannot_be_is_refused(tmp_path, change, line):
    path = tmp_path / "map.yaml"
    path.write_text(yaml.safe_dump({**MAP, **change}))
    with pytest.raises(UserError, match=line):
        load_map(path)


def test_a_unit_in_the_file_other_than_that_of_the_map_is_refused(tmp_path):
    path = csv(tmp_path / "run.csv", "t,p1 [Pa],p2,p3,a,b,c")
    with pytest.raises(UserError, match="column p1: is in Pa, but the column map says kPa"):
        trials([path])


HEADS = {
    "t [ms],pressure_1 [kPa],pressure_2 [kPa],pressure_3 [kPa],tip_x [mm],tip_y [mm],tip_z [mm]":
        "ms",
    "timestamp;P1_kPa;P2_kPa;P3_kPa;Tip.X;Tip.Y;Tip.Z": "s",
    "time\tu_1\tu_2\tu_3\tmarker 1 x\tmarker 1 y\tmarker 1 z": "s",
}  # fmt: skip


@pytest.mark.parametrize("head", HEADS)
def test_a_proposed_map_can_be_used_as_it_is(tmp_path, head, capsys):
    values = table()
    values[:, 4:] = 1e3 * TIPS
    values[:, 0] *= 1e3 if HEADS[head] == "ms" else 1.0
    path = csv(tmp_path / "run.csv", head, values, ["exported by a lab", ""])
    separator = next(each for each in "\t;," if each in head)
    text = path.read_text()
    path.write_text("\n".join(
        line if "exported" in line else line.replace(",", separator) for line in text.split("\n")
    ))  # fmt: skip
    assert main(["identify", "--explain", str(path), "--robot", "licher2025"]) == 0
    (tmp_path / "map.yaml").write_text(capsys.readouterr().out)
    (trial,) = read_trials([path], load_map(tmp_path / "map.yaml"), ROBOT)
    np.testing.assert_allclose(trial.content.outputs["tip position"].values, TIPS, atol=1e-8)
    np.testing.assert_allclose(trial.content.inputs.values, PRESSURES, rtol=1e-6)


def test_what_names_nothing_is_shown_to_choose_from(tmp_path):
    path = csv(tmp_path / "run.csv", "foo,bar,baz,qux,quux,corge,grault")
    proposed = proposed_map(path, None)
    content = yaml.safe_load(proposed)
    assert content["time"]["column"] == "foo"
    assert not content["inputs"]
    assert not content["positions"]
    assert f"#   bar: {table()[:, 1].min():.4g} to {table()[:, 1].max():.4g}" in proposed
    (tmp_path / "map.yaml").write_text(proposed)
    with pytest.raises(UserError, match="inputs"):
        load_map(tmp_path / "map.yaml")


def test_a_body_is_found_by_its_quaternion_and_inputs_by_their_stem(tmp_path):
    values = np.zeros((ROWS, 10))
    values[:, 0] = PERIOD * np.arange(ROWS)
    values[:, 1:3] = 20.0 + np.arange(ROWS)[:, None]
    values[:, 3:6] = TIPS
    turns = Rotation.from_rotvec(np.linspace(0.1, 1.0, ROWS)[:, None] * [0.5, 0.6, 0.3])
    values[:, 6:] = turns.as_quat()
    path = tmp_path / "run.txt"
    np.savetxt(path, values, delimiter="|")
    content = yaml.safe_load(proposed_map(path, None))
    assert content["time"]["column"] == "column_1"
    assert content["positions"]["tip"]["columns"] == ["column_4", "column_5", "column_6"]
    head = "time,Measured_Pressure_1,measured_pressure_2,x,y,z,qx,qy,qz,qw"
    content = yaml.safe_load(proposed_map(csv(tmp_path / "named.csv", head, values), None))
    assert [each["column"] for each in content["inputs"]] == head.split(",")[1:3]


def test_files_without_numbers_are_refused(tmp_path):
    path = csv(tmp_path / "none.csv", "p1,x", [])
    with pytest.raises(UserError, match="holds no line of numbers"):
        proposed_map(path, None)
    (tmp_path / "no.npz").write_bytes(b"no")
    with pytest.raises(UserError, match="cannot be read as arrays"):
        read_tables(tmp_path / "no.npz")


def test_a_bag_of_other_topics_is_read_by_its_fields(tmp_path):
    """Joint states and poses of a lab's own topics and frame, each with its own stamps."""
    messages, path = [], tmp_path / "lab"
    for time, pressures, tip in zip(TIMES, PRESSURES, TIPS, strict=True):
        stamp, received = round(1e9 * (100.0 + time)), round(1e9 * time)
        joints, pose = joint_state(stamp, 1e-3 * pressures), pose_stamped(stamp + 4_000_000, tip)
        joints.name = ["a", "b", "c"]
        for topic, message in (("/valves", joints), ("/vrpn/tip/pose", pose)):
            message.header.frame_id, kind = "lab", message.__msgtype__
            payload = bytes(TYPESTORE.serialize_cdr(message, kind))
            messages.append((topic, kind, received, payload))
    write_with_rosbags(path, messages, StoragePlugin.SQLITE3)
    text = proposed_map(path, ROBOT)
    assert "/valves.effort.a" in text
    known = ColumnMap.model_validate(yaml.safe_load(text))
    (trial,) = read_trials([path], known, ROBOT)
    np.testing.assert_allclose(trial.content.inputs.values, PRESSURES, rtol=1e-6)
    seen = trial.content.outputs["tip position"]
    np.testing.assert_allclose(seen.values, TIPS, atol=1e-8)
    assert (seen.stamps - trial.content.inputs.stamps == 4_000_000).all()


def test_the_command_fits_rests_of_a_foreign_file_with_a_payload(tmp_path, capsys):
    softer = loaded(ROBOT.scaled(bending=1.25), 0.05)
    inputs = static_configurations(ROBOT, 2)
    rod = CosseratRod(softer, 12)
    tips = np.array([rod.tip_pose(rod.equilibrium(row))[:3, 3] for row in inputs])
    np.savez(tmp_path / "rests.npz", p=1e-5 * inputs, xz=100.0 * tips[:, [0, 2]])
    content = {
        "inputs": [{"column": f"p_{k + 1}", "unit": "bar"} for k in range(3)],
        "positions": {"tip": {"columns": ["xz_1", "xz_2"], "unit": "cm"}},
        "frame": {"axes": ["x", "z"]},
        "payload": {"rests": 0.05},
    }
    (tmp_path / "map.yaml").write_text(yaml.safe_dump(content))
    words = ["--map", str(tmp_path / "map.yaml"), "--find", "stiffness", "--results", str(tmp_path)]
    assert main(["identify", str(tmp_path / "rests.npz"), "--robot", "licher2025", *words]) == 0
    assert "fitted: tip position" in capsys.readouterr().out
    found = load_robot(str(tmp_path / "identification/latest/identified.yaml"))
    assert found.payload is None
    ratio = found.bending_compliance / ROBOT.bending_compliance
    assert ratio == pytest.approx(1.25, rel=0.01)


def test_rests_of_different_payloads_are_for_motions():
    found = [Trial(str(mass), Path(), None, mass) for mass in (0.0, 0.1)]
    with pytest.raises(UserError, match=r"payloads of 0, 0\.1 kg: .* --motion takes several"):
        payload_of(found)
