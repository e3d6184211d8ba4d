"""Bags of runs whose numbers are known, message by message, with the types of rosbags."""

import json
from pathlib import Path

import numpy as np
from rosbags.interfaces import (
    Qos,
    QosDurability,
    QosHistory,
    QosLiveliness,
    QosReliability,
    QosTime,
)
from rosbags.typesys import Stores, get_typestore

from softcr_runtime.bags.reading import Bag
from softcr_runtime.bags.recording import BagRecording, RecordedTopic
from softcr_runtime.bags.signals import read_signals
from softcr_runtime.wire.rod_clouds import ROD_FIELDS
from softcr_runtime.wire.topics import TOPICS
from softcr_tools.report.page import Summary
from softcr_tools.report.run import Run
from softcr_tools.report.sections import summarize

TYPESTORE = get_typestore(Stores.ROS2_JAZZY)
TYPES = TYPESTORE.types
QOS = Qos(
    QosHistory.KEEP_LAST, 5, QosReliability.RELIABLE, QosDurability.VOLATILE,
    QosTime(0, 0), QosTime(0, 0), QosLiveliness.AUTOMATIC, QosTime(0, 0), False,
)  # fmt: skip
PERIOD = 1 / 70  # [s]
CHAMBERS = ["chamber_1", "chamber_2", "chamber_3"]
ROBOT = {
    "name": "licher2025",
    "length": 0.125,
    "outer_diameter": 0.042,
    "pressure_limits": {"minimum": 0.0, "maximum": 1e5, "maximum_rate": 2e6},
}
LOOP = {
    "rate_hz": 69.9, "p50_ms": 1.5, "p99_ms": 4.25, "max_ms": 9.0, "missed_cycles": 3,
    "cycles": 700, "deadline_ms": 14.2857, "rejected_messages": 2, "rejections": {"stale": 2},
    "mode": "wall", "seed": 7, "robot": ROBOT,
    "tick_time_histogram_ms": {"edges": [0.5, 1.0, 2.0, 5.0, 10.0], "counts": [0, 600, 90, 10]},
}  # fmt: skip


def ticks(duration: float) -> np.ndarray:
    """Stamps of the control periods [ns]; the wall clock started long ago."""
    count = round(duration / PERIOD)
    return 1_700_000_000_000_000_000 + np.round(1e9 * PERIOD * np.arange(count)).astype(np.int64)


def circle(stamps: np.ndarray) -> np.ndarray:
    """(T, 3) points on a circle of 30 mm at 0.5 Hz [m]."""
    phase = 2 * np.pi * 0.5 * (stamps - stamps[0]) * 1e-9
    return np.stack([0.03 * np.cos(phase), 0.03 * np.sin(phase), np.full(len(phase), 0.11)], axis=1)


def header(stamp: int) -> object:
    time = TYPES["builtin_interfaces/msg/Time"](sec=int(stamp) // 10**9, nanosec=int(stamp) % 10**9)
    return TYPES["std_msgs/msg/Header"](stamp=time, frame_id="base")


def pose(position: np.ndarray) -> object:
    x, y, z = map(float, position)
    return TYPES["geometry_msgs/msg/Pose"](
        position=TYPES["geometry_msgs/msg/Point"](x=x, y=y, z=z),
        orientation=TYPES["geometry_msgs/msg/Quaternion"](x=0.0, y=0.0, z=0.0, w=1.0),
    )


def pose_stamped(stamp: int, position: np.ndarray) -> object:
    return TYPES["geometry_msgs/msg/PoseStamped"](header=header(stamp), pose=pose(position))


def pose_with_covariance(stamp: int, position: np.ndarray) -> object:
    body = TYPES["geometry_msgs/msg/PoseWithCovariance"](
        pose=pose(position), covariance=np.zeros(36)
    )
    return TYPES["geometry_msgs/msg/PoseWithCovarianceStamped"](header=header(stamp), pose=body)


def joint_state(stamp: int, pressures: np.ndarray) -> object:
    return TYPES["sensor_msgs/msg/JointState"](
        header=header(stamp), name=CHAMBERS, position=np.array([]), velocity=np.array([]),
        effort=np.asarray(pressures, dtype=float),
    )  # fmt: skip


def wrench(stamp: int, values: np.ndarray) -> object:
    vector = TYPES["geometry_msgs/msg/Vector3"]
    body = TYPES["geometry_msgs/msg/Wrench"](force=vector(*values[:3]), torque=vector(*values[3:]))
    return TYPES["geometry_msgs/msg/WrenchStamped"](header=header(stamp), wrench=body)


def cloud(stamp: int, table: np.ndarray, names: list[str]) -> object:
    field = TYPES["sensor_msgs/msg/PointField"]
    height, width, columns = table.shape
    return TYPES["sensor_msgs/msg/PointCloud2"](
        header=header(stamp), height=height, width=width,
        fields=[field(name=n, offset=8 * k, datatype=8, count=1) for k, n in enumerate(names)],
        is_bigendian=False, point_step=8 * columns, row_step=8 * columns * width,
        data=np.ascontiguousarray(table).view(np.uint8).reshape(-1), is_dense=True,
    )  # fmt: skip


def rod_cloud(stamp: int, tip: np.ndarray, points: int, compliance: float, std: float) -> object:
    """A rod whose centre line goes straight from the origin to the tip."""
    names = [*ROD_FIELDS, "bending_compliance", "bending_compliance_std"]
    table = np.zeros((1, points, len(names)))
    table[0, :, :3] = np.linspace(0, 1, points)[:, None] * tip
    table[0, :, 6] = 1.0
    table[0, :, -2:] = compliance, std
    return cloud(stamp, table, names)


def reference_cloud(stamp: int, tip: np.ndarray) -> object:
    table = np.full((10, 7, 20), np.nan)
    table[:, -1, :3] = tip + 1e-3 * np.arange(10)[:, None]  # only row 0 counts
    table[:, :, -1] = PERIOD
    return cloud(stamp, table, [*ROD_FIELDS, "period"])


def diagnostics(stamp: int, node: str, values: dict, level: int = 0, message: str = "") -> object:
    pair = TYPES["diagnostic_msgs/msg/KeyValue"]
    status = TYPES["diagnostic_msgs/msg/DiagnosticStatus"](
        level=level, name=f"{node}: loop", message=message, hardware_id="licher2025",
        values=[
            pair(key=key, value=value if isinstance(value, str) else json.dumps(value))
            for key, value in values.items()
        ],
    )  # fmt: skip
    return TYPES["diagnostic_msgs/msg/DiagnosticArray"](header=header(stamp), status=[status])


def write_bag(directory: Path, messages: list[tuple[str, int, object]]) -> Path:
    """Record messages, each at its stamp plus 1 ms."""
    said = dict.fromkeys(topic for topic, _, _ in messages)
    names = {topic: topic if topic.startswith("/") else f"/{topic}" for topic in said}
    recording = BagRecording(
        directory, [RecordedTopic(name, TOPICS[topic].type, QOS) for topic, name in names.items()]
    )
    for topic, stamp, message in sorted(messages, key=lambda entry: entry[1]):
        payload = bytes(TYPESTORE.serialize_cdr(message, TOPICS[topic].type))
        recording.write(names[topic], int(stamp) + 10**6, payload)
    assert recording.close().failure is None
    return directory


OFFSET = np.array([0.6e-3, 0.0, 0.8e-3])  # of the tip from the reference: 1 mm


ESTIMATE_OFFSET = np.array([0.0, 0.3e-3, -0.4e-3])  # of the estimate from the tip: 0.5 mm


def closed_loop(duration: float = 8.0, reference=circle) -> list[tuple[str, int, object]]:
    """A run in which every error is known: the tip is 1 mm off, for the first second 3 mm."""
    stamps = ticks(duration)
    messages = []
    for k, (stamp, goal) in enumerate(zip(stamps, reference(stamps), strict=True)):
        seconds = (stamp - stamps[0]) * 1e-9
        tip = goal + OFFSET * (3 if seconds < 1 - 1e-6 else 1)
        # the estimate approaches the truth of 48 from 50: it is 1 % off after 5 s, exact at 10 s
        compliance = 48 * (1 + 0.02 * (1 - seconds / 10))
        command = np.array([0.0 if k % 10 == 0 else 2e4, 5e4, 4e4])
        messages += [
            ("simulation/truth/tip/pose", stamp, pose_stamped(stamp, tip)),
            ("simulation/truth/rod", stamp, rod_cloud(stamp, tip, 12, 48.0, 0.0)),
            ("mocap/tip/pose", stamp, pose_stamped(stamp, tip + 1e-4)),
            ("pressure/state", stamp, joint_state(stamp, [2.1e4, 5e4, 4e4])),
            ("pressure/sent", stamp, joint_state(stamp, command)),
            ("force_torque/wrench", stamp, wrench(stamp, np.array([3.0, 0, 4, 0, 0.1, 0]))),
            ("estimate/tip/pose", stamp, pose_with_covariance(stamp, tip + ESTIMATE_OFFSET)),
            ("estimate/rod", stamp, rod_cloud(stamp, tip, 7, compliance, 0.25)),
            ("reference/rod", stamp, reference_cloud(stamp, goal)),
        ]
    for stamp in [*stamps[:: round(1 / PERIOD)], stamps[-1]]:
        extra = {
            "simulator": {"plant_mismatch": {"bending_compliance": -0.05}},
            "estimator": {"initial_parameters": {"bending_compliance": 49.9}},
            "nempc_controller": {"population": 1000, "horizon": 8},
            "reference": {"reference": "circle"},
        }
        messages += [
            ("/diagnostics", stamp, diagnostics(stamp, node, LOOP | values))
            for node, values in extra.items()
        ]
    return messages


def without(messages: list, *topics: str) -> list:
    return [entry for entry in messages if entry[0] not in topics]


def numbers_of(bag: Path, system: dict | None = None) -> Summary:
    return summarize(Run(read_signals(Bag(bag)), system))
