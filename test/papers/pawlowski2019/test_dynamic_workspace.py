"""Tips of a rod under random held inputs, and the box around them."""

import numpy as np
import pytest

from softcr_models import CosseratRod, UserError
from softcr_papers.pawlowski2019.reference.dynamic_workspace import (
    Excitation,
    dynamic_workspace,
    reached_tips,
)
from softcr_papers.pawlowski2019.reference.workspace import Workspace, tip_of
from softcr_papers.pawlowski2019.studies.robots import floating

LOW, HIGH = np.zeros(3), np.array([0.5, 0.5, 1.0])


def test_inputs_are_held_as_long_as_asked():
    excitation = Excitation(runs=20, steps=83, held=(4, 7))
    rows = excitation.inputs(LOW, HIGH, np.random.default_rng(1))
    assert rows.shape == (20, 83, 3)
    assert ((rows >= LOW) & (rows <= HIGH)).all()
    assert rows[..., 2].max() > 0.9
    for run in rows:
        changes = np.flatnonzero((np.diff(run, axis=0) != 0.0).any(axis=1)) + 1
        lengths = np.diff(np.concatenate(([0], changes)))
        assert set(lengths) <= {4, 5, 6, 7}
        assert len(set(lengths)) > 1


def test_tips_are_those_of_each_run_alone():
    rod, excitation = CosseratRod(floating(), 3, 0.005), Excitation(runs=9, steps=6, held=(2, 3))
    found = reached_tips(rod, excitation, np.random.default_rng(2))
    inputs = excitation.inputs(np.zeros(4), np.full(4, 0.5), np.random.default_rng(2))
    state, tips = rod.rest_state(), []
    for row in inputs[4]:
        state = rod.step(state, row, excitation.period)
        tips.append(rod.tip_pose(state)[:3, 3])
    assert found[4] == pytest.approx(np.array(tips), abs=1e-7)


def test_a_share_leaves_the_widest_tips_out():
    random = np.random.default_rng(3)
    tips = tip_of(random.uniform((0, -3, -0.02), (17, 3, 0.05), (1000, 3)), 0.1)
    tips[:5] = tip_of(np.array([30.0, 0.0, 0.2]), 0.1)
    assert dynamic_workspace(tips, 0.1).curvature == pytest.approx(30.0)
    most = dynamic_workspace(tips, 0.1, 0.99)
    assert 16.0 < most.curvature < 17.0
    assert 0.04 < most.stretch[1] < 0.05
    assert 0.95 < most.contains(tips).mean() < 1.0
    tips[7] = np.nan
    assert dynamic_workspace(tips, 0.1) == Workspace.around(np.delete(tips, 7, 0), 0.1)


def test_what_is_not_allowed_gets_one_line():
    for share in (0.5, 1.01, np.nan):
        with pytest.raises(UserError, match=r"share: .* is not allowed"):
            dynamic_workspace(np.ones((4, 3)), 0.1, share)
    spoilt = {"runs": 0}, {"steps": 0}, {"period": 0.0}, {"held": (0, 3)}, {"held": (4, 3)}
    for numbers in spoilt:
        with pytest.raises(UserError, match="excitation: "):
            Excitation(**numbers)
