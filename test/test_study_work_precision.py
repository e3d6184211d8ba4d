"""The work-precision study: the same arms for every simulator, errors and times that are so."""

import importlib.util
import math
import sys

import numpy as np
import pytest
from kit.studies import rows_of

from softcr_models.rod.cosserat_rod import CosseratRod
from softcr_studies.frame.catalogue import load_study
from softcr_studies.speed import arms, work_precision
from softcr_studies.speed.arms import ARMS, PERIOD
from softcr_studies.speed.beside import answers
from softcr_studies.speed.timing import Skipped
from softcr_studies.speed.work_precision import ELASTICA, OURS, SOROMOX, WorkSettings

STUDY = "speed/work-precision"
SMALL = WorkSettings(periods=12)


def test_arms_have_the_stiffness_of_an_incompressible_round_rod():
    for arm in ARMS:
        robot = arm.robot()
        assert robot.length == pytest.approx(arm.length)
        for (length, diameter), segment, found in zip(
            arm.segments, robot.segments, robot.segment_compliances, strict=True
        ):
            area, second_moment = np.pi * diameter**2 / 4, np.pi * diameter**4 / 64
            shear = arms.YOUNG / 3.0
            stiffness = [shear * area, shear * area, arms.YOUNG * area,
                         *2 * [arms.YOUNG * second_moment], 2 * shear * second_moment]  # fmt: skip
            assert 1.0 / found == pytest.approx(stiffness)
            assert segment.length == length
        up = CosseratRod(robot, 2).grid.gravity
        assert -up == pytest.approx(arm.gravity, abs=1e-12)
        for tendon, place in zip(arm.tendons, robot.tendon_offsets(0, [0.0])[0], strict=False):
            assert place[0] == pytest.approx([tendon.x, tendon.y, 0.0])
        tensions = arm.tensions(100)
        assert tensions.shape == (100, len(arm.tendons))
        assert (tensions >= 0.0).all()


def test_errors_fall_and_every_method_says_what_it_lacks(tmp_path, monkeypatch):
    monkeypatch.setattr(work_precision, "OUR_GRIDS", [(2, 1), (4, 1), (8, 2)])
    monkeypatch.setattr(work_precision, "SCIPY_GRIDS", [(2, 1e-2)])
    monkeypatch.setattr(work_precision, "BOUNDS", (20.0, 5.0, 0.1))
    monkeypatch.setattr(work_precision, "has_soromox", lambda python: False)
    find = importlib.util.find_spec
    monkeypatch.setattr(
        importlib.util, "find_spec", lambda name: None if name == "elastica" else find(name)
    )
    rows, directory = rows_of(STUDY, tmp_path, SMALL)
    notes = {(row.case, row.method): row.note for row in rows.values()}
    for arm in ARMS:
        assert "pip install pyelastica" in notes[arm.name, ELASTICA]
        assert "pip install soromox" in notes[arm.name, SOROMOX]
        found = [row for key, row in rows.items() if key[:2] == (arm.name, OURS)]
        assert all(row.timing for row in found)
        assert found[0].mean > 0.0
    assert (directory / "two_segments.png").stat().st_size > 1000
    for cell in load_study(STUDY).cells(SMALL):
        if cell.method == OURS:
            errors = work_precision.run(cell)["errors"]
            assert errors[0] > 2.5 * errors[1] > 6.0 * errors[2] > 0.0


@pytest.mark.parametrize(
    ("errors", "bound", "best"),
    [([5.0, 0.5, 0.2], 1.0, 3.0), ([math.nan, 0.5, 2.0], 1.0, 3.0), ([2.0, 3.0, 9.0], 1.0, 0.0)],
)
def test_the_best_time_is_that_of_the_fastest_within_the_bound(errors, bound, best):
    points = {"errors": np.array(errors), "times": np.array([1.0, 3.0, 4.0])}
    assert work_precision.best_time(points, bound) == best


def test_extrapolation_removes_an_error_of_second_order():
    true, error = np.array([1.0, 2.0]), np.array([0.3, -0.1])
    coarse, fine = true + error, true + error / 9.0
    assert work_precision.extrapolated(coarse, fine, 3.0) == pytest.approx(true)


def test_pyelastica_comes_to_rest_where_our_arm_of_two_segments_does(monkeypatch):
    """At small tensions, damped heavily: its large-strain law and its damping hardly matter."""
    pytest.importorskip("elastica")
    arm = ARMS[2]
    monkeypatch.setattr(work_precision, "damping_constant", lambda rod: 40.0)
    robot = arm.robot()
    order = work_precision.elastica_order(arm, 1)
    tensions = np.tile([0.4, 0.15], (150, 1))
    order["intrinsic_strains"] = np.einsum(
        "kc,kcm,tm->tkc", robot.segment_compliances, robot.segment_actuation, tensions
    )
    order["rod"]["gravity"] = 0.2 * arm.gravity
    script = work_precision.Path(work_precision.__file__).with_name("pyelastica_process.py")
    ((tips, _),) = answers(script, order | {"runs": [(20, 40)]}, ELASTICA, 300.0)
    lighter = CosseratRod(robot.replace(gravity=0.2 * robot.gravity), 10)
    rest = lighter.tip_pose(lighter.equilibrium(tensions[0]))[:3, 3]
    moved = np.linalg.norm(rest - [0.0, 0.0, arm.length])
    assert moved > 0.01
    assert np.linalg.norm(tips[-1] - rest) < 0.03 * moved


@pytest.mark.slow
def test_soromox_moves_as_our_arms_do():
    if not work_precision.has_soromox(""):
        pytest.skip("soromox is not installed")
    script = work_precision.Path(work_precision.__file__).with_name("soromox_process.py")
    for arm in ARMS[1:]:
        found = answers(script, {"arm": arm.order(30), "runs": [2, 5]}, SOROMOX, 600.0)
        true = work_precision.fine_tips(arm, 30)
        errors = [np.linalg.norm(tips - true, axis=1).mean() for tips, _ in found]
        assert errors[1] < 0.3 * errors[0] < 0.003


def test_a_simulator_that_cannot_be_run_is_skipped_with_a_reason(tmp_path):
    script = tmp_path / "broken.py"
    script.write_text("import sys; sys.exit('no such arm')")
    with pytest.raises(Skipped, match="Theirs's process failed: no such arm"):
        answers(script, {}, "Theirs", 60.0)
    with pytest.raises(Skipped, match="/no/python cannot be run"):
        answers(script, {}, "Theirs", 60.0, "/no/python")
    script.write_text("import time; time.sleep(60)")
    with pytest.raises(Skipped, match="longer than 1 s"):
        answers(script, {}, "Theirs", 1.0, sys.executable)
    assert not work_precision.has_soromox("/no/python")
    assert PERIOD == 0.01
