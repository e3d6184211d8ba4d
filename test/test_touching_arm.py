"""A loop round an arm that is pulled and touches a ball: plant, bag, replay, report, live view."""

import numpy as np
import pytest
from kit.loops import SMALL, looped, replayed

from softcr_models import UserError, load_robot
from softcr_models.robots.obstacle_files import ObstacleFile, load_obstacles
from softcr_runtime.bags.reading import Bag
from softcr_runtime.bags.signals import read_signals
from softcr_simulation.errors.plant_errors import PlantErrors
from softcr_simulation.plant import SimulatedPlant, Surroundings
from softcr_simulation.plants import CONTACT_POINTS, CONTACT_WRENCH, LOADS
from softcr_tools.report.run import Run
from softcr_tools.report.sections import summarize

TWO, BALL = load_robot("two_segments"), load_obstacles("ball").obstacles[0]
pytestmark = pytest.mark.slow  # contact takes a minute to compile


@pytest.fixture(scope="module")
def ran(tmp_path_factory):
    """The bag of three seconds of a loop on virtual time, and what was sent."""
    bag = tmp_path_factory.mktemp("touching") / "bag"
    of = SMALL | {"plant": {"intervals": 4, "loads": "tip_pull", "obstacles": "ball"}}
    return bag, looped("nempc", "trajectory", of, bag, robot="two_segments", duration=3.0)


def test_the_ball_keeps_the_arm_out_and_pushes_outwards(ran):
    _, sent = ran
    points, totals = sent.by_stamp(CONTACT_POINTS), sent.by_stamp(CONTACT_WRENCH)
    assert points.keys() == totals.keys() == sent.by_stamp("simulation/truth/rod").keys()
    touched = [stamp for stamp, total in totals.items() if total.any()]
    assert touched
    for stamp in touched:
        forces = points[stamp].wrenches[:, :3]
        assert forces.sum(axis=0) == pytest.approx(totals[stamp][:3], abs=1e-12)
        for point, force in zip(points[stamp].points, forces, strict=True):
            distance = BALL.distance(point[None])[0]
            assert distance > 0.0 or not force.any()  # the centre line is never inside
            if force.any():
                outwards = (point - BALL.centre) / np.linalg.norm(point - BALL.centre)
                # friction may turn the force by its coefficient
                assert force @ outwards > 0.9 * np.linalg.norm(force)
    # off the ball there is no force at all
    for stamp in totals.keys() - set(touched):
        assert (BALL.distance(points[stamp].points)[:-1] > 0.0149).all()  # of the thin segment


def test_the_pull_begins_when_its_script_says(ran):
    _, sent = ran
    loads = sent.by_stamp(LOADS)
    start = min(loads)
    for stamp, told in loads.items():
        wanted = 0.2 * np.clip((1e-9 * (stamp - start) - 1.0) / 0.2, 0.0, 1.0)
        assert told.wrenches[0, 0] == pytest.approx(wanted, abs=1e-6)
    tips = sent.by_stamp("simulation/truth/tip/pose")
    assert all(np.allclose(told.points[0], tips[stamp].position) for stamp, told in loads.items())


def test_such_a_run_comes_back_to_the_bit(ran):
    bag, _ = ran
    content = replayed(bag, "--controller")
    for counts in (content["estimates"], content["commands"]):
        assert counts["identical"] == counts["compared"] == counts["recorded"] > 200


def test_its_report_names_loads_and_obstacles_beside_the_errors(ran):
    bag, sent = ran
    summary = summarize(Run(read_signals(Bag(bag))))
    assert summary["loads"]["load_force_max_n"] == pytest.approx(0.2)
    assert summary["loads"]["loaded_s"] == pytest.approx(2.0, abs=0.03)
    totals = [np.linalg.norm(value[:3]) for value in sent.by_stamp(CONTACT_WRENCH).values()]
    assert summary["contact"]["contact_force_max_n"] == pytest.approx(max(totals))
    assert summary["contact"]["with"] == ["ball: sphere of radius 0.035 m at (0.075, 0.01, 0.19) m"]
    differs = summary["plant"]["differs"]
    assert "load pull: dead force (0.2, 0, 0) N on the tip from 1 s" in differs
    assert any(line.startswith("obstacle ball: sphere") for line in differs)
    names = [figure[0] for figure in summary.figures]
    assert {"loads on the plant", "contact of the plant"} <= set(names)


def test_an_obstacle_where_the_robot_rests_is_refused():
    told = {"type": "sphere", "name": "post", "centre": [0.03, 0.0, 0.1], "radius": 0.02}
    around = Surroundings(obstacles=ObstacleFile.model_validate({"obstacles": [told]}))
    with pytest.raises(UserError, match="obstacle post: the robot at rest touches it"):
        SimulatedPlant(TWO, PlantErrors.noiseless(), intervals=4, surroundings=around)
