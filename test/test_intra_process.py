"""Nodes of one process: what a block publishes reaches the others as if it had been a message."""

import sys
import threading
import time
from contextlib import closing
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from intra_process_blocks import Doubler, Keeper
from kit.processes import TIMEOUT, Peer, ros, until

from softcr_models.errors import UserError
from softcr_models.robots.robot import load_robot
from softcr_runtime.blocks.block import Output
from softcr_runtime.blocks.sample import Sample
from softcr_runtime.ros import realtime
from softcr_runtime.ros.block_node import block_node_class
from softcr_runtime.ros.intra_process import IntraProcess
from softcr_runtime.ros.mailbox import Mailbox
from softcr_runtime.ros.run_blocks import main, node_class
from softcr_runtime.wire.messages import pressures_to_message

CHAMBERS = load_robot("licher2025").chamber_names
STATE, COMMAND = "pressure/state", "pressure/command"


class World(Peer):
    """A doubler, a keeper beside it in the process, and another keeper that DDS alone reaches."""

    def __init__(self):
        super().__init__("rest")
        inside = IntraProcess()
        self.doubler = self._node(Doubler, "doubler", inside)
        self.keeper = self._node(Keeper, "keeper", inside)
        self.far = self._node(Keeper, "far", IntraProcess())
        self.nodes = [self.doubler, self.keeper, self.far]
        self._states = self.publisher(STATE)

    def _node(self, block, name, intra_process):
        return block_node_class(block, name)(intra_process=intra_process, context=self.context)

    def begin(self):
        for node in self.nodes:
            node.trigger_configure()
        for node in self.nodes:
            node.trigger_activate()
        until(self._arrives, "the first command everywhere")

    def _arrives(self):
        self.send(np.zeros(3))
        time.sleep(0.02)
        return self.heard(self.keeper) and self.heard(self.far)

    def send(self, pressures):
        stamp = time.time_ns()
        self._states.publish(pressures_to_message(pressures, CHAMBERS, stamp))
        return stamp

    def heard(self, node):
        return dict(node._block.heard)

    def hand_over(self, value, stamp):
        """As the doubler says it."""
        self.doubler._publish([Output(COMMAND, stamp, value)])

    def close(self):
        for node in self.nodes:
            node.finish()
            node.destroy_node()
        super().close()


def world():
    return closing(World())


@pytest.fixture(scope="module")
def running():
    with world() as made:
        made.begin()
        yield made


FINITE = st.floats(-1e6, 1e6, allow_nan=False) | st.sampled_from([5e-324, -0.0, 1 / 3])


@given(arrays(float, 3, elements=FINITE))
@settings(max_examples=20, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_a_neighbour_hears_the_same_bits_as_who_hears_messages(running, pressures):
    stamp = running.send(pressures)
    nodes = (running.keeper, running.far)
    until(lambda: all(stamp in running.heard(node) for node in nodes), "the command")
    near, far = (running.heard(node)[stamp] for node in nodes)
    assert near.dtype == far.dtype
    assert near.tobytes() == far.tobytes() == (2.0 * pressures).tobytes()


def test_a_neighbour_does_not_subscribe_and_is_not_waited_for(running):
    told = {node.get_name(): node._diagnostic_report().values for node in running.nodes}
    assert told["keeper"]["receives"] == {}
    assert told["keeper"]["from_its_process"] == [f"/{COMMAND}"]
    assert told["far"]["receives"] == {f"/{COMMAND}": 1}
    assert told["far"]["from_its_process"] == []
    assert told["doubler"]["publishes"][f"/{COMMAND}"] == 1  # the far one


@pytest.mark.parametrize(
    ("shift", "why"),
    [
        (-1, "stale: stamp not newer than the last one"),
        (10**9, "stamp more than 0.5 s in the future"),
    ],
)
def test_stamps_are_checked_as_those_of_messages(running, shift, why):
    stamp = running.send(np.ones(3))
    until(lambda: stamp in running.heard(running.keeper), "the command")
    running.hand_over(np.zeros(3), stamp + shift)
    for node in (running.keeper, running.far):
        until(lambda node=node: f"{COMMAND}: {why}" in node.counts.rejections, "the refusal")
        assert stamp + shift not in running.heard(node)


def test_nothing_is_delivered_to_or_from_a_node_that_is_not_active():
    with world() as made:
        made.begin()
        made.keeper.trigger_deactivate()
        before = len(made.heard(made.keeper))
        stamp = made.send(np.ones(3))
        until(lambda: stamp in made.heard(made.far), "the command")
        assert len(made.heard(made.keeper)) == before
        made.keeper.trigger_activate()
        newer = made.send(np.ones(3))
        until(lambda: newer in made.heard(made.keeper), "the command")
        assert stamp not in made.heard(made.keeper)
        made.doubler.trigger_deactivate()
        count = len(made.heard(made.keeper))
        made.hand_over(np.ones(3), time.time_ns())
        time.sleep(0.1)
        assert len(made.heard(made.keeper)) == count


def test_a_value_that_is_no_message_for_the_listener_is_refused_in_the_words_of_messages():
    with world() as made:
        made.nodes[2:] = []
        made.keeper.trigger_configure()
        assert made.keeper._diagnostic_report().values["from_its_process"] == []  # nobody offers it
        made.doubler.trigger_configure()
        assert made.keeper._diagnostic_report().values["from_its_process"] == [f"/{COMMAND}"]
        for node in made.nodes:
            node.trigger_activate()
        encode = lambda value, stamp: pressures_to_message(value, ("x", "y", "z"), stamp)  # noqa: E731
        hand_over = made.doubler.offer(COMMAND, encode)
        hand_over(np.zeros(3), time.time_ns())
        until(lambda: made.keeper.counts.rejections, "the refusal")
        assert next(iter(made.keeper.counts.rejections)).startswith(f"{COMMAND}: ")
        assert not made.keeper._block.heard
        made.far.destroy_node()


def test_without_its_neighbour_a_node_hears_messages_again():
    with world() as made:
        made.begin()
        for node in (made.keeper, made.doubler):
            node.trigger_deactivate()
        made.doubler.trigger_cleanup()
        assert made.keeper._diagnostic_report().values["from_its_process"] == []
        made.keeper.trigger_activate()
        other = made.publisher(COMMAND)

        def arrives():
            other.publish(pressures_to_message(np.ones(3), CHAMBERS, time.time_ns()))
            time.sleep(0.02)
            return made.heard(made.keeper)

        until(arrives, "a message")


@pytest.fixture
def mail():
    with ros() as context:
        made = Mailbox(context, lambda *_: None)
        yield made
        made.destroy()


def _read(thing, received):
    return Sample("topic", thing, None, received)


def test_a_delivery_ends_a_wait_and_the_newest_are_kept(mail):
    deliver = mail.add_direct("topic", _read, depth=2)
    deliver(1)  # to a closed one
    mail.open()
    assert mail.get(0.0) is None
    found = SimpleNamespace(letter=None)
    waiting = threading.Thread(target=lambda: setattr(found, "letter", mail.get(TIMEOUT)))
    waiting.start()
    deliver(2)
    waiting.join(TIMEOUT)
    assert found.letter.stamp == 2
    for stamp in (3, 4, 5):
        deliver(stamp)
    assert [letter.stamp for letter in mail.arrived()] == [4, 5]
    waiting = threading.Thread(target=lambda: setattr(found, "letter", mail.get()))
    waiting.start()
    mail.close()
    waiting.join(TIMEOUT)
    assert not waiting.is_alive()
    deliver(6)
    assert mail.arrived() == []


def test_a_process_has_the_highest_priority_that_its_nodes_claim(monkeypatch):
    scheduled = []
    monkeypatch.setattr(realtime, "schedule_realtime", lambda p: scheduled.append(p) or "")
    one, other = object(), object()
    for who, priority in ((one, 20), (other, 30), (one, 0), (other, 25), (other, 0)):
        realtime.claim_realtime(who, priority)
    assert scheduled == [20, 30, 30, 25, 0]


def test_what_cannot_run_together_is_told_in_one_line(capsys):
    for words in (["x"], ["x", "one"], ["softcr_simulation.plant", "name"]):
        assert main(["program", *words]) == 2
        (line,) = capsys.readouterr().err.splitlines()
        assert line.startswith("nodes: error: ")
    with pytest.raises(UserError, match="holds 0 nodes"):
        node_class("softcr_simulation.plant", "name")
    made = node_class("softcr_hardware.nodes.valves", "brakes")
    assert made.default_name == "brakes"
    assert made.__mro__[1] is sys.modules["softcr_hardware.nodes.valves"].Valves
