"""Layouts of RViz, Foxglove and PlotJuggler: they parse, and name topics and fields there are."""

import json
import re
from importlib import import_module
from xml.etree import ElementTree

import yaml

from softcr_models import load_robot
from softcr_models.files.config import config_directory
from softcr_models.rod.parameters import ROD_PARAMETERS
from softcr_runtime.wire.topics import TOPICS

LAYOUTS = config_directory() / "layouts"
CHAMBERS = load_robot("licher2025").chamber_names
PARAMETERS = [each.name for each in ROD_PARAMETERS]
NAMES = {topic if topic.startswith("/") else f"/{topic}": topic for topic in TOPICS}
SHOWN_BY = {
    "rviz_default_plugins/MarkerArray": "visualization_msgs/msg/MarkerArray",
    "rviz_default_plugins/Path": "nav_msgs/msg/Path",
    "rviz_default_plugins/Pose": "geometry_msgs/msg/PoseStamped",
    "rviz_default_plugins/PoseWithCovariance": "geometry_msgs/msg/PoseWithCovarianceStamped",
}
"""Message of each kind of display. PointCloud2 is not among them: RViz shows none of float64."""


def number_in(topic: str, fields: list[str]) -> bool:
    """Whether fields lead through a message to a number; `effort[0]` goes into a sequence."""
    kind = TOPICS[topic].message_class()
    for field in fields:
        name, index = re.fullmatch(r"(\w+)(\[\d+\])?", field).groups()
        declared = kind.get_fields_and_field_types().get(name, "no such field")
        if declared.startswith("sequence<") != bool(index):
            return False
        declared = declared.removeprefix("sequence<").removesuffix(">")
        if "/" not in declared:
            return field == fields[-1] and declared in ("double", "float", "int32", "uint32")
        package, name = declared.split("/")
        kind = getattr(import_module(f"{package}.msg"), name)
    return False


def longest_topic(path: str) -> str | None:
    """The topic that a path of names begins with."""
    fitting = [name for name in NAMES if path == name or path.startswith((f"{name}/", f"{name}."))]
    return max(fitting, key=len, default=None)


def test_rviz_displays_topics_of_their_type_as_they_are_offered():
    layout = yaml.safe_load((LAYOUTS / "softcr.rviz").read_text())["Visualization Manager"]
    assert layout["Global Options"]["Fixed Frame"] == "base"
    displays = [display for display in layout["Displays"] if "Topic" in display]
    assert len(displays) >= 4
    (model,) = (each for each in layout["Displays"] if each["Class"].endswith("/RobotModel"))
    topic = TOPICS[NAMES[model["Description Topic"]["Value"]]]
    assert topic.type == "std_msgs/msg/String"  # as RViz's RobotModel reads it
    late = model["Description Topic"]["Durability Policy"] == "Transient Local"
    assert late == (topic.profile == "latched")
    assert any(each["Class"] == "rviz_default_plugins/TF" for each in layout["Displays"])
    for display in displays:
        topic = TOPICS[NAMES[display["Topic"]["Value"]]]
        assert SHOWN_BY[display["Class"]] == topic.type
        best_effort = display["Topic"]["Reliability Policy"] == "Best Effort"
        assert best_effort == (topic.profile == "sensor")  # else nothing is received


def leaves(layout) -> list[str]:
    if isinstance(layout, str):
        return [layout]
    assert layout["direction"] in ("row", "column")
    assert 0 < layout["splitPercentage"] < 100
    return leaves(layout["first"]) + leaves(layout["second"])


def test_foxglove_panels_are_placed_and_name_topics_and_numbers_there_are():
    layout = json.loads((LAYOUTS / "foxglove.json").read_text())
    panels = layout["configById"]
    assert sorted(leaves(layout["layout"])) == sorted(panels)
    paths = 0
    for name, panel in panels.items():
        kind = name.partition("!")[0]
        if kind == "3D":
            assert panel["followTf"] == "base"
            assert set(panel["topics"]) <= set(NAMES)
        elif kind == "Plot":
            for path in panel["paths"]:
                topic = longest_topic(path["value"])
                fields = path["value"].removeprefix(f"{topic}.").split(".")
                assert number_in(NAMES[topic], fields), path["value"]
                paths += 1
        else:
            assert panel.get("topicToRender", panel.get("topicPath")) in NAMES
    assert paths >= 12


def test_plotjuggler_curves_name_topics_and_numbers_there_are():
    root = ElementTree.parse(LAYOUTS / "plotjuggler.xml").getroot()
    curves = [curve.get("name") for curve in root.iter("curve")]
    assert len(curves) >= 20
    for curve in curves:
        topic = longest_topic(curve)
        fields = curve.removeprefix(f"{topic}/").split("/")
        if TOPICS[NAMES[topic]].type == "sensor_msgs/msg/JointState":
            # there a curve is named by the joint: PlotJuggler's parser of this type
            of_parameters = NAMES[topic] == "estimate/parameters"
            assert fields[0] in (PARAMETERS if of_parameters else CHAMBERS), curve
            assert fields[1] in (("position", "effort") if of_parameters else ("effort",)), curve
            assert len(fields) == 2, curve
        else:
            assert number_in(NAMES[topic], fields), curve
    for splitter in root.iter("DockSplitter"):
        assert int(splitter.get("count")) == len(splitter) == len(splitter.get("sizes").split(";"))
