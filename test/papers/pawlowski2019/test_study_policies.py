"""Studies of learned policies: plants, goals, and a cell from training to the loop."""

import math

import numpy as np
import pytest

from softcr_models import CosseratRod, load_robot
from softcr_papers.pawlowski2019.studies import learned_policies as policies
from softcr_papers.pawlowski2019.studies import learned_robots as robots
from softcr_studies.frame.cell import Cell
from softcr_studies.loops.tracking_loop import FAST, controller_parameters


def test_a_plant_differs_in_what_is_said_and_in_its_grid():
    one, two = load_robot("licher2025"), load_robot("two_segments")
    stiffer = policies.plant_of(one, **robots.STIFFER)
    assert stiffer.plant_intervals == 20
    assert policies.plant_of(two).plant_intervals == 10
    assert 1.0 / stiffer.errors.bending_factor == pytest.approx(1.05)
    assert stiffer.errors.tip_mass_factor == 1.0
    assert stiffer.errors.tip_noise == 2e-4
    assert policies.plant_of(one).errors.bending_factor == 1.0
    heavier = policies.plant_of(one, **robots.OTHERS["tip mass +10 %"]).errors
    assert (heavier.bending_factor, heavier.tip_mass_factor) == (1.0, 1.1)


def test_goals_are_tips_at_which_the_rod_stands():
    robot = load_robot("licher2025")
    plant = policies.plant_of(robot)
    goals = policies._goals(robot, plant, 2, np.random.default_rng(0))
    random = np.random.default_rng(0)
    pressures = 1e5 * random.uniform(0.05, 0.7, (2, 3))
    rod = CosseratRod(robot, 20)
    for goal, held in zip(goals, pressures, strict=True):
        tip = rod.tip_pose(rod.equilibrium(held))[:3, 3]
        np.testing.assert_allclose(goal.tip_positions[0], tip, atol=1e-9)
    assert np.linalg.norm(goals[0].tip_positions - goals[1].tip_positions) > 0.01


def test_random_rods_are_tried_where_plants_are():
    for case in robots.STUDY.cases:
        tried = case == robots.TRIED
        assert ("TD3, random rods" in robots.STUDY.methods(case)) == tried
        assert {"TD3", "rod_mpc", "nempc"} <= set(robots.STUDY.methods(case))


def test_a_policy_is_told_neither_horizon_nor_threads():
    told = controller_parameters("policy:here", FAST)
    assert told == {"controller": "policy:here", "intervals": 5}
    assert "threads" in controller_parameters("rod_mpc", FAST)


def test_what_counts_of_runs_begins_late():
    run = {
        "times": np.arange(4.0), "error": np.array([9.0, 9.0, 1.0, 3.0]),
        "tips": np.zeros((4, 3)), "estimated": np.tile([0.0, 0.0, 0.5], (4, 1)),
        "ticks": np.arange(30.0),
    }  # fmt: skip
    found = policies._counted([run, run | {"error": np.array([9.0, 9.0, 5.0, 7.0])}], 2.0)
    assert found["error"] == pytest.approx(4.0)
    assert found["filter"] == pytest.approx(0.5)
    assert len(found["ticks"]) == 40


@pytest.mark.slow
def test_a_cell_trains_and_is_judged_on_every_plant(tmp_path):
    settings = robots.Settings(samples=5200, goals=1)
    cell = Cell(robots.TRIED, "TD3, random rods", 0, settings, folder=tmp_path)
    found = robots.run(cell)
    assert (tmp_path / "licher2025_circles_0.1_0.safetensors").is_file()
    for name in ("error", *robots.OTHERS):
        assert math.isfinite(found[name])
    assert found["samples"] >= 5200
