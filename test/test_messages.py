"""Arrays to messages and back, and what is refused on the way in."""

import copy
import math
import os
import signal
import struct
import subprocess
import sys
import time
from types import SimpleNamespace

import numpy as np
import pytest
from domains import fresh_domain
from hypothesis import given
from hypothesis import strategies as st
from kit.processes import Peer, until
from rclpy.qos import (
    DurabilityPolicy,
    QoSCompatibility,
    QoSProfile,
    ReliabilityPolicy,
    qos_check_compatible,
)
from rclpy.serialization import deserialize_message, serialize_message
from rosbags.typesys import Stores, get_typestore
from scipy.spatial.transform import Rotation

from softcr_models.rod.state import RodState
from softcr_runtime.wire.diagnostics import (
    DiagnosticReport,
    diagnostics_from_message,
    diagnostics_to_message,
)
from softcr_runtime.wire.messages import (
    MessageError,
    fields_of_inputs,
    pose_from_message,
    pose_to_message,
    pressures_from_message,
    pressures_to_message,
)
from softcr_runtime.wire.rod_clouds import (
    reference_cloud_from_message,
    reference_cloud_message,
    rod_cloud_from_message,
    rod_cloud_message,
)
from softcr_runtime.wire.topics import LOCKSTEP_DEPTH, TOPICS, qos

STAMP = 1_764_000_000_123_456_789
CHAMBERS = ("a", "b", "c")
INTERVALS = 5
PARAMETERS = {"bending_compliance": 47.4, "tip_mass": 0.0668, "pressure_offset_1": -12.5}
STD = {"bending_compliance": 0.3, "tip_mass": 1e-4, "pressure_offset_1": 100.0}
finite = st.floats(allow_nan=False, allow_infinity=False)


def _over_the_wire(message):
    """What a subscriber gets."""
    return deserialize_message(serialize_message(message), type(message))


def _poses(count, seed=0):
    rng = np.random.default_rng(seed)
    poses = np.tile(np.eye(4), (count, 1, 1))
    poses[:, :3, :3] = Rotation.random(count, rng=rng).as_matrix()
    poses[:, :3, 3] = rng.normal(size=(count, 3))
    return poses


def _rod_message(state=None, **changes):
    state = np.arange(72.0) if state is None else state
    arguments = {"parameters": PARAMETERS, "parameters_std": STD, "stamp": STAMP} | changes
    return rod_cloud_message(state, _poses(INTERVALS + 2), **arguments)


def _reference_message(rows=4, tips=None):
    states = np.random.default_rng(3).normal(size=(rows, 72))
    poses = _poses(rows * 7).reshape(rows, 7, 4, 4)
    tips = np.arange(3.0 * rows).reshape(rows, 3) if tips is None else tips
    return reference_cloud_message(states, poses, tips, STAMP, 1 / 70)


def _cell(message, point, field, value=None, height_row=0):
    """Read or overwrite one float64 of a cloud, by the offsets it declares."""
    offset = {f.name: f.offset for f in message.fields}[field]
    begin = height_row * message.row_step + point * message.point_step + offset
    if value is not None:
        message.data[begin : begin + 8] = type(message.data)("B", struct.pack("<d", value))
    return struct.unpack("<d", bytes(message.data[begin : begin + 8]))[0]


# --- pressures ----------------------------------------------------------------------------------


def test_pressures_in_another_order_are_put_in_ours():
    message = pressures_to_message(np.array([3.0, 1.0, 2.0]), ("c", "a", "b"), STAMP)
    assert pressures_from_message(message, CHAMBERS, "t").tolist() == [1.0, 2.0, 3.0]


@pytest.mark.parametrize(
    ("names", "effort", "what"),
    [
        (["a", "b"], [1.0, 2.0], "chambers"),
        (["a", "b", "x"], [1.0, 2.0, 3.0], "chambers"),
        (["a", "b", "b"], [1.0, 2.0, 3.0], "chambers"),
        ([], [], "chambers"),
        (["a", "b", "c"], [1.0, 2.0], "effort has 2 values, must have 3"),
        (["c", "b", "a"], [1.0, 2.0, math.nan], "effort of a = nan must be finite"),
    ],
)
def test_pressures_that_do_not_fit_the_robot_are_refused(names, effort, what):
    message = SimpleNamespace(name=names, effort=effort)
    with pytest.raises(MessageError, match="pressure/command: ") as caught:
        pressures_from_message(message, CHAMBERS, "pressure/command")
    assert what in str(caught.value)
    assert caught.value.topic == "pressure/command"


# --- poses and wrenches -------------------------------------------------------------------------


def test_orientation_is_the_quaternion_of_the_rotation():
    pose = np.eye(4)
    pose[:3, :3] = [[0, -1, 0], [1, 0, 0], [0, 0, 1]]  # a quarter turn about z
    orientation = pose_to_message(pose, STAMP).pose.orientation
    quaternion = np.array([orientation.x, orientation.y, orientation.z, orientation.w])
    np.testing.assert_allclose(quaternion / np.sign(quaternion[3]), [0, 0, 0.5**0.5, 0.5**0.5])


def test_a_quaternion_of_another_length_is_refused():
    message = pose_to_message(np.eye(4), STAMP)
    message.pose.orientation.w = 0.0
    with pytest.raises(MessageError, match="length 0, must be 1"):
        pose_from_message(message, "t")


# --- rod clouds ---------------------------------------------------------------------------------


@given(st.lists(finite, min_size=3, max_size=3))
def test_the_inputs_of_an_estimate_round_trip_bit_for_bit_in_the_order_asked_for(numbers):
    inputs = fields_of_inputs(np.array(numbers), CHAMBERS)
    message = _over_the_wire(_rod_message(inputs=inputs))
    assert [field.name for field in message.fields][-3:] == [f"input.{name}" for name in CHAMBERS]
    for order in (CHAMBERS, tuple(reversed(CHAMBERS)), None):
        cloud = rod_cloud_from_message(message, "estimate/rod", INTERVALS, order)
        expected = numbers[::-1] if order == tuple(reversed(CHAMBERS)) else numbers
        assert cloud.inputs.tobytes() == np.array(expected).tobytes()
        assert list(cloud.parameters) == list(PARAMETERS)


def test_an_estimate_without_inputs_is_read_and_one_of_another_robot_is_not():
    assert rod_cloud_from_message(_rod_message(), "t", INTERVALS, CHAMBERS).inputs is None
    message = _rod_message(inputs=fields_of_inputs(np.zeros(2), ("a", "b")))
    with pytest.raises(MessageError, match=r"t: inputs are of \['a', 'b'\], must be of \["):
        rod_cloud_from_message(message, "t", INTERVALS, CHAMBERS)
    message = _rod_message(inputs=fields_of_inputs(np.zeros(3), CHAMBERS))
    _cell(message, 3, f"input.{CHAMBERS[1]}", 1.0)
    with pytest.raises(MessageError, match="must be the same on every point"):
        rod_cloud_from_message(message, "t", INTERVALS, CHAMBERS)


def test_a_rod_cloud_is_laid_out_as_viewers_expect():
    state = np.random.default_rng(5).normal(size=72)
    poses = _poses(7)
    message = rod_cloud_message(state, poses, PARAMETERS, STD, STAMP)
    names = [field.name for field in message.fields]
    told = "x y z qx qy qz qw vx vy vz wx wy wz fx fy fz mx my mz bending_compliance "
    told += "bending_compliance_std tip_mass tip_mass_std pressure_offset_1 pressure_offset_1_std"
    assert names == told.split()
    assert [field.offset for field in message.fields] == [8 * k for k in range(25)]
    assert all(field.datatype == field.FLOAT64 and field.count == 1 for field in message.fields)
    assert (message.height, message.width, message.point_step) == (1, 7, 200)
    assert (message.row_step, len(message.data), message.is_dense) == (1400, 1400, True)
    assert message.header.frame_id == "base"
    rod = RodState(state)
    for point in range(7):
        velocity = np.zeros(6) if point < 2 else rod.velocities[point - 2]
        wrench = rod.base_wrench if point == 0 else rod.wrenches[point - 1]
        expected = [*poses[point, :3, 3], *velocity, *wrench]
        fields = [*names[:3], *names[7:19]]
        assert [_cell(message, point, field) for field in fields] == expected
        quaternion = [_cell(message, point, field) for field in names[3:7]]
        rotation = Rotation.from_quat(quaternion).as_matrix()
        np.testing.assert_allclose(rotation, poses[point, :3, :3], atol=1e-14)
        assert [_cell(message, point, name) for name in PARAMETERS] == list(PARAMETERS.values())
    cloud = rod_cloud_from_message(message, "estimate/rod")
    np.testing.assert_array_equal(cloud.positions, poses[:, :3, 3])
    rotations = Rotation.from_quat(cloud.quaternions).as_matrix()
    np.testing.assert_allclose(rotations, poses[:, :3, :3], atol=1e-14)


def test_bending_compliance_comes_first_and_truth_has_no_deviation():
    told = {"tip_mass": 0.1, "bending_compliance": 40.0}
    message = _rod_message(parameters=told, parameters_std={})
    cloud = rod_cloud_from_message(message, "simulation/truth/rod")
    assert list(cloud.parameters) == ["bending_compliance", "tip_mass"]
    assert cloud.parameters_std == {"bending_compliance": 0.0, "tip_mass": 0.0}


def test_a_foreign_layout_is_read_by_field_names():
    ours = _rod_message(np.random.default_rng(2).normal(size=72))
    table = np.frombuffer(ours.data, "<f8").reshape(7, 25)
    order = np.random.default_rng(7).permutation(25)
    theirs = copy.deepcopy(ours)
    theirs.is_bigendian = True
    theirs.point_step, theirs.row_step = 26 * 8, 7 * 26 * 8  # and one number of padding
    for column, field in zip(order, theirs.fields, strict=True):
        field.offset = int(8 * column)
    shuffled = np.zeros((7, 26))
    shuffled[:, order] = table
    theirs.data = shuffled.astype(">f8").tobytes()
    found, expected = (rod_cloud_from_message(each, "t") for each in (theirs, ours))
    np.testing.assert_array_equal(found.state, expected.state)
    assert found.parameters == expected.parameters


@pytest.mark.parametrize("field", ["x", "qw", "vx", "mz", "bending_compliance", "tip_mass_std"])
@pytest.mark.parametrize("bad", [math.nan, math.inf])
def test_an_estimate_may_hold_nothing_that_is_not_finite(field, bad):
    message = _rod_message()
    _cell(message, 4, field, bad)
    with pytest.raises(MessageError, match=f"estimate/rod: {field} = {bad} must be finite"):
        rod_cloud_from_message(message, "estimate/rod")


def _without_field(message, name):
    message.fields = [field for field in message.fields if field.name != name]


def _changed_field(message, field="qx", **changes):
    message.fields = copy.deepcopy(message.fields)
    for name, value in changes.items():
        setattr(next(each for each in message.fields if each.name == field), name, value)


@pytest.mark.parametrize(
    ("spoil", "what"),
    [
        (lambda m: _without_field(m, "wy"), r"\['wy'\] are missing"),
        (lambda m: _without_field(m, "tip_mass_std"), "pairs NAME, NAME_std"),
        (lambda m: _changed_field(m, "tip_mass", name="temperature"), "pairs NAME, NAME_std"),
        (lambda m: _changed_field(m, "y", name="x"), "x must be there once"),
        (lambda m: _changed_field(m, datatype=7), "one aligned FLOAT64"),
        (lambda m: _changed_field(m, count=2), "one aligned FLOAT64"),
        (lambda m: _changed_field(m, offset=4), "one aligned FLOAT64"),
        (lambda m: _changed_field(m, offset=200), "inside the point"),
        (lambda m: setattr(m, "fields", []), "are missing"),
        (lambda m: setattr(m, "height", 2), "must fit"),
        (lambda m: setattr(m, "width", 6), "width 6 must be 7"),
        (lambda m: setattr(m, "point_step", 192), "inside the point"),
        (lambda m: setattr(m, "row_step", 8), "row_step 8"),
        (lambda m: setattr(m, "data", m.data[:-8]), "1392 bytes"),
        (lambda m: setattr(m, "data", m.data[:0]), "0 bytes"),
        (lambda m: _cell(m, 3, "tip_mass", 1.0), "tip_mass must be the same on every point"),
        (lambda m: setattr(m.header.stamp, "nanosec", 2**32 - 1), "positive time"),
    ],
)
def test_a_cloud_that_is_no_rod_is_refused_by_name(spoil, what):
    message = _rod_message()
    spoil(message)
    with pytest.raises(MessageError, match="estimate/rod: ") as caught:
        rod_cloud_from_message(message, "estimate/rod", INTERVALS)
    caught.match(what)
    assert "\n" not in str(caught.value)


def test_a_rod_of_other_intervals_is_refused_only_where_they_matter():
    message = rod_cloud_message(np.zeros(132), _poses(12), PARAMETERS, {}, STAMP)
    assert rod_cloud_from_message(message, "t").state.shape == (132,)
    with pytest.raises(MessageError, match="width 12 must be 7 for a rod of 5 intervals"):
        rod_cloud_from_message(message, "t", INTERVALS)


@pytest.mark.parametrize(
    ("send", "what"),
    [
        (lambda: pressures_to_message(np.zeros(2), CHAMBERS, STAMP), "shape"),
        (lambda: _rod_message(np.full(72, math.nan)), "finite"),
        (lambda: _rod_message(parameters={"bending_compliance": math.nan}), "finite"),
        (lambda: _rod_message(parameters={"tip_mass": 0.1}), "bending_compliance"),
        (lambda: _rod_message(np.zeros(84)), r"poses have shape \(1, 7, 4, 4\)"),
        (lambda: _reference_message(rows=2, tips=np.zeros((3, 3))), "tip positions"),
    ],
)
def test_what_nobody_could_read_is_not_sent(send, what):
    with pytest.raises(ValueError, match=what):
        send()


# --- reference clouds ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("point", "field", "value", "what"),
    [
        (6, "z", math.nan, "tip z = nan must be finite"),
        (6, "x", math.inf, "tip x = inf must be finite"),
        (3, "vx", math.nan, "all finite or, with only a tip, all NaN"),
        (3, "fx", math.inf, "all finite or, with only a tip, all NaN"),
        (0, "period", 0.0, "period = 0.0 s must be positive"),
        (0, "period", math.nan, "period = nan s must be positive"),
        (2, "period", 0.5, "period must be the same on every point"),
    ],
)
def test_a_reference_that_cannot_be_followed_is_refused(point, field, value, what):
    message = _reference_message()
    _cell(message, point, field, value)
    with pytest.raises(MessageError, match=what):
        reference_cloud_from_message(message, "reference/rod", INTERVALS)


def test_rod_and_reference_clouds_are_not_mistaken_for_each_other():
    with pytest.raises(MessageError, match="height 4 must be 1"):
        rod_cloud_from_message(_reference_message(), "estimate/rod")
    with pytest.raises(MessageError, match="must be period"):
        reference_cloud_from_message(_rod_message(), "reference/rod")


# --- diagnostics --------------------------------------------------------------------------------


def test_diagnostics_round_trip_with_structured_values():
    values = {"cycles": 3, "p50_ms": 1.25, "mode": "wall", "edges": {"a": [1, 2.5]}, "ok": True}
    report = DiagnosticReport("estimator: loop", 2, "one line", "licher2025", values)
    message = diagnostics_to_message([report], STAMP)
    assert {v.key: v.value for v in message.status[0].values}["edges"] == '{"a": [1, 2.5]}'
    assert diagnostics_from_message(_over_the_wire(message)) == [report]
    # what rosbags makes of the same bytes
    kind, store = "diagnostic_msgs/msg/DiagnosticArray", get_typestore(Stores.ROS2_JAZZY)
    in_bag = store.deserialize_cdr(serialize_message(message), kind)
    assert diagnostics_from_message(in_bag) == [report]
    # a number that JSON does not know
    report.values["p50_ms"] = math.nan
    (decoded,) = diagnostics_from_message(diagnostics_to_message([report], STAMP))
    assert math.isnan(decoded.values["p50_ms"])


# --- bags ---------------------------------------------------------------------------------------


def test_decoding_and_the_table_need_no_ros():
    code = (
        "import sys\n"
        "for name in ('rclpy', 'sensor_msgs', 'std_msgs', 'builtin_interfaces'):\n"
        "    sys.modules[name] = None\n"
        "import softcr_runtime.wire.messages\n"
        "from softcr_runtime.wire.topics import TOPICS\n"
        "print(TOPICS['estimate/rod'].type)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, "sensor_msgs/msg/PointCloud2\n"), done.stderr


# --- topics -------------------------------------------------------------------------------------


def test_quality_of_service_on_the_wall_clock():
    period = 1 / 70
    command = qos("pressure/command", offered_period=period)
    assert (command.reliability, command.depth) == (ReliabilityPolicy.RELIABLE, 1)
    assert command.deadline.nanoseconds == command.lifespan.nanoseconds == round(2e9 * period)
    demanded = qos("pressure/command")
    assert demanded.deadline.nanoseconds == demanded.lifespan.nanoseconds == 0
    sensor = qos("mocap/tip/pose", offered_period=period)
    assert (sensor.reliability, sensor.depth) == (ReliabilityPolicy.BEST_EFFORT, 5)
    assert sensor.deadline.nanoseconds == 0
    assert qos("estimate/rod").reliability == ReliabilityPolicy.RELIABLE
    assert qos("safety/state").durability == DurabilityPolicy.TRANSIENT_LOCAL
    assert qos("estimate/rod").durability == DurabilityPolicy.VOLATILE


def test_nothing_is_lost_or_expires_in_lockstep():
    for topic in TOPICS:
        profile = qos(topic, lockstep=True, offered_period=1 / 70)
        assert (profile.reliability, profile.depth) == (ReliabilityPolicy.RELIABLE, LOCKSTEP_DEPTH)
        assert profile.deadline.nanoseconds == profile.lifespan.nanoseconds == 0


def test_a_person_s_plain_publisher_of_goals_is_heard_in_lockstep():
    plain = QoSProfile(  # as the defaults of rmw are
        depth=1, reliability=ReliabilityPolicy.RELIABLE, durability=DurabilityPolicy.VOLATILE
    )
    for topic in ("goal/pose", "goal/path"):
        assert qos_check_compatible(plain, qos(topic, True))[0] != QoSCompatibility.ERROR
    kept = qos_check_compatible(plain, qos("pressure/state", True))[0]
    assert kept == QoSCompatibility.ERROR


STARVED_READER = """
import time
import rclpy
from softcr_runtime.wire.topics import TOPICS, qos

rclpy.init()
node = rclpy.create_node("reader")
profile = qos("pressure/state", lockstep=True)
profile.depth = 1000
seen = set()
node.create_subscription(
    TOPICS["pressure/state"].message_class(), "pressure/state",
    lambda message: seen.add(message.effort[0]), profile,
)
deadline = time.monotonic() + 60.0
while len(seen) < 200 and time.monotonic() < deadline:
    rclpy.spin_once(node, timeout_sec=0.05)
print(len(seen))
"""


def test_a_reader_that_gets_no_time_misses_nothing_in_lockstep():
    environment = os.environ | {"ROS_DOMAIN_ID": fresh_domain()}
    command, pipe = [sys.executable, "-c", STARVED_READER], subprocess.PIPE
    reader = subprocess.Popen(command, env=environment, stdout=pipe, text=True)
    writer = Peer("writer", lockstep=True, domain_id=int(environment["ROS_DOMAIN_ID"]))
    publisher = writer.publisher("pressure/state")
    try:
        until(publisher.get_subscription_count, "the reader")
        names = [f"a name that makes the message long, number {k}" for k in range(150)]
        for number in range(200):
            if number == 20:
                reader.send_signal(signal.SIGSTOP)
            if number == 150:
                reader.send_signal(signal.SIGCONT)
            publisher.publish(pressures_to_message([float(number)] * len(names), names, number + 1))
            time.sleep(0.002)
        assert reader.communicate(timeout=90)[0].strip() == "200"
    finally:
        reader.kill()
        writer.close()
