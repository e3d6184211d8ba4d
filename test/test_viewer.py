"""The live view: what it knows, what its sliders may do, what a browser shows of it."""

import math
import re
import signal
import socket
import subprocess
import time
import urllib.parse
import urllib.request
from contextlib import closing, contextmanager
from types import SimpleNamespace

import numpy as np
import pytest
import rclpy
import viser
from browser import Browser, find_browser
from hypothesis import example, given, settings
from hypothesis import strategies as st
from kit.processes import SOFTCR, Peer, free_port, running, until
from PIL import Image
from scipy.spatial.transform import Rotation
from std_srvs.srv import Trigger

from softcr_models import load_robot
from softcr_models.errors import UserError
from softcr_papers.mehl2024.dynamics import ConstantCurvatureModel
from softcr_runtime.blocks.values import Pose, ReferenceRows, StateEstimate, TipEstimate
from softcr_runtime.wire import configuration
from softcr_runtime.wire.diagnostics import DiagnosticReport, diagnostics_to_message
from softcr_runtime.wire.messages import (
    pose_to_message,
    pose_with_covariance_to_message,
    pressures_from_message,
    pressures_to_message,
)
from softcr_runtime.wire.rod_clouds import (
    ReferenceCloud,
    RodCloud,
    reference_cloud_message,
    rod_cloud_message,
)
from softcr_runtime.wire.topics import TOPICS, qos
from softcr_tools import cli
from softcr_tools.nodes.viewer import Viewer
from softcr_tools.viewer.command import check_free
from softcr_tools.viewer.door import Door
from softcr_tools.viewer.hand import FOREIGN_AGE, HAND_RATE, HandControl, Surroundings
from softcr_tools.viewer.page import Page, Slid, Switched
from softcr_tools.viewer.picture import WINDOW, Picture, tip_at
from softcr_tools.viewer.plots import known_curves
from softcr_tools.viewer.scene import ALONG, AROUND, tube
from softcr_tools.viewer.words import latched, safety_html, state_html, values_html

ROBOT = load_robot("licher2025")
CHAMBERS = ROBOT.chamber_names
PERIOD = 1 / 70  # [s]
START = 1_700_000_000_000_000_000  # [ns]
TIMEOUT = 300.0  # of what will come, on a busy machine [s]


def arc(points: int, angle: float, length: float = 0.12) -> np.ndarray:
    """(points, 4, 4) poses along an arc that bends by `angle` [rad] in the x-z plane."""
    poses = np.tile(np.eye(4), (points, 1, 1))
    for pose, part in zip(poses, np.linspace(0.0, 1.0, points), strict=True):
        turned, radius = part * angle, length / angle
        pose[:3, :3] = Rotation.from_euler("y", turned).as_matrix()
        pose[:3, 3] = radius * (1 - math.cos(turned)), 0.0, radius * math.sin(turned)
    return poses


def rod_at(stamp: int, tip: np.ndarray, compliance: float = 47.0) -> RodCloud:
    positions = np.linspace([0.0, 0.0, 0.0], tip, 7)
    quaternions = np.tile([0.0, 0.0, 0.0, 1.0], (7, 1))
    parameters = {"bending_compliance": compliance}
    return RodCloud(stamp, np.zeros(72), positions, quaternions, parameters, parameters)


def reference_at(stamp: int, tips: np.ndarray) -> ReferenceCloud:
    rows = len(tips)
    unknown = np.full((rows, 7, 3), np.nan)
    return ReferenceCloud(stamp, PERIOD, np.full((rows, 72), np.nan), tips, unknown)


def pose_at(tip: np.ndarray) -> Pose:
    return Pose(tip, np.array([0.0, 0.0, 0.0, 1.0]))


def estimate_at(tip: np.ndarray) -> TipEstimate:
    return TipEstimate(lambda: pose_at(tip), np.zeros((3, 3)))


def safety(level=0, **values) -> DiagnosticReport:
    return DiagnosticReport("valves: safety", level, "none: enabled", ROBOT.name, values)


LATCHED = {"enabled": False, "latch": "M", "cause": "bus <silent>", "blockers": ["latched M"]}


# --- what it knows ------------------------------------------------------------------------------


@given(st.floats(0.0, 6.0), st.integers(0, 2**32 - 1))
def test_wanted_tip_is_linear_between_rows(step, seed):
    tips = np.random.default_rng(seed).normal(size=(7, 3))
    stamp = START + round(1e9 * PERIOD * step)
    row = min(int(step), 5)
    expected = tips[row] + (step - row) * (tips[row + 1] - tips[row])
    np.testing.assert_allclose(tip_at(reference_at(START, tips), stamp), expected, atol=1e-6)


@pytest.mark.parametrize(
    ("step", "known"), [(-0.6, False), (-0.4, True), (2.4, True), (2.6, False)]
)
def test_wanted_tip_is_unknown_outside_of_the_horizon(step, known):
    stamp = START + round(1e9 * PERIOD * step)
    assert np.isfinite(tip_at(reference_at(START, np.ones((3, 3))), stamp)).all() == known


def test_errors_are_distances_of_tips_from_the_reference_at_their_stamps():
    picture = Picture(ROBOT)
    speed = np.array([0.0, 0.07, 0.0])  # [m/s]
    aside, above = np.array([0.003, 0.0, 0.0]), np.array([0.0, 0.0, 0.002])  # [m]
    for cycle in range(5):
        stamp = START + round(1e9 * PERIOD * 5 * cycle)
        here = speed * PERIOD * 5 * cycle
        ahead = here + np.outer(np.arange(4) * PERIOD, speed)
        picture.hear("reference/rod", stamp, reference_at(stamp, ahead), 0.0)
        late = stamp - round(1e9 * PERIOD) // 2  # half a period old: half a step of the reference
        picture.hear("mocap/tip/pose", late, pose_at(here + aside), 0.0)
        picture.hear("estimate/tip/pose", stamp, estimate_at(here + above), 0.0)
        picture.hear("estimate/rod", stamp, rod_at(stamp, here, 40.0 + cycle), 0.0)
        picture.sample()
    table = picture.table()
    np.testing.assert_allclose(table["time"], 5 * PERIOD * np.arange(-4, 1), atol=1e-8)
    np.testing.assert_allclose(table["estimate_error"], 0.002, atol=1e-12)
    # before its first row a reference is its first row: what is wanted is half a step ahead
    np.testing.assert_allclose(table["measured_error"], 0.003, atol=1e-9)
    np.testing.assert_allclose(table["bending_compliance"], 40.0 + np.arange(5))
    assert np.isnan(table["measured_chamber_1"]).all()


def test_table_keeps_the_window_and_a_restarted_replay_begins_anew():
    picture = Picture(ROBOT)
    for half in range(100):
        picture.hear("pressure/state", START + half * 500_000_000, np.full(3, 1e3 * half), 0.0)
        picture.sample()
        picture.sample()  # not yet time for another row
    table = picture.table()
    np.testing.assert_allclose(table["time"], np.arange(-WINDOW, 0.1, 0.5))
    np.testing.assert_allclose(table["measured_chamber_2"], 1e3 * np.arange(39, 100))
    picture.hear("pressure/state", START, np.zeros(3), 0.0)
    picture.sample()
    assert picture.table()["time"].tolist() == [0.0]


def test_an_arc_takes_the_rod_s_place_until_a_rod_is_estimated():
    picture = Picture(ROBOT)
    model = ConstantCurvatureModel.of_robot(ROBOT)
    q = np.array([8e-3, -5e-3, 2e-3])
    numbers = dict(zip(("delta_x", "delta_y", "elongation"), q, strict=True))
    numbers |= {"bending_stiffness": model.bending_stiffness, "bending_stiffness_std": 5.0}
    picture.hear("estimate/constant_curvature", START, numbers, 0.0)
    tip, _ = model.tip_and_jacobian(q)
    above = ROBOT.sensor_to_base_cap + ROBOT.base_cap_length
    np.testing.assert_allclose(picture.estimate.positions[-1] - tip, [0, 0, above], atol=1e-12)
    value, deviation = picture.parameters["bending_compliance"]
    assert value == pytest.approx(ROBOT.bending_compliance)
    assert deviation == pytest.approx(5.0 / model.bending_stiffness * value)
    assert "estimated arc" in state_html(picture, 0.0, {})
    picture.hear("estimate/rod", START, rod_at(START, np.zeros(3), 40.0), 0.0)
    assert picture.parameters["bending_compliance"] == (40.0, 40.0)
    assert picture.shape_topic == "estimate/rod"


def test_a_robot_of_a_third_kind_is_shown_by_its_node_poses_alone():
    picture = Picture(ROBOT)
    nodes = np.linspace([0.0, 0.0, 0.0], [0.02, 0.0, 0.3], 4)
    picture.hear("estimate/shape", START, tuple(map(pose_at, nodes)), 0.0)
    rows = ReferenceRows(START, PERIOD, None, np.array([[0.02, 0.0, 0.301]] * 3))
    picture.hear("reference/output", START, rows, 0.0)
    state = StateEstimate(np.zeros(6), {"stiffness": 30.0}, {"stiffness": 0.5})
    picture.hear("estimate/state", START, state, 0.0)
    picture.sample()
    np.testing.assert_array_equal(picture.estimate.positions, nodes)
    table = picture.table()
    assert table["estimate_error"][-1] == pytest.approx(1e-3)
    assert (picture.parameters_shown, table["stiffness"][-1]) == (("stiffness",), 30.0)
    said = state_html(picture, 0.0, {})
    assert "estimated shape" in said
    assert "30.00 &plusmn; 1.00" in said
    assert "cameras</td><td>never received" in said


def test_what_is_silent_is_not_drawn_as_present():
    picture = Picture(ROBOT)
    picture.hear("estimate/rod", START, rod_at(START, np.zeros(3)), 10.0)
    picture.hear("pressure/state", START + 400_000_000, np.ones(3), 10.4)
    assert picture.estimate is not None
    picture.hear("pressure/state", START + 600_000_000, np.full(3, 2e3), 10.6)
    assert picture.estimate is None
    assert "2.0 kPa" in values_html(picture, 10.7)
    assert "2.0 kPa" not in values_html(picture, 11.2)
    assert "silent for 2 s" in state_html(picture, 12.1, {})
    assert "never received" in state_html(picture, 12.1, {})


def test_foreign_words_are_escaped():
    picture = Picture(ROBOT)
    evil = "<script>alert(1)</script>"
    report = DiagnosticReport(f"{evil}: loop", 2, evil, evil, {"blockers": [evil]})
    picture.hear("/diagnostics", 0, [report], 0.0)
    picture.hear("safety/state", 0, report, 0.0)
    said = state_html(picture, 0.0, {evil: 1}) + safety_html(picture)
    assert "<script" not in said
    assert said.count("&lt;script&gt;") == 5


# --- the sliders --------------------------------------------------------------------------------

SURROUNDINGS = st.builds(
    Surroundings,
    others=st.sampled_from([(), (), (), ("nempc_controller",)]),
    foreign_age=st.sampled_from([math.inf, math.inf, 2.0, 0.3, math.nan]),
    valves=st.booleans(),
    enabled=st.sampled_from([None, False, False, True]),
    simulated_clock=st.sampled_from([False, False, False, True]),
    page_open=st.sampled_from([True, True, True, False]),
)
ACTIONS = st.one_of(
    st.tuples(st.just("switch"), st.booleans()),
    st.tuples(st.just("want"), st.integers(0, 2), st.floats(allow_nan=True)),
    st.tuples(st.just("update"), SURROUNDINGS, st.floats(0.0, 0.2)),
    st.tuples(st.just("update"), st.just(Surroundings(valves=True, enabled=False)), st.just(0.03)),
)


FREE = ("update", Surroundings(valves=True, enabled=False), 0.03)
LET_GO_AND_BACK = [
    FREE, ("switch", True), ("want", 0, 2e3), FREE, FREE, ("switch", False), ("switch", True), FREE,
]  # fmt: skip


@settings(max_examples=300)
@given(st.lists(ACTIONS, max_size=60))
@example(LET_GO_AND_BACK)
def test_hand_never_commands_against_others_or_armed_valves(actions):
    limits = ROBOT.pressure_limits
    hand = HandControl(ROBOT.shown_inputs)
    said, switched_on = np.zeros(3), False
    for what, *values in actions:
        if what == "switch":
            blocked = hand.blocker
            hand.switch(values[0])
            if not values[0]:
                said = np.zeros(3)  # the last word, even if a person switches on before it is said
            if not values[0] or not blocked:
                switched_on = values[0]
        elif what == "want":
            hand.want(*values)
        else:
            surroundings, passed = values
            pressures = hand.update(surroundings, passed)
            allowed = (
                not surroundings.others
                and surroundings.foreign_age >= FOREIGN_AGE
                and not surroundings.enabled
                and not (surroundings.valves and surroundings.enabled is None)
                and not surroundings.simulated_clock
                and surroundings.page_open
            )
            switched_on &= allowed  # who let go stays silent until a person says otherwise
            if surroundings.others or not surroundings.foreign_age >= FOREIGN_AGE:
                assert pressures is None
            if pressures is None:
                assert not switched_on
                said = np.zeros(3)
            elif not switched_on:  # a last word
                assert not pressures.any()
                said = np.zeros(3)
            else:
                assert (limits.minimum <= pressures).all()
                assert (pressures <= limits.maximum).all()
                assert (np.abs(pressures - said) <= HAND_RATE * passed + 1e-6).all()
                said = pressures
        assert hand.on <= switched_on


def test_hand_reaches_what_is_wanted_and_ends_with_zero():
    hand, free = HandControl(ROBOT.shown_inputs), Surroundings()
    assert hand.update(free, 0.03) is None
    hand.want(0, 3e4)  # not switched on: nobody listens
    hand.switch(True)
    hand.want(1, 2e4)
    hand.want(2, 1e9)
    for _ in range(100):
        pressures = hand.update(free, 0.03)
    np.testing.assert_allclose(pressures, [0.0, 2e4, ROBOT.pressure_limits.maximum])
    np.testing.assert_allclose(hand.update(Surroundings(valves=True, enabled=True), 0.03), 0.0)
    assert hand.update(free, 0.03) is None
    assert not hand.on


# --- the surface --------------------------------------------------------------------------------


@given(st.floats(0.05, 2.0), st.integers(5, 12), st.floats(1e-3, 0.02))
def test_tube_lies_around_the_arc_and_is_closed(angle, points, radius):
    poses = arc(points, angle)
    poses = np.concatenate([poses[:1], poses])  # both sides of the base
    quaternions = Rotation.from_matrix(poses[:, :3, :3]).as_quat()
    vertices, faces = tube(poses[:, :3, 3], quaternions, radius)
    rings = vertices[:-2].reshape(ALONG, AROUND, 3)
    bend = 0.12 / angle  # radius of the arc, whose middle is (bend, 0, 0)
    middles = rings.mean(axis=1)
    np.testing.assert_allclose(np.hypot(middles[:, 0] - bend, middles[:, 2]), bend, rtol=1e-3)
    np.testing.assert_allclose(
        np.linalg.norm(rings - middles[:, np.newaxis], axis=-1), radius, rtol=1e-9
    )
    np.testing.assert_allclose(middles[[0, -1]], poses[[0, -1], :3, 3], atol=1e-12)
    edges = np.concatenate([faces[:, [0, 1]], faces[:, [1, 2]], faces[:, [2, 0]]])
    there = {tuple(edge) for edge in edges}
    assert len(there) == len(edges)  # each edge once in each direction: closed, one orientation
    assert all((b, a) in there for a, b in there)


def test_volume_of_a_straight_tube_is_that_of_a_prism():
    positions = np.linspace([0.0, 0.0, 0.0], [0.0, 0.0, 0.1], 6)
    vertices, faces = tube(positions, np.tile([0.0, 0.0, 0.0, 1.0], (6, 1)), 0.02)
    volume = np.linalg.det(vertices[faces]).sum() / 6  # divergence theorem; positive: outwards
    prism = 0.1 * 0.5 * AROUND * 0.02**2 * math.sin(2 * math.pi / AROUND)
    assert volume == pytest.approx(prism, rel=1e-9)


# --- the command --------------------------------------------------------------------------------


def test_a_taken_port_is_named(capsys):
    with socket.socket() as holder:
        holder.bind(("127.0.0.1", 0))
        holder.listen()
        port = holder.getsockname()[1]
        with pytest.raises(UserError, match=f"--port {port}: Address already in use"):
            check_free("127.0.0.1", port)
        assert cli.main(["view", "--port", str(port)]) == 2
    assert len(capsys.readouterr().err.splitlines()) == 1


def test_the_command_serves_until_it_is_told_to_stop():
    port = free_port()
    process = subprocess.Popen(
        [SOFTCR, "view", "--no-browser", "--port", str(port)], stdout=subprocess.PIPE, text=True
    )
    said = []

    def told():
        said.append(process.stdout.readline())
        return re.search(r"live view: (\S+) \(Ctrl-C ends\)", said[-1])

    try:
        url = until(told, "the URL")[1]
        assert url.startswith(f"http://127.0.0.1:{port}/?token=")
        with urllib.request.urlopen(url) as page:
            assert page.status == 200
        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=TIMEOUT)
    finally:
        process.kill()
    assert process.returncode == 0


# --- who is let in ------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def page():
    """A page with hands on it, and what its buttons asked for."""
    asked = []
    made = Page(
        ROBOT, "127.0.0.1", free_port(), lambda: asked.append("vent"), True,
        lambda: asked.append("reset"),
    )  # fmt: skip
    yield made, asked
    made.close()


def entered(page, changed, path="/", websocket=False):
    """Status of a request to a page; `changed`: headers other than a browser's own page sends,
    where None leaves one out and TOKEN stands for the token."""
    url = urllib.parse.urlsplit(page.url)
    token = urllib.parse.parse_qs(url.query)["token"][0]
    headers = {"Host": url.netloc, "Cookie": f"other=1; softcr-view-{url.port}=TOKEN"}
    if websocket:
        headers |= {
            "Upgrade": "websocket", "Connection": "Upgrade", "Sec-WebSocket-Version": "13",
            "Sec-WebSocket-Key": "dGhlIHNhbXBsZSBub25jZQ==", "Origin": f"http://{url.netloc}",
            "Sec-WebSocket-Protocol": f"viser-v{viser.__version__}",
        }  # fmt: skip
    headers = {name: value for name, value in (headers | changed).items() if value is not None}
    lines = [f"GET {path} HTTP/1.1", *(f"{name}: {value}" for name, value in headers.items())]
    sent = "\r\n".join([*lines, "", ""]).replace("TOKEN", token).encode()
    with socket.create_connection((url.hostname, url.port)) as connection:
        connection.sendall(sent)
        return int(connection.makefile("rb").readline().split()[1])


@pytest.mark.parametrize("websocket", [False, True])
@pytest.mark.parametrize(
    ("changed", "path", "let_in"),
    [
        ({}, "/", True),
        ({"Cookie": None}, "/", False),
        ({"Cookie": None}, "/?token=TOKEN", True),
        ({"Cookie": None}, "/?token=wrong", False),
        ({"Cookie": None}, "/?token=", False),
        ({"Cookie": "softcr-view-1=TOKEN"}, "/", False),  # of a view on another port
        ({"Origin": "http://evil.example"}, "/?token=TOKEN", False),
        ({"Origin": "http://localhost:3000"}, "/", False),
        ({"Origin": "null"}, "/", False),
        ({"Host": "evil.example:8090", "Origin": "http://evil.example:8090"}, "/", False),
        ({"Host": "evil.example"}, "/?token=TOKEN", False),
        ({"Host": "localhost:9000", "Origin": "http://localhost:9000"}, "/", True),  # a tunnel
        ({"Host": "[::1", "Origin": None}, "/", False),
        ({"Cookie": "\xff=\xff; TOKEN"}, "/", False),
    ],
)
def test_only_the_own_page_with_the_token_is_let_in(page, changed, path, let_in, websocket):
    status = entered(page[0], changed, path, websocket)
    assert status == ((101 if websocket else 200) if let_in else 403)


def test_what_is_locked_in_the_browser_is_locked_in_the_server(page):
    """A client that sends the messages of a press by itself, whatever the browser shows."""
    made, asked = page
    press = SimpleNamespace(client=SimpleNamespace(client_id=1), target=made._reset_button)
    picture, hand = Picture(ROBOT), HandControl(ROBOT.shown_inputs)
    for now, answers in ((1.0, []), (2.0, ["reset"])):
        made.draw(picture, hand, {}, now)
        for callback in made._reset_button._impl.update_cb:
            callback(press)
        assert asked == answers
        picture.hear("safety/state", 0, safety(2, **LATCHED), 0.0)
    hand.update(Surroundings(valves=True, enabled=True), 0.1)
    hand.switch(True)
    hand.want(0, 5e4)
    assert not hand.on
    assert not hand.wanted.any()


def test_a_viser_that_starts_otherwise_is_not_served():
    with pytest.raises(UserError, match="would not be protected"), Door(8090).installed():
        pass


# --- the plots ----------------------------------------------------------------------------------


@given(st.integers(1, 12), st.integers(0, 4), st.integers(0, 2**32 - 1))
def test_curves_are_drawn_without_any_nan_and_as_they_are_known(rows, curves, seed):
    random = np.random.default_rng(seed)
    values = random.normal(size=(curves, rows))
    values[random.random(values.shape) < 0.4] = np.nan
    time = np.arange(rows) - rows + 1.0
    shown, data = known_curves(time, values)
    assert list(shown) == [index for index in range(curves) if np.isfinite(values[index, -1])]
    if shown:
        assert len(data) == 1 + len(shown)
        assert np.isfinite(data).all()
        first = rows - len(data[0])
        assert first == 0 or any(np.isnan(values[index, first - 1]) for index in shown)
        for index, drawn in zip(shown, data[1:], strict=True):
            known = np.isfinite(values[index, first:])
            np.testing.assert_array_equal(drawn[known], values[index, first:][known])


def test_a_hole_is_bridged_by_a_straight_line():
    _, (time, drawn) = known_curves(np.arange(5.0), [np.array([np.nan, 1.0, np.nan, np.nan, 4.0])])
    np.testing.assert_allclose(time, [1.0, 2.0, 3.0, 4.0])
    np.testing.assert_allclose(drawn, [1.0, 2.0, 3.0, 4.0])


# --- node and page ------------------------------------------------------------------------------


class Rig(Peer):
    """The rest of the stack: an estimator's, a controller's and the valves' side of the topics."""

    def __init__(self):
        super().__init__("rig")
        self.commands, self.vents, self.resets = [], 0, 0
        self.node.create_service(Trigger, "valves/vent", self._vent)
        self.node.create_service(Trigger, "valves/reset", self._reset)
        self.hear("pressure/command", self._command)
        self.node.create_timer(0.05, self._flow)
        self.start()

    def publish(self, topic, message):
        self.publisher(topic).publish(message)

    def say_safety(self, enabled):
        told = diagnostics_to_message([safety(enabled=enabled, blockers=[])], self.now())
        self.publish("safety/state", told.status[0])

    def _command(self, message):
        self.commands.append(pressures_from_message(message, CHAMBERS, "pressure/command"))

    def _vent(self, _, response):
        self.vents += 1
        response.success, response.message = True, "vented by the rig"
        return response

    def _reset(self, _, response):
        self.resets += 1
        response.success = True
        return response

    def _flow(self):
        stamp, bent, straight = self.now(), arc(6, 0.9), arc(6, 0.7)
        bent, straight = (np.concatenate([poses[:1], poses]) for poses in (bent, straight))
        parameters = {"bending_compliance": 47.11}, {"bending_compliance": 0.1}
        state = np.zeros(72)
        self.publish("estimate/rod", rod_cloud_message(state, bent, *parameters, stamp))
        tip = pose_with_covariance_to_message(bent[-1], 1e-8 * np.eye(3), stamp)
        self.publish("estimate/tip/pose", tip)
        self.publish("mocap/tip/pose", pose_to_message(bent[-1], stamp))
        read = pressures_to_message(np.array([1e4, 2e4, 3e4]), CHAMBERS, stamp)
        self.publish("pressure/state", read)
        ahead = np.tile(straight, (4, 1, 1, 1)), np.zeros((4, 72))
        tips = ahead[0][:, -1, :3, 3]
        self.publish("reference/rod", reference_cloud_message(*ahead[::-1], tips, stamp, PERIOD))


@pytest.fixture(scope="module")
def rig():
    made = Rig()
    yield made
    made.close()


@pytest.fixture(scope="module")
def viewer(rig):
    made = Viewer(ROBOT, "127.0.0.1", free_port(), with_hand=True, context=rig.context)
    with closing(made), running(made):
        yield made


def test_node_draws_what_is_published(viewer, rig):
    until(lambda: len(viewer.picture.table()["time"]) > 5, "rows")
    picture = viewer.picture
    table = picture.table()
    expected = np.linalg.norm(arc(6, 0.9)[-1, :3, 3] - arc(6, 0.7)[-1, :3, 3])
    assert table["estimate_error"][-1] == pytest.approx(expected, abs=1e-9)
    assert table["bending_compliance"][-1] == 47.11
    np.testing.assert_allclose(picture.inputs("pressure/state"), [1e4, 2e4, 3e4])
    with urllib.request.urlopen(viewer.page.url) as answer:
        assert answer.status == 200
        assert b"<html" in answer.read()


def test_node_refuses_what_is_no_message_and_goes_on(viewer, rig):
    wrong = pose_to_message(np.eye(4), rig.now(), frame="world")
    until(lambda: rig.publish("mocap/tip/pose", wrong) or viewer._rejected, "a refusal")
    assert "mocap/tip/pose: frame 'world' must be 'base'" in viewer._rejected
    rows = viewer.picture.stamp
    until(lambda: viewer.picture.stamp > rows, "more")


def test_node_leaves_rviz_to_the_node_visuals_where_that_draws(viewer, rig):
    arrays = []
    rig.hear("markers", arrays.append)
    until(lambda: arrays, "markers of the view")

    def silent():
        before = len(arrays)
        time.sleep(0.5)
        return len(arrays) == before

    with offering(rig, "visuals", "markers"):
        until(lambda: viewer._others_offering("markers") == ("visuals",), "the node")
        until(silent, "silence")
    count = len(arrays)
    until(lambda: len(arrays) > count, "markers of the view, again")


@contextmanager
def offering(rig, name, topic):
    """A publisher of another node."""
    node, kind = rclpy.create_node(name, context=rig.context), TOPICS[topic].message_class()
    yield node.create_publisher(kind, topic, qos(topic))
    node.destroy_node()


def test_a_second_view_locks_the_sliders_only_while_it_speaks(viewer, rig):
    # the valves follow one node: a view whose sliders are off must not be another one
    until(lambda: viewer.count_publishers("pressure/command") == 0, "no publisher")
    with offering(rig, "viewer_1", "pressure/command") as commands:
        zeros = pressures_to_message(np.zeros(3), CHAMBERS, rig.now())
        until(lambda: viewer.count_publishers("pressure/command") == 1, "the second view")
        until(lambda: commands.publish(zeros) or "another node" in viewer.hand.blocker, "the lock")
        until(lambda: not viewer.hand.blocker, "free sliders")


def test_a_controller_that_offers_plans_locks_the_sliders(viewer, rig):
    until(lambda: not viewer.hand.blocker, "free sliders")
    with offering(rig, "mpc", "pressure/plan"):
        until(lambda: viewer.hand.blocker == "mpc commands the pressures", "the lock")
    until(lambda: not viewer.hand.blocker, "free sliders, again")


def test_the_reset_button_asks_the_valves(viewer, rig):
    until(viewer._askable["reset"].service_is_ready, "the service")
    before = rig.resets
    viewer.reset()
    until(lambda: rig.resets == before + 1, "a reset")


def test_what_is_latched_is_told_and_can_be_reset():
    picture = Picture(ROBOT)
    assert latched(picture) == ""
    picture.hear("safety/state", 0, safety(2, **LATCHED), 0.0)
    assert latched(picture) == "latched M: bus <silent>"
    assert "LATCHED M" in safety_html(picture)
    picture.hear("safety/state", 0, safety(enabled=True, latch="", owner="/mpc <1>"), 0.0)
    assert latched(picture) == ""
    assert "ARMED" in safety_html(picture)
    assert "commanded by /mpc &lt;1&gt;" in safety_html(picture)


def test_the_robot_is_that_of_the_running_system(rig):
    made = Viewer(
        ROBOT, "127.0.0.1", free_port(), with_hand=True, context=rig.context, follows=True
    )
    with closing(made), running(made):
        until(lambda: len(made.picture.table()["time"]) > 2, "rows of the first robot")
        url, arm = made.page.url, load_robot("tendon_arm")
        told = configuration.reports("estimator", arm.name, {}, arm, ())
        rig.publish("configuration", diagnostics_to_message(told, rig.now()))
        until(lambda: made.picture.robot == arm, "the other robot")
        until(lambda: not made.picture.parameters, "nothing of the first robot's run")
        assert len(made.hand.wanted) == len(arm.actuator_names)
        assert made.page.url == url  # a browser stays where it is


def test_what_nobody_tells_any_more_is_no_present():
    picture = Picture(ROBOT)
    for stamp in range(1, 40):
        picture.hear("estimate/rod", stamp * 10**8, rod_at(stamp * 10**8, np.zeros(3)), 0.1 * stamp)
        picture.sample()
    report = DiagnosticReport("estimator: loop", 0, "70 Hz", ROBOT.name, {})
    picture.hear("/diagnostics", 0, [report], 3.9)
    assert picture.silent_for(4.0) == 0.0
    assert picture.table(picture.silent_for(13.9))["time"][-1] == pytest.approx(-10.0)
    assert "silent for 10 s" in state_html(picture, 13.9, {})
    picture.forget()
    assert not len(picture.table()["time"])
    assert "estimator" not in state_html(picture, 14.0, {})


def test_sliders_without_an_open_page_say_nothing(viewer, rig):
    until(lambda: not viewer.hand.blocker, "free sliders")
    rig.commands.clear()
    viewer.page.events.put(Switched(True, client=12345))
    viewer.page.events.put(Slid(0, 5e4))
    until(lambda: rig.commands, "the last word")
    assert not np.any(rig.commands)
    assert not viewer.hand.on


@pytest.fixture(scope="module")
def browser(tmp_path_factory):
    executable = find_browser()
    if executable is None:
        pytest.skip("no Chromium here: apt install chromium")
    made = Browser(executable, tmp_path_factory.mktemp("chromium"), 1000, 600)
    yield made
    made.close()


def click(browser, label):
    """Click the button or checkbox with a label."""
    script = f"""(() => {{
        const found = [...document.querySelectorAll("button, label")]
            .find(element => element.innerText.trim() === {label!r});
        if (found) found.click();
        return Boolean(found);
    }})()"""
    browser.until(script, f"button {label}")


def test_a_browser_shows_the_rod_vents_and_commands(viewer, rig, browser, tmp_path):
    browser.open(viewer.page.url)
    browser.until_text(
        *("47.11 ± 0.20 rad/(N m m)", "tip to reference [mm]", "chamber_3", "30.0 kPa", "flows")
    )

    # the rod: a large blue region between the panels
    def blue():
        browser.screenshot(tmp_path / "view.png")
        pixels = np.asarray(Image.open(tmp_path / "view.png").convert("RGB")).astype(int)
        scene = pixels[:, 380:620]
        return (scene[..., 2] - scene[..., 0] > 60).mean() > 0.01

    until(blue, "the rod in the picture")

    click(browser, "Vent")
    browser.until_text("vented by the rig")
    assert rig.vents == 1

    rig.say_safety(enabled=True)
    browser.until_text("ARMED", "locked: the valves are armed")
    rig.say_safety(enabled=False)
    browser.until_text("may be switched on")
    rig.commands.clear()
    click(browser, "command by hand")
    browser.until_text("commanding")
    browser.run("document.querySelector('[role=slider]').focus()")
    for _ in range(5):
        browser.press("ArrowRight", 39)
    until(lambda: any(command[0] > 400.0 for command in rig.commands), "commands by hand")

    rig.publish("pressure/command", pressures_to_message(np.zeros(3), CHAMBERS, rig.now()))
    browser.until_text("locked: rig commands the pressures")
    assert not viewer.hand.on
    rig.end("pressure/command")
