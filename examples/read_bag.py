"""A recorded run as a table, by `rosbags` and `pandas` alone: softcr is not needed to read a bag.

    pip install rosbags pandas
    python examples/read_bag.py results/sim/latest/bag

All topics carry standard messages. The error printed at the end is the `tip_aed` of the report.
"""

import sys
from pathlib import Path

import numpy as np
import pandas as pd
from rosbags.highlevel import AnyReader
from rosbags.typesys import Stores, get_typestore


def seconds(message) -> float:
    """Header stamp [s]."""
    return message.header.stamp.sec + 1e-9 * message.header.stamp.nanosec


def tables(bag: Path) -> dict[str, pd.DataFrame]:
    """Pressures [Pa], true tip and wanted tip [m] of a run, indexed by their stamp [s]."""
    rows: dict[str, list[dict[str, float]]] = {"pressures": [], "tip": [], "wanted": []}
    with AnyReader([bag], default_typestore=get_typestore(Stores.ROS2_JAZZY)) as reader:
        for connection, _, payload in reader.messages():
            if connection.topic == "/pressure/state":
                message = reader.deserialize(payload, connection.msgtype)
                values = dict(zip(message.name, message.effort, strict=True))
                rows["pressures"].append({"time": seconds(message), **values})
            elif connection.topic == "/simulation/truth/tip/pose":
                message = reader.deserialize(payload, connection.msgtype)
                p = message.pose.position
                rows["tip"].append({"time": seconds(message), "x": p.x, "y": p.y, "z": p.z})
            elif connection.topic == "/reference/rod":
                message = reader.deserialize(payload, connection.msgtype)
                x, y, z = last_point(message)
                rows["wanted"].append({"time": seconds(message), "x": x, "y": y, "z": z})
    return {name: pd.DataFrame(found).set_index("time") for name, found in rows.items()}


def last_point(cloud) -> np.ndarray:
    """(3,) position of the last point of the first row: where the tip should be now [m].

    A row of `reference/rod` is one step of the horizon, a point of it one node of the rod; every
    field is a float64, and x, y, z come first.
    """
    points = np.frombuffer(cloud.data, "<f8").reshape(cloud.height, cloud.width, -1)
    return points[0, -1, :3]


if __name__ == "__main__":
    found = tables(Path(sys.argv[1]))
    print((found["pressures"] / 1e3).describe().loc[["mean", "min", "max"]].round(1), "kPa")
    error = (found["tip"] - found["wanted"]).dropna().pow(2).sum(axis=1).pow(0.5)
    print(f"mean distance from the reference: {1e3 * error.mean():.2f} mm")
