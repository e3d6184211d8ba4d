"""A bag of the bench comes back to the bit: sensors with times of their own, on no common grid.

The blocks are those of `softcr up hardware`, with its parameters. In place of the devices a rod
plays their plans, whose sensors speak at 200, 120 and 600 Hz with different latencies, lose
messages, and never share a stamp.
"""

from dataclasses import replace

import numpy as np
import pytest
from rich.console import Console

from softcr_hardware.safety.safety import Action
from softcr_hardware.safety.setpoint import Setpoint
from softcr_models import CosseratRod, load_robot
from softcr_runtime.bags.reading import Bag
from softcr_runtime.blocks.block import CLOCK, BlockBase, Input, Output
from softcr_runtime.blocks.command_packets import PacketPlayer
from softcr_runtime.blocks.system import Computing, Part, Wire
from softcr_runtime.blocks.values import Pose
from softcr_runtime.blocks.virtual import block_of
from softcr_runtime.blocks.virtual_run import run_system
from softcr_runtime.replay.bag_replay import ReplayTask
from softcr_runtime.replay.recorded_events import recorded_events
from softcr_runtime.settings.node_settings import NodeSettings
from softcr_tools.replay.offline import replay
from softcr_tools.running.hardware_system import HardwareOptions, hardware_system

RATE, DURATION = 600.0, 1.5  # [Hz], [s]
PLAN, ESTIMATE, PRESSURES, POSES, WRENCH = (
    "pressure/plan", "estimate/rod", "pressure/state", "mocap/tip/pose", "force_torque/wrench"
)  # fmt: skip
SENT = "pressure/sent"
COMPUTING = {"estimator": 3e-3, "nempc_controller": 5e-3}  # [s]
LATENCY = {PRESSURES: 0.4e-3, POSES: 4.1e-3, WRENCH: 0.9e-3}  # from acquisition to the message [s]


class Bench(BlockBase):
    """A rod with valves, which approach commands as the controller reckons, and sensors."""

    name = "bench"
    inputs = (Input(CLOCK, "lead"), Input(PLAN, "all", needed=False))
    outputs = (PRESSURES, POSES, WRENCH, SENT)

    def reset(self):
        self.rod = CosseratRod(self.robot, 3)
        self.state, self.pressures = self.rod.rest_state(), np.zeros(3)
        self.cycle, self.random = 0, np.random.default_rng(7)
        self.told = {topic: [] for topic in LATENCY}
        period = 1 / NodeSettings().rate_hz
        self.player, self.played = PacketPlayer(round(1e9 * period)), None
        self.setpoint = Setpoint(self.robot.pressure_limits, 3, period, vent_rate=2e5)

    def tick(self, now, samples):
        for plan in samples[PLAN]:
            assert not self.player.hear(plan.value, now)
        played = self.player.at(now)
        if played is not None and played is not self.played:
            self.setpoint.command(played)
        self.played = played
        sent = self.setpoint.advance(Action.NONE, 1.0 / RATE)
        yield Output(SENT, now, sent)
        self.pressures = self.robot.pressure_lag.step(self.pressures, sent, 1.0 / RATE)
        self.state = self.rod.step(self.state, self.pressures, 1.0 / RATE)
        self.cycle += 1
        due = {PRESSURES: self.cycle % 3 == 1, POSES: self.cycle % 5 == 2, WRENCH: True}
        values = {
            PRESSURES: lambda: self.pressures + self.random.normal(0.0, 50.0, 3),
            POSES: lambda: Pose.of(self.rod.tip_pose(self.state)),
            WRENCH: lambda: self.rod.base_wrench(self.state, self.pressures),
        }
        for topic in LATENCY:
            if self.cycle > 5 and due[topic] and self.random.random() > 0.03:
                stamp = now - round(1e9 * LATENCY[topic])
                self.told[topic].append(stamp)
                yield Output(topic, stamp, values[topic]())


@pytest.fixture(scope="module")
def recorded(tmp_path_factory):
    """What the bench told and the blocks answered, and the bag."""
    bag = tmp_path_factory.mktemp("bench") / "bag"
    words = {"duration": str(DURATION), "controller.population": "32", "reference": "tip_circle"}
    system = hardware_system(HardwareOptions.of_options(words), bag)
    bench, sent = Bench(load_robot("licher2025"), NodeSettings(rate_hz=RATE)), []
    wires = {
        topic: Wire(latency=3e-4, jitter=2e-4, seed=number)
        for number, topic in enumerate([*LATENCY, PLAN])
    }
    blocks = [
        replace(part, computing=Computing(COMPUTING.get(part.name, 1e-3)), wires=wires)
        for part in system.parts
        if part.is_block
    ]
    parts = (*blocks, Part("bench", "test_bench_replay:Bench"))
    run_system(
        replace(system, parts=parts, activation=tuple(part.name for part in parts)),
        lambda name, output: sent.append((name, output)),
        bag=bag,
        make=lambda part: bench if part.name == "bench" else block_of(part),
    )
    return bench, sent, bag


def off_grid(stamps, period):
    """Of each stamp from the next whole multiple of a period, in periods."""
    places = np.array(stamps) / period
    return np.abs(places - np.round(places))


def test_no_two_sensors_share_stamps_and_blocks_answer_on_the_grid(recorded):
    bench, sent, _ = recorded
    told = [set(bench.told[topic]) for topic in (PRESSURES, POSES, WRENCH)]
    assert all(len(each) > 100 for each in told)
    assert len(set.union(*told)) == sum(map(len, told))
    period = 1e9 / NodeSettings().rate_hz
    for topic in (ESTIMATE, PLAN):
        stamps = np.array([each.stamp for _, each in sent if each.topic == topic])
        assert len(stamps) > 0.8 * DURATION * 70
        # the vent at the end has a stamp of its own
        assert np.quantile(off_grid(stamps, period), 0.95) < 1e-4
    assert np.median(off_grid(sorted(set.union(*told)), period)) > 0.1


def test_the_estimator_heard_several_at_once_of_what_was_played(recorded):
    _, _, bag = recorded
    records = recorded_events(Bag(bag))["estimator"]
    spans = [used[SENT] for used in (each.used for each in records) if SENT in used]
    assert len(spans) > 0.8 * DURATION * 70
    assert np.median([last - first for first, last in spans]) > 1e9 / RATE


def test_it_comes_back_to_the_bit(recorded, tmp_path):
    _, sent, bag = recorded
    again = replay(Bag(bag), ReplayTask(True, None, {}), tmp_path / "again", Console(quiet=True))
    for counts, topic in ((again.estimates, ESTIMATE), (again.commands, PLAN)):
        assert counts.recorded == sum(each.topic == topic for _, each in sent)
        assert counts.identical == counts.compared == counts.recorded
        assert counts.replayed - counts.recorded in (0, 1)  # of a tick that the end cut short
