"""RViz beside a run: the shipped layout, its topics and frames moved to those of the robot."""

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml

from softcr_models.errors import UserError
from softcr_models.files.config import config_directory
from softcr_runtime.wire.namespaces import absolute, frame_prefix, in_namespace


def rviz_command(namespace: str, prefix: str, simulated_time: bool) -> list[str]:
    """The words that start RViz for one robot.

    Args:
        namespace: of the robot; empty: the root.
        prefix: of its frames; empty: the namespace and a slash; `/` for none.
        simulated_time: whether RViz has the time of the robot's /clock.

    Raises:
        UserError: there is no rviz2.
    """
    program = shutil.which("rviz2")
    if program is None:
        raise UserError("rviz: no rviz2 on PATH; it comes with a ROS 2 installation (desktop)")
    layout = config_directory() / "layouts" / "softcr.rviz"
    frames = prefix.lstrip("/") if prefix else frame_prefix(namespace)
    remapped = [
        word
        for topic in layout_topics(layout)
        for word in ("-r", f"{topic}:={absolute(namespace, topic[1:])}")
        if namespace
    ]
    return [
        *(program, "-d", str(layout), "-f", f"{frames}base"),
        *("--ros-args", *in_namespace(namespace), *remapped),
        *("-p", f"use_sim_time:={str(simulated_time).lower()}"),
    ]


def layout_topics(layout: Path) -> list[str]:
    """The absolute topics that the displays of an RViz layout subscribe to."""
    displays = yaml.safe_load(layout.read_text(encoding="utf-8"))["Visualization Manager"]
    return sorted(set(_topics(displays["Displays"])))


def _topics(node: Any) -> Iterator[str]:
    if isinstance(node, list):
        for each in node:
            yield from _topics(each)
    elif isinstance(node, dict):
        for name, value in node.items():
            if name.endswith("Topic") and isinstance(value, dict):
                yield value["Value"]
            else:
                yield from _topics(value)
