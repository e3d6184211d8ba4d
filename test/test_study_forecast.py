"""Study `recordings/forecast`: plants as wrong as a recording shows, and the loop on them."""

import numpy as np
import pytest
from kit.refusals import one_line
from kit.studies import rows_of

from softcr_models import load_robot
from softcr_simulation.errors.plant_errors import MODEL_ERRORS, PlantErrors, load_plant_errors
from softcr_studies.recordings.forecast import STUDY, Settings, as_wrong, drawn, scaled


def test_errors_are_scaled_from_none_to_those_that_were_drawn():
    robot = load_robot("licher2025")
    errors = drawn(robot, np.random.default_rng(0))
    whole, none, double = (scaled(robot, errors, factor) for factor in (1.0, 0.0, 2.0))
    for name, value in errors.changed().items():
        np.testing.assert_allclose(getattr(whole, name), value, rtol=1e-9, err_msg=name)
    assert none.bending_factor == 1.0
    assert none.tip_mass_fraction == robot.tip_mass_fraction
    assert none.hose_pole == 5e3
    assert double.lever_factor[0] - 1.0 == pytest.approx(2.0 * (errors.lever_factor[0] - 1.0))
    assert double.creep_time == errors.creep_time


def test_motors_have_errors_of_the_models_structure():
    robot = load_robot("asl_trunk")
    found = drawn(robot, np.random.default_rng(0)).changed()
    assert len(found) > 5
    assert found.keys() <= MODEL_ERRORS


def test_a_plant_is_as_far_off_as_is_wanted_and_can_be():
    robot = load_robot("licher2025")
    errors = drawn(robot, np.random.default_rng(1))
    case, apart = as_wrong(robot, 2.5, errors, 2e-3)
    assert apart == pytest.approx(2e-3, rel=0.05)
    assert case.beam
    assert case.errors != PlantErrors()
    with one_line("plants that are 2e[+]05 mm off cannot be made"):
        as_wrong(robot, 2.2, PlantErrors(bending_factor=1.1), 200.0)


def test_the_loop_is_better_than_without_feedback(tmp_path):
    settings = Settings(robot="licher2025", error_mm=2.0, duration=3.0, seeds=1)
    rows, directory = rows_of(STUDY.name, tmp_path / "results", settings)
    loop, without = (
        rows["random plants", "nempc", quantity].mean
        for quantity in ("tip, in the loop", "tip, without feedback")
    )
    assert without == pytest.approx(2.0, rel=0.05)
    assert 0.0 < loop < 0.5 * without
    assert rows["random plants", "nempc", "lost runs"].mean == 0.0
    plant = directory / "plant_1.yaml"
    assert load_plant_errors(str(plant)).changed().keys() > {"bending_factor", "length_factor"}
    assert "--robot licher2025 --plant.plant-errors " in plant.read_text().splitlines()[0]
