"""`softcr up` takes the sub-steps that a robot needs at its limits and rates, and says so."""

import pytest

from softcr_models import UserError, load_robot
from softcr_models.rod_model.substeps import substep_errors
from softcr_tools.running import rod_substeps
from softcr_tools.running.rod_substeps import with_needed_substeps
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
