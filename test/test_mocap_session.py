"""The mocap column of the fault matrix and everything a server can do, on virtual time."""

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from kit.bench import CALIBRATION, CLIENT, RESTING, STEP, Stage

from softcr_hardware.emulation.faults import FAULT_KINDS
from softcr_hardware.optitrack.protocol import CONNECT, Body, request
from softcr_hardware.optitrack.session import DATA_RECEIVED, MID_EXPOSURE, RECEIVED_LATENCY, Stream
from softcr_hardware.optitrack.tracking import BodyTracker, TrackingLimits
from softcr_hardware.safety.safety import Action

# fault -> poses in the last of three seconds, what the driver says, what safety does
END_STATES = {
    "ok": ((120, 120), "", Action.NONE),
    "off": ((0, 0), "server silent", Action.VENT_NOW),
    "stuck": ((0, 0), "frozen", Action.VENT_NOW),
    "garbage": ((0, 0), "quaternion not of length 1", Action.VENT_NOW),
    "wrong": ((0, 0), "not where a resting tip is", Action.VENT_NOW),
    "slow": ((39, 41), "", Action.NONE),
    "delayed": ((119, 121), "", Action.PREDICT_ONLY),
    "intermittent": ((107, 109), "", Action.NONE),
    "reconnect": ((119, 121), "", Action.VENT_NOW),
}


@pytest.mark.parametrize("kind", FAULT_KINDS)
def test_each_fault_of_the_cameras_has_a_named_end_state(kind):
    (least, most), says, action = END_STATES[kind]
    stage = Stage().started()
    stage.server.inject(kind)
    stage.run(2.0)
    assert least <= len(stage.run(1.0)) <= most
    if kind == "garbage":  # one reason of several, whichever came last
        assert {"not finite", says, "outside the workspace"} & set(stage.tracker.refused)
        assert any("header" in reason for reason in stage.session.refused)
        assert stage.trouble
    else:
        assert stage.trouble == says
    decision = stage.safety.decision
    assert decision.action == action
    assert decision.enabled == (action < Action.VENT_NOW)
    if action != Action.NONE:
        assert decision.reason.startswith("poses")
    else:
        assert stage.safety.transition_count == 1  # enabled, and nothing since


FAULTS = st.tuples(st.sampled_from(FAULT_KINDS), st.integers(1, 400), st.booleans())


@given(st.lists(FAULTS, max_size=6))
@settings(max_examples=6, deadline=None)
def test_after_any_sequence_of_faults_poses_are_sound_and_come_back(faults):
    stage = Stage().started()
    for kind, milliseconds, tracked in faults:
        stage.server.inject(kind)
        stage.server.tracked = tracked
        stage.run(1e-3 * milliseconds)
    stage.server.inject("ok")
    stage.server.tracked = True
    stage.run(8.0)
    assert len(stage.run(0.5)) in (59, 60, 61)
    times = [pose.time for pose in stage.poses]
    assert times == sorted(set(times))
    # a tip unseen for a second may be where "wrong" puts it, 50 mm off, but not where garbage does
    assert np.abs([pose.pose[:3, 3] - [0, 0, 0.158] for pose in stage.poses]).max() < 0.051


@pytest.mark.parametrize("skew", [0.0, 4e-5])
def test_poses_carry_the_moment_of_exposure_on_our_clock(skew):
    stage = Stage(skew=skew)
    stage.motion = lambda time: np.array([0.02 * np.sin(3.0 * time), 0.0, 0.158])
    jitter = np.random.default_rng(1)
    stage.delay = lambda: 2e-4 + jitter.exponential(3e-4)
    poses = stage.run(12.0)[600:]
    truth = np.array([stage.motion(pose.time) for pose in poses])
    seen = np.array([pose.pose[:3, 3] for pose in poses])
    # 60 mm/s: 0.1 mm is 1.6 ms, of which 0.2 ms are the delay nobody can see
    assert np.abs(seen - truth).max() < 1e-4
    assert 0.0045 - 1e-6 <= poses[-1].latency <= 0.0045 + STEP


@pytest.mark.parametrize("latency", [None, 0.0027])
def test_without_the_exposures_stamp_a_pose_is_as_old_as_the_data_less_a_stated_latency(latency):
    stage = Stage(received_latency=latency).started()
    stage.server.set("stamps", "received")
    pose = stage.run(1.0)[-1]
    assert stage.session.stamps == DATA_RECEIVED
    # the emulated server has the data 2.7 ms after the middle of the exposure
    early = (RECEIVED_LATENCY if latency is None else latency) - 0.0027
    assert pose.latency == pytest.approx(0.0045 + early, abs=STEP + 1e-6)
    assert stage.safety.decision.action == Action.NONE
    stage.server.set("stamps", "mid-exposure")
    assert len(stage.run(1.0)) > 115
    assert stage.session.stamps == MID_EXPOSURE
    stage.server.set("stamps", "none")  # without any there is no pose
    stage.run(2.0)
    assert stage.trouble == "no stamp: neither mid-exposure nor data received"
    assert stage.session.refused[stage.trouble] > 230
    assert stage.safety.decision.action == Action.VENT_NOW
    stage.server.set("stamps", "mid-exposure")
    assert len(stage.run(1.0)) > 115
    assert stage.trouble == ""


def test_a_recording_that_is_played_back_is_no_pose_and_no_calibration():
    stage = Stage().started()
    stage.server.set("mode", "edit")
    assert not stage.run(2.0)[1:]
    assert stage.trouble == "Motive is in Edit mode: it plays a recording back"
    assert stage.session.mode == "edit"
    assert len(stage.session.recent("tip")) == 0
    assert stage.safety.decision.action == Action.VENT_NOW
    stage.server.set("mode", "recording")  # of what happens now
    assert len(stage.run(1.0)) > 115
    assert (stage.trouble, stage.session.mode) == ("", "recording")


ONE, OTHER = "239.255.42.99", "239.1.1.1"


@pytest.mark.parametrize(
    ("ours", "theirs", "says"),
    [
        (Stream(), "", ""),
        (Stream(), OTHER, "sends multicast to 239.1.1.1, the node waits for unicast"),
        (Stream(True), "", f"sends unicast, the node waits for multicast to {ONE} port 1511"),
        (Stream(True), ONE, ""),
        (Stream(True), OTHER, "to 239.1.1.1 port 1511, the node waits for multicast to 239.2"),
        (Stream(True, port=1600), ONE, f"to {ONE} port 1511, the node waits"),
    ],
)
def test_how_the_server_streams_is_compared_with_how_we_listen(ours, theirs, says):
    stage = Stage(group=theirs, stream=ours)
    stage.server.clients = lambda now: []  # another stream than ours
    stage.run(1.5)
    assert says in stage.session.difference
    assert bool(says) == bool(stage.session.difference)
    told = f": {stage.session.difference}" if says else ""
    assert stage.trouble == f"no frames, but the server answers{told}"


def test_a_frame_that_comes_twice_or_late_is_left_out():
    stage = Stage().started()
    receive, kept = stage.session.receive, []

    def twice(time, datagram):
        pose = receive(time, datagram)
        kept.append(datagram)
        for again in (datagram, kept[max(len(kept) - 9, 0)]):
            assert receive(time, again) is None
        return pose

    stage.session.receive = twice
    assert len(stage.run(0.5)) >= 59
    assert stage.tracker.refused["stamp not newer"] >= 100


def test_a_silent_server_is_asked_less_and_less_often_and_given_up():
    stage = Stage().started()
    assert stage.server.clients(stage.now) == [CLIENT]
    assert stage.server.clients(stage.now + 11.0) == []  # who says nothing gets no more frames
    stage.server.inject("off")
    stage.sent.clear()
    stage.run(60.0)
    assert stage.sent.count(request(CONNECT)) == 8
    assert stage.trouble == "server silent, gave up after 8 attempts"


def test_a_body_is_found_by_name_or_by_id():
    troubles = {"tip": "", "1": "", "7": "body not in the frame"}
    troubles["hand"] = "no body 'hand' at the server; there are: tip"
    for name, trouble in troubles.items():
        stage = Stage(name)
        assert bool(stage.run(1.0)) == (not trouble)
        assert stage.trouble == trouble


def test_foreign_names_are_told_in_one_short_line():
    stage = Stage("hand")
    stage.server.name = "tip\n[ERROR] " + 100 * "x"
    stage.run(1.0)
    assert stage.trouble.startswith("no body 'hand' at the server; there are: tip?[ERROR] xxx")
    assert "\n" not in stage.trouble
    assert len(stage.trouble) < 120
    stage.session.bodies = {f"body {number:02}": number for number in range(30)}
    assert stage.trouble.endswith("body 08, body 09, and 20 more")


def test_a_renamed_body_is_lost_and_found_under_its_new_id():
    stage = Stage().started()
    stage.server.name = "finger"
    assert not stage.run(2.0)[130:]
    assert stage.trouble == "no body 'tip' at the server; there are: finger"
    stage.server.name, stage.server.body_id = "tip", 9
    assert stage.run(2.0)
    assert (stage.session.body_id, stage.session.renamed) == (9, 1)
    stage = Stage().started()
    stage.server.body_id = 9  # which Motive says: definitions are asked for at once
    assert len(stage.run(0.1)) > 8
    assert (stage.session.body_id, stage.session.models_changed) == (9, 1)


@pytest.mark.parametrize(
    ("attribute", "says"), [("tracked", "body not tracked"), ("present", "body not in the frame")]
)
def test_a_body_out_of_sight_is_named_and_believed_when_it_comes_back_near(attribute, says):
    stage = Stage().started()
    setattr(stage.server, attribute, False)
    assert not stage.run(0.5)[1:]
    assert stage.trouble == says
    setattr(stage.server, attribute, True)
    stage.motion = lambda time: np.array([0.1, 0.0, 0.12])  # it moved meanwhile
    assert len(stage.run(0.5)) > 50


def test_swapped_bodies_are_a_jump_and_stay_refused_until_the_tip_rests():
    stage = Stage().started()
    moment = stage.now + 0.1
    # one frame elsewhere is left out, and the next believed
    stage.motion = lambda time: np.array([0.1 * (moment < time < moment + 0.008), 0.0, 0.158])
    poses = stage.run(0.5)
    assert len(poses) >= 58
    assert np.abs([pose.pose[0, 3] for pose in poses]).max() < 1e-3
    assert stage.tracker.refused["jumped"] == 1
    stage.motion = lambda time: np.array([0.08, 0.0, 0.14])  # another body, 8 cm away
    assert not stage.run(1.4)[1:]
    assert stage.trouble == "jumped"
    assert not stage.run(3.0)
    assert stage.trouble == "not where a resting tip is"
    stage.motion = lambda time: np.array([0.005, 0.0, 0.157])
    assert stage.run(0.5)


@given(speed=st.floats(0.0, 1.8), heading=st.floats(-3.1, 3.1))
@settings(max_examples=10, deadline=None)
def test_a_motion_below_the_stated_speed_is_no_jump(speed, heading):
    stage = Stage(limits=TrackingLimits(workspace=3.0)).started()
    began, way = stage.now, speed * np.array([np.cos(heading), np.sin(heading), 0.0])
    stage.motion = lambda time: np.array([0.0, 0.0, 0.158]) + way * max(time - began, 0.0)
    assert len(stage.run(0.5)) >= 59


def judge(tracker, time, position=(0, 0, 0.158), quaternion=None, tracked=True, age=0.005):
    """See a body whose tip is at a place in the base frame."""
    pose = np.eye(4)
    pose[:3, 3] = position
    world = CALIBRATION.body(pose)[:3, 3]
    straight = CALIBRATION.base_in_world.quaternion
    body = Body(tuple(world), tuple(quaternion or straight), tracked)
    believed = tracker.see(time, age, body, CALIBRATION)
    assert (believed is None) == bool(tracker.trouble)
    return tracker.trouble


@given(
    frequency=st.floats(0.5, 6.0), amplitude=st.floats(0.01, 0.1), gap=st.integers(0, 120),
    began=st.floats(0.6, 1.0),
)  # fmt: skip
def test_a_tip_that_swings_is_the_same_body_after_any_gap(frequency, amplitude, gap, began):
    """Up to 3.8 m/s, which is faster than the limit, but for gaps: after one nobody knows a speed,
    and the tip may be 2 A away, where the limit leads within A s."""
    assume(not gap or 2.0 * np.pi * frequency * amplitude <= TrackingLimits().fastest)
    tracker, believed = BodyTracker(TrackingLimits(), RESTING), 0.0
    for frame in range(360):
        time = frame / 120.0
        if began < time < began + gap / 120.0:
            continue
        swing = amplitude * min(2.0 * time, 1.0) * np.sin(2.0 * np.pi * frequency * time)
        trouble = judge(tracker, 100.0 + time, (swing, 0, 0.158 + 1e-6 * frame))
        assert not trouble or time - believed <= max(amplitude, 1 / 120.0), (time, trouble)
        believed = believed if trouble else time
    assert tracker.refused["jumped"] <= 120 * amplitude


def test_another_body_is_not_the_tip_wherever_it_goes_and_the_tip_is_when_it_comes_back():
    tracker = BodyTracker(TrackingLimits(), RESTING)
    for frame in range(10):
        assert judge(tracker, 1.0 + frame / 120.0, (0, 0, 0.158 + 1e-6 * frame)) == ""
    for frame in range(10, 60):  # it comes as near as 10 mm, in steps of 1.4 mm
        place = 0.08 - 0.07 * (frame - 10) / 50.0
        assert judge(tracker, 1.0 + frame / 120.0, (place, 0, 0.158)) == "jumped"
    assert judge(tracker, 1.6, (0.002, 0, 0.158)) == ""  # after a gap


def test_every_reason_of_refusal_is_named_and_counted():
    tracker, nan = BodyTracker(TrackingLimits(), RESTING), float("nan")
    seen = [
        (1.0, {"position": (0.05, 0, 0.158)}, "not where a resting tip is"),
        (1.01, {}, ""),
        (1.01, {}, "stamp not newer"),
        (1.02, {"tracked": False}, "body not tracked"),
        (1.03, {"position": (nan, 0, 0)}, "not finite"),
        (1.04, {"quaternion": (0, 0, 0, 0)}, "quaternion not of length 1"),
        (1.05, {"quaternion": (0, 0, nan, 1)}, "not finite"),
        (1.06, {"age": 0.5}, "too old"),
        (1.07, {"age": -0.5}, "stamp in the future"),
        (1.08, {"age": nan}, "too old"),
        (1.09, {"position": (0, 0, 0.9)}, "outside the workspace"),
        (1.10, {"quaternion": (0, 1, 0, 0)}, "jumped"),
        (1.11, {}, ""),
    ]
    for time, body, reason in seen:
        assert judge(tracker, time, **body) == reason, (time, body)
    assert sum(tracker.refused.values()) == sum(bool(reason) for _, _, reason in seen)


NUMBERS = st.floats(allow_nan=True, allow_infinity=True, width=32)
PLACES, QUATERNIONS = (st.tuples(*[NUMBERS] * count) for count in (3, 4))
FRAMES = st.tuples(st.floats(allow_nan=True), NUMBERS, PLACES, QUATERNIONS)


@given(st.lists(FRAMES, max_size=20))
def test_whatever_a_body_says_only_poses_come_through(frames):
    tracker = BodyTracker(TrackingLimits(rest_tolerance=0.0))
    for time, age, position, quaternion in frames:
        pose = tracker.see(time, age, Body(position, quaternion, True), CALIBRATION)
        if pose is not None:
            assert np.isfinite(pose).all()
            assert np.linalg.norm(pose[:3, 3]) <= 0.5
            assert np.allclose(pose[:3, :3] @ pose[:3, :3].T, np.eye(3), atol=1e-6)
