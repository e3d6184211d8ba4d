"""A closed loop whose answers are late, on virtual time: no processor's speed is in it."""

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

from softcr_control.answer_times import AnswerTimes
from softcr_control.predictive.lag_estimation import LagEstimator
from softcr_control.reference.block import ReferenceBlock
from softcr_models import load_robot
from softcr_runtime.blocks.block import CLOCK
from softcr_runtime.blocks.command_packets import CommandPacket
from softcr_runtime.blocks.sample import Sample
from softcr_runtime.blocks.system import Computing, Stop
from softcr_runtime.blocks.virtual_run import run_system
from softcr_simulation.simulator import Simulator
from softcr_tools.running.run_options import SimulationOptions
from softcr_tools.running.systems import simulation_system

SECONDS = 3.0
TIP, REFERENCE = "simulation/truth/tip/pose", "reference/rod"
ROBOT = load_robot("licher2025")


class Learned:
    """Lags that a controller has learned, from the tick to the next one each."""

    def __init__(self, monkeypatch):
        self.lags, observe = [], LagEstimator.observe

        def noted(estimator, *told):
            observe(estimator, *told)
            self.lags.append(estimator.lag)

        monkeypatch.setattr(LagEstimator, "observe", noted)

    def are(self, known):
        """Whether they are always a known one, to a hundredth."""
        assert len(self.lags) > 50
        poles = np.array([lag.pole for lag in self.lags])
        gains = np.array([lag.gain for lag in self.lags])
        np.testing.assert_allclose(poles, known.pole, rtol=0.01)
        np.testing.assert_allclose(gains / poles, known.gain / known.pole, rtol=0.01)


@pytest.fixture
def learned(monkeypatch):
    return Learned(monkeypatch)


def run(computing, seconds=SECONDS, estimating=None, living=None, robot="licher2025"):
    """Of the shipped system with a controller that computes for so long, an estimator and a
    simulator: times (T,) [s], tips (T, 3), reference tips (T, 3) [m], their distances (T,) [mm],
    commands played (T, 3) [Pa], and the controller's block."""
    plant = {"plant": {"plant_errors": "same_structure"}}
    chosen = {"controller": "rod_mpc", "seed": 1, "duration": seconds, "mode": "wall"}
    system = simulation_system(SimulationOptions(robot=robot, roles=plant, **chosen), "none")
    taking = {system.controller: computing, "estimator": estimating, "simulator": living}
    parts = tuple(
        replace(part, computing=taking.get(part.name) or part.computing)
        for part in system.parts
        if part.name != "recorder"
    )
    system = replace(system, parts=parts, activation=tuple(part.name for part in parts))
    log = {TIP: {}, REFERENCE: {}, "pressure/sent": {}}

    def note(_, output):
        if output.topic in log:
            log[output.topic][output.stamp] = output.value

    executor = run_system(system, note)
    assert executor.complaints == []
    stamps = sorted(set(log[TIP]) & set(log[REFERENCE]))
    tips = np.array([log[TIP][stamp].position for stamp in stamps])
    aims = np.array([log[REFERENCE][stamp].tip_positions[0] for stamp in stamps])
    return SimpleNamespace(
        times=1e-9 * np.array(stamps), tips=tips, aims=aims,
        off=1e3 * np.linalg.norm(tips - aims, axis=1),
        sent=np.array([log["pressure/sent"][stamp] for stamp in stamps]),
        block=executor.block(system.controller),
    )  # fmt: skip


def rush(found):
    """How much faster than its aims a tip was at most."""
    ways = (np.linalg.norm(np.diff(each, axis=0), axis=1) for each in (found.tips, found.aims))
    own, wanted = ((way / np.diff(found.times)).max() for way in ways)
    return own / wanted


def settled(computing):
    """Mean tip error of the last second [mm], where nothing else is wrong, and the block."""
    found = run(computing)
    assert found.off[found.times > 1.0].max() < 4.0
    assert found.block.describe()["vents"] == 1  # when the run ends
    return found.off[found.times > 2.0].mean(), found.block


@pytest.mark.parametrize(("computing", "every"), [(0.005, 1), (0.020, 2), (0.040, 3)])
def test_answers_that_take_more_than_a_period_cost_nothing(computing, every, learned):
    """Who never answers within a period answers every second or third estimate on purpose: ticks
    left out so are none that were missed, and the plan is followed as far."""
    error, block = settled(Computing(computing))
    assert error < 0.3
    assert block.every == every
    if every < 3:  # its first lags are of few readings
        learned.are(ROBOT.pressure_lag)


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_answers_that_take_sometimes_less_and_sometimes_more_are_no_other_motion(seed, learned):
    """Of half to two and a half periods, so that two may come at once. The plant's chambers follow
    the file's lag, and the controller, which hears of readings and of its own packets alone,
    learns no other one."""
    assert settled(Computing(0.005, 0.035, seed=seed))[0] < 0.3
    learned.are(ROBOT.pressure_lag)


def stopping(seconds, stop, *at):
    return Computing(seconds, stops=tuple(Stop(seconds=stop, at=float(each)) for each in at))


AGAIN = stopping(0.002, 0.2, *np.arange(1.0, 2.5, 0.3))
STILL = [stopping(each, 0.05, *np.arange(0.5, SECONDS, 0.1)) for each in (0.005, 0.004, 0.0)]


@pytest.mark.parametrize(
    ("parts", "robot", "most"),
    [
        # Where the inputs of the motion are known, packets reach beyond the horizon; and the end of
        # a plan that leads back to the reference, which would throw the robot, is not played.
        ((AGAIN,), "licher2025", 6.0),
        # Of an estimator that stops, the estimates that it makes up for in a moment do not count,
        # too old for any plan.
        ((Computing(0.002), stopping(0.002, 0.3, 1.5)), "licher2025", 10.0),
        # A quota of processor time stops all. The plant lives on meanwhile and its sensors measure,
        # and packets that were in time are played, though the simulator hears of them late.
        (STILL, "licher2025", 4.0),
        # What the inputs did while a machine stood still is not known: hysteresis, damping and
        # compliance were taken to explain it, and the robot was thrown by 73 mm.
        ([stopping(0.002, 0.3, 1.7)] * 3, "licher2025_chain", 10.0),
    ],
    ids=["controller", "estimator", "half of the time", "for a moment"],
)
def test_who_stops_does_not_throw_the_robot(parts, robot, most):
    """Controller, estimator and simulator."""
    found = run(parts[0], SECONDS, *parts[1:], robot=robot)
    assert parts is not STILL or len(found.times) > 0.95 * 70 * SECONDS
    assert found.off[found.times > 1.0].max() < most
    assert found.block.describe()["vents"] == 1  # when the run ends


def test_a_controller_that_stops_again_and_again_on_an_unknown_motion_is_led_to_rest(monkeypatch):
    """Where nobody knows the inputs of the motion, the robot is held in between, and aims that went
    on meanwhile would throw it; when the stops have ended it follows again."""
    monkeypatch.setattr(ReferenceBlock, "_inputs_at", lambda *_: None)
    found = run(AGAIN, 6.0)
    assert rush(found) < 1.5
    assert found.block.describe()["vents"] == 2  # and when the run ends
    assert found.off[found.times > 5.0].max() < 4.0


def test_a_late_cycle_makes_up_for_what_sensors_measured_and_commands_moved():
    settings = Simulator.settings_of({"robot": "licher2025", "mode": "wall"})
    simulator = Simulator(load_robot("licher2025"), settings)
    period = round(1e9 * settings.period)

    def sent(cycle, *came):
        """Stamps and commands of a cycle that hears of packets that came so many cycles before."""
        now, seconds = round(cycle * period), 1e-9 * period
        plans = tuple(
            Sample("pressure/plan", 0, packet, seconds * (cycle - ago)) for packet, ago in came
        )
        samples = {CLOCK: Sample(CLOCK, now, None, seconds * cycle), "pressure/plan": plans}
        told = [each for each in simulator.tick(now, samples) if each.topic == "pressure/sent"]
        return [(each.stamp // period, each.value[0]) for each in told]

    def packet(begin, *commands):
        return CommandPacket.regular(begin * period, period, np.outer(commands, np.ones(3)))

    assert sent(1, (packet(1, 1e3, 2e3, 3e3, 4e3, 5e3), 0.0)) == [(1, 1e3)]
    # the second packet came in time for its commands in cycles 3 to 5, of which 5 is late
    in_time = packet(3, 7e3, 8e3, 9e3)
    assert sent(5, (in_time, 2.5)) == [(2, 2e3), (3, 7e3), (4, 8e3), (5, 9e3)]
    # one that came after its commands were due has moved nothing before
    late = packet(7, 1e3, 2e3, 3e3)
    assert sent(9, (late, 0.5)) == [(6, 9e3), (7, 9e3), (8, 9e3), (9, 3e3)]
    # as many as wait to be heard, of a longer time
    assert [stamp for stamp, _ in sent(30, (packet(30, 1e3), 0.0))] == [26, 27, 28, 29, 30]
    # a cycle that is late, and none that was missed
    assert [stamp for stamp, _ in sent(31.5, (packet(30, 1e3), 9.0))] == [31]
    assert simulator.describe()["cycles_made_up"] == 3 + 3 + 4


def test_answers_later_than_any_plan_lead_the_robot_to_rest_and_say_so():
    found = run(Computing(0.1))
    assert rush(found) < 2.0
    assert found.sent[found.times < 1.0].max() > 1e3  # it had begun
    assert not found.sent[found.times > 2.0].any()
    # it swings to where it began
    assert np.linalg.norm(found.tips[found.times > 2.5] - found.tips[0], axis=1).max() < 5e-3
    (line,) = found.block.warnings()
    assert "the robot is led to rest" in line


def test_a_controller_whose_plans_all_come_too_late_has_not_commanded():
    """What was played before is held for a moment, then the chambers vent."""
    settings = Simulator.settings_of({"robot": "licher2025", "mode": "wall"})
    simulator = Simulator(load_robot("licher2025"), settings)
    period = round(1e9 * settings.period)
    played = []
    for cycle in range(1, 101):
        now = cycle * period
        due = now if cycle <= 20 else now - 10 * period
        packet = CommandPacket.single(due, np.full(3, 3e4))
        samples = {
            CLOCK: Sample(CLOCK, now, None, 0.0),
            "pressure/plan": (Sample("pressure/plan", now, packet, 0.0),),
        }
        sent = [each for each in simulator.tick(now, samples) if each.topic == "pressure/sent"]
        played.append(sent[0].value[0])
    assert played[19:26] == [3e4] * 7
    assert played[-1] == 0.0
    falling = np.diff(played[20:])
    assert falling.min() >= -1e5 * settings.period / 0.3 - 1e-6  # along the ramp, not at once
    assert simulator.describe()["plans_refused"] == {"came late": 80}
    assert simulator.describe()["without_commands"]


@pytest.mark.parametrize(
    ("computing", "missed", "every", "delay"),
    [
        (0.004, 0, 1, 1),
        (0.004, 5, 1, 1),  # every fifth estimate is lost: nobody is busy
        (0.0145, 0, 2, 2),  # a little more than a tick: estimates would wait up to one
        (0.029, 0, 3, 3),
        (0.045, 0, 4, 4),
    ],
)
def test_no_estimate_waits_for_a_controller_that_is_always_busy(computing, missed, every, delay):
    period, least = 1 / 70, 1
    times = AnswerTimes(period, least_delay=least, early=0.0, rarest=4.5 * period)
    free, draws = 0.0, np.random.default_rng(0)
    for tick in range(350):
        now = tick * period
        stamp = round(1e9 * now)
        # the newest estimate waits; one that is there while a newer one is due is passed over
        begin = max(free, now)
        if (missed and tick % missed == 0) or begin >= now + period or times.leaves_out(stamp):
            continue
        free = begin + computing * (1.0 + 0.02 * draws.standard_normal())
        times.answered(stamp)
        times.sent(stamp, stamp + round(2e8))
        times.came(free - now)
    assert times.every == every
    assert times.delay == delay


def test_who_was_too_late_commands_again_once_answers_are_quick_and_the_robot_rests():
    """Answers that are just in time again would command a robot that still moves fast, a whole
    horizon ahead."""
    period = 1 / 70
    times = AnswerTimes(period, least_delay=2, early=1.0, rarest=4.5 * period)
    late = []
    for tick, age in enumerate([0.01] * 40 + [0.12] * 20 + [0.08] * 70 + [0.03] * 60):
        stamp = round(1e9 * tick * period)
        times.answered(stamp)
        times.sent(stamp, stamp + round(2e8))
        times.came(age)
        late.append(times.too_late)
    begin = late.index(True)
    assert 40 < begin < 50
    end = begin + late[begin:].index(False)
    assert end - 129 in (35, 36)  # half a second: answers of 80 ms are too near to the limit of 86
    assert not any(late[end:])
