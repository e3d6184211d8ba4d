"""The studies of control and of learned policies of Pawlowski (2019), at their smallest."""

import math
from types import SimpleNamespace

import numpy as np
import pytest

from softcr_models import CosseratRod, load_robot
from softcr_papers.pawlowski2019.studies import learned_policies as policies
from softcr_papers.pawlowski2019.studies import learned_robots as robots
from softcr_papers.pawlowski2019.studies import (
    learning,
    lookahead,
    mpc,
    other_plants,
    quasi_static,
    table_4_1,
    targets,
)
from softcr_papers.pawlowski2019.studies.columns import COLUMNS, IMPLICIT, far_sighted, kirchhoff
from softcr_papers.pawlowski2019.studies.known_state import followed
from softcr_papers.pawlowski2019.studies.reach import NearOnce
from softcr_papers.pawlowski2019.studies.robots import floating
from softcr_simulation.errors.plant_errors import PlantErrors
from softcr_studies.frame.study import Cell
from softcr_studies.frame.table import Row, write_table
from softcr_studies.loops.tracking_loop import FAST, controller_parameters


def test_circles_lie_where_tendons_hold_the_tip():
    for radius in targets.RADII.values():
        points = targets.circle(radius, np.array([0.0, 0.125]))  # towards a tendon, between two
        assert np.hypot(points[:, 0], points[:, 1]) == pytest.approx(np.full(2, radius))
        assert all(targets._is_held(point) for point in points)
    assert not targets._is_held(np.array([0.03, 0.0, 0.095]))


def test_a_point_takes_as_many_steps_as_its_error_takes_to_shrink():
    rod = targets.model()
    point = quasi_static.static_tip(rod, np.array([0.2, 0.1, 0.0, 0.0]), rod.nominal_parameters)
    away = float(np.linalg.norm(point - np.array([0.0, 0.0, targets.LENGTH])))
    want = np.log(away / 1e-3) / np.log(1.25)
    assert quasi_static._steps(point, quasi_static.BOXED) == pytest.approx(want, abs=1.5)


def test_a_column_brings_the_tip_of_a_finer_rod_to_a_point():
    point = targets.circle(0.005, np.zeros(1))[0]
    found = followed(COLUMNS[1], mpc._standing(point), 60)
    assert found["error"][0] > 4e-3
    assert found["error"][-10:].max() < 3e-4
    assert len(found["solve"]) == 12


def test_on_a_circle_each_update_leaves_what_its_gain_does():
    """With gain 1 the error of a sample is the motion from the last one, a chord of the circle."""
    chord = 2.0 * 0.005 * np.sin(np.pi / 20)
    arrived, left = quasi_static._along(0.005, quasi_static.Lap(samples=20, gain=1.0))
    assert arrived == pytest.approx(np.full(20, chord), rel=0.05)
    assert left.max() < 0.05 * chord
    arrived, left = quasi_static._along(0.005, quasi_static.Lap(samples=20, updates=3))
    assert left == pytest.approx(0.8**3 * arrived, rel=0.05)


@pytest.mark.parametrize("column", COLUMNS, ids=lambda each: each.name)
def test_every_column_swings_to_a_point_that_no_tension_holds(column):
    """Tensions hold the tip at 28 mm from the axis at most, and one swing does not suffice."""
    point = np.array([0.0064, -0.0477, 0.0814])
    found = followed(far_sighted(column), mpc._standing(point), 150, mpc._enough(column, True))
    assert found["error"].min() < mpc.NEAR * targets.LENGTH
    assert len(found["error"]) > 20


def test_a_reach_ends_where_it_is_near_or_stands():
    once, steady = (mpc._enough(COLUMNS[0], each) for each in (True, False))
    near, far = np.full(4, 1e-3), np.full(20, 2e-2)
    assert once(near)
    assert not once(far)
    assert not steady(near)
    assert steady(np.concatenate((far, near, near)))
    assert not steady(np.concatenate((far, [4e-3, 0.0, 4e-3, 0.0, 4e-3])))


def test_far_away_a_reach_hardly_minds_how_far():
    tips = np.zeros((1, 2, 3, 4))
    tips[0, :, 0, 3] = 0.005, 0.1
    rollout = SimpleNamespace(
        output=lambda name: tips, reference_tip_positions=np.zeros((2, 3)), commands=tips
    )
    share = np.array([0.005, 0.1]) ** 2 / (np.array([0.005, 0.1]) ** 2 + 0.01**2)
    assert NearOnce(2.0, scale=0.01)(rollout) == pytest.approx(2.0 * share.sum())
    assert far_sighted(COLUMNS[1]).settings["horizon"] == 30


def test_a_kirchhoff_rod_keeps_its_bending():
    rod, stiff = floating(), kirchhoff(floating())
    assert stiff.bending_compliance == rod.bending_compliance
    assert stiff.dilatation_compliance < 0.02 * rod.dilatation_compliance


def test_the_sweep_has_every_column_but_a_horizon_of_one_tick():
    assert "NLSQ, 0.01 s, 1 ahead" not in lookahead._COLUMNS
    assert lookahead._COLUMNS["iLQR, 0.1 s, 8 ahead"].settings["horizon"] == 80


def test_the_table_reads_what_lies_beside_it(tmp_path):
    folder = tmp_path / "pawlowski2019/table-4-1/unfinished/shared"
    latest = tmp_path / "pawlowski2019/mpc/latest"
    latest.mkdir(parents=True)
    row = Row(mpc.ESTIMATED, COLUMNS[0].name, mpc.ERROR, 0.2, 0.01, "%", 3)
    write_table(latest / "table.json", {}, [row])

    def found(case, method):
        return table_4_1.run(Cell(case, method, 0, None, folder=folder))

    assert found(table_4_1.CIRCLE, COLUMNS[0].name) == {"share": 0.2}
    assert "has no row" in found(table_4_1.ANY, COLUMNS[0].name)["skipped"]
    assert "learning had no table" in found(table_4_1.POINT, "DDPG")["skipped"]
    assert "learning had no table" in found(table_4_1.RATIO, "GPS")["skipped"]


def test_the_table_has_a_source_for_each_of_its_cells():
    """Its 32 cells, and those of the thesis's own scheme, are rows that the two studies make."""
    cells = table_4_1.STUDY.cells(table_4_1.STUDY.settings())
    printed = [cell for cell in cells if cell.method not in table_4_1._SCHEME]
    assert len(printed) == 32
    made = {(cell.case_name, cell.method) for study in (mpc.STUDY, learning.STUDY)
            for cell in study.cells(study.settings())}  # fmt: skip
    for cell in cells:
        _, (case, method, quantity) = table_4_1.source(cell.case, cell.method)
        assert (case, method) in made
        study = learning.STUDY if method in table_4_1._LEARNT else mpc.STUDY
        assert quantity in {metric.quantity for metric in study.metrics}


def test_the_implicit_scheme_follows_a_circle_where_it_is_the_plant():
    found = mpc.lap(IMPLICIT[1], 0.005, 0.3)
    assert found["error"] < 0.02  # % of the length
    assert found["largest"] < 0.05


def test_friction_is_between_the_spools_and_the_rod():
    """Sensors see what is commanded; with half of it in plays, less bends the rod."""
    robot, errors = floating(), PlantErrors()
    free, rubbed = (other_plants.FrictionPlant(robot, errors, 0, share) for share in (0.0, 0.5))
    for plant in (free, rubbed):
        plant.follow(np.array([0.2, 0.0, 0.0, 0.0]))
        plant.advance(3.0)
        spools = plant.measure(0).pressures  # read with 5 mN of noise
        np.testing.assert_allclose(spools, [0.2, 0.0, 0.0, 0.0], atol=0.025)
        np.testing.assert_allclose(plant.pressures, [0.2, 0.0, 0.0, 0.0], atol=1e-12)
    # plays of 5, 10, ... 50 mN keep back half of their mean
    assert rubbed._acted[0] == pytest.approx(0.2 - 0.5 * 0.0275)
    tips = [plant.measure(0).true_tip_pose[0, 3] for plant in (free, rubbed)]
    assert tips[1] / tips[0] == pytest.approx(0.93125, abs=0.01)
    rubbed.reset()
    assert rubbed._acting.levels(np.zeros((1, 4)), 0.01) == pytest.approx(np.zeros((1, 4)))


@pytest.mark.slow
def test_nlsq_follows_the_circle_on_an_exact_beam():
    found = other_plants.run(Cell(other_plants.OTHERS[0], other_plants.NLSQ, 0, None))
    assert found[other_plants.AROUND] < 0.5


def test_a_policy_is_trained_once(tmp_path, monkeypatch):
    """The cells of a seed find the policy that the first of them left."""
    settings = other_plants.Settings(samples=200)
    cell = Cell(other_plants.OWN, other_plants.POLICY, 0, settings, folder=tmp_path)
    pytest.importorskip("torch")
    path = other_plants._policy(cell)
    monkeypatch.setattr(other_plants, "train", None)
    assert other_plants._policy(cell) == path


# --- learned policies: plants, goals, and a cell from training to the loop ---


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
