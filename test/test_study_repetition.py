"""The studies of learning over repetitions and of a chain's identification: shape and law."""

import numpy as np
import pytest

from softcr_models import load_robot
from softcr_models.errors import UserError
from softcr_runtime.blocks.block import Output
from softcr_runtime.blocks.values import Pose, StateEstimate
from softcr_studies.control import repetition
from softcr_studies.frame.study import Cell
from softcr_studies.loops.compared_loops import OURS, WITHOUT
from softcr_studies.loops.tracking_loop import PERIOD
from softcr_studies.robustness import chain_identification


def test_what_cameras_lost_lies_between_its_neighbours():
    seen = repetition._Seen(4)
    for row in (0, 1, 3):
        stamp = round(1e9 * PERIOD * (row + 1))
        pose = Pose(np.array([row, 2.0 * row, 0.0]), np.array([0.0, 0.0, 0.0, 1.0]))
        seen("simulator", Output("mocap/tip/pose", stamp, pose))
    np.testing.assert_allclose(seen.filled()[:, 1], [0.0, 2.0, 4.0, 6.0])


@pytest.mark.slow
def test_what_was_learned_helps_the_next_run(monkeypatch):
    monkeypatch.setattr(repetition, "REPETITIONS", 1)
    monkeypatch.setattr(repetition, "DURATION", 3.0)
    cell = Cell("hard", WITHOUT, 0, repetition.STUDY.settings())
    first, second = repetition.run(cell)["errors"]
    assert second < 0.8 * first


def test_the_next_filter_begins_with_what_was_estimated_alone():
    seen = repetition._Seen(1)
    numbers, deviations = {"softness": 2.0, "length": 0.1}, {"softness": 0.1, "length": 0.0}
    estimate = StateEstimate(np.zeros(1), numbers, deviations)
    seen("estimator", Output("estimate/rod", 0, estimate))
    assert seen.parameters == {"softness": 2.0}
    goes_on = {name for name, each in repetition.METHODS.items() if each.goes_on}
    assert goes_on == {OURS, WITHOUT}


@pytest.mark.parametrize("truth", chain_identification.TRUTHS, ids=lambda each: each.parameter)
def test_every_truth_is_a_number_of_the_chain(truth):
    def with_value(name):
        chain = chain_identification.CHAIN | {"values": {name: 1e-3}}
        return load_robot("licher2025").replace(pressure_chain=chain)

    assert dict(with_value(truth.parameter).pressure_chain.values) == {truth.parameter: 1e-3}
    with pytest.raises(UserError, match="no_such_number"):
        with_value("no_such_number")


def test_what_was_not_excited_is_told_without_an_interval():
    result = {"names": ["hose_1"], "values": np.array([0.6]), "widths": np.array([0.01])}
    told = {each.parameter: chain_identification._told(result, each)
            for each in chain_identification.TRUTHS}  # fmt: skip
    np.testing.assert_allclose(told.pop("hose_1"), (15.0, 0.25))
    assert all(value == (0.0, np.inf) for value in told.values())
