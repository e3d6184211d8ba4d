"""Experiment 1: the linear rod is the rod for small motions, and less and less for larger ones."""

from dataclasses import replace

import matplotlib
import numpy as np
import pytest
from kit.studies import results_of

from softcr_models import CosseratRod, load_robot
from softcr_models.prediction import RodPrediction
from softcr_papers.licher2025.studies.linearisation import (
    AMPLITUDES,
    CUTOFF,
    HOLD,
    STUDY,
    LinearRod,
    growth,
    sequence,
)
from softcr_runtime.bags.reading import Bag
from softcr_runtime.bags.signals import read_signals
from softcr_studies.loops.tracking_loop import PERIOD

ROBOT = load_robot("licher2025")
ROD = CosseratRod(ROBOT, 3)


def deviation(linear, amplitude):
    """Mean distance of linear from true tips [m], of steps up from the steady state."""
    pressures = linear.pressures + amplitude * sequence(ROBOT, np.random.default_rng(1))[:150]
    prediction = RodPrediction(ROD, substeps=8, single_precision=False)
    true = prediction.rollout(linear.state, pressures[None], ROD.nominal_parameters, PERIOD)[0]
    tips = prediction.tip_poses(true, ROD.nominal_parameters[None])[:, :, 3]
    own = linear.tips(linear.motion(pressures, PERIOD))[1:]
    return np.linalg.norm(own - tips, axis=1).mean(), np.ptp(tips, axis=0).max()


@pytest.mark.parametrize("about", [(0.0, 0.0, 0.0), (30e3, 10e3, 0.0)])
def test_what_the_linear_rod_leaves_out_is_of_second_order(about):
    linear = LinearRod(ROD, np.array(about))
    (large, moved), (small, _) = deviation(linear, 400.0), deviation(linear, 200.0)
    assert large < 0.02 * moved
    assert large / small == pytest.approx(4.0, rel=0.15)


def test_it_stays_at_rest_and_settles_where_its_equations_say():
    linear = LinearRod(ROD, np.zeros(3))
    still = linear.motion(np.zeros((5, 3)), PERIOD)
    np.testing.assert_allclose(still, np.tile(linear.state, (5, 1)), atol=1e-9)
    held = np.tile([500.0, 0.0, 0.0], (1200, 1))
    settled = linear.state - np.linalg.solve(linear.jacobian, linear.input_jacobian @ held[0])
    np.testing.assert_allclose(linear.motion(held, PERIOD)[-1], settled, atol=1e-3)


def test_sequences_are_smooth_steps_that_differ_by_seed():
    shape, other = (sequence(ROBOT, np.random.default_rng(seed)) for seed in (0, 1))
    assert shape.shape == (8 * 70, 3)
    assert not shape[0].any()
    assert 0.0 <= shape.min() < 0.01 < 0.99 < shape.max() <= 1.0
    assert not np.array_equal(shape, other)
    # a first-order low-pass: what is left of a step after t is exp(-2 pi 4 Hz t)
    column = int(shape[round(HOLD / PERIOD)].argmax())
    left = 1.0 - shape[:5, column]
    np.testing.assert_allclose(left, np.exp(-2 * np.pi * CUTOFF * PERIOD * np.arange(5)))


def test_growth_is_the_exponent_of_a_power():
    amplitudes = np.array(AMPLITUDES)[:, None]
    assert growth(3.0 * amplitudes ** np.array([1.0, 2.0, 0.5])) == pytest.approx([1.0, 2.0, 0.5])


def test_a_short_run_makes_rows_figures_and_bag(tmp_path):
    matplotlib.use("Agg")

    def run(cell):
        bag = cell.seed == 0 and cell.case == "steps of 80 kPa"
        return STUDY.run(replace(cell, bag=tmp_path / "bag" if bag else None))

    results = results_of(STUDY, tmp_path / "run", run, seeds=2, intervals=3)
    rows = STUDY.rows(results)
    assert len(rows) == 4 * len(AMPLITUDES) + 3
    by_case = {(row.case, row.quantity): row.mean for row in rows}
    for axis in "xyz":
        errors = [by_case[f"steps of {a / 1e3:g} kPa", f"MAE {axis}"] for a in AMPLITUDES]
        assert np.all(np.diff(errors) > 0)
        assert by_case["growth with amplitude", f"exponent of MAE {axis}"] > 1.0
    STUDY.draw(results, tmp_path)
    assert {path.name for path in tmp_path.glob("*.png")} == {"errors.png", "motion.png"}
    read = read_signals(Bag(tmp_path / "bag"))
    assert len(read.role("true tip")) == len(read.role("estimated tip")) == 560
    apart = 1e3 * np.abs(read.role("estimated tip").values - read.role("true tip").values).mean(
        axis=0
    )
    assert apart.max() > 1.0
