"""Time that stands still, goes back, jumps or is not there yet: blocks, plants, nodes, bench."""

import threading
import time
from types import SimpleNamespace

import numpy as np
import pytest
from intra_process_blocks import Doubler
from kit.processes import TIMEOUT, Peer
from rclpy.parameter import Parameter
from rosgraph_msgs.msg import Clock

from softcr_control.controller import ControllerBlock
from softcr_estimation.estimator import EstimatorBlock
from softcr_models import load_robot
from softcr_papers.dalenberg2024.arm_plant import ArmPlant
from softcr_papers.mehl2024.cc_block import CcEstimatorBlock
from softcr_runtime.blocks.block import CLOCK, BlockBase, Input, Output
from softcr_runtime.blocks.sample import Sample
from softcr_runtime.blocks.tick_records import (
    END,
    JUMP,
    RESET,
    TICK,
    TickRecord,
    records_from_message,
    records_to_message,
)
from softcr_runtime.blocks.values import Pose
from softcr_runtime.replay.recorded_events import before_time_went_back
from softcr_runtime.replay.replayed import ReplayedBlock
from softcr_runtime.ros import clocks
from softcr_runtime.ros.block_node import block_node_class
from softcr_runtime.ros.process import SupervisedExecutor
from softcr_runtime.wire.diagnostics import diagnostics_from_message
from softcr_runtime.wire.messages import clock_to_message, from_stamp, pressures_to_message
from softcr_simulation.errors.plant_errors import PlantErrors
from softcr_simulation.model_plant import ModelPlant, ModelPlantSettings
from softcr_simulation.plant import SimulatedPlant
from softcr_simulation.simulator import Simulator

ROBOT = load_robot("licher2025")
PERIOD = 14_285_714  # [ns]


def rod_plant():
    plant = SimulatedPlant(ROBOT, PlantErrors.noiseless(), intervals=2)
    plant.follow(np.array([3e4, 0.0, 1e4]))
    return plant, lambda: (plant.state, plant.pressures)


def arm_plant():
    plant = ArmPlant(load_robot("dalenberg_robot1", ("arm",)))
    plant.follow(np.linspace(-2e-3, 2e-3, len(plant.command)))
    return plant, lambda: (plant._state.q,)


def model_plant():
    plant = ModelPlant(ROBOT, ModelPlantSettings(plant_model="constant_curvature"), 0)
    plant.follow(np.array([3e4, 0.0, 1e4]))
    return plant, lambda: (plant._state, plant._inputs)


@pytest.mark.parametrize("make", [rod_plant, arm_plant, model_plant])
def test_no_time_changes_no_plant_and_time_does_not_pass_backwards(make):
    plant, read = make()
    plant.advance(1e-9 * PERIOD)
    before = [part.copy() for part in read()]
    plant.advance(0.0)
    for duration in (-1e-9, -5.0, np.nan, np.inf):
        with pytest.raises(ValueError, match="duration = "):
            plant.advance(duration)
    assert all(np.array_equal(one, two) for one, two in zip(before, read(), strict=True))
    plant.advance(1e-9 * PERIOD)
    assert all(np.isfinite(part).all() for part in read())
    assert not all(np.array_equal(one, two) for one, two in zip(before, read(), strict=True))


def test_pressures_imposed_over_no_time_do_not_break_the_rod():
    plant, _ = rod_plant()
    before = plant.state.copy()
    plant.impose(1.0, 1.0, np.zeros(1), np.array([[2e4, 1e4, 0.0]]))
    assert np.array_equal(before, plant.state)
    with pytest.raises(ValueError, match="duration = "):
        plant.impose(1.0, 0.5, np.zeros(1), np.array([[2e4, 1e4, 0.0]]))


def lived_by(simulator, stamps):
    """The outputs of the simulator's ticks, each commanded to the same pressures."""
    command = np.array([4e4, 0.0, 0.0])
    samples = [{"pressure/command": Sample("", stamp, command, 0.0)} for stamp in stamps]
    return [list(simulator.tick(*each)) for each in zip(stamps, samples, strict=True)]


def pressures_in(outputs):
    return next(each.value.tolist() for each in outputs if each.topic == "pressure/state")


def test_a_simulator_whose_clock_stands_still_or_goes_back_keeps_its_robot_where_it_is():
    simulator = Simulator(ROBOT, Simulator.settings_of({"intervals": 2}))
    simulator.reset()
    told = lived_by(simulator, [k * PERIOD for k in (10, 11, 11, 11, 12)])
    assert [len(each) > 0 for each in told] == [True, True, False, False, True]
    simulator.reset()
    undisturbed = lived_by(simulator, [k * PERIOD for k in (10, 11, 12)])
    assert pressures_in(told[-1]) == pressures_in(undisturbed[-1])
    simulator.reset()
    before = lived_by(simulator, [k * PERIOD for k in range(1000, 1040)])[-1]
    after, later = lived_by(simulator, [5 * PERIOD, 6 * PERIOD])
    assert pressures_in(before)[0] > 1e4
    # no time passed at the jump: readings differ by noise alone
    assert pressures_in(after) == pytest.approx(pressures_in(before), abs=300.0)
    assert {output.stamp for output in after} == {5 * PERIOD}
    assert np.isfinite(pressures_in(later)).all()
    simulator.time_jumped(3600.0)
    (far,) = lived_by(simulator, [10**13])
    assert pressures_in(far) == pytest.approx(pressures_in(later), abs=300.0)


@pytest.fixture(scope="module")
def seen():
    """What sensors read in 30 ticks of a moving rod: pressures, tip pose, wrench."""
    plant, _ = rod_plant()
    readings = []
    for tick in range(30):
        plant.follow(3e4 + 2e4 * np.sin(0.1 * tick + np.arange(3)))
        plant.advance(1e-9 * PERIOD)
        measured = plant.measure(1)
        readings.append((measured.pressures, Pose.of(measured.true_tip_pose), measured.wrench))
    return readings


def estimated(block, seen, first):
    """(number of outputs, tip) of each tick, the first of which has the stamp of a tick."""
    found = []
    for tick, (pressures, pose, wrench) in enumerate(seen, first):
        values = {"pressure/state": pressures, "mocap/tip/pose": pose}
        values["force_torque/wrench"] = wrench
        topics = [each.topic for each in block.inputs]
        samples = {n: Sample(n, tick * PERIOD, values[n], 0.0) for n in topics if n in values}
        outputs = list(block.tick(tick * PERIOD, samples))
        tip = [each.value.pose().position for each in outputs if each.topic == "estimate/tip/pose"]
        found.append((len(outputs), tip[0].tolist() if tip else None))
    return found


@pytest.mark.parametrize(
    ("kind", "settings"), [(EstimatorBlock, {"intervals": 2}), (CcEstimatorBlock, {})]
)
def test_an_estimator_whose_time_goes_back_begins_anew_to_the_bit(kind, settings, seen):
    estimator = kind(ROBOT, kind.settings_of(settings))
    for told in (True, False):
        estimator.reset()
        fresh = estimated(estimator, seen, 100)
        estimated(estimator, seen, 5000)
        if told:
            estimator.time_jumped(-70.0)
        assert estimated(estimator, seen, 100) == fresh
        assert estimator.describe()["restarts"] == 2  # by more than it predicts, and back
    estimator.reset()
    estimated(estimator, seen[:5], 100)
    assert estimated(estimator, seen[4:5], 104) == [(0, None)]  # a stamp is answered once
    assert estimated(estimator, seen[5:], 105)[-1][0] > 0
    assert estimator.describe()["restarts"] == 0


class Asks:
    """A controller that wants the highest pressures; counts how often it began anew."""

    resets = 0

    def reset(self):
        self.resets += 1

    def command(self, observation):
        return np.full(3, ROBOT.pressure_limits.maximum)


def test_a_controller_whose_time_jumps_begins_anew_and_climbs_no_faster_than_its_limits():
    law = Asks()
    chosen = {"controller": "rod_mpc", "intervals": 2}
    block = ControllerBlock(ROBOT, ControllerBlock.settings_of(chosen), lambda context: law)
    block.reset()
    for tick in range(200):
        now = tick * PERIOD
        answer = block._packet(now, block._limited(law.command(None), now))
    high = answer.value.commands[0]
    assert np.allclose(high, ROBOT.pressure_limits.maximum)
    (safe,) = block.idle(now + PERIOD, "time jumped")
    assert (np.diff(safe.value.commands, axis=0) < 0.0).all()
    assert not safe.value.commands[-1].any()
    block.time_jumped(-5.0)
    slew = block.model.inputs.rate * block.settings.period
    (after,) = block._limited(law.command(None), now - round(5e9))
    assert law.resets == 3  # of the test, of the vent, of the jump
    assert high.min() > after.max() > 0.0
    assert (after <= slew * (1.0 + 1e-9)).all()


@pytest.mark.parametrize("step", [5.0, -5.0, 0.5, -3600.0])
def test_a_step_of_the_system_clock_is_seen_once_and_slewing_is_not(monkeypatch, step):
    apart = [1_700_000_000_000_000_000]
    monkeypatch.setattr(clocks, "_apart", lambda: apart[0])
    steps = clocks.SystemClockSteps()
    for _ in range(1000):
        apart[0] += 500_000  # as fast as NTP slews, looked at once a second: 0.5 s in all
        assert steps.look() == 0.0
    apart[0] += round(1e9 * step)
    assert steps.look() == pytest.approx(step, abs=1e-6)
    assert steps.look() == 0.0


class Ticker(BlockBase):
    """Says the time; paced by the clock."""

    name = "ticker"
    inputs = (Input(CLOCK, "lead"),)
    outputs = ("pressure/state",)

    def tick(self, now, samples):
        return [Output("pressure/state", now, np.zeros(3))]


class GridTicker(Ticker):
    """The same, at whole multiples of the period."""

    on_grid = True


class Venting(Doubler):
    """Commands twice the measured pressures; nothing when it is idle."""

    def idle(self, now, why):
        return [Output("pressure/command", now, np.zeros(3))]


class World(Peer):
    """One node of a block, and the rest of the world."""

    shown = 100 * 10**9  # on /clock [ns]

    def __init__(self, block, **parameters):
        super().__init__("rest", parameters.get("mode") == "lockstep")
        overrides = [Parameter(name, value=value) for name, value in parameters.items()]
        self.tested = block_node_class(block)(context=self.context, parameter_overrides=overrides)
        self.heard, self.reports, self.records = [], [], []
        for topic in block.outputs:
            self.hear(topic, self.heard.append)
        self.hear("/diagnostics", self.reports.append, False)
        self.hear("ticks", lambda m: self.records.extend(records_from_message(m)[1]))
        self.states = self.publisher("pressure/state")
        self.clock = self.node.create_publisher(Clock, "/clock", 10)
        # a thread for each: the node's own services and its loop are not waited for
        self._of_tested = SupervisedExecutor(self.tested)
        self._turning = threading.Thread(target=self._of_tested.spin)
        self.tested.trigger_configure()
        self.tested.trigger_activate()
        for each in (self._turning, self._thread):
            each.start()

    def send(self, stamp, level=1e4):
        message = pressures_to_message(np.full(3, level), ROBOT.chamber_names, stamp)
        self.states.publish(message)

    def go(self, step=PERIOD):
        """Show a later time on /clock."""
        self.shown += step
        self.clock.publish(clock_to_message(self.shown))

    def go_and_send(self):
        self.go()
        self.send(self.shown)

    def stamps(self):
        return [from_stamp(message, "") for message in self.heard]

    def report(self):
        """The next report of the node."""
        count = len(self.reports)
        self.until(lambda: len(self.reports) > count, "a report")
        return diagnostics_from_message(self.reports[-1])[0]

    def close(self):
        self.tested.executor.create_task(self.tested.finish)
        self._of_tested.stop()
        self._turning.join(TIMEOUT)
        self.tested.destroy_node()
        super().close()


@pytest.fixture
def world():
    made = []

    def make(block, **parameters):
        made.append(World(block, **parameters))
        return made[-1]

    yield make
    for each in made:
        each.close()


@pytest.mark.parametrize("step", [5.0, -5.0])
def test_a_node_begins_anew_when_the_system_clock_is_set(world, monkeypatch, step):
    shift = [0]
    apart = clocks._apart
    monkeypatch.setattr(clocks, "_apart", lambda: apart() + shift[0])
    rest = world(Venting)
    node = rest.tested
    now = node.now
    monkeypatch.setattr(node, "now", lambda: now() + shift[0])
    rest.until(lambda: rest.heard, "an answer", lambda: rest.send(node.now()))
    shift[0] = round(1e9 * step)
    began = node.now()
    rest.heard.clear()
    rest.until(
        lambda: [m for m in rest.heard if m.effort[0] == 2e4 and from_stamp(m, "") >= began],
        "an answer in the new time",
        lambda: rest.send(node.now()),
    )
    vents = [from_stamp(m, "") for m in rest.heard if m.effort[0] == 0.0]
    assert len(vents) == 1
    assert abs(vents[0] - began) < 4e9  # it is told in the new time
    assert not node.counts.rejections
    report = rest.report()
    assert report.values["time_jumps"] == 1
    assert report.values["last_time_jump_s"] == pytest.approx(step, abs=0.05)
    rest.until(lambda: JUMP in [r.event for r in rest.records], "the record of it")
    events = [record.event for record in rest.records]
    assert events[0] == RESET
    assert events[events.index(JUMP) - 1] == END
    jump = rest.records[events.index(JUMP)]
    assert jump.age == pytest.approx(step, abs=0.05)


def test_stamps_of_a_looped_run_are_taken_again_in_lockstep(world):
    rest = world(Venting, mode="lockstep")
    stamps = [k * PERIOD for k in range(1, 61)]
    for _ in range(2):
        rest.heard.clear()
        for stamp in stamps:
            rest.send(stamp)
        rest.until(lambda: len(rest.heard) >= len(stamps), "all answers")
        assert rest.stamps() == stamps
    # what is only a little late is still refused
    rest.send(stamps[-5])
    rest.until(lambda: sum(rest.tested.counts.rejections.values()) == 1, "the refusal")
    report = rest.report()
    assert report.values["time_jumps"] == 1
    assert report.values["last_time_jump_s"] == pytest.approx(-59e-9 * PERIOD)
    # diagnostics are of simulated time, too
    assert from_stamp(rest.reports[-1], "") == stamps[-1]


@pytest.mark.parametrize("block", [Ticker, GridTicker])
def test_a_block_paced_by_time_lives_with_the_time_of_clock(world, block):
    rest = world(block, use_sim_time=True)
    report = rest.report()
    assert "nothing has come on /clock" in report.message
    assert not rest.heard

    def go():
        rest.go(PERIOD // 2)

    rest.until(lambda: len(rest.heard) > 5, "ticks on simulated time", go)
    assert rest.tested.counts.time_jumps == 0  # the first time is no jump
    # the clock stands still: so does the block, and says it
    rest.until(lambda: "/clock stands still" in rest.report().message, "the warning")
    count = len(rest.heard)
    time.sleep(0.3)
    assert len(rest.heard) == count
    stamps = rest.stamps()
    assert stamps == sorted(set(stamps))
    assert min(stamps) >= 100 * 10**9
    assert max(stamps) <= rest.shown
    # and goes back
    rest.shown = 10 * 10**9
    rest.heard.clear()
    rest.until(lambda: len(rest.heard) > 5, "ticks after time went back", go)
    assert max(rest.stamps()) < 20 * 10**9
    assert rest.stamps() == sorted(set(rest.stamps()))
    assert rest.tested.counts.time_jumps == 1
    assert rest.tested.counts.last_time_jump < -80.0


def test_a_running_node_goes_over_to_simulated_time(world):
    rest = world(Venting)
    rest.until(lambda: rest.heard, "an answer", lambda: rest.send(rest.tested.now()))
    rest.tested.set_parameters([Parameter("use_sim_time", value=True)])
    rest.heard.clear()
    answers = "answers in simulated time"
    rest.until(lambda: any(m.effort[0] for m in rest.heard), answers, rest.go_and_send)
    assert rest.tested.counts.time_jumps == 1
    assert rest.tested.counts.last_time_jump < -1e9


def test_who_hears_nothing_while_the_clock_stands_still_vents_with_newer_stamps(world):
    class Silent(Venting):
        silence = 0.2

    rest = world(Silent, use_sim_time=True)
    # messages before the first time on /clock are refused for what they are
    rest.until(lambda: rest.tested.counts.rejections, "a refusal", lambda: rest.send(5 * 10**9))
    assert "nothing on /clock" in next(iter(rest.tested.counts.rejections))
    assert not any(message.effort[0] for message in rest.heard)
    rest.until(lambda: sum(m.effort[0] > 0 for m in rest.heard) > 3, "answers", rest.go_and_send)
    last = max(from_stamp(m, "") for m in rest.heard if m.effort[0])
    rest.heard.clear()
    rest.until(lambda: len(rest.heard) >= 3, "vents, again and again")
    assert not any(message.effort[0] for message in rest.heard)
    stamps = rest.stamps()
    assert stamps == sorted(set(stamps))  # or whoever hears them would call them stale
    assert stamps[0] > last
    assert stamps[-1] <= rest.shown + len(stamps) + 10


def test_a_replay_does_jumps_again_and_ends_where_stamps_are_there_twice():
    class Told(Doubler):
        def __init__(self):
            super().__init__(ROBOT, Doubler.Settings())
            self.jumps = []

        def time_jumped(self, seconds):
            self.jumps.append(seconds)

    used = {"pressure/state": (7, 7)}
    events = [
        TickRecord(RESET, 1), TickRecord(TICK, 7, 0.0, used), TickRecord(JUMP, 8, 5.0),
        TickRecord(TICK, 7, 0.0, used), TickRecord(JUMP, 3, -2.0), TickRecord(TICK, 7, 0.0, used),
    ]  # fmt: skip
    message = records_to_message("doubler", ["pressure/state"], events)
    kept, back = before_time_went_back(records_from_message(message)[1])
    assert (len(kept), back) == (4, 2.0)
    block = Told()
    sample = Sample("pressure/state", 7, np.full(3, 1e3), 0.0)
    samples = SimpleNamespace(at=lambda topic, stamp: sample)
    replayed = ReplayedBlock("doubler", block, kept, samples)
    made = [each.output.value[0] for _ in kept for each in replayed.advance()]
    assert made == [2e3, 2e3]
    assert block.jumps == [5.0]


@pytest.mark.parametrize("enabled", [True, False])
def test_the_bench_vents_when_the_clock_of_its_messages_is_set(enabled):
    from softcr_hardware.nodes.valves import Valves

    vents = []
    driver = SimpleNamespace(
        report=SimpleNamespace(decision=SimpleNamespace(enabled=enabled)),
        vent=lambda: vents.append(True),
    )
    node = SimpleNamespace(_driver=driver)
    said = Valves.on_time_jump(node, 5.0)
    assert len(vents) == enabled
    assert said.startswith("vented") == enabled
    assert Valves.on_time_jump(SimpleNamespace(_driver=None), 5.0)
