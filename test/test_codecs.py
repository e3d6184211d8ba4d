"""Codecs: each value comes out of its message as it went in, over the wire and out of a bag."""

import dataclasses
import math
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from rclpy.serialization import deserialize_message, serialize_message
from scipy.spatial.transform import Rotation

from softcr_models.model import Group, Layout
from softcr_runtime.bags.message_bytes import cdr_of, decoded
from softcr_runtime.blocks.command_packets import CommandPacket
from softcr_runtime.blocks.values import (
    Goal,
    PointForces,
    Pose,
    ReferenceRows,
    StateEstimate,
    TipEstimate,
)
from softcr_runtime.wire.codecs import EXCHANGED, Expected, codec
from softcr_runtime.wire.messages import MessageError, from_stamp
from softcr_runtime.wire.topics import ACTUATOR_TOPICS, TOPICS, carries_packets

GROUPS = Group("odd", np.array([1, 3]), "m"), Group("even", np.array([0, 2]), "m/s")
NAMES, TENDONS, PARAMETERS = ("a", "b", "c"), ("left", "right"), ("bending_compliance", "tip_mass")
EXPECTED = Expected(NAMES, 5, TENDONS, bodies=3, layout=Layout(GROUPS, np.ones(4)))
FINITE = st.floats(allow_nan=False, allow_infinity=False)
STAMPS = st.integers(1, 2**31 * 10**9 - 1)


def numbers(*shape):
    return arrays(float, shape, elements=FINITE)


def named(*names):
    return st.tuples(*[FINITE] * len(names)).map(lambda found: dict(zip(names, found, strict=True)))


@st.composite
def poses(draw, *shape):
    """(..., 4, 4), of any rotations, half turns among them."""
    quaternions = np.random.default_rng(draw(st.integers(0, 99))).normal(size=(*shape, 4))
    quaternions[..., 3] *= draw(st.sampled_from([0.0, 1.0]))
    made = np.tile(np.eye(4), (*shape, 1, 1))
    rotations = Rotation.from_quat(quaternions.reshape(-1, 4)).as_matrix()
    made[..., :3, :3] = rotations.reshape(*shape, 3, 3)
    made[..., :3, 3] = draw(numbers(*shape, 3))
    return made


POSE = poses(1).map(lambda made: Pose.of(made[0]))


@st.composite
def packets(draw):
    steps = draw(st.lists(st.integers(1, 10**9), min_size=1, max_size=5))
    due = np.cumsum([draw(st.integers(10**9, 10**18)), *steps]).tolist()
    return CommandPacket(tuple(due), draw(numbers(len(due), 3)))


@st.composite
def states(draw, size, points=0):
    along = draw(poses(points)) if points else None
    told = draw(named(*PARAMETERS)), draw(named(*PARAMETERS))
    inputs = draw(st.none() | numbers(3))
    return StateEstimate(draw(numbers(size)), *told, lambda: along, inputs)


@st.composite
def references(draw, size, points):
    """Of whole states, or of the tip alone."""
    rows, whole = draw(st.integers(2, 4)), draw(st.booleans())
    unknown = np.full((rows, size), np.nan) if points else None
    known = draw(numbers(rows, size)) if whole else unknown
    along = draw(poses(rows, points)) if whole and points else None
    period = draw(st.floats(1e-3, 10.0))
    return ReferenceRows(0, period, known, draw(numbers(rows, 3)), lambda: along)


@st.composite
def goals(draw, most):
    count = draw(st.integers(1, most))
    asked = draw(
        st.none() | poses(count).map(lambda made: np.array([Pose.of(m).quaternion for m in made]))
    )
    return Goal(draw(numbers(count, 3)), draw(st.sampled_from(["base", "world", ""])), asked)


OF_ACTUATORS = {"plan": packets(), "positions": numbers(3), "effort": numbers(3)}
OF_ACTUATORS["state"] = st.tuples(numbers(3), numbers(3))
VALUES = {
    "mocap/tip/pose": POSE,
    "mocap/body/poses": st.tuples(POSE, POSE, POSE),
    "tendon/lengths": numbers(2),
    "simulation/truth/tip/pose": POSE,
    "force_torque/wrench": numbers(6),
    "estimate/rod": states(72, 7),
    "simulation/truth/rod": states(72, 7),
    "simulation/truth/loads": st.builds(PointForces, numbers(2, 3), numbers(2, 6)),
    "simulation/truth/contact/points": st.builds(PointForces, numbers(2, 3), numbers(2, 6)),
    "simulation/truth/contact/wrench": numbers(6),
    "estimate/tip/pose": st.builds(
        TipEstimate, POSE.map(lambda pose: lambda: pose), numbers(3, 3).map(abs)
    ),
    "estimate/constant_curvature": named("delta_x", "delta_x_std", "elongation"),
    "reference/rod": references(72, 7),
    "estimate/state": states(4),
    "simulation/truth/state": states(4),
    "reference/output": references(4, 0),
    "reference/tip": st.builds(lambda pose: np.concatenate((pose.position, pose.quaternion)), POSE),
    "goal/pose": goals(1),
    "goal/path": goals(5),
}
for _topic, _kind in ACTUATOR_TOPICS.items():
    _field = "plan" if carries_packets(_topic) else _kind.field
    _state = _field == "positions" and _topic.endswith("/state")
    VALUES[_topic] = OF_ACTUATORS["state" if _state else _field]


def bits(value):
    """A value as numbers to the bit, by the names of its parts; what is not told is left out."""
    if isinstance(value, Pose):
        return bits((value.position, value.quaternion))
    if dataclasses.is_dataclass(value):
        parts = {each.name: getattr(value, each.name) for each in dataclasses.fields(value)}
        parts = {name: part() if callable(part) else part for name, part in parts.items()}
        return {name: bits(part) for name, part in parts.items() if part is not None}
    if isinstance(value, dict):
        return {name: bits(part) for name, part in value.items()}
    if isinstance(value, (tuple, list)) and not all(isinstance(each, int) for each in value):
        return [bits(each) for each in value]
    return np.asarray(value).tobytes() if not isinstance(value, str) else value


def test_every_topic_with_a_codec_is_here():
    assert VALUES.keys() == {*EXCHANGED, "goal/pose", "goal/path"}


@pytest.mark.parametrize("topic", VALUES)
@given(st.data())
@settings(max_examples=25)
def test_a_value_comes_out_of_its_message_to_the_bit(topic, data):
    value, stamp, of_topic = data.draw(VALUES[topic]), data.draw(STAMPS), codec(topic, EXPECTED)
    message = of_topic.encode(value, stamp)
    assert type(message) is TOPICS[topic].message_class()
    payload = serialize_message(message)
    sent = bits(value)
    kept = cdr_of(message) if carries_packets(topic) else payload
    for came in (deserialize_message(payload, type(message)), decoded(kept, TOPICS[topic].type)):
        assert topic == "goal/path" or from_stamp(came, topic) == stamp
        found = of_topic.decode(came)
        told = bits(found)
        if isinstance(sent, dict) and dataclasses.is_dataclass(value):
            common = sent.keys() & told.keys() - {"stamp", "poses", "layout"}
            assert common or topic == "estimate/constant_curvature"
            assert {name: told[name] for name in common} == {name: sent[name] for name in common}
            assert sent.keys() - told.keys() <= {"poses", "stamp"}
        else:
            assert told == sent


def leaves(message):
    """(holder, name) of every float64 that a message has, beside those of clouds and stamps."""
    for name in message.get_fields_and_field_types():
        part = getattr(message, name)
        if isinstance(part, float):
            yield message, name
        elif hasattr(part, "get_fields_and_field_types"):
            yield from leaves(part)
        elif isinstance(part, (list, tuple)) and name == "poses":
            for each in part:
                yield from leaves(each)


@pytest.mark.parametrize("topic", VALUES)
@given(st.data())
@settings(max_examples=10)
def test_a_message_with_a_number_that_is_not_finite_is_refused_by_its_topic(topic, data):
    of_topic = codec(topic, EXPECTED)
    message = of_topic.encode(data.draw(VALUES[topic]), 1)
    bad = data.draw(st.sampled_from([math.nan, math.inf, -math.inf]))
    for holder, name in leaves(message):
        good = getattr(holder, name)
        setattr(holder, name, bad)
        with pytest.raises(MessageError, match=f"{topic}: ") as caught:
            of_topic.decode(message)
        assert "\n" not in str(caught.value)
        setattr(holder, name, good)
    rows = [getattr(message, name, None) for name in ("effort", "position", "velocity")]
    for row in filter(None, rows):
        row[-1] = bad
        with pytest.raises(MessageError, match=f"{topic}: "):
            of_topic.decode(message)


@pytest.mark.parametrize(("sec", "nanosec"), [(0, 0), (-1, 5), (3, 10**9)])
def test_a_stamp_that_is_no_time_is_refused(sec, nanosec):
    stamp = SimpleNamespace(sec=sec, nanosec=nanosec)
    with pytest.raises(MessageError, match="mocap/tip/pose: stamp"):
        from_stamp(SimpleNamespace(header=SimpleNamespace(stamp=stamp)), "mocap/tip/pose")
