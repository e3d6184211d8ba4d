"""Loops on plants that are not the model: lock-in, drawn plants, drift, which filter is taken."""

import numpy as np
import pytest

from softcr_control.controller_file import named_settings
from softcr_estimation import ModelEstimator, ModelEstimatorSettings
from softcr_models import load_robot
from softcr_models.models import make_model
from softcr_simulation.errors.plant_errors import DRAWN, PlantErrors, about_field, load_plant_errors
from softcr_simulation.structural_plant import StructuralPlant
from softcr_studies.frame.cell import Cell, StudySettings
from softcr_studies.frame.results import Results
from softcr_studies.loops import drawn_plants
from softcr_studies.loops.compared_loops import silent_percent
from softcr_studies.loops.drawn_plants import ERROR, TEST_MOTIONS, TRAIN_MOTION
from softcr_studies.loops.tracking_loop import FAST, reference_of
from softcr_studies.robustness import draws, drifting_plant, fair, hour
from softcr_studies.robustness.drifting_plant import DriftingPlant, between, worst_drift
from softcr_studies.tuning import chain, horizon

ROBOT = load_robot("licher2025")
TYPICAL = load_plant_errors("typical")


@pytest.mark.parametrize(("robot", "kind"), [("licher2025", "ukf"), ("licher2025_chain", "ekf")])
def test_the_filter_is_the_one_that_suits_the_model(robot, kind):
    model = make_model("rod", load_robot(robot))
    assert ModelEstimator(model).kind == kind
    assert ModelEstimator(model, ModelEstimatorSettings(filter="ukf")).kind == "ukf"


def test_lock_in_is_what_lies_outside_and_is_not_warned_of():
    times = np.arange(8.0)
    result = {
        "times": times,
        "tip_sigmas": np.array([9.0, 9.0, 9.0, 9.0, 9.0, 3.5, 0.0, 0.0]),
        "compliance_sigmas": np.array([0.0, 0.0, 0.0, 3.5, 0.0, 0.0, 0.0, 0.0]),
        "warned": np.array([False, False, False, True, False, False, False, False]),
    }
    # of a sound filter's tips 99.73 % lie within 3.76 in three dimensions
    assert silent_percent(result, "tip_sigmas") == 20.0
    assert silent_percent(result, "compliance_sigmas") == 0.0
    assert silent_percent(result | {"event": 2.0}, "tip_sigmas") == 0.0


def errors_of(motion, seed):
    return drawn_plants.errors_of(Cell(motion, "", seed, StudySettings()))


def test_plants_to_choose_on_and_to_judge_on_never_meet():
    train = [errors_of(TRAIN_MOTION, seed) for seed in range(20)]
    test = [errors_of(TEST_MOTIONS[0], seed) for seed in range(20)]
    assert not {each.length_factor for each in train} & {each.length_factor for each in test}
    assert test == [errors_of(TEST_MOTIONS[1], seed) for seed in range(20)]
    assert {each.reference for each in TEST_MOTIONS}.isdisjoint({TRAIN_MOTION.reference})


def test_rows_of_draws_are_median_95_percent_and_worst():
    class Found:
        def by_method(self):
            errors = [{ERROR: float(n), drawn_plants.LOST: n == 100} for n in range(1, 101)]
            return {(TEST_MOTIONS[0].name, "ours"): errors}

    rows = {row.quantity: row for row in draws.rows(Found())}
    told = [rows[f"{ERROR}, {name}"].mean for name in ("median", "95 %", "worst")]
    assert told == pytest.approx([50.5, 95.05, 100.0])
    assert rows[drawn_plants.LOST].mean == 1.0
    assert rows[f"{ERROR}, worst"].mark == "MISS"


def test_the_variant_is_chosen_on_train_plants_alone():
    errors = dict.fromkeys(chain.VARIANTS, 0.5) | {"walks x 3": 0.4}
    settings = chain.Settings(seeds=2)
    found = {
        Cell(TRAIN_MOTION, method, seed, settings): {ERROR: error}
        for method, error in errors.items()
        for seed in range(2)
    } | {Cell(TEST_MOTIONS[0], "priors x 2", seed, settings): {ERROR: 0.1} for seed in range(2)}
    results = Results(settings, found)
    results.cells = list(found)
    cells = chain.later(results)
    assert {cell.method for cell in cells} == {chain.SHIPPED, "walks x 3"}
    assert {cell.case for cell in cells} == set(TEST_MOTIONS)


def test_what_counts_as_shipped_is_and_variants_change_the_chain_alone():
    shipped, told = named_settings("rod_mpc"), horizon.VARIANTS[horizon.SHIPPED]
    assert (told["horizon"], tuple(told["knots"])) == (shipped.horizon, shipped.knots)
    shipped, doubled = chain.Factors().settings, chain.Factors(priors=2.0).settings
    of_rod = "bending_compliance", "pressure_gains"
    assert all(doubled.deviations[name] == shipped.deviations[name] for name in of_rod)
    assert doubled.deviations["hose_1"] == 2.0 * shipped.deviations["hose_1"]
    assert doubled.noises == shipped.noises
    # every loop is on every plant, and ours at rest
    assert {len(fair.methods(case)) for case in fair.STUDY.cases} == {1, len(fair.LOOPS)}


def test_a_drift_goes_to_the_farther_ends_of_the_spreads():
    end = worst_drift(TYPICAL)
    for name in TYPICAL.changed():
        about = about_field(name)
        if about.group in DRAWN[:3]:
            low, high = about.spread
            for first, last in zip(
                np.atleast_1d(getattr(TYPICAL, name)), np.atleast_1d(getattr(end, name)),
                strict=True,
            ):  # fmt: skip
                assert abs(last - first) == max(abs(high - first), abs(low - first)) or (
                    last in (low, high) and first == (low + high) / 2
                )
    assert between(TYPICAL, end, 0.0) == TYPICAL
    halfway = between(TYPICAL, end, 0.5).length_factor
    assert halfway == pytest.approx(0.5 * (TYPICAL.length_factor + end.length_factor))


def moved(plant, ticks=20):
    """True tips and readings under changing commands."""
    found = []
    for tick in range(ticks):
        plant.follow(np.array([1e3 * tick, 2e4, 5e3]))
        plant.advance(1 / 70)
        measured = plant.measure(tick)
        found.append(np.concatenate((measured.true_tip_pose[:3, 3], measured.pressures)))
    return np.array(found)


def test_a_drift_that_stands_still_is_the_plant_to_the_bit(monkeypatch):
    monkeypatch.setattr(drifting_plant, "_RENEWED", 0.05)
    drifting = DriftingPlant(ROBOT, lambda time: TYPICAL, seed=3, intervals=4)

    class Inside:
        follow, advance = drifting.follow, drifting.advance

        def measure(self, stamp):
            return drifting.simulated.measure(stamp)

    alone = StructuralPlant(ROBOT, TYPICAL, 3, 4)
    first = drifting.simulated
    np.testing.assert_array_equal(moved(Inside()), moved(alone))
    assert drifting.simulated is not first


def test_memories_of_another_number_are_not_taken_over():
    plants = [StructuralPlant(ROBOT, errors, 1, 2) for errors in (TYPICAL, PlantErrors())]
    with pytest.raises(ValueError, match="memories"):
        plants[0].take_over(plants[1])


def test_a_motion_that_repeats_itself_goes_on_without_a_jump():
    source = reference_of(ROBOT, FAST.__class__("", FAST.reference, 6.5))
    long = hour.repeated(source, 12.0)
    assert len(long.tip_positions) == round(12.0 / source.period) + 1
    steps = np.linalg.norm(np.diff(long.tip_positions, axis=0), axis=1)
    begin = np.linalg.norm(np.diff(source.tip_positions, axis=0), axis=1)
    assert steps.max() <= 1.02 * begin.max()
    turn = round(2.0 / source.period)
    np.testing.assert_array_equal(long.tip_positions[-1], long.tip_positions[-1 - turn])
