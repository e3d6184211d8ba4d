"""The sensor nodes in real rclpy, against the emulated Motive and Net F/T on one rod."""

import time
from contextlib import contextmanager

import numpy as np
import pytest
from diagnostic_msgs.msg import KeyValue
from kit.processes import Peer, running, until
from lifecycle_msgs.msg import Transition
from lifecycle_msgs.srv import ChangeState
from rclpy.parameter import Parameter
from std_srvs.srv import Trigger

from softcr_hardware.emulation.actuator import EmulatedActuator
from softcr_hardware.ethercat.terminals import load_station
from softcr_hardware.force_torque.emulator import NetFtBox, NetFtEmulator
from softcr_hardware.force_torque.mounting import Mounting, load_mounting, save_mounting
from softcr_hardware.nodes.force_torque import ForceTorque
from softcr_hardware.nodes.optitrack import Optitrack
from softcr_hardware.optitrack.calibration import Placement, load_calibration, save_calibration
from softcr_hardware.optitrack.emulator import MotiveEmulator, MotiveServer
from softcr_models import load_robot
from softcr_models.errors import UserError
from softcr_runtime.wire.diagnostics import STALE, WARN, diagnostics_from_message
from softcr_runtime.wire.messages import from_stamp, pose_from_message, wrench_from_message
from softcr_runtime.wire.topics import TOPICS
from softcr_simulation.errors.plant_errors import PlantErrors
from softcr_simulation.plant import SimulatedPlant

CALIBRATION = load_calibration("licher2025")
LENIENT = {"limits.oldest": 10.0}  # this machine is busy


@pytest.fixture(scope="module")
def actuator():
    """A rod of few intervals, at rest."""
    noise = PlantErrors.noiseless(tip_noise=5e-5)
    plant = SimulatedPlant(load_robot("licher2025"), noise, intervals=4)
    made = EmulatedActuator(load_station("licher2025"), plant)
    made.see(time.monotonic())
    return made


@pytest.fixture
def motive(actuator):
    start = time.monotonic() - 100.0
    server = MotiveServer(lambda moment: actuator.see(moment).tip_pose, CALIBRATION, start=start)
    with running(MotiveEmulator(server, port=0)) as emulator:
        yield emulator


@pytest.fixture
def net_ft(actuator):
    box = NetFtBox(lambda moment: actuator.seen.wrench, start=time.monotonic() - 100.0)
    with running(NetFtEmulator(box, rdt_port=0, http_port=0)) as emulator:
        yield emulator


class World(Peer):
    """A node, and who listens to it."""

    def __init__(self, node_class, topic, **parameters):
        super().__init__("listener", threaded=True)
        overrides = [Parameter(name, value=value) for name, value in parameters.items()]
        self.tested = node_class(context=self.context, parameter_overrides=overrides)
        self.executor.add_node(self.tested)
        self.heard, self.reports = [], []
        self.hear(topic, self.heard.append)
        self.hear("/diagnostics", lambda m: self.reports.extend(diagnostics_from_message(m)))

    def ask(self, kind, name, request):
        return super().ask(kind, f"{self.tested.get_name()}/{name}", request)

    def trigger(self, name):
        return self.ask(Trigger, name, Trigger.Request())

    def triggered(self, name):
        """The answer of a service that is asked until it succeeds."""
        return until(lambda: (said := self.trigger(name)).success and said, name)

    def change(self, label):
        request = ChangeState.Request()
        request.transition.id = getattr(Transition, f"TRANSITION_{label.upper()}")
        return self.ask(ChangeState, "change_state", request).success

    def safety_says(self, **values):
        """As the valves' node says it."""
        kind = TOPICS["safety/state"].message_class()
        pairs = [KeyValue(key=key, value=value) for key, value in values.items()]
        self.publisher("safety/state").publish(kind(values=pairs))

    def told(self, name):
        """A value of the newest diagnostics."""
        return self.reports[-1].values.get(name) if self.reports else None

    def says(self, text):
        return bool(self.reports) and text in self.reports[-1].message

    def wrench(self):
        return wrench_from_message(self.heard[-1], "wrench")

    def close(self):
        self.tested.finish()
        self.stop()
        self.tested.destroy_node()
        super().close()


@contextmanager
def world(*arguments, active=True, **parameters):
    """A node, active where it is not told to stay unconfigured."""
    here = World(*arguments, **parameters)
    try:
        if active:
            assert here.change("configure")
            assert here.change("activate")
        yield here
    finally:
        here.close()


def cameras(motive, **parameters):
    return world(Optitrack, "mocap/tip/pose", command_port=motive.port, **(LENIENT | parameters))


def sensor(net_ft, **parameters):
    ports = {"rdt_port": net_ft.rdt_port, "http_port": net_ft.http_port}
    parameters = LENIENT | {"host": "127.0.0.1"} | parameters
    return world(ForceTorque, "force_torque/wrench", **ports, **parameters)


def test_the_resting_tip_is_published_and_what_the_server_says_and_faults_are_told(
    motive, actuator
):
    with cameras(motive) as here:
        until(lambda: len(here.heard) > 100, "poses")
        now = here.tested.now()
        stamps = [from_stamp(message, "pose") for message in here.heard]
        assert stamps == sorted(set(stamps))
        assert stamps[-1] < now
        assert here.heard[-1].header.frame_id == "base"
        pose = pose_from_message(here.heard[-1], "pose")
        assert np.allclose(pose, actuator.seen.true_tip_pose, atol=1e-3)
        until(lambda: (here.told("frame_rate_hz") or 0.0) > 90, "the frame rate")
        # the server's own latency, and how late this machine let it send
        assert 4.4 < here.told("latency_ms") < 50.0
        assert here.told("server") == "Motive, NatNet (4, 1, 0, 0)"
        until(lambda: here.told("stamps") == "mid-exposure", "its stamps")
        assert here.told("motive_mode") == "live"
        motive.server.tracked = False
        until(lambda: here.told("trouble") == "body not tracked", "it")
        motive.server.tracked = True
        motive.inject("slow")
        until(lambda: here.says("frames/s, must be 120"), "a slow stream")
        assert here.reports[-1].level == WARN
        motive.inject("delayed")
        until(lambda: here.says("latency 5") or here.says("latency 6"), "a late stream")
        motive.inject("ok")
        motive.set("stamps", "received")
        until(lambda: here.told("stamps") == "data received, less 8.3 ms", "other stamps")
        motive.set("mode", "edit")
        says = "no cycle for 1 s, Motive is in Edit mode: it plays a recording back"
        until(lambda: here.says(says), says)
        assert here.reports[-1].level == STALE
        assert here.change("deactivate")
        assert here.change("cleanup")


def test_a_wrong_calibration_publishes_nothing_until_it_is_calibrated_and_kept(motive, tmp_path):
    path = tmp_path / "mine.yaml"
    save_calibration(path, CALIBRATION.model_copy(update={"base_in_world": Placement()}))
    with cameras(motive, active=False, calibration=str(path), without_valves=True) as here:
        assert "configure the node first" in here.trigger("calibrate_base").message
        assert here.change("configure")
        assert here.change("activate")
        session = here.tested._client.session
        until(lambda: session.tracker.trouble == "outside the workspace", "refusals")
        assert not here.heard
        answer = here.triggered("calibrate_base")
        assert f"written to {path}" in answer.message
        until(lambda: here.heard, "poses")
    kept = load_calibration(path).base_in_world
    assert np.allclose(kept.pose, CALIBRATION.base_in_world.pose, atol=2e-3)


@pytest.mark.parametrize("without_valves", [False, True])
def test_the_base_is_calibrated_only_when_the_valves_say_that_they_are_vented(
    motive, without_valves
):
    with cameras(motive, active=False, without_valves=without_valves) as here:

        def refused(told):
            return told in here.trigger("calibrate_base").message

        assert here.change("configure")
        session = here.tested._client.session
        until(lambda: len(session.recent("tip")) > 60, "poses to calibrate by")
        before = session.calibration
        assert refused("no valves' node says that the chambers are vented") != without_valves
        session.calibration = before
        here.publisher("safety/state")
        until(lambda: here.tested.count_publishers("safety/state"), "a valves' node")
        assert refused("safety/state says nothing yet")
        for enabled, action in (("true", "none"), ("false", "ramp to vent"), ("", "vent now")):
            here.safety_says(enabled=enabled, action=action)
            told = f"says enabled {enabled}, action {action}; must be enabled false"
            until(lambda told=told: refused(told), told)
            assert session.calibration == before
        vented = {"enabled": "false", "action": "vent now"}
        here.safety_says(**vented, testing="true")
        until(lambda: refused("the arming test moves the valves"), "the arming test")
        for switch in ("pressed", "silent", "told by several nodes"):
            here.safety_says(**vented, switch=switch)
            told = f"the deadman's switch is {switch}, must be released"
            until(lambda told=told: refused(told), told)
        here.safety_says(**vented, testing="false", switch="released")
        here.triggered("calibrate_base")
        session.calibration = before
        here.end("safety/state")  # it ended: what it said is old
        until(lambda: not here.tested.count_publishers("safety/state"), "its end")
        assert here.trigger("calibrate_base").success == without_valves


def test_wrenches_flow_at_their_rate_and_a_bias_is_the_models_rest(net_ft, actuator):
    chosen = {"rate_hz": 50.0, "rest_tolerance": 0.5, "without_valves": True}
    with sensor(net_ft, active=False, **chosen) as here:
        assert "activate the node first" in here.trigger("bias").message
        assert here.change("configure")
        assert here.change("activate")
        until(lambda: len(here.heard) > 30, "wrenches")
        assert here.heard[-1].header.frame_id == "force_torque"
        assert np.allclose(here.wrench(), actuator.seen.wrench, atol=0.06)
        net_ft.inject("wrong")
        assert here.change("deactivate")
        assert here.change("activate")
        until(lambda: here.says("5.0 N off the resting rod: vent, then call ~/bias"), "a warning")
        here.triggered("bias")
        here.heard.clear()
        until(lambda: here.heard, "biased wrenches")
        assert np.allclose(here.wrench(), actuator.seen.wrench, atol=0.1)
        until(lambda: not here.says("resting rod"), "no warning any more")


def test_a_bias_is_kept_with_its_date_and_used_at_the_next_start(net_ft, actuator, tmp_path):
    path = tmp_path / "mine.yaml"
    save_mounting(path, Mounting(calibration_serial="FT00000"))
    net_ft.inject("wrong")  # 5 N
    with sensor(net_ft, mounting=str(path)) as here:
        until(lambda: here.heard, "wrenches")
        assert "no valves' node says" in here.trigger("bias").message
        here.safety_says(enabled="false", action="vent now", switch="not required")
        assert here.triggered("bias").message.endswith(f"; written to {path}")
        until(lambda: here.told("biased"), "it in the diagnostics")
    kept = load_mounting(path)
    assert kept.calibration_serial == "FT00000"
    assert kept.bias.wrench[0] == pytest.approx(5.0, abs=0.1)
    with sensor(net_ft, mounting=str(path)) as here:
        until(lambda: len(here.heard) > 20, "wrenches")
        assert np.allclose(here.wrench(), actuator.seen.wrench, atol=0.1)
        until(lambda: here.told("bias_taken") == str(kept.bias.taken), "its date")
        net_ft.set("serial", "FT7")
        says = f"the box has calibration FT7, {path} is of FT00000"
        until(lambda: here.says(says), says)


def test_what_the_box_says_of_itself_is_in_the_diagnostics(net_ft):
    with sensor(net_ft) as here:
        until(lambda: here.told("box_calibration_serial"), "the page")
        values = here.reports[-1].values
        assert values["box"] == "Net F/T (emulated), serial LOT0000"
        assert values["box_calibration_serial"] == "FT00000"
        assert values["box_tool_transform"] == "0 0 0 mm, 0 0 0 degrees"
        assert values["box_software_bias"] == [0] * 6
        net_ft.set("filter", "4")
        until(lambda: here.says("the box filters (number 4)"), "its filter")
        net_ft.set("tool-transform", "0;0;10;0;0;0")
        until(lambda: here.says("the box has a tool transform (0 0 10 mm"), "its tool transform")


@pytest.mark.parametrize("node_class", [Optitrack, ForceTorque])
def test_both_refuse_lockstep_and_values_that_are_not_allowed(node_class):
    with world(node_class, "mocap/tip/pose", active=False, mode="lockstep") as here:
        assert not here.change("configure")
        overrides = [Parameter("limits.oldest", value=99.0)]
        with pytest.raises(UserError, match=r"parameter limits\.oldest = 99\.0: must be a number"):
            node_class(context=here.context, parameter_overrides=overrides)
