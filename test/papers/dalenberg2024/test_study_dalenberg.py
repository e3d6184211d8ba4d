"""The studies of Dalenberg's thesis in short forms."""

import numpy as np
import pytest
from kit.studies import rows_of

from softcr_papers.dalenberg2024.arm import load_arm
from softcr_papers.dalenberg2024.shape_error import shape_error
from softcr_papers.dalenberg2024.studies import (
    hardware_experiments,
    other_plants,
    robot_1,
    robots,
    section_lengths,
)
from softcr_papers.dalenberg2024.studies.published import PRINTED, Comparison
from softcr_papers.dalenberg2024.studies.robot_2 import ARRANGEMENTS
from softcr_papers.dalenberg2024.studies.section_lengths import (
    CENTRE,
    CHAIN,
    TRUE_LENGTHS,
    bent_start,
    straight_start,
)
from softcr_papers.dalenberg2024.studies.setpoint_run import FIXED, steer
from softcr_studies.frame.catalogue import load_study
from softcr_studies.frame.cell import Cell

SLOWED = "A-PCC, Γ / 1000"


def test_shape_error_is_the_mean_distance():
    straight, longer = np.zeros(9), np.array([0, 0, 0.1, 0, 0, 0.1, 0, 0, 0.1])
    found = shape_error(CHAIN, straight, TRUE_LENGTHS, CHAIN, longer, TRUE_LENGTHS)
    # point k of N is k / (N - 1) of the whole up; sections are stretched by different parts
    places = np.linspace(0.0, 0.6, 500)
    ends = np.array([0.0, 0.105, 0.36, 0.60])
    expected = np.interp(places, ends, [0.0, 0.1, 0.2, 0.3]).mean()
    assert found == pytest.approx(expected, rel=1e-9)


def test_by_arc_only_the_curves_count():
    """A model with other rest lengths that lies on the arm's curve is the arm."""
    bends, true, guessed = 0.4 * np.array([1.0, -0.5, 0.8]), TRUE_LENGTHS, 0.8 * TRUE_LENGTHS
    q = np.stack([bends, 0.5 * bends, [0.01, -0.02, 0.03]], axis=-1)
    model = q + np.stack([0 * bends, 0 * bends, true - guessed], axis=-1)
    pair = CHAIN, q.ravel(), true, CHAIN, model.ravel(), guessed
    assert shape_error(*pair, "arc") == pytest.approx(0.0, abs=1e-12)
    longer = CHAIN, q.ravel(), true, CHAIN, 2.0 * q.ravel(), true
    assert shape_error(*longer, "arc") > 0.01
    # without elongation both are the same, by the polyline's own length
    straight = np.where(np.arange(9) % 3 == 2, 0.0, q.ravel())

    def spread(q, lengths):
        points = CHAIN.backbone(q, lengths, 2001)[:, :3, 3]
        along = np.r_[0.0, np.cumsum(np.linalg.norm(np.diff(points, axis=0), axis=1))]
        places = np.linspace(0.0, along[-1], 500)
        return np.stack([np.interp(places, along, column) for column in points.T], axis=-1)

    mean = np.linalg.norm(spread(straight, true) - spread(model.ravel(), guessed), axis=1).mean()
    both = CHAIN, straight, true, CHAIN, model.ravel(), guessed
    assert shape_error(*both, "arc") == pytest.approx(mean, rel=1e-4)


def test_sensors_are_set_beside_the_baselines():
    own = {
        "linear": np.array([[0.01, 0.02], [0.03, 0.02]]),
        "angular": np.array([[0.01, 0.02], [0.01, 0.02]]),
    }
    baseline = {"linear": np.array([[0.05, 0.01]]), "angular": np.array([[0.01, 0.04]])}
    numbers = {"distance": "R32", "distance tip": "R32 tip"}

    def rows(own, baseline, **told):
        table = Comparison("case", "method", "bench", **({"fixed": False} | told))
        table.add_sensors([own, baseline], numbers)
        return {row.quantity: row.mean for row in table.closed()}

    found = rows(own, baseline)
    expected = {
        "sensor 1's distance (R32)": 2.0,
        "sensor 1's distance (R32), difference, bench -0.5 to -0.3": -3.0,
        "sensor 2's distance (R32)": 2.0,
        "sensor 2's distance (R32), difference, bench +0.15": 1.0,
        "sensor 1's angle": 1.0, "sensor 1's angle, difference": 0.0,
        "sensor 2's angle": 2.0, "sensor 2's angle, difference": -2.0,
        "changes of the other sign than printed": 0.0,
    }  # fmt: skip
    assert found == pytest.approx(expected)
    assert rows(baseline, own)["changes of the other sign than printed"] == 2.0
    assert len(rows(own, own, fixed=True)) == 4
    assert not any("R32" in name for name in rows(own, baseline, printed=False))


def test_changes_are_set_beside_the_printed_ones():
    table = Comparison("case", "A-PCC", "simulation", fixed=False, seeds=2)
    table.add_numbered("E_shape mean", "R2", (1.0, 2.0), "mm", sd=0.1)
    table.add_numbered("Psi largest", "R15 upper", (3.0, 2.0), "mm")
    shape, change, psi, other, count = table.closed()
    assert (shape.quantity, shape.published) == ("E_shape mean (R2)", {"simulation": 1.31})
    assert (shape.sd, shape.seeds) == (0.1, 2)
    assert (change.mean, change.published) == (-50.0, {"simulation": -28.0})
    assert (psi.quantity, psi.published) == ("Psi largest (R15)", {})
    assert (other.mean, other.published) == (50.0, {"simulation": -38.1})
    assert (count.mean, count.unit) == (1.0, "of 2")
    fixed = Comparison("case", FIXED, "bench", fixed=True)
    fixed.add_numbered("E_shape mean", "R2", (2.0, 2.0), "mm")
    (row,) = fixed.closed()
    assert row.published == {"bench": 1.82}


def test_runs_start_where_the_trajectory_does():
    for start in (straight_start(), bent_start(0), bent_start(1)):
        tip = CHAIN.position(start, TRUE_LENGTHS)
        np.testing.assert_allclose(tip, CENTRE, atol=1e-9)
    assert np.abs(bent_start(0) - bent_start(1)).max() > 0.1


def test_the_kinematic_study_shows_every_reading(tmp_path):
    given = {"seeds": 2, "seconds": 8.0, "step_ms": 10.0}
    rows, directory = rows_of("dalenberg2024/section-lengths", tmp_path, **given)
    required = section_lengths.STRAIGHT.name, section_lengths.COMMANDED
    share = rows[(*required, "tip RMS over that of fixed lengths")]
    assert share.must == 5.0
    assert share.mean < 25.0  # in 8 coarse seconds instead of 20 fine ones
    assert rows[(*required, "tip RMS, last 5 s")].must == 1.0
    assert rows[(*required, "length error")].must == 3.0
    for case in section_lengths.CASES:
        for method in case.methods:
            ends = (case.name, method, "diverges after")
            assert (ends in rows) == (method == "inferred q")
            assert ((case.name, method, "length error") in rows) == (method != "inferred q")
    drifting = "straight, 10 ms, 3 T", "inferred q, Γ / 50"
    assert all(
        (*drifting, f"length error{end}") in rows for end in ("", " after 2 T", " after 3 T")
    )
    assert rows["bent starts, 10 ms", FIXED, "runs that diverge"].seeds == 2
    assert rows[(*required, "length error")].seeds == 1
    assert (directory / "readings.png").is_file()


def test_setpoints_are_named_or_reached_without_elongation():
    (arrangement,) = ARRANGEMENTS
    arm = load_arm(arrangement.robot)
    cases = load_study("dalenberg2024/robot-2").cases(robots.Settings(setpoints=4))
    assert [case.payload for case in cases[:3]] == [0.5, 0.25, 0.0]
    assert len({case.name for case in cases}) == len(cases) == 12
    targets = robots.setpoints(arrangement, arm, 4, 0)
    np.testing.assert_array_equal(targets[0], arrangement.named)
    assert (targets[:, 2] < 0.0).all()
    assert (np.linalg.norm(targets, axis=1) < 0.45).all()
    np.testing.assert_array_equal(robots.setpoints(arrangement, arm, 2, 0), targets[:2])
    assert np.abs(robots.setpoints(arrangement, arm, 4, 1) - targets)[1:].max() > 0.01


def test_a_run_goes_to_its_setpoint_and_says_when_it_is_lost(tmp_path):
    (arrangement,) = ARRANGEMENTS
    arm = load_arm(arrangement.robot)

    def steered(target, **told):
        fixed = robots.law(arrangement.gain, 0.0, arrangement.feedback)
        return steer(arm, np.array(target), fixed, robots.LOOPS, payload=0.0, seconds=3.0, **told)

    bag = tmp_path / "bags" / "run"
    trace = steered([0.05, 0, -0.43], bag=bag)
    assert len(trace["times"]) == 150
    assert trace["errors"][-1] < 0.3 * trace["errors"][0]
    assert 0.0 < trace["shapes"][-1] < 0.01
    np.testing.assert_allclose(trace["lengths"], 0.15, atol=1e-15)
    assert not trace["lost"]
    assert bag.exists()
    arrived = steered([0.05, 0, -0.43], within=0.04)
    assert arrived["errors"][-1] < 0.04 <= arrived["errors"][-2]
    assert steered([2.0, 0.0, 0.0])["lost"]


def test_the_robots_study_sets_changes_beside_the_published_ones(tmp_path):
    given = {"setpoints": 1, "seconds": 1.0}
    rows, directory = rows_of("dalenberg2024/robot-2", tmp_path, **given)
    least = rows["poses", FIXED, "E_shape least (R17)"]
    assert least.published == {"simulation": 0.55}
    mean = rows["poses", FIXED, "E_shape mean (R16)"].mean
    own = rows["poses", SLOWED, "E_shape mean (R16)"].mean
    change = rows["poses", SLOWED, "E_shape mean (R16), change"]
    assert change.published == {"simulation": -28.6}
    assert change.mean == pytest.approx(100.0 * (own / mean - 1.0))
    assert {method for _, method, _ in rows} == set(robots.LAWS)
    assert (directory / "pose.png").is_file()


def test_runs_that_were_lost_are_counted_and_left_out_for_both():
    arrangement = robot_1.ARRANGEMENTS[1]

    def trace(scale, lost):
        series = {name: scale * np.ones((4, 3)) for name in ("linear", "angular")}
        series |= {name: scale * np.ones(4) for name in ("shapes", "curves", "costs", "errors")}
        return series | {"bounded": 0.5, "lost": lost}

    pairs = [(0, trace(1.0, False), trace(2.0, False)), (0, trace(9.0, True), trace(9.0, False))]
    rows = {row.quantity: row for row in robots._rows_of(arrangement, SLOWED, pairs, 1)}
    assert rows["runs lost"].mean == 1.0
    assert rows["E_shape largest (R14)"].mean == 1e3
    assert rows["E_shape largest (R14), change"].mean == -50.0
    asked = rows["E_shape over that of fixed lengths"]
    assert (asked.mean, asked.must, asked.goal) == (0.5, 1.0, pytest.approx(1.0 - 0.286))
    assert asked.mark == "goal"
    worse = robots._rows_of(arrangement, SLOWED, [(0, trace(2.0, False), trace(1.0, False))], 1)
    assert {row.mark for row in worse if "over that" in row.quantity} == {"MISS"}
    assert rows["named run: tip's distance, end (R11)"].mean == 100.0
    assert [row.quantity for row in robots._rows_of(arrangement, SLOWED, pairs[1:], 1)] == [
        "runs lost", "ticks at a bound",
    ]  # fmt: skip


def test_a_tip_that_passes_by_with_its_model_elsewhere_is_lost_and_not_timed():
    trial = hardware_experiments.TRIALS[1]

    def trace(mapping):
        series = {name: np.ones((4, 3)) for name in ("linear", "angular")}
        return series | {
            "lost": False, "costs": np.ones(4), "mapping": np.full(4, mapping),
            "errors": np.array([0.3, 0.2, 0.1, 5e-4]), "times": 0.1 * np.arange(4.0),
        }  # fmt: skip

    def timed(mapping):
        rows = hardware_experiments._rows_of(trial, "A-PCC, Γ printed", trace(mapping), trace(0.05))
        return next(row for row in rows if row.quantity.startswith("time to 1 mm"))

    near, lost = timed(0.05), timed(0.286)
    assert (near.mean, near.note) == (pytest.approx(0.3), "")
    assert np.isnan(lost.mean)
    assert "lost, not timed" in lost.note


def test_printed_changes_agree_with_the_figures_but_where_the_page_says_so():
    for number, each in PRINTED.items():
        if each.fixed and each.change is not None and number not in ("R3", "R25"):
            change = 100.0 * (each.adaptive / each.fixed - 1.0)
            assert change == pytest.approx(each.change, abs=0.6), number


def test_the_hardware_study_in_short(tmp_path):
    given = {"runs": 1, "seconds": 1.0}
    rows, directory = rows_of("dalenberg2024/hardware-experiments", tmp_path, **given)
    met = rows["Experiment I", "position, true π", "sensors' distance"].mean
    both = rows["Experiment I", "pose, true π", "sensors' distance"].mean
    assert met < 0.05 < both  # positions alone can be met, poses not
    turned = (rows["Experiment I", f"{mode}, true π", "sensors' angle"].mean
              for mode in ("position", "pose"))  # fmt: skip
    assert next(turned) > next(turned)
    mapping = rows["II, run II: pose", FIXED, "E_mapping mean (R25)"]
    assert mapping.mean > 0.0
    assert mapping.published == {"bench": 8.5}
    run = "II, run III: 0.21 kg"
    assert (run, hardware_experiments.WEAK, "time to 1 mm (R28)") in rows
    assert (run, FIXED, "sensor 3's distance (R32)") in rows
    assert (directory / "experiment_2_run_3.png").is_file()


def test_paths_of_table_one_are_pooled_and_runs_are_not():
    study = load_study("dalenberg2024/hardware-experiments")
    cells = study.cells(study.settings())
    names = [cell.case_name for cell in cells if cell.method == "pose, true π"]
    assert names == 8 * ["Experiment I"]
    steered = [(cell.case_name, cell.method) for cell in cells if cell.case_name[:2] == "II"]
    assert len(set(steered)) == len(steered) == 10


def test_an_exact_arm_is_led_to_a_setpoint_as_the_models_own():
    """Two seconds: K = 1.5 / s takes the error to a twentieth, of arms with lags a little less."""
    settings = other_plants.Settings(seconds=2.0)
    own, exact = (
        other_plants.run(Cell(plant, FIXED, 0, settings))
        for plant in (other_plants.OWN, other_plants.OTHERS[1])
    )
    for quantity in (other_plants.TIP, other_plants.MEAN):
        assert exact[quantity] == pytest.approx(own[quantity], rel=0.3)
    assert own[other_plants.SHAPE] < 0.1 < exact[other_plants.SHAPE]
    assert exact[other_plants.GONE] == exact[other_plants.LENGTHS] == 0.0


def test_a_hanging_exact_arm_sees_its_racks_where_they_are():
    arm = load_arm("dalenberg_robot2")
    still = other_plants.ExactArm(other_plants.OTHERS[1], arm)
    longer = other_plants.ExactArm(other_plants.OTHERS[2], arm)
    places = still.racks()[:, :3, 3]
    # its motors do not let it stretch much
    np.testing.assert_allclose(places[:, 2], [-0.15, -0.30, -0.45], atol=2e-3)
    np.testing.assert_allclose(longer.racks()[:, 2, 3], [-0.165, -0.30, -0.4575], atol=2e-3)
    np.testing.assert_allclose(still.points()[[0, -1]], [[0, 0, 0], places[-1]], atol=1e-9)
