"""Controllers exchanged while a robot runs: one command at every stamp, no step above the rate."""

import re
import subprocess
import sys
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from domains import fresh_domain
from kit.controller_blocks import Asks, at_rest, block_of
from kit.processes import ROOT
from kit.refusals import one_line
from kit.simulations import simulation_up
from rich.console import Console

from softcr_control.controller import ControllerBlock
from softcr_models import load_robot
from softcr_runtime.bags.reading import Bag
from softcr_runtime.bags.recorded_files import recorded_configurations
from softcr_runtime.bags.signals import read_signals
from softcr_runtime.blocks.command_packets import CommandPacket, PacketPlayer
from softcr_runtime.blocks.sample import Sample
from softcr_runtime.blocks.system import Part
from softcr_runtime.blocks.virtual_run import run_system
from softcr_runtime.replay.bag_replay import ReplayTask
from softcr_runtime.replay.recorded_run import RecordedRun
from softcr_runtime.ros.executor.exchange import Wanted
from softcr_tools.cli import main
from softcr_tools.replay.offline import replay
from softcr_tools.running.exchanged_controller import other_controller
from softcr_tools.running.run_options import SimulationOptions
from softcr_tools.running.systems import simulation_system

PERIOD = 1 / 70
LIMITS = load_robot("licher2025").pressure_limits
THERE, BACK = 0.6, 1.1  # [s]


class First(ControllerBlock):
    """A controller that is told to send, or not, at moments of virtual time [s]."""

    moments = ((THERE, False),)

    def tick(self, now, samples):
        with self.told(now):
            return super().tick(now, samples)

    def idle(self, now, why):
        with self.told(now):
            return super().idle(now, why)

    @contextmanager
    def told(self, now):
        own = self.settings  # what a bag says of the block is what it began with
        for moment, sends in self.moments:
            if now >= 1e9 * moment:
                self.settings = own.model_copy(update={"sends": sends})
        yield
        self.settings = own


class Second(First):
    moments = ((THERE, True), (BACK, False))


class Third(First):
    moments = ((BACK, True),)


@pytest.fixture(scope="module")
def exchanged(tmp_path_factory):
    """A run whose NEMPC hands over to the gradient MPC, which hands back: packets, and the bag."""
    bag = tmp_path_factory.mktemp("bags") / "run"
    words = {"mode": "virtual", "duration": "1.6", "plant.intervals": "4"}
    system = simulation_system(
        SimulationOptions.of_options({**words, "controller.population": "32"}), bag
    )
    first = system.part(system.controller)
    options = SimulationOptions.of_options({**words, "controller": "rod_mpc"})
    another = simulation_system(options, bag).part("rod_mpc")
    controllers = (
        replace(first, runs="test_switching:First"),
        waiting(another, "test_switching:Second"),
        waiting(replace(first, name="nempc_controller_2"), "test_switching:Third"),
    )
    others = tuple(each for each in system.parts if each.name not in (first.name, "recorder"))
    parts = (*others, *controllers)
    system = replace(system, parts=parts, activation=tuple(each.name for each in parts))
    sent = []
    run_system(system, lambda name, output: sent.append((name, output)), bag=bag)
    told = [(name, each) for name, each in sent if each.topic == "pressure/plan"]
    return told, bag


def waiting(part: Part, runs: str) -> Part:
    return replace(part.with_parameters({"sends": False}), runs=runs)


def test_each_stamp_is_answered_by_one_controller(exchanged):
    told, _ = exchanged
    stamps = np.array([each.stamp for _, each in told[:-1]])  # the last one is the vent at the end
    period = round(1e9 * PERIOD)
    assert np.diff(stamps).min() > 0.9 * period
    assert np.diff(stamps).max() < 3.5 * period
    for name, low, high in (
        ("nempc_controller", 0.0, THERE),
        ("rod_mpc", THERE, BACK),
        ("nempc_controller_2", BACK, 1e3),
    ):
        own = [1e-9 * each.stamp for who, each in told if who == name]
        assert len(own) > 20
        assert low <= min(own)
        assert max(own) < high


def test_no_step_at_an_exchange_is_above_the_rate(exchanged):
    told, _ = exchanged
    period = round(1e9 * PERIOD)
    player, played, place = PacketPlayer(period), [], 0
    for now in range(period, told[-2][1].stamp, period):
        while told[place][1].stamp <= now:
            player.hear(told[place][1].value, told[place][1].stamp)
            place += 1
        played.append(player.at(now))
    values = np.array([each for each in played if each is not None])
    steps = np.abs(np.diff(values, axis=0)).max(axis=1)
    assert len(values) > 100
    assert steps.max() <= LIMITS.maximum_rate * PERIOD * (1 + 1e-9)
    names = [name for name, _ in told[:-1]]
    changes = [k for k in range(1, len(names)) if names[k] != names[k - 1]]
    assert len(changes) == 2
    for k in changes:  # nor does the new controller begin from nothing
        assert told[k][1].value.commands[0].max() > LIMITS.maximum_rate * PERIOD


def test_a_bag_of_an_exchange_comes_back_to_the_bit(exchanged, tmp_path):
    told, bag = exchanged
    task = ReplayTask(True, None, {}, trusted=True)
    again = replay(Bag(bag), task, tmp_path / "again", Console(quiet=True))
    assert again.commands.recorded == again.commands.replayed == len(told)
    assert again.commands.identical == again.commands.compared == len(told)
    assert again.estimates.identical == again.estimates.recorded
    assert any("3 controllers" in line for line in again.notes)


# --- one block ------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def asked():
    controller = Asks()
    block = block_of(lambda context: controller, sends=False)

    def tick(cycle, heard=None):
        """The packets that answer the estimate of a cycle; `heard` is the cycle of a packet of the
        other controller, due in the next one, and its command."""
        samples = at_rest(block, stamp_of(cycle))
        if heard is not None:
            of, command = heard
            packet = CommandPacket.single(stamp_of(of + 1), np.full(3, command))
            samples["pressure/plan"] = (Sample("pressure/plan", stamp_of(of), packet, 0),)
        return [each.value for each in block.tick(stamp_of(cycle), samples)]

    def begin():
        send(block, False)
        block.reset()
        controller.answer = np.zeros(3)
        return block, controller, tick

    return begin


def send(block, sends):
    block.prepared(block.settings.model_copy(update={"sends": sends}))()


def stamp_of(cycle):
    return round(1e9 * cycle * PERIOD)


def test_who_takes_over_is_silent_before_and_goes_on_from_the_last_command(asked):
    block, controller, tick = asked()
    assert block.describe()["hand_over"] == "waiting"
    for cycle in range(1, 8):
        assert tick(cycle, (cycle - 1, 1e3 * cycle)) == []
    assert block.idle(stamp_of(8), "inputs overdue") == []
    assert block.describe()["hand_over"] == "ready"
    controller.answer = np.array([1e5, 0.0, 7.5e3])
    send(block, True)
    assert tick(8, (7, 6e4)) == []
    step = LIMITS.maximum_rate * PERIOD
    assert tick(9, (8, 6.2e4)) == []  # the other one still sends
    assert tick(10) == []
    (first,) = tick(11)
    assert first.commands[0] == pytest.approx([6.2e4 + step, 6.2e4 - step, 6.2e4 - step])
    heard = [each.commands[0, 0] for each in controller.taken_over[-3:]]
    assert heard == [7e3, 6e4, 6.2e4]
    assert block.describe()["hand_over"] == "commands"
    (vent,) = block.idle(stamp_of(20), "inputs overdue")
    assert not vent.value.commands[-1].any()


def test_who_has_heard_no_packet_sends_none(asked):
    block, _, tick = asked()
    send(block, True)
    assert tick(1) == tick(2) == tick(9) == []
    assert block.idle(stamp_of(20), "inputs overdue") == []


def test_who_hands_over_is_silent_leaves_without_a_vent_and_may_go_on(asked):
    block, _, tick = asked()
    tick(1, (0, 1e3))
    assert block.idle(stamp_of(3), "stopped") == []  # it never began
    send(block, True)
    assert len(tick(4)) == 1
    send(block, False)
    assert tick(5) == []
    assert block.hold(stamp_of(6)) == []
    assert block.idle(stamp_of(7), "stopped") == []
    assert block.describe()["hand_over"] == "silent"
    send(block, True)  # the other one did not begin
    assert len(tick(8)) == 1


# --- what is asked for ----------------------------------------------------------------------------


def made(words, **parameters):
    options = SimulationOptions.of_options(words)
    system = simulation_system(options, Path("bag"))
    make = other_controller(system, options, lambda each: simulation_system(each, Path("bag")))
    controller = parameters.pop("controller")
    return make(Wanted(controller, parameters.pop("params_file", ""), parameters))


def test_the_other_controller_is_that_of_a_system_of_its_own(tmp_path):
    part = made({"seed": "4", "controller.population": "64"}, controller="rod_mpc", damping="1e-4")
    assert part.name == "rod_mpc"
    told = part.parameters
    assert (told["sends"], told["seed"], told["damping"]) == (False, 4, 1e-4)
    assert "population" not in told
    assert made({"controller.population": "64"}, controller="nempc").parameters["population"] == 64
    file = tmp_path / "numbers.yaml"
    file.write_text("controller: {damping: 0.001}")
    named = {"switchable": f"examples/joint_pid.py:JointPid, {file}"}
    assert made(named, controller="rod_mpc", params_file=str(file)).parameters["damping"] == 1e-3


@pytest.mark.parametrize(
    ("words", "asked_for", "line"),
    [
        ({}, {"controller": "pid"}, "controller 'pid': unknown; known are nempc, rod_mpc"),
        ({}, {"controller": "rod_mpc", "damping": "much"}, "damping = 'much': must be a number"),
        ({}, {"controller": "rod_mpc", "dampng": 1.0}, "dampng = 1.0: unknown"),
        ({}, {"controller": "rod_mpc", "mode": "wall"}, "parameter mode: is the run's"),
        ({}, {"controller": "nempc", "horizon": 20}, "horizon = 20: must be at most 8"),
        (
            {"switchable": "no.yaml"},
            {"controller": "nempc", "params_file": "no.yaml"},
            "'no.yaml': no such file",
        ),
        ({}, {"controller": "nempc", "params_file": "/etc/passwd"}, "--switchable /etc/passwd"),
        ({}, {"controller": "antigravity:X"}, "--switchable antigravity:X"),
        ({}, {"controller": "/tmp/evil.py:Evil"}, "must be named when the run is started"),
        ({}, {"controller": "policy:/tmp/evil"}, "must be named when the run is started"),
        ({}, {"controller": "rod_mpc", "model": "/tmp/evil.py:E"}, "parameter model: is text"),
        ({"robot": "dalenberg_robot1"}, {"controller": "nempc"}, "must be apcc"),
        ({"estimator": "cc"}, {"controller": "nempc"}, "open loop"),
    ],
)
def test_what_cannot_take_over_is_refused_in_a_line(words, asked_for, line):
    with one_line(re.escape(line)):
        made(words, **asked_for)


# --- nodes ----------------------------------------------------------------------------------------

DYING = """
import os, signal, socket, sys
import rclpy
from rcl_interfaces.srv import SetParametersAtomically
from softcr_runtime.ros.running_systems import lock_name
lock = socket.socket(socket.AF_UNIX)
lock.bind(lock_name(os.environ["ROS_DOMAIN_ID"], "robot1"))
rclpy.init()
node = rclpy.create_node("supervisor", namespace="robot1")
die = lambda *_: os.kill(os.getpid(), signal.SIGKILL)
node.create_service(SetParametersAtomically, "switch", die)
print("ready", flush=True)
rclpy.spin(node)
"""


def test_a_supervisor_that_is_killed_is_told_before_dds_tells_it(monkeypatch, capsys):
    pytest.importorskip("rclpy")
    monkeypatch.setenv("ROS_DOMAIN_ID", fresh_domain())
    with subprocess.Popen(
        [sys.executable, "-c", DYING], cwd=ROOT, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout.readline() == "ready\n"
        # DDS takes 20 s
        words = ("call", "switch", "nempc", "--namespace", "robot1", "--timeout", "15")
        assert main(list(words)) == 1
    (line,) = capsys.readouterr().err.splitlines()
    assert "service /robot1/switch: who offered it has ended, unanswered" in line


@pytest.fixture(scope="module")
def live(exchanged, tmp_path_factory):
    """A newcomer's script beside `softcr up simulation`, then an exchange that is refused, and one
    back: what they said and their exit codes, and the run's directory."""
    pytest.importorskip("rclpy")
    results = tmp_path_factory.mktemp("live")
    words = ["--reference=goal", "--controller.population=64", "--duration=1200"]
    with simulation_up(results, *words) as said:
        script = said(str(ROOT / "examples" / "newcomer.py"), str(exchanged[1]), python=True)
        refused = said("call", "switch", "rod_mpc", "knots=[9, 2]")
        back = said("call", "switch", "nempc")
    (directory,) = results.glob("2*")
    return script, refused, back, directory


@pytest.mark.slow
def test_a_newcomers_script_does_what_it_says(live):
    script = live[0]
    assert script.returncode == 0, script.stderr
    lines = dict(line.split(": ", 1) for line in script.stdout.splitlines() if ": " in line)
    assert {"estimator", "nempc_controller", "goal"} <= set(lines["nodes"].split(", "))
    assert {"/pressure/command", "/estimate/rod", "/tf"} <= set(lines["topics"].split(", "))
    assert lines["goal"].startswith("going to (0.02, 0.01, 0.17) m")
    tip = np.array([float(each) for each in lines["tip"].split()])
    assert tip == pytest.approx([0.02, 0.01, 0.17], abs=2e-3)
    assert lines["weight changed"] == "True"
    assert lines["switch"] == "rod_mpc commands in place of nempc_controller"
    assert "tip" in script.stdout.split("frame_id", 1)[1]
    counts = [int(n) for n in re.findall(r"replay: (\d+) estimates", script.stdout)]
    assert counts[0] > 30
    assert counts[1] - counts[0] > 30


@pytest.mark.slow
def test_an_exchange_that_is_refused_is_one_line_and_the_old_one_goes_on(live):
    _, refused, back, _ = live
    assert refused.returncode == 1
    (line,) = refused.stderr.splitlines()
    assert "knots" in line
    assert (back.returncode, back.stderr) == (0, "")
    assert "nempc_controller_2 commands in place of rod_mpc" in back.stdout


@pytest.mark.slow
def test_the_bag_of_a_run_with_exchanges_has_all_controllers_and_no_step(live):
    bag = Bag(live[-1] / "bag")
    run = RecordedRun.of(bag)
    assert run.controllers == ("nempc_controller", "rod_mpc", "nempc_controller_2")
    assert recorded_configurations(bag).keys() >= set(run.controllers)
    moments = [
        1e-9 * each.stamp
        for name in run.controllers[1:]
        for each in run.records[name]
        if each.changed.get("sends")
    ]
    assert len(moments) == 2
    sent = read_signals(bag).role("commands")
    times = 1e-9 * sent.stamps
    for moment in moments:
        around = np.abs(times - moment) < 0.3
        assert around.sum() > 20
        assert np.diff(times[around]).max() < 0.1  # nobody vents
        steps = np.abs(np.diff(sent.values[around], axis=0))
        assert steps.max() <= LIMITS.maximum_rate * PERIOD * (1 + 1e-9)
        assert sent.values[around].max(axis=1).min() > 0.0
