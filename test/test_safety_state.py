"""What the valves say, what is kept of it, who commands them, and who may ask for a beginning."""

import os
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from softcr_hardware.ethercat.station_state import StationState
from softcr_hardware.nodes.commander import Commander, judged
from softcr_models.errors import UserError
from softcr_runtime.ros.executor.heard import Heard
from softcr_runtime.ros.executor.node_services import refusal
from softcr_runtime.ros.realtime import lock_memory
from softcr_runtime.wire.diagnostics import (
    DiagnosticReport,
    diagnostics_from_message,
    diagnostics_to_message,
)
from softcr_runtime.wire.safety_state import KEYS, SafetyState

LATCHED = SafetyState(
    action="vent now", reason="bus silent", latch="M", cause="bus silent", generation=3,
    blockers=("latched M, bus silent: reset it first", "12"), counts={"cycles": (0, 300)},
    owner="/rod_mpc", bus="cable",
)  # fmt: skip


def report_of(values):
    return DiagnosticReport("valves: safety", 2, "vent now: bus silent", "rod", values)


def test_the_state_goes_over_the_wire_and_back():
    message = diagnostics_to_message([report_of(LATCHED.values())], 0)
    (report,) = diagnostics_from_message(message)
    assert SafetyState.of(report) == LATCHED
    assert SafetyState.of(report).latched == "latched M: bus silent"
    assert {pair.key for pair in message.status[0].values} == set(KEYS)
    assert all(KEYS.values())


ANYTHING = st.none() | st.booleans() | st.integers() | st.text("a1 ", max_size=4)


@given(st.dictionaries(st.sampled_from(sorted(KEYS)), ANYTHING | st.lists(st.integers())))
def test_what_cannot_be_read_is_vented(values):
    state = SafetyState.of(report_of(values))
    assert isinstance(state.blockers, tuple)
    if state.enabled:
        assert values["enabled"] is True


# --- who may ask ----------------------------------------------------------------------------------


def heard(*states):
    """A supervisor's ear that has heard states of the valves, one at each question."""
    ear = Heard.__new__(Heard)
    ear.safety, ear._generation, ear.disarmed = None, None, ""
    waiting = list(states)

    def ask_no_more():
        if waiting:
            values = waiting.pop(0).values()
            (status,) = diagnostics_to_message([report_of(values)], 0).status
            ear._on_safety(status)
        return ear.may_ask_no_more()

    return ask_no_more


def test_a_starter_stops_asking_at_the_first_vent_and_when_somebody_has_reset_meanwhile():
    asked = []
    node = SimpleNamespace(
        create_client=lambda kind, name: SimpleNamespace(
            service_is_ready=lambda: True,
            call_async=lambda request: asked.append(name) or SimpleNamespace(
                done=lambda: True,
                result=lambda: SimpleNamespace(success=False, message="poses silent"),
            ),
        )
    )  # fmt: skip
    free = SafetyState(generation=2)
    line = refusal(
        node, ["valves/enable"], lambda condition, most: condition(), 15.0,
        over=heard(free, free, LATCHED),
    )  # fmt: skip
    assert asked == ["valves/enable"] * 2
    assert line.startswith("the valves are latched M: bus silent; find out why, reset it")
    assert "\n" not in line

    ask = heard(SafetyState(generation=2), SafetyState(generation=4))
    assert ask() == ""
    assert ask() == "the valves were vented and reset meanwhile: start again"


# --- who commands ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("names", "owner", "enabled", "told"),
    [
        ([], "/mpc", False, ("", "")),
        ([], "/mpc", True, ("/mpc", "")),
        (["/mpc"], "", False, ("/mpc", "")),
        (["/mpc"], "/mpc", True, ("/mpc", "")),
        (["/mpc", "/view"], "/mpc", True, ("/mpc", "/mpc and /view")),
        (["/mpc", "/mpc"], "/mpc", True, ("/mpc", "/mpc twice")),
        (["/view"], "/mpc", True, ("/mpc", "/view, not /mpc")),
        (["/view"], "/mpc", False, ("/view", "")),
        (["/_NODE_NAME_UNKNOWN_"], "/mpc", True, ("/_NODE_NAME_UNKNOWN_", "")),
        (["/mpc"], "/_NODE_NAME_UNKNOWN_", True, ("/mpc", "")),
    ],
)
def test_one_node_commands_and_stays_the_owner_while_enabled(names, owner, enabled, told):
    assert judged(names, owner, enabled) == told


@pytest.mark.parametrize(
    ("names", "permitted", "told"),
    [
        (["/mpc", "/new"], ["/mpc", "/new"], ("/mpc", "")),
        (["/mpc", "/new"], ["/new", "/mpc"], ("/new", "")),
        (["/_NODE_NAME_UNKNOWN_", "/mpc"], ["/mpc", "/new"], ("/mpc", "")),
        (["/new"], ["/new", "/mpc"], ("/new", "")),
        (["/mpc", "/new", "/view"], ["/mpc", "/new"], ("/mpc", "/mpc and /new and /view")),
        (["/mpc", "/view"], ["/mpc", "/new"], ("/mpc", "/mpc and /view")),
        (["/mpc", "/new", "/new"], ["/mpc", "/new"], ("/mpc", "/mpc and /new twice")),
        (["/view"], ["/mpc", "/new"], ("/mpc", "/view, not /mpc")),
    ],
)
def test_only_who_is_permitted_publishes_beside_the_owner(names, permitted, told):
    assert judged(names, "/mpc", True, permitted) == told


def test_a_publisher_is_seen_at_once_and_the_graph_asked_seldom():
    names, looks = ["mpc"], []

    def endpoints(topic):
        looks.append(topic)
        return [SimpleNamespace(node_namespace="/", node_name=name) for name in names]

    commander = Commander(
        SimpleNamespace(get_publishers_info_by_topic=endpoints),
        [SimpleNamespace(get_publisher_count=lambda: len(names), topic_name="/pressure/plan")],
    )
    changed = [commander.look(0.005 * cycle, enabled=True) for cycle in range(100)]
    assert (any(changed), commander.owner, len(looks)) == (False, "/mpc", 1)
    names.append("view")
    assert commander.look(0.501, enabled=True)
    assert commander.several == "/mpc and /view"
    names.pop()
    assert commander.look(0.506, enabled=True)
    assert commander.several == ""


# --- what is kept ---------------------------------------------------------------------------------


def test_a_held_latch_is_kept_until_a_check_has_passed(tmp_path, monkeypatch):
    monkeypatch.setenv("ROS_HOME", str(tmp_path))  # without another directory it is this machine's
    assert StationState("bench").latch_file == tmp_path / "softcr" / "bench.latch.yaml"
    kept = StationState("stations/my_bench.yaml", tmp_path / "new")
    assert kept.held() == ""
    kept.hold("bus silent, again within 10 minutes")
    again = StationState("my_bench", tmp_path / "new")
    assert again.held().startswith("bus silent, again within 10 minutes (20")
    again.forget_latch()
    assert kept.held() == ""
    kept.forget_latch()  # any number of times


@pytest.mark.parametrize("content", ["", "cause: [", "date: x", "\0\xff", "date: 1\ncause: ''"])
def test_a_broken_file_counts_as_held(tmp_path, content):
    kept = StationState("bench", tmp_path)
    kept.latch_file.write_text(content)
    assert kept.held().startswith("the file of the held latch cannot be read: ")
    assert "\n" not in kept.held()


def test_zeros_are_kept_beside_those_of_their_station_file(tmp_path):
    kept, nominal = StationState("bench", tmp_path), np.array([1.0, 1.0])
    assert kept.zero(nominal) == (None, "")
    kept.keep_zero(np.array([1.02, 0.97]), nominal)
    zero, line = kept.zero(nominal)
    assert zero.tolist() == [1.02, 0.97]
    assert str(kept.zero_file) in line
    for other in (np.array([1.0, 1.1]), np.array([1.0])):
        zero, line = kept.zero(other)
        assert zero is None
        assert str(kept.zero_file) in line
    kept.zero_file.write_text("zero: 1")
    assert kept.zero(nominal)[0] is None


def test_a_directory_that_cannot_be_written_is_one_line(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(UserError, match=r"bench\.latch\.yaml: cannot be written"):
        StationState("bench", tmp_path / "file").hold("why")


def test_memory_is_locked_or_it_is_said_why(monkeypatch):
    """In a process of its own: what is locked stays so."""
    child = os.fork()
    if child == 0:
        os._exit(0 if isinstance(lock_memory(), str) else 1)
    assert os.waitpid(child, 0)[1] == 0
    monkeypatch.setattr("resource.getrlimit", lambda _: (1 << 20, 1 << 20))
    monkeypatch.setattr("os.geteuid", lambda: 1000)
    assert "memlock unlimited" in lock_memory()
