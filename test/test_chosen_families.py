"""`--find best`: families of unknowns are chosen by the error of what a fit has not seen."""

import re
from dataclasses import replace

import numpy as np
import pytest
from kit.refusals import one_line
from test_motion_fit import recorded
from test_prior_fit import TRUE, arm, recording_of

from softcr_estimation.identification.chosen_families import (
    FOLDS,
    GAIN,
    chosen,
    left_out_at_rest,
    left_out_in_motion,
    with_unknowns,
)
from softcr_estimation.identification.stages import write_robot
from softcr_models import load_robot
from softcr_models.identification.actuation import FAMILIES_IN_MOTION
from softcr_models.identification.measured_groups import groups_of
from softcr_models.identification.motion_fit import Motion
from softcr_models.identification.rod_identification import static_configurations
from softcr_tools.cli import main


def chosen_by(error, families):
    """What `chosen` says of families, the error being told of the letters of a set; the told share
    grows to one."""
    asked, shares = [], []

    def left_out(kept):
        asked.append("".join(sorted(kept)))
        return error(asked[-1])

    without, tried = chosen(families, left_out, shares.append)
    assert shares == sorted(shares)
    assert shares[-1] == 1.0
    return without, tried, asked


def test_a_family_is_kept_that_lowers_the_error_by_its_least_share():
    little = 1.0 - 0.5 * GAIN
    errors = {"": 1.0, "a": little, "b": 0.5, "bc": 0.6}
    without, tried, asked = chosen_by(errors.__getitem__, "abc")
    assert without == 1.0
    told = [(each.name, each.error, each.kept) for each in tried]
    assert told == [("a", little, False), ("b", 0.5, True), ("c", 0.6, False)]
    assert len(asked) == 4


def test_a_family_whose_place_another_has_taken_is_left_away():
    errors = {"": 1.0, "a": 0.8, "ab": 0.3, "b": 0.3}
    _, tried, _ = chosen_by(errors.__getitem__, "ab")
    assert [each.name for each in tried if each.kept] == ["b"]


def test_the_told_share_ends_at_one_where_several_are_left_away():
    _, tried, _ = chosen_by(lambda kept: 0.1 if "d" in kept else 1.0 - 0.2 * len(kept), "abcd")
    assert [each.name for each in tried if each.kept] == ["d"]


def test_what_nobody_saw_moving_is_told_in_a_line():
    robot = arm()
    rests = recording_of(robot, np.zeros((2 * FOLDS, 4)), {})
    still = {name: np.tile(values[:1], (len(rests), 1)) for name, values in rests.outputs.items()}
    groups = [each for each in groups_of(robot) if each.name in still]
    with one_line("nothing was seen to move"):
        left_out_at_rest(robot, replace(rests, outputs=still), groups)(())


def test_how_it_was_recorded_is_tried_first_and_what_a_robot_has_not_is_left_away():
    robot = load_robot("licher2025")
    names = with_unknowns(robot, groups_of(robot), FAMILIES_IN_MOTION)
    assert names[:2] == ["registration", "stiffness"]
    assert not {"tendons", "connectors"} & {*names}
    assert len({*names}) == len(names)


def test_too_few_rests_and_a_single_trial_are_one_line():
    robot = arm()
    rests = recording_of(robot, np.zeros((2 * FOLDS - 1, 4)), {})
    groups = [each for each in groups_of(robot) if each.name in rests.outputs]
    with one_line("5 rests: .* 6 are needed"):
        left_out_at_rest(robot, rests, groups)
    alone = Motion("a", rests.inputs, rests.outputs, 0.01)
    with one_line("one trial: .* two are needed"):
        left_out_in_motion(robot, [alone], groups)


@pytest.mark.later
def test_trials_left_out_are_predicted_better_with_the_delay_that_they_had():
    robot = load_robot("tendon_arm")
    motions = [recorded(robot, {"delay": 0.04, "stiffness": 0.2}, k, seconds=5.0) for k in (0, 1)]
    left_out = left_out_in_motion(robot, motions, groups_of(robot)[:1])
    unknown, found = left_out(()), left_out(["stiffness", "delay"])
    assert 0.0 < found < 0.5 * unknown


@pytest.mark.later
def test_the_command_finds_what_lowers_the_error_of_rests_left_out(tmp_path, capsys):
    robot = arm()
    rests = recording_of(robot, static_configurations(robot, 2), TRUE)
    header = [f"tension_{k + 1}" for k in range(4)]
    header += [f"{name}_{axis}" for name in ("tip", "middle") for axis in "xyz"]
    table = np.hstack((rests.inputs, *rests.outputs.values()))
    np.savetxt(tmp_path / "rests.csv", table, delimiter=",", header=",".join(header), comments="")
    write_robot(robot, tmp_path / "arm.yaml")
    words = ["--robot", str(tmp_path / "arm.yaml"), "--find", "best", "--results", str(tmp_path)]
    assert main(["identify", str(tmp_path / "rests.csv"), *words]) == 0
    capsys.readouterr()
    report = (tmp_path / "identification/latest/report.md").read_text()
    shares = {
        name: float(share)
        for name, share in re.findall(r"left out, (?:with )?(.+): ([0-9.e+-]+) %", report)
    }
    kept = re.findall(r"left out, with (\w+): .* %, found", report)
    assert "registration" in kept
    assert len(kept) < len(shares) - 1
    assert min(shares[name] for name in kept) < 0.2 * shares["nothing found"]
