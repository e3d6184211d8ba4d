"""`softcr up` takes the sub-steps that a robot needs at its limits and rates, and says so."""

import math

import pytest

from softcr_estimation.identification.stages import write_robot
from softcr_models import UserError, load_robot
from softcr_models.rod_model.rest import rest_of
from softcr_tools.running import rod_substeps
from softcr_tools.running.rod_substeps import HARD_TO_HOLD, substep_errors, with_needed_substeps
from softcr_tools.running.run_options import SimulationOptions


def options_of(**values):
    return SimulationOptions.of_options({"controller": "rod_mpc", **values})


def told_and_chosen(options):
    lines = []
    chosen = with_needed_substeps(options, lines.append)
    return lines, chosen.roles


@pytest.mark.parametrize("robot", ["licher2025", "tendon_arm", "two_segments"])
def test_a_soft_robot_takes_the_usual_ones(robot):
    assert told_and_chosen(options_of(robot=robot)) == ([], {})


def test_a_robot_of_spring_steel_takes_more_and_a_line_says_what_they_cost():
    lines, chosen = told_and_chosen(options_of(robot="rao_two_segments"))
    errors = substep_errors(load_robot("rao_two_segments"), 1 / 70)
    for role, usual in (("estimator", 2), ("controller", 1)):
        taken = chosen[role]["substeps"]
        assert errors[taken] <= rod_substeps.LARGEST_ERROR[role] < errors[usual]
    assert len(lines) == 2
    taken = chosen["estimator"]["substeps"]
    assert f"estimator: {taken} sub-steps in a tick, not 2, because robot rao_two" in lines[0]


def test_no_more_sub_steps_are_tried_than_are_enough():
    robot = load_robot("tendon_arm")
    every, few = (substep_errors(robot, 1 / 70, enough=enough) for enough in (0.0, 0.01))
    assert list(every)[: len(few)] == list(few)
    assert [error <= 0.01 for error in few.values()] == [False] * (len(few) - 1) + [True]


def test_what_was_given_is_left_alone():
    options = options_of(robot="rao_two_segments", **{"estimator.substeps": 7})
    assert told_and_chosen(options)[1]["estimator"] == {"substeps": 7}


def test_a_robot_beyond_all_sub_steps_is_refused(monkeypatch):
    monkeypatch.setattr(rod_substeps, "LARGEST_ERROR", {"estimator": 1e-9, "controller": 1.0})
    with pytest.raises(UserError, match="robot tendon_arm: its inputs at their rates move it too"):
        told_and_chosen(options_of(robot="tendon_arm"))


def line_density(robot):
    """Of a robot of one segment [kg/m]."""
    (segment,) = robot.segments
    area = math.pi / 4 * (segment.outer_diameter**2 - segment.inner_diameter**2)
    area -= sum(each.area for each in robot.actuators)  # chambers are hollow
    return segment.density * area


def column(share):
    """A slender column whose weight is a share of the one under which it buckles.

    Greenhill (1881): q L^3 = 7.837 EI, of a column clamped at its foot with a weight q [N/m].
    """
    robot = load_robot("licher2025").replace(tip_mass=1e-9, shear_compliance=1e-6)
    compliance = share * 7.837 / (line_density(robot) * robot.gravity * robot.length**3)
    return robot.replace(bending_compliance=compliance, dilatation_compliance=1e-6)


@pytest.mark.parametrize("share", [0.5, 0.95, 1.05])
def test_a_column_stays_at_rest_up_to_the_weight_under_which_it_buckles(share):
    rest = rest_of(column(share), 10)
    assert rest.stays == (share < 1.0)
    assert (rest.moved > HARD_TO_HOLD) == (share > 0.7)


def slender(relaxation):
    """A cantilever without weight whose strains relax in a time [s]."""
    robot = load_robot("licher2025").replace(length=1.2, gravity=0.0, tip_mass=1e-9)
    return robot.replace(
        relaxation_times=[relaxation] * 6, shear_compliance=1e-7, bending_compliance=5.0
    )


@pytest.mark.parametrize("relaxation", [1e-3, 1e-5])
def test_a_cantilever_swings_as_long_as_its_material_says(relaxation):
    """Euler and Bernoulli: w = 1.8751^2 sqrt(EI / (q L^4)) with a mass q [kg/m], and Kelvin-Voigt
    damping fades as exp(-w^2 relaxation t / 2)."""
    robot = slender(relaxation)
    mass = line_density(robot)
    pace = 1.875104**2 / math.sqrt(robot.bending_compliance * mass * robot.length**4)
    rest = rest_of(robot, 12)
    assert rest.frequency == pytest.approx(pace / math.tau, rel=0.03)
    assert rest.lasts == pytest.approx(2.0 / (pace**2 * relaxation), rel=0.06)


FALLS = "may fall and not be followed: it does not stay at rest under its own"
SWINGS = "may swing and not be followed: a swing at"


@pytest.mark.parametrize(
    ("robot", "said", "told"),
    [(column(1.05), FALLS, True), (slender(0.1), SWINGS, False), (slender(1e-3), SWINGS, True)],
)
def test_a_robot_that_may_fall_or_hardly_damps_its_swinging_is_told_before_the_start(
    tmp_path, robot, said, told
):
    limits = {"minimum": 0.0, "maximum": 1e3, "maximum_rate": 1e3}
    path = tmp_path / "mine.yaml"
    write_robot(robot.replace(pressure_limits=limits), path)
    lines, _ = told_and_chosen(options_of(robot=str(path)))
    assert any(said in line for line in lines) == told


@pytest.mark.parametrize("name", ["licher2025", "two_segments", "three_segments", "till_tendon"])
def test_no_shipped_robot_is_told_to_fall_or_swing(name):
    lines, _ = told_and_chosen(options_of(robot=name, **{"estimator.substeps": 64}))
    assert not any("not be followed" in line for line in lines)
