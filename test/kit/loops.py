"""Loops on virtual time and nodes in lock-step, as tests run them, and what they said."""

import json
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from softcr_runtime.blocks.virtual_run import run_system
from softcr_studies.frame.cell import Cell
from softcr_studies.loops.closed_loop import closed_loop
from softcr_tools import cli

TIMEOUT = 60.0  # of what will come, on a busy machine [s]


class Sent(list):
    """Outputs of a run in order."""

    def values(self, topic):
        """Those of a topic."""
        return [each.value for each in self if each.topic == topic]

    def by_stamp(self, topic):
        """Those of a topic by stamp."""
        return {each.stamp: each.value for each in self if each.topic == topic}


def sent_by(system, bag=None):
    """What a system's blocks send on virtual time."""
    sent = Sent()
    run_system(system, lambda _, output: sent.append(output), bag=bag)
    return sent


def looped(controller, reference, of, bag=None, **chosen):
    """What a closed loop sends; its rods have three intervals where `of` does not say otherwise."""
    roles = ("estimator", "reference", "controller")
    of = of | {role: {"intervals": 3} | of.get(role, {}) for role in roles}
    cell = Cell("a loop", controller, 0, None)
    return sent_by(closed_loop(cell, controller, reference, of=of, **chosen), bag)


SMALL = {
    "plant": {"intervals": 4},
    "reference": {"trajectory_intervals": 6, "horizon": 6},
    "controller": {"population": 32, "horizon": 6},
}
"""Settings by role of a loop that is quick."""


def replayed(bag: Path, *options: str) -> dict:
    """How the replay of a bag compares with the bag."""
    assert cli.main(["replay", str(bag), *options]) == 0
    return json.loads((bag.parent / f"{bag.name}-replay" / "comparison.json").read_text())


class Outside:
    """Publishers and ears of a node's surroundings: `heard` is topic -> stamp -> message."""

    def __init__(self, context, inputs, outputs):
        import rclpy
        from rclpy.executors import SingleThreadedExecutor

        from softcr_runtime.wire.messages import from_stamp
        from softcr_runtime.wire.topics import TOPICS, qos

        self.node = rclpy.create_node("world", context=context)
        self.executor = SingleThreadedExecutor(context=context)
        self.executor.add_node(self.node)
        kind = {each: (TOPICS[each].message_class(), each) for each in (*inputs, *outputs)}
        strict = {each: qos(each, lockstep=True) for each in kind}
        self.publishers = {
            each: self.node.create_publisher(*kind[each], strict[each]) for each in inputs
        }
        self.heard: dict[str, dict] = {each: {} for each in outputs}
        for each, into in self.heard.items():

            def hear(message, into=into):
                into[from_stamp(message, "")] = message

            self.node.create_subscription(*kind[each], hear, strict[each])

    def spin(self, until, complaint):
        """Hear until something is true."""
        deadline = time.monotonic() + TIMEOUT
        while not until():
            assert time.monotonic() < deadline, complaint
            self.executor.spin_once(timeout_sec=0.01)


@contextmanager
def lockstep_node(block, inputs, outputs, **parameters) -> Iterator[tuple]:
    """An active node of a block in lock-step, and what is around it."""
    import rclpy
    from rclpy.parameter import Parameter

    from softcr_runtime.ros.block_node import block_node_class
    from softcr_runtime.ros.process import SupervisedExecutor

    context = rclpy.Context()
    rclpy.init(context=context)
    given = {"mode": "lockstep", **parameters}
    overrides = [Parameter(name, value=value) for name, value in given.items()]
    node = block_node_class(block)(context=context, parameter_overrides=overrides)
    executor = SupervisedExecutor(node)
    spinning = threading.Thread(target=executor.spin)
    node.trigger_configure()
    node.trigger_activate()
    spinning.start()
    outside = Outside(context, inputs, outputs)
    yield outside, node
    executor.stop()
    spinning.join()
    outside.executor.shutdown()
    outside.node.destroy_node()
    node.finish()
    node.destroy_node()
    rclpy.try_shutdown(context=context)
