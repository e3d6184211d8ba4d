"""Which samples belong to one tick, whatever comes when: by stamp, by arrival, of sensors that keep
their own time."""

import math
from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.spatial.transform import Rotation

from softcr_estimation.estimator import EstimatorBlock
from softcr_models import CosseratRod, load_robot
from softcr_runtime.blocks.block import Input
from softcr_runtime.blocks.join import MOST_WAITING, Join, ticks
from softcr_runtime.blocks.sample import Sample
from softcr_runtime.blocks.tick_grid import LONGEST_HOLE, Resampler
from softcr_runtime.blocks.values import Pose, blended_poses

PRESSURES, POSES = "pressure/state", "mocap/tip/pose"
PERIOD = 1 / 70
TICK = round(1e9 * PERIOD)  # [ns]
PATIENCE = 2.5 * PERIOD
START = 1_700_000_000 * 10**9  # [ns]
STEP = 10_000_000  # of ticks whose moments do not matter [ns]
TOPICS = ("lead", "same", "newest", "latest", "all")


def played(join, samples):
    """The ticks of a join on virtual time, each at the moment at which it is complete."""
    ticks = []

    def take(now):
        while (tick := join.take(now)) is not None:
            ticks.append(tick)

    for sample in sorted(samples, key=lambda each: each.received):
        while (wake := join.wake()) < sample.received:
            take(wake)
        join.put(sample)
        take(sample.received)
    while math.isfinite(wake := join.wake()):
        take(wake)
    return ticks


# --- one stamp ----------------------------------------------------------------------------------


def sample(topic, tick, received=0.0):
    return Sample(topic, tick * STEP, (topic, tick), received)


def join_of(*inputs, keep="every"):
    return Join(inputs, keep, 1e-9 * STEP)


@given(st.lists(st.tuples(st.booleans(), st.floats(-0.01, 0.03)), min_size=1, max_size=20))
@settings(max_examples=100, deadline=None)
def test_a_partner_is_waited_for_as_long_as_patience_lasts(cycles):
    patience, samples = 0.007, []
    for number, (there, delay) in enumerate(cycles, start=1):
        samples.append(Sample(PRESSURES, number, None, 0.1 * number))
        if there:
            samples.append(Sample(POSES, number, None, 0.1 * number + delay))
    join = join_of(Input(PRESSURES, "lead"), Input(POSES, needed=False, patience=patience))
    ticks = played(join, samples)
    assert [tick.stamp for tick in ticks] == list(range(1, len(cycles) + 1))
    paired = [POSES in tick.samples for tick in ticks]
    assert all(tick.samples.get(POSES, tick).stamp == tick.stamp for tick in ticks)
    near = [abs(delay - patience) < 1e-9 for _, delay in cycles]
    expected = [there and delay <= patience for there, delay in cycles]
    assert all(p == e or n for p, e, n in zip(paired, expected, near, strict=True))
    assert sum(join.dropped.values()) <= sum(there for there, _ in cycles) - sum(paired)
    for tick, (_, delay), pair in zip(ticks, cycles, paired, strict=True):
        came = 0.1 * tick.stamp + (max(delay, 0.0) if pair else patience)
        # waiting ends, too, when a later pose tells that this one is lost
        assert tick.received == pytest.approx(came) or (not pair and tick.received < came)


@st.composite
def arrivals(draw):
    """Samples of all topics: some lost, in the order of stamps within a topic, mixed at will."""
    queues = {
        topic: [k for k in range(1, 15) if draw(st.booleans()) or topic == "lead"]
        for topic in TOPICS
    }
    order = []
    while any(queues.values()):
        topic = draw(st.sampled_from([name for name, queue in queues.items() if queue]))
        order.append((topic, queues[topic].pop(0)))
    return order


@given(arrivals(), st.sampled_from(["every", "newest"]))
def test_ticks_come_in_order_and_each_sample_serves_as_its_rule_says(order, keep):
    join = join_of(
        Input("lead", "lead"),
        Input("same", "same"),
        Input("newest", "newest", needed=False),
        Input("latest", "latest", needed=False),
        Input("all", "all", needed=False),
        keep=keep,
    )
    made, heard, put = [], [], []
    for topic, tick in order:
        join.put(sample(topic, tick))
        put.append((topic, tick))
        for each in ticks(join, 0.0):
            made.append(each)
            heard.append(list(put))
    stamps = [each.stamp for each in made]
    assert stamps == sorted(set(stamps))
    used = Counter()
    for each, known in zip(made, heard, strict=True):
        assert each.samples["lead"].stamp == each.samples["same"].stamp == each.stamp
        used.update(("newest", s.stamp) for s in [each.samples.get("newest")] if s)
        used.update(("all", s.stamp) for s in each.samples["all"])
        latest = [tick for topic, tick in known if topic == "latest"]
        assert ("latest" in each.samples) == bool(latest)
        if latest:
            assert each.samples["latest"].stamp == latest[-1] * STEP
    assert not used or max(used.values()) == 1
    if keep == "every":
        both = {k for t, k in order if t == "lead"} & {k for t, k in order if t == "same"}
        assert stamps == [k * STEP for k in sorted(both)]


def test_a_partner_that_later_ones_have_overtaken_is_not_waited_for():
    join = join_of(Input("lead", "lead"), Input("eye", "same", needed=False, patience=9.0))
    join.put(sample("lead", 5))
    join.put(sample("eye", 6))
    assert join.take(0.0).samples.keys() == {"lead"}
    join.put(sample("lead", 6))
    assert join.take(0.0).samples["eye"].stamp == 6 * STEP


def test_the_newest_complete_tick_wins_and_what_it_overtakes_is_counted():
    join = join_of(Input("lead", "lead"), Input("wish", "same"), keep="newest")
    for tick in (1, 2, 3):
        join.put(sample("lead", tick))
    for tick in (1, 2):
        join.put(sample("wish", tick))
    assert join.take(0.0).stamp == 2 * STEP
    assert join.dropped == {
        ("lead", "a newer tick was complete"): 1, ("wish", "came after its cycle"): 1,
    }  # fmt: skip
    join.put(sample("wish", 3))
    assert join.take(0.0).stamp == 3 * STEP


def test_an_answer_is_to_the_tick_before():
    join = join_of(Input("clock", "lead"), Input("command", "answer", needed=False, patience=2.0))
    join.put(sample("clock", 1))
    assert "command" not in join.take(0.0).samples  # nothing was asked yet
    join.put(sample("clock", 2))
    assert join.take(0.0) is None
    join.put(sample("command", 1))
    assert join.take(0.0).samples["command"].stamp == STEP


def test_a_needed_bystander_keeps_everybody_waiting():
    join = join_of(Input("lead", "lead"), Input("setpoint", "latest"))
    join.put(sample("lead", 1))
    assert join.take(math.inf) is None
    join.put(sample("setpoint", 1))
    assert join.take(0.0).stamp == STEP


@given(st.lists(st.integers(1, 4 * 10**6), min_size=2, max_size=60))
def test_a_resampled_lead_is_what_a_resampler_makes_of_it(steps):
    stamps = np.cumsum(np.array(steps) * 10).tolist()
    samples = [Sample("lead", int(t), np.array([1e-9 * t]), 0.0) for t in stamps]
    join = join_of(Input("lead", "lead", resampled=True))
    made = []
    for each in samples:
        join.put(each)
        made += [(tick.stamp, float(tick.samples["lead"].value[0])) for tick in ticks(join, 0.0)]
    plain = Resampler(1e-9 * STEP)
    expected = [(s.stamp, float(s.value[0])) for each in samples for s in plain.add(each)]
    assert made == expected
    assert all(stamp % STEP == 0 for stamp, _ in made)
    assert all(value == pytest.approx(1e-9 * stamp, abs=1e-12) for stamp, value in made)


def test_forgotten_is_forgotten():
    join = join_of(Input("lead", "lead"), Input("same", "same"), Input("all", "all", needed=False))
    for topic in ("lead", "all"):
        join.put(sample(topic, 1))
    join.forget()
    join.put(sample("same", 1))
    assert join.take(math.inf) is None
    join.put(sample("lead", 2))
    join.put(sample("same", 2))
    assert join.take(0.0).samples["all"] == ()


def test_no_more_than_some_wait():
    join = join_of(Input("lead", "lead"), Input("same", "same"))
    for tick in range(1, MOST_WAITING + 4):
        join.put(sample("lead", tick))
    assert join.dropped == {("lead", "too many were waiting"): 3}
    join.put(sample("same", 4))
    assert join.take(0.0).stamp == 4 * STEP


@pytest.mark.parametrize("inputs", [(), (Input("a", "lead"), Input("b", "lead"))])
def test_exactly_one_input_leads(inputs):
    with pytest.raises(ValueError, match=f"{len(inputs)} of them lead, must be one"):
        join_of(*inputs)


# --- poses at 120, pressures at 200, ticks at 70 Hz ---------------------------------------------


def motion(time):
    """A tip that circles twice a second with 30 mm: 5 m/s^2."""
    angle = 4 * np.pi * time
    pose = np.eye(4)
    pose[:3, 3] = 0.03 * np.cos(angle), 0.03 * np.sin(angle), 0.1
    pose[:3, :3] = Rotation.from_rotvec([0.0, 0.0, 0.3 * np.sin(angle)]).as_matrix()
    return Pose.of(pose)


def pressures_at(time):
    return 2e4 * (1.0 + np.sin(4 * np.pi * time + np.array([0.0, 2.1, 4.2])))


def letters_of(topic, rate, of, rng, duration, latency, jitter=0.0, lost=()):
    """Samples at a rate from an odd moment on; arrivals in the order of stamps."""
    times = 0.0013 + np.arange(int(duration * rate)) / rate
    times = times + rng.uniform(-jitter, jitter, len(times))
    arrivals = np.maximum.accumulate(times + rng.uniform(*latency, len(times)))
    return [
        Sample(topic, START + round(1e9 * time), of(time), arrival)
        for time, arrival in zip(times, arrivals, strict=True)
        if not any(begin <= time < end for begin, end in lost)
    ]


def bench(rng, duration=2.0, lost_poses=(), lost_pressures=(), latency=(0.010, 0.020)):
    letters = letters_of(POSES, 120, motion, rng, duration, latency, 0.0005, lost_poses)
    return letters + letters_of(
        PRESSURES, 200, pressures_at, rng, duration, (0.0002, 0.002), 0.0003, lost_pressures
    )


def ticks_of(letters):
    """(pressures, pose or None, when the tick was complete) of all ticks."""
    lead = Input(PRESSURES, "lead", resampled=True)
    partner = Input(POSES, "same", True, needed=False, patience=PATIENCE, blend=blended_poses)
    ticks = played(Join((lead, partner), "every", PERIOD), letters)
    return [(each.samples[PRESSURES], each.samples.get(POSES), each.received) for each in ticks]


def seconds(stamp):
    return (stamp - START) * 1e-9


@given(st.integers(0, 2**32 - 1))
@settings(max_examples=15, deadline=None)
def test_no_tick_is_late_and_both_sensors_are_of_one_moment(seed):
    found = ticks_of(bench(np.random.default_rng(seed)))
    stamps = [pressures.stamp for pressures, _, _ in found]
    assert all(stamp % TICK == 0 for stamp in stamps)
    assert set(np.diff(stamps)) == {TICK}
    # the camera's first pose may come after the first tick; the last tick's pose never came
    inner = found[2:-5]
    assert len(inner) > 125
    assert all(pose is not None for _, pose, _ in inner)
    for pressures, pose, completed in inner:
        time = seconds(pressures.stamp)
        assert pose.stamp == pressures.stamp
        # |acceleration| hole^2 / 8 of both sensors
        assert np.abs(pose.value.position - motion(time).position).max() < 5.0 * 0.0094**2 / 8 * 1.1
        assert np.abs(pose.value.matrix - motion(time).matrix)[:3, :3].max() < 1e-3
        assert pressures.value == pytest.approx(pressures_at(time), abs=20.0)
        # latency, a frame and its jitter
        assert completed - time < 0.020 + 1 / 120 + 0.0015


@pytest.mark.parametrize(("lost", "expected"), [(0.012, 0), (0.5, 34)])
def test_holes_of_the_camera_are_bridged_or_predicted_and_poses_come_back(lost, expected):
    found = ticks_of(bench(np.random.default_rng(3), lost_poses=[(1.0, 1.0 + lost)]))[2:-5]
    without = [seconds(p.stamp) for p, pose, _ in found if pose is None]
    assert abs(len(without) - expected) <= (2 if expected else 0)
    assert all(0.99 < time < 1.01 + lost for time in without)
    # who waits for a blind camera is late by its patience, never by more
    delays = [completed - seconds(p.stamp) for p, _, completed in found]
    assert max(delays) < PATIENCE + 0.008


def test_a_hole_in_the_pressures_leaves_ticks_out():
    found = ticks_of(bench(np.random.default_rng(4), lost_pressures=[(0.5, 0.6)]))
    gaps = np.diff([pressures.stamp for pressures, _, _ in found])
    assert sorted(set(gaps))[0] == TICK
    assert 7 <= max(gaps) / TICK <= 9
    assert sum(gap > TICK for gap in gaps) == 1


@given(st.lists(st.integers(1, 4 * TICK), min_size=2, max_size=50), st.integers(0, 10 * TICK))
def test_a_resampler_tells_every_tick_once_and_bridges_no_long_hole(steps, begin):
    stamps = begin + np.cumsum(steps)
    resampler = Resampler(PERIOD)
    told = []
    for stamp in stamps.tolist():
        letter = Sample(PRESSURES, stamp, np.array([float(stamp)]), 1e-9 * stamp)
        for tick in resampler.add(letter):
            assert tick.received == letter.received
            assert tick.value[0] == pytest.approx(tick.stamp, rel=1e-12)  # linear in time
            told.append(tick.stamp)
    expected = {
        tick
        for older, newer in zip(stamps[:-1].tolist(), stamps[1:].tolist(), strict=True)
        for tick in range(0, newer + 1, TICK)
        if (older < tick and newer - older <= LONGEST_HOLE * TICK) or tick == newer
    }
    expected |= {int(stamps[0])} if stamps[0] % TICK == 0 else set()
    assert told == sorted(expected)


def test_a_blended_pose_begins_and_ends_at_the_two_and_is_rigid():
    older, newer = motion(0.1), motion(0.11)
    assert blended_poses(older, newer, 0.0).matrix == pytest.approx(older.matrix)
    assert blended_poses(older, newer, 1.0).matrix == pytest.approx(newer.matrix)
    middle = blended_poses(older, newer, 0.5).matrix
    assert middle[:3, :3] @ middle[:3, :3].T == pytest.approx(np.eye(3))


def test_the_estimator_on_a_bench_finds_a_rod_that_is_softer_than_its_file():
    robot = load_robot("licher2025")
    softer = 1.1 * robot.bending_compliance
    plant = CosseratRod(robot.replace(bending_compliance=softer), intervals=5)
    rng, rate = np.random.default_rng(6), 600
    x, tips = plant.equilibrium(pressures_at(0.0)), []
    for step in range(int(2.4 * rate)):
        tips.append(plant.tip_pose(x))
        x = plant.step(x, pressures_at((step + 0.5) / rate), 1 / rate)

    def true_pose(time):
        where = min(int(time * rate), len(tips) - 2)
        older, newer = Pose.of(tips[where]), Pose.of(tips[where + 1])
        return blended_poses(older, newer, time * rate - where)

    def seen(time):
        pose = true_pose(time)
        return Pose(pose.position + rng.normal(0.0, 1e-4, 3), pose.quaternion)

    letters = letters_of(POSES, 120, seen, rng, 2.3, (0.010, 0.020))
    letters += letters_of(PRESSURES, 200, pressures_at, rng, 2.3, (0.0, 0.001))
    told = {"sampling": "separate", "patience": 2.5}
    block = EstimatorBlock(robot, EstimatorBlock.settings_of(told))
    errors = []
    for tick in played(Join(block.inputs, block.keep, PERIOD), letters):
        estimate, tip = (output.value for output in block.tick(tick.stamp, tick.samples))
        true = true_pose(seconds(tick.stamp)).position
        errors.append(np.linalg.norm(tip.pose().position - true))
    assert len(errors) > 155
    assert block.describe()["predicted_only"] <= 4  # before the first pose and after the last
    assert np.mean(errors[70:-3]) < 1.5e-3
    assert estimate.parameters["bending_compliance"] == pytest.approx(softer, rel=0.05)


def test_what_its_publisher_sends_before_another_topic_is_waited_for_until_that_has_come():
    pose = Input("pose", "same", needed=False, patience=0.1, after="sent")
    sent = Input("sent", "answer", needed=False)
    join = Join((Input("state", "lead"), pose, sent), "every", 1.0)
    join.put(Sample("state", 10, None, 0.0))
    assert join.take(1e6) is None  # however long ago the lead came
    assert join.wake() == math.inf
    join.put(Sample("sent", 10, None, 1e6))
    tick = join.take(1e6)
    assert tick.stamp == 10
    assert "pose" not in tick.samples
