"""Sensors with a time of their own, on virtual time: poses 120, pressures 200, ticks 70 Hz."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.spatial.transform import Rotation

from softcr_estimation.estimation_loop import EstimationLoop, EstimatorNodeSettings
from softcr_estimation.sample_pairing import POSES, PRESSURES
from softcr_estimation.sample_resampling import SampleResampling, blended_poses
from softcr_models import CosseratRod, load_robot
from softcr_runtime.sample import Sample
from softcr_runtime.tick_grid import LONGEST_HOLE, Resampler, TickGrid
from softcr_tools.replay.recorded_inputs import RecordedInbox

PERIOD = 1 / 70
TICK = round(1e9 * PERIOD)  # [ns]
PATIENCE = 2.5 * PERIOD
START = 1_700_000_000 * 10**9  # [ns]


def motion(time):
    """(4, 4) A tip that circles twice a second with 30 mm: 5 m/s^2."""
    angle = 4 * np.pi * time
    pose = np.eye(4)
    pose[:3, 3] = 0.03 * np.cos(angle), 0.03 * np.sin(angle), 0.1
    pose[:3, :3] = Rotation.from_rotvec([0.0, 0.0, 0.3 * np.sin(angle)]).as_matrix()
    return pose


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
    letters += letters_of(
        PRESSURES, 200, pressures_at, rng, duration, (0.0002, 0.002), 0.0003, lost_pressures
    )
    return RecordedInbox(iter(sorted(letters, key=lambda letter: letter.received)))


def ticks_of(inbox, patience=PATIENCE):
    """(pressures, pose or None, when the tick was complete) of all ticks."""
    pairing = SampleResampling(inbox.get, inbox.now, lambda *_: None, PERIOD)
    found = []
    while (pressures := pairing.next_pressures()) is not None:
        pose = pairing.partner_of(pressures.stamp, patience)
        found.append((pressures, pose, inbox.now()))
    return found


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
        assert np.abs(pose.value[:3, 3] - motion(time)[:3, 3]).max() < 5.0 * 0.0094**2 / 8 * 1.1
        assert np.abs(pose.value[:3, :3] - motion(time)[:3, :3]).max() < 1e-3
        assert pressures.value == pytest.approx(pressures_at(time), abs=20.0)
        # latency, a frame and its jitter
        assert completed - time < 0.020 + 1 / 120 + 0.0015


@pytest.mark.parametrize(("lost", "expected"), [(0.012, 0), (0.5, 34)])
def test_holes_of_the_camera_are_bridged_or_predicted_and_poses_come_back(lost, expected):
    inbox = bench(np.random.default_rng(3), lost_poses=[(1.0, 1.0 + lost)])
    found = ticks_of(inbox)[2:-5]
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


def test_a_camera_slower_than_patience_is_waited_for_in_vain_and_told():
    found = ticks_of(bench(np.random.default_rng(5), latency=(0.060, 0.061)))
    assert all(pose is None for _, pose, _ in found)


@given(
    st.lists(st.integers(1, 4 * TICK), min_size=2, max_size=50),
    st.integers(0, 10 * TICK),
)
@settings(deadline=None)
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


def test_nodes_of_one_rate_have_the_same_ticks():
    one, other = TickGrid(PERIOD), TickGrid(PERIOD)
    assert list(one.after(START, START + 10**9))[1:] == list(
        other.after(START + TICK, START + 10**9)
    )


def test_a_blended_pose_begins_and_ends_at_the_two_and_is_rigid():
    older, newer = motion(0.1), motion(0.11)
    assert blended_poses(older, newer, 0.0) == pytest.approx(older)
    assert blended_poses(older, newer, 1.0) == pytest.approx(newer)
    middle = blended_poses(older, newer, 0.5)
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
        return blended_poses(tips[where], tips[where + 1], time * rate - where)

    def seen(time):
        pose = true_pose(time)
        pose[:3, 3] += rng.normal(0.0, 1e-4, 3)
        return pose

    letters = letters_of(POSES, 120, seen, rng, 2.3, (0.010, 0.020))
    letters += letters_of(PRESSURES, 200, pressures_at, rng, 2.3, (0.0, 0.001))
    inbox = RecordedInbox(iter(sorted(letters, key=lambda letter: letter.received)))
    loop = EstimationLoop(robot, EstimatorNodeSettings(sampling="separate", patience=2.5))
    pairing = loop.pairing(inbox.get, inbox.now, lambda *_: None)
    errors = []
    while (pressures := pairing.next_pressures()) is not None:
        pose = pairing.partner_of(pressures.stamp, loop.patience)
        estimate = loop.tick(pressures.value, None if pose is None else pose.value, pressures.stamp)
        time = seconds(pressures.stamp)
        errors.append(np.linalg.norm(estimate.tip_position - true_pose(time)[:3, 3]))
    assert len(errors) > 155
    assert loop.predicted_only <= 4  # before the first pose and after the last
    assert np.mean(errors[70:-3]) < 1.5e-3
    assert estimate.bending_compliance == pytest.approx(softer, rel=0.05)
