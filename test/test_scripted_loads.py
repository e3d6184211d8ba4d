"""Scripted loads, payloads and obstacles of the simulated rod."""

from functools import partial

import numpy as np
import pytest
from kit.refusals import line_about
from scipy.integrate import quad

from softcr_models import CosseratRod, UserError, load_robot
from softcr_models.robots.obstacle_files import ObstacleFile, load_obstacles
from softcr_models.rod import statics
from softcr_models.rod.cosserat_rod import EquilibriumError
from softcr_models.rod.point_loads import PointLoad
from softcr_simulation.errors.plant_errors import PlantErrors
from softcr_simulation.plant import SimulatedPlant, Surroundings, with_payload
from softcr_simulation.plants import LOADS, RodPlant, RodPlantSettings
from softcr_simulation.scripted_loads import LoadScript, ScriptedLoad, in_words, load_script

TWO = load_robot("two_segments")
PERIOD = 1.0 / 70.0


def plant_under(*loads, robot=TWO):
    """A plant without noise under loads given as mappings, damped so that it comes to rest."""
    around = Surroundings(loads=LoadScript.model_validate({"loads": loads}))
    damped = robot.scaled(damping=20.0)
    return SimulatedPlant(damped, PlantErrors.noiseless(), intervals=3, surroundings=around)


def settled(plant, seconds=4.0):
    for _ in range(round(seconds / PERIOD)):
        plant.advance(PERIOD)
    return plant.measure(1)


# --- when ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("ramp", [0.0, 0.3])
@pytest.mark.parametrize("duration", [None, 1.0])
def test_the_mean_share_is_the_integral_of_the_share(ramp, duration):
    load = ScriptedLoad(force=(1, 0, 0), start=0.5, duration=duration, ramp=ramp)
    corners = [0.5, 0.5 + ramp, 1.5 - ramp, 1.5]
    for begin, end in [(0.0, 0.4), (0.45, 0.55), (0.2, 1.45), (1.1, 1.6), (0.6, 3.0)]:
        inside = [each for each in corners if begin < each < end] or None
        integral = quad(load.share, begin, end, points=inside)[0]
        assert load.mean_share(begin, end) == pytest.approx(integral / (end - begin), abs=1e-9)
    assert load.share(0.49) == 0.0
    assert load.share(1.0) == 1.0
    assert load.share(2.0) == (1.0 if duration is None else 0.0)


# --- what and where -----------------------------------------------------------------------------

PULL = {"name": "pull", "force": [0.05, 0.1, -0.02], "moment": [0.002, -0.001, 0.003]}
OTHERS = (
    {"kind": "follower", "force": [0.0, 0.1, 0.05], "moment": [0.0, 0.0, 0.002]},
    {"kind": "dead", "force": [0.1, 0.0, 0.0], "segment": "distal", "at": 0.2},
    {"kind": "follower", "force": [0.0, -0.1, 0.0], "segment": "proximal", "at": 0.8},
)


@pytest.fixture(scope="module")
def loaded():
    """A plant at rest under loads of all kinds, and what it measures."""
    plant = plant_under(PULL, *OTHERS)
    return plant, settled(plant)


def test_the_base_carries_loads_and_weight(loaded):
    """Newton's and Euler's laws of the whole body, by what the truth topic tells of the loads."""
    _, measured = loaded
    quiet = plant_under({**PULL, "start": 1e3})
    weight = quiet.rod.base_wrench(settled(quiet).state, np.zeros(6))[:3]
    points, wrenches = measured.loads.points, measured.loads.wrenches
    assert points.shape == (4, 3)
    assert wrenches[0] == pytest.approx([*PULL["force"], *PULL["moment"]])
    assert measured.wrench[:3] - weight == pytest.approx(wrenches[:, :3].sum(axis=0), abs=4e-3)
    weightless = settled(plant_under({"force": [0.1, 0.0, 0.0]}, robot=TWO.replace(gravity=0.0)))
    moment = np.cross(weightless.loads.points[0], [0.1, 0.0, 0.0])
    assert weightless.wrench[3:] == pytest.approx(moment, abs=2e-3 * 0.2)


def test_a_plant_at_rest_is_the_equilibrium_under_its_loads():
    force, moment = (0.05, 0.1, -0.02), (0.0, 0.002, 0.0)
    plant = plant_under({"force": force}, {"kind": "follower", "moment": moment})
    loads = [PointLoad(force=force), PointLoad(wrench=(0, 0, 0, *moment))]
    steady = plant.rod.equilibrium(np.zeros(6), loads=loads)
    tip = plant.rod.tip_pose(steady)[:3, 3]
    assert settled(plant).true_tip_pose[:3, 3] == pytest.approx(tip, abs=2e-5)


def test_a_follower_at_the_tip_acts_on_the_outer_face_of_its_cap():
    """A dead force and a follower that point the same way where the rod is are the same load."""
    robot = TWO.replace(tip_cap_length=0.03, gravity=0.0)
    tips = []
    for kind in ("dead", "follower"):
        plant = plant_under({"kind": kind, "force": [1e-4, 0.0, 0.0]}, robot=robot)
        tips.append(settled(plant, 3.0).true_tip_pose[0, 3])
    assert tips[0] > 1e-5
    assert tips[1] == pytest.approx(tips[0], rel=1e-3)


def test_a_load_behind_a_connector_acts_there():
    """Its lever about the base is that of the place, not of the node before the connector."""
    straight = TWO.replace(gravity=0.0)
    plant = plant_under({"force": [1e-4, 0.0, 0.0], "segment": "distal", "at": 0.0}, robot=straight)
    measured = settled(plant, 4.0)
    lever = measured.loads.points[0, 2]
    assert lever == pytest.approx(plant.rod.pose_at(measured.state, 1, 0.0)[2, 3], abs=1e-9)
    assert measured.wrench[4] == pytest.approx(1e-4 * lever, rel=5e-3)


def test_a_script_that_has_not_begun_changes_nothing(loaded):
    plain = SimulatedPlant(TWO.scaled(damping=20.0), PlantErrors.noiseless(), intervals=3)
    waiting = plant_under({**PULL, "start": 1e3})
    for plant in (plain, waiting):
        plant.follow(np.array([2e4, 0.0, 1e4, 0.0, 1e4, 0.0]))
        plant.advance(0.1)
    assert waiting.state == pytest.approx(plain.state, abs=1e-9)
    again, _ = loaded
    again.reset()
    assert again.time == 0.0
    assert again.state == pytest.approx(plain.rod.equilibrium(np.zeros(6)))


# --- payload ------------------------------------------------------------------------------------


def test_heavy_payloads_stretch_a_hanging_robot():
    """From the straight rod Newton's method does not find 5 kg: the weight is raised from zero.

    The oracle is the stretch of the segments, each under what hangs below its middle. It holds up
    to 1 / (shear - dilatation compliance), 40 N: beyond, sections that shear more easily than they
    stretch lean over, and the rod gets longer still.
    """
    for payload, leans in ((3.0, False), (5.0, True)):
        plant = SimulatedPlant(TWO, PlantErrors.noiseless(payload_mass=payload), intervals=5)
        below, stretched = payload + TWO.payload.mass, 0.0
        for k in (1, 0):
            segment, connector = TWO.segments[k], TWO.segments[k].connector
            mass = segment.density * TWO.segment_areas[k] * segment.length
            below += 0.5 * mass + (connector.mass if connector else 0.0)
            strain = segment.dilatation_compliance * below * TWO.gravity
            stretched += segment.length * (1.0 + strain) + (connector.length if connector else 0.0)
            below += 0.5 * mass
        measured = plant.measure(1)
        longer = measured.true_tip_pose[2, 3] - stretched
        assert 5e-3 < longer < 15e-3 if leans else abs(longer) < 5e-4
        assert measured.wrench[2] == pytest.approx(below * TWO.gravity, rel=2e-3)
        assert np.abs(plant.rod.derivative(measured.state, np.zeros(6))).max() < 1e-6
        assert plant.rod.stability(measured.state, np.zeros(6)) == "stable"


def test_a_payload_that_has_no_steady_state_is_refused(monkeypatch):
    def ends(*_):
        raise EquilibriumError("no steady state")

    monkeypatch.setattr(CosseratRod, "equilibrium", ends)
    with pytest.raises(UserError, match="payload_mass = 5 kg: robot two_segments cannot bear"):
        SimulatedPlant(TWO, PlantErrors.noiseless(payload_mass=5.0), intervals=3)


def test_where_a_weight_can_no_longer_be_followed_is_told(monkeypatch):
    """What Newton's method cannot find is not called buckling."""
    found = statics._newton

    def nothing_beyond(rod, *args):
        return None if rod.grid.gravity[2] < -4.0 else found(rod, *args)

    monkeypatch.setattr(statics, "_newton", nothing_beyond)
    line = r"followed from a rod without weight, it ends at 40\.[67] % of gravity"
    with pytest.raises(EquilibriumError, match=line):
        CosseratRod(TWO, 2).equilibrium(np.zeros(6))


def test_a_payload_is_added_where_one_is():
    robot = load_robot("licher2025")
    assert with_payload(robot, 0.0) is robot
    assert with_payload(robot, 0.2).payload.centre_of_mass == (0.0, 0.0, robot.tip_cap_length)
    carrying = robot.replace(payload={"mass": 0.05, "centre_of_mass": [0.004, 0, 0.01]})
    payload = with_payload(carrying, 0.2).payload
    assert payload.mass == pytest.approx(0.25)
    assert payload.centre_of_mass == (0.004, 0.0, 0.01)


# --- files --------------------------------------------------------------------------------------


FORCE = {"name": "a", "force": [1, 0, 0]}
BALL = {"type": "sphere", "centre": [0.1, 0, 0.1], "radius": 0.02}
FLAT = {"type": "plane", "normal": [0, 0, 0], "point": [0, 0, 0]}
KINDS = {"loads": partial(load_script, robot=TWO), "obstacles": load_obstacles}


@pytest.mark.parametrize(
    ("kind", "content", "said"),
    [
        ("loads", [{}], "loads.0: force and moment are both zero"),
        ("loads", [FORCE | {"at": 0.5}], "at 0.5 without segment"),
        ("loads", [FORCE | {"segment": "third"}], "loads.0.segment: 'third' is not allowed"),
        ("loads", [FORCE | {"duration": 0.1, "ramp": 0.2}], "shorter than both ramps"),
        ("loads", [FORCE, FORCE], "names must differ"),
        ("obstacles", [FLAT], "normal [0.0, 0.0, 0.0]: must have a length"),
        ("obstacles", [BALL | {"name": "a"}] * 2, "names must differ"),
    ],
)
def test_a_mistake_in_a_file_is_one_line(tmp_path, kind, content, said):
    line = line_about(KINDS[kind], tmp_path / "told.yaml", {kind: content})
    assert "told.yaml" in line
    assert said in line


def test_a_load_beside_the_base_is_refused():
    with pytest.raises(UserError, match=r"load load_1: at 0.1 of proximal: lies between the base"):
        plant_under({"force": [1, 0, 0], "segment": "proximal", "at": 0.1})


def test_distances_of_obstacles():
    told = {"type": "plane", "normal": [0, 2, 0], "point": [5, 0.1, 7]}
    around = ObstacleFile.model_validate({"obstacles": [BALL, told]})
    points = np.array([[0.1, 0.0, 0.15], [0.0, 0.13, 0.0]])
    assert around.obstacles[0].distance(points)[0] == pytest.approx(0.03)
    assert around.obstacles[1].distance(points) == pytest.approx([-0.1, 0.03])
    assert around.names == ("sphere_1", "plane_2")
    assert around.nearest(points[0]) == "plane_2"


# --- what is told -------------------------------------------------------------------------------


def test_the_plant_tells_its_loads():
    settings = RodPlantSettings(intervals=3, loads="tip_pull", errors="payload_mass=0.02")
    plant = RodPlant(TWO, settings)
    plant.advance(1.5)
    values = plant.measure(5)
    assert LOADS in plant.topics
    assert LOADS not in RodPlant.topics
    assert set(values) == set(plant.topics)
    assert values[LOADS].wrenches == pytest.approx(np.array([[0.2, 0, 0, 0, 0, 0]]))
    told = plant.describe()
    assert told["loads"] == ["pull: dead force (0.2, 0, 0) N on the tip from 1 s"]
    assert told["plant_mismatch"]["payload_kg"] == 0.02


def test_words_of_loads():
    load = {"kind": "follower", "moment": [0, 0.1, 0], "segment": "distal", "duration": 2.0}
    script = LoadScript.model_validate({"loads": [PULL, load]})
    told = "load_2: follower moment (0, 0.1, 0) N m on distal at 1 from 0 s to 2 s"
    assert in_words(script)[1] == told
