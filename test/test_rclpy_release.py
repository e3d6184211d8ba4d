"""What softcr uses of rclpy beyond what rclpy promises: a release that lacks some of it fails here,
with the name that it lacks."""

import inspect
import re

import pytest
from kit.processes import ROOT, ros

rclpy = pytest.importorskip("rclpy")

from rclpy.callback_groups import CallbackGroup  # noqa: E402
from rclpy.lifecycle import LifecycleNode  # noqa: E402
from rclpy.parameter import Parameter  # noqa: E402

from softcr_runtime.ros import rclpy_release  # noqa: E402
from softcr_runtime.ros.rclpy_release import TESTED, missing_names, release  # noqa: E402
from softcr_tools.doctor.finding import FAIL, OK, WARN  # noqa: E402
from softcr_tools.doctor.software import check_rclpy  # noqa: E402


def test_the_installed_release_has_all_names_and_was_tested():
    assert missing_names() == []
    assert release() in TESTED


def test_a_node_has_what_it_was_given_and_calls_what_it_is_told_to_call():
    """Parameters before any is declared; an answer of one's own to transitions takes the place of
    rclpy's, with the same two arguments."""
    with ros() as context:
        given = [Parameter("given", value=3)]
        node = LifecycleNode("small", context=context, parameter_overrides=given)
        assert not node.has_parameter("given")
        assert node._parameter_overrides["given"].value == 3
        service = node._service_change_state
        assert len(inspect.signature(service.callback).parameters) == 2
        service.callback = print
        assert service.callback is print
        node.destroy_node()


def test_an_executor_asks_a_group_before_it_touches_what_is_in_it():
    """Our mailbox takes messages itself, and its group says no."""
    for name in ("can_execute", "beginning_execution"):
        takes = inspect.signature(getattr(CallbackGroup, name)).parameters
        assert list(takes) == ["self", "entity"]


NO_NAME = "rclpy.impl.implementation_singleton:rclpy_implementation.WaitSet.no_such"


@pytest.mark.parametrize("place", [NO_NAME, "rclpy.no_such_module:Thing.name"])
def test_a_name_that_is_not_there_is_told(monkeypatch, place):
    monkeypatch.setattr(rclpy_release, "_ATTRIBUTES", (place,))
    monkeypatch.setattr(rclpy_release, "_SET_BY", {"_gone": "rclpy.node:Node.__init__"})
    assert missing_names() == [place, "rclpy.node:Node._gone"]


def test_the_doctor_tells_another_release_and_what_it_lacks():
    assert check_rclpy("7.1.5", []).level is OK
    other = check_rclpy("99.0.0", [])
    assert other.level is WARN
    assert "99.0.0" in other.found
    assert all(each in other.found for each in TESTED)
    lacking = check_rclpy("99.0.0", ["rclpy.node:Node._gone"])
    assert lacking.level is FAIL
    assert "rclpy.node:Node._gone" in lacking.found


def test_every_private_name_that_is_used_is_listed():
    """Of rclpy's objects; our own begin with `self._` or stand in the same file."""
    listed = inspect.getsource(rclpy_release)
    used = set()
    for path in [*ROOT.glob("softcr_*/**/*.py")]:
        text = path.read_text()
        if "rclpy" in text and path.name != "rclpy_release.py":
            used |= set(re.findall(r"\bnode\.(_\w+)", text))
            used |= set(re.findall(r"__class__\.(_\w+)", text))
            used |= set(re.findall(r"\b_rclpy\.(\w+)", text))
    assert {"_parameter_overrides", "_TYPE_SUPPORT", "WaitSet"} <= used
    assert {name for name in used if name not in listed} == set()
