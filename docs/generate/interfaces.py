"""Topics with every field, nodes and services.

What a message holds is not told from a list: short runs on virtual time publish it, and the codec
of the topic makes the message.
"""

import re
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

from generate.markdown import code, table
from generate.nodes import NodePage, all_nodes, talkers
from softcr_runtime.bags.signals import unit_of
from softcr_runtime.blocks.virtual import VirtualExecutor
from softcr_runtime.wire.codecs import codec
from softcr_runtime.wire.safety_state import KEYS
from softcr_runtime.wire.topics import TOPICS, Topic, qos
from softcr_tools.running.run_options import SimulationOptions
from softcr_tools.running.systems import simulation_system

_SHORT = {"mode": "lockstep", "duration": "1", "controller": "rod_mpc"}
_RUNS: tuple[tuple[str, dict[str, str]], ...] = (
    ("rod", _SHORT),
    (
        "rod with loads and obstacles",
        _SHORT | {"robot": "two_segments", "plant.loads": "tip_pull", "plant.obstacles": "ball"},
    ),
    (
        "one section of constant curvature",
        _SHORT
        | {
            "controller.model": "constant_curvature",
            "estimator.model": "constant_curvature",
            "plant": "model",
            "plant.plant_model": "constant_curvature",
            "reference": "tip_circle",
        },
    ),
    (
        "constant-curvature estimator",
        {"mode": "lockstep", "duration": "1", "estimator": "cc", "reference": "circle"},
    ),
    ("arm of tendons", {"mode": "lockstep", "duration": "1", "robot": "dalenberg_robot1"}),
)
"""Runs that publish every topic which blocks exchange."""

_UNITS: tuple[tuple[str, str], ...] = (
    (r"[xyz]|tip_[xyz]", "m, base frame"),
    (r"q[xyzw]", "quaternion, base frame"),
    (r"v[xyz]", "m/s, frame of the node"),
    (r"w[xyz]", "rad/s, frame of the node"),
    (r"f[xyz]", "N, frame of the node"),
    (r"m[xyz]", "N m, frame of the node"),
    (r"force_[xyz]", "N, base frame"),
    (r"moment_[xyz]", "N m, base frame"),
    (r"segment", "number of the segment, 0 at the base"),
    (r"input\.\w+", "of the robot's inputs: Pa, N or m"),
    (r"state\.\w+", "as the model's layout says"),
    (r"marker_offset_[xyz](_std)?", "m, frame of the tip"),
    (r"event|stamp|age|.* (first|last)", ""),
)
"""What the reference says of some fields of point clouds in place of `unit_of`; the build fails for
a field that neither knows."""


def pages() -> dict[str, Callable[[], str]]:
    """The parts of the reference about interfaces."""
    return {"topics.md": _topics, "nodes.md": _nodes, "services.md": _services}


@cache
def examples() -> dict[str, tuple[str, Any]]:
    """Topic -> which run published it, and a message of it from the middle of the run."""
    found: dict[str, tuple[str, Any]] = {}
    for title, texts in _RUNS:
        said: dict[str, list[tuple[str, Any]]] = {}
        system = simulation_system(SimulationOptions.of_options(texts), Path("unused"))
        executor = VirtualExecutor(
            system,
            lambda part, output, said=said: said.setdefault(output.topic, []).append(
                (part, output)
            ),
        )
        executor.run()
        for topic, outputs in said.items():
            part, output = outputs[len(outputs) // 2]
            made = codec(topic, executor.block(part).expected).encode(output.value, output.stamp)
            found.setdefault(topic, (title, made))
    return found


# --- topics -----------------------------------------------------------------------------------


def _topics() -> str:
    rows = [
        [f"[`{topic.name}`]({_anchor(topic)})", code(topic.type), topic.meaning]
        for topic in TOPICS.values()
    ]
    parts = [table(["topic", "type", "carries"], rows)]
    parts += [_topic(topic, all_nodes()) for topic in TOPICS.values()]
    return "\n\n".join(parts) + "\n"


def _anchor(topic: Topic) -> str:
    return "#topic-" + re.sub(r"\W+", "-", topic.name).strip("-")


def _topic(topic: Topic, nodes: tuple[NodePage, ...]) -> str:
    says, hears = talkers(topic.name, nodes)
    lines = [
        f"({_anchor(topic)[1:]})=",
        f"## `{topic.name}`",
        f"Type `{topic.type}`. {topic.meaning[:1].upper()}{topic.meaning[1:]}.",
        f"Quality of service: {_quality(topic)}.",
    ]
    told = [f"{verb} {', '.join(map(code, who))}" for verb, who in
            (("Published by", says), ("received by", hears)) if who]  # fmt: skip
    if told:
        line = "; ".join(told)
        lines.append(f"{line[0].upper()}{line[1:]}.")
    title, message = examples().get(topic.name, ("", None))
    rows = [list(row) for row in _fields(topic.message_class(), message)]
    column = f"in a run ({title})" if title else "example"
    lines.append(table(["field", "type", column], rows))
    if message is not None and topic.type.endswith("PointCloud2"):
        lines.append(_points(message))
    if topic.name == "safety/state":
        keys = [[code(key), meaning] for key, meaning in KEYS.items()]
        lines.append(f"Keys of `values`, as JSON:\n\n{table(['key', 'meaning'], keys)}")
    return "\n\n".join(lines)


def _quality(topic: Topic) -> str:
    profile = qos(topic.name, offered_period=1 / 70)
    words = profile.reliability.name.lower().replace("_", " "), f"keep last {profile.depth}"
    text = ", ".join(words)
    if profile.durability.name == "TRANSIENT_LOCAL":
        text += ", transient local (a late subscriber gets the last message)"
    if topic.profile == "command":
        text += ", deadline and lifespan of two periods"
    return text


def _fields(kind: Any, message: Any, prefix: str = "") -> Iterator[tuple[str, str, str]]:
    """Leaf fields of a message: dotted name, type, value of the example."""
    from importlib import import_module

    for name, type_name in kind.get_fields_and_field_types().items():
        value = getattr(message, name, None)
        if "/" in type_name and "[" not in type_name and "<" not in type_name:
            package, inner = type_name.split("/")
            nested = getattr(import_module(f"{package}.msg"), inner)
            yield from _fields(nested, value, f"{prefix}{name}.")
        else:
            yield code(prefix + name), code(type_name), _shown(value)


def _shown(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, bool | int | str):
        return f"`{value}`" if value != "" else "empty"
    if isinstance(value, float):
        return f"`{value:.6g}`"
    if not len(value):
        return "empty"
    first = value[0]
    if isinstance(first, float | str) and len(value) <= 9:
        inner = ", ".join(f"{each:.6g}" if isinstance(each, float) else str(each) for each in value)
        return f"`[{inner}]`"
    return f"{len(value)} elements"


def _points(message: Any) -> str:
    rows = []
    for field in message.fields:
        count = "float64" if field.count == 1 else f"float64[{field.count}]"
        rows.append([code(field.name), code(count), _unit(field.name)])
    size = f"{message.height} x {message.width} points (height x width), fields of each point:"
    return f"{size}\n\n{table(['field', 'type', 'unit'], rows)}"


def _unit(name: str) -> str:
    for pattern, unit in _UNITS:
        if re.fullmatch(pattern, name):
            return unit
    unit = unit_of(name).replace("-", "1")
    if not unit:
        raise ValueError(f"field {name!r} of a point cloud has no unit")
    return unit


# --- nodes and services -----------------------------------------------------------------------


def _nodes() -> str:
    rows = [[f"[`{node.name}`](#node-{node.name})", node.summary] for node in all_nodes()]
    parts = [table(["node", "what it does"], rows), *map(_node, all_nodes())]
    return "\n\n".join(parts) + "\n"


def _node(node: NodePage) -> str:
    hears = [
        f"[`{topic}`]({_anchor(TOPICS[topic])})" + (f" ({rule})" if rule else "")
        for topic, rule in node.inputs
        if topic in TOPICS
    ]
    says = [f"[`{topic}`]({_anchor(TOPICS[topic])})" for topic in node.outputs]
    lines = [
        f"(node-{node.name})=",
        f"## `{node.name}`",
        node.summary,
        f"- runs `{node.place}`",
        f"- subscribes to: {', '.join(hears) or 'the topics that its parameters name'}",
        f"- publishes: {', '.join(says) or 'nothing'}",
    ]
    if node.services:
        lines.append(f"- services: {', '.join(f'`~/{name}`' for name in node.services)}")
    lines.append(f"- [parameters](#parameters-{node.name})")
    head, bullets = lines[:3], lines[3:]
    return "\n\n".join([*head, "\n".join(bullets)])


_WITH_VALUES = "rcl_interfaces/srv/SetParametersAtomically"
_SWITCH = (
    "Replaces the controller of a running `softcr up`. The parameter `controller` names the new "
    "one and `params_file` a file of parameters; all others are parameters of the new controller."
)


def _service_type(name: str) -> str:
    return _WITH_VALUES if name == "hand_over" else "std_srvs/srv/Trigger"


def _services() -> str:
    rows = [
        [code(f"{node.name}/{name}"), code(_service_type(name)), said]
        for node in all_nodes()
        for name, said in node.services.items()
    ]
    rows.append([code("switch"), code(_WITH_VALUES), _SWITCH])
    return table(["service", "type", "what it does"], rows) + "\n"
