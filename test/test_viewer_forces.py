"""The live view draws loads, contact forces and obstacles of a simulated rod."""

import contextlib
import io

import numpy as np
import pytest
import viser
from kit.processes import free_port
from scipy.spatial.transform import Rotation

from softcr_models import load_robot
from softcr_models.robots.obstacle_files import ObstacleFile, load_obstacles
from softcr_runtime.bags.message_bytes import decoded
from softcr_runtime.bags.offline_bag import OfflineBag, status
from softcr_runtime.bags.reading import Bag
from softcr_runtime.blocks.values import PointForces
from softcr_runtime.wire.diagnostics import DiagnosticReport, diagnostics_from_message
from softcr_runtime.wire.messages import pressures_to_message
from softcr_runtime.wire.topics import TOPICS
from softcr_tools.replay.online import schedule
from softcr_tools.viewer.drawing import (
    ARROW,
    LONGEST_ARROW,
    arrow,
    lines,
    markers_message,
    plane_patch,
)
from softcr_tools.viewer.picture import Picture
from softcr_tools.viewer.scene import Scene
from softcr_tools.viewer.words import state_html

TWO = load_robot("two_segments")
WALL = {"type": "plane", "name": "wall", "normal": [3, 0, 4], "point": [0.1, 0, 0.3]}
BALL = load_obstacles("ball").obstacles[0].model_dump()
AROUND = ObstacleFile.model_validate({"obstacles": [BALL, WALL]})
TOLD = AROUND.model_dump(mode="json")


def picture_of(told=None):
    """Of a rod with a load, which touches at the second of two points."""
    picture = Picture(TWO)
    if told is not None:
        report = DiagnosticReport("simulator: loop", 0, "", "", {"obstacles": told})
        picture.hear("/diagnostics", 0, [report], 0.0)
    loads = PointForces(np.array([[0.0, 0.0, 0.2]]), np.array([[0.2, 0, 0, 0, 0, 0]]))
    picture.hear("simulation/truth/loads", 5, loads, 0.0)
    points = np.array([[0.0, 0.0, 0.1], [0.02, 0.0, 0.2]])
    contact = PointForces(points, np.array([[0.0] * 6, [-3.0, 0.0, 4.0, 0.0, 0.0, 0.0]]))
    picture.hear("simulation/truth/contact/points", 5, contact, 0.0)
    return picture


@pytest.mark.parametrize("force", [(0.0, 0.3, 0.0), (-1.0, 2.0, 0.5), (0.0, 0.0, -40.0)])
def test_an_arrow_ends_where_the_force_acts(force):
    point, force = np.array([0.1, 0.2, 0.3]), np.array(force)
    shaft = arrow(point, force)
    size = np.linalg.norm(force)
    assert shaft[1] == pytest.approx(point)
    length = min(ARROW * size, LONGEST_ARROW)
    assert point - shaft[0] == pytest.approx(length * force / size)
    head = shaft[[2, 4]] - point
    assert (head @ force < 0.0).all()
    assert np.cross(head[0] + head[1], force) == pytest.approx(np.zeros(3), abs=1e-12)
    assert arrow(point, 0.0 * force) is None


def test_forces_become_lines_and_words():
    picture = picture_of()
    drawn = lines(picture)
    assert drawn["contact 1"].points is None
    assert drawn["contact 2"].points[1] == pytest.approx([0.02, 0.0, 0.2])
    assert drawn["load 1"].points[0] == pytest.approx([-0.01, 0.0, 0.2])
    said = state_html(picture, 0.0, {})
    assert "0.20 N" in said
    assert "5.00 N" in said
    names = {marker.ns for marker in markers_message(picture, 0.02).markers}
    assert {"load 1", "contact 1", "contact 2"} <= names
    assert not {"load 1", "contact 1"} & set(lines(Picture(TWO)))


def test_obstacles_are_those_that_the_simulator_tells():
    assert picture_of(TOLD).obstacles == AROUND
    for told in (None, {"obstacles": [{"type": "hole"}]}, "a wall"):
        assert picture_of(told).obstacles is None


def test_obstacles_become_markers():
    markers = {m.ns: m for m in markers_message(picture_of(TOLD), 0.02).markers}
    ball, wall = markers["obstacle ball"], markers["obstacle wall"]
    assert (ball.type, wall.type) == (ball.SPHERE, wall.CUBE)
    assert ball.scale.x == ball.scale.y == ball.scale.z == pytest.approx(0.07)
    assert [getattr(ball.pose.position, axis) for axis in "xyz"] == [0.075, 0.010, 0.190]
    q = wall.pose.orientation
    normal = Rotation.from_quat([q.x, q.y, q.z, q.w]).apply([0.0, 0.0, 1.0])
    assert normal == pytest.approx([0.6, 0.0, 0.8])
    assert wall.scale.z < 0.01 < wall.scale.x
    assert 0.0 < ball.color.a < 1.0
    assert not any(name.startswith("obstacle") for name in lines(picture_of(TOLD)))


def test_a_replayed_bag_says_again_what_its_simulator_said(tmp_path):
    """Obstacles are told there, and no simulator runs beside the bag; what else was said is not."""
    bag = OfflineBag()
    bag.add("pressure/state", 10**9, pressures_to_message(np.zeros(6), TWO.actuator_names, 10**9))
    told = {"simulator": {"obstacles": TOLD}, "estimator": {"restarts": 3}}
    bag.add_statuses([status(node, TWO, values) for node, values in told.items()])
    bag.write(tmp_path / "bag")
    moments = {m.topic: m.payload for m in schedule(Bag(tmp_path / "bag"), "again") if m.topic}
    assert moments.keys() == {"pressure/state", "/diagnostics"}
    message = decoded(moments["/diagnostics"], TOPICS["/diagnostics"].type)
    (report,) = diagnostics_from_message(message)
    assert report.node == ("again", "simulator")
    assert report.hardware_id == f"again/{TWO.name}"
    picture = Picture(TWO)
    picture.hear("/diagnostics", 0, [report], 0.0)
    assert picture.obstacles == AROUND


def test_a_patch_of_a_plane_lies_in_it_beside_the_robot():
    wall = AROUND.obstacles[1]
    middle, turn = plane_patch(wall, 0.2)
    assert wall.distance(middle[None]) == pytest.approx([0.0], abs=1e-12)
    normal = Rotation.from_quat(turn[[1, 2, 3, 0]]).apply([0.0, 0.0, 1.0])
    assert normal == pytest.approx([0.6, 0.0, 0.8])
    assert np.cross(middle - [0.0, 0.0, 0.1], normal) == pytest.approx(np.zeros(3), abs=1e-12)


def test_the_scene_shows_obstacles_and_takes_them_away():
    with contextlib.redirect_stdout(io.StringIO()):
        server = viser.ViserServer("127.0.0.1", free_port(), verbose=False)
    try:
        scene = Scene(server, TWO)
        scene.draw(picture_of(TOLD), flows=True)
        ball, wall = scene._obstacle_shapes
        assert ball.radius == 0.035
        assert ball.position == pytest.approx([0.075, 0.01, 0.19])
        assert wall.dimensions[2] < 0.01
        assert scene._lines["contact 2"].visible
        scene.draw(Picture(TWO), flows=True)
        assert not scene._obstacle_shapes
        assert not scene._lines["contact 2"].visible
    finally:
        server.stop()
