"""A filter that begins where another one ended, and how a repeated motion makes use of it."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from softcr_control.predictive.learned_motion import LearnedMotion
from softcr_estimation import ModelEstimatorSettings
from softcr_estimation.context import EstimationContext
from softcr_estimation.model_filter import ModelFilter
from softcr_models import CosseratRod, load_robot
from softcr_models.errors import UserError
from softcr_models.models import make_model
from softcr_tools.running.run_options import SimulationOptions
from softcr_tools.running.systems import simulation_system

PERIOD = 1 / 70
ROBOT = load_robot("licher2025_chain")
MODEL = make_model("rod", ROBOT, {"intervals": 3})
PRESSURES = np.array([3e4, 1e4, 2e4])


def made(*begins_with):
    context = EstimationContext(ROBOT, MODEL, PERIOD)
    return ModelFilter(context, ModelEstimatorSettings(begins_with=",".join(begins_with)))


def first(*begins_with):
    return made(*begins_with).update(PRESSURES, {}, 0.0)


@given(
    compliance=st.floats(40.0, 60.0),
    gain=st.floats(0.9, 1.1),
    offset=st.floats(-2000.0, 2000.0),
    play=st.floats(-0.3, 0.3),
)
def test_an_estimate_begins_with_the_numbers_it_is_told(compliance, gain, offset, play):
    told = {
        "bending_compliance": compliance,
        "pressure_gain_2": gain,
        "pressure_offset_3": offset,
        "hysteresis_1": play,
    }
    found = first(*(f"{name}={number!r}" for name, number in told.items()))
    assert {name: found.parameters[name] for name in told} == pytest.approx(told, rel=1e-9)
    usual = first()
    others = usual.parameters.keys() - told.keys()
    assert all(found.parameters[name] == usual.parameters[name] for name in others)
    assert found.parameters_std["hysteresis_1"] == usual.parameters_std["hysteresis_1"]


def test_the_rod_rests_under_the_pressures_that_then_act():
    """The same as a rod without a chain that has this compliance, under those pressures."""
    told = first("bending_compliance=45.0", "pressure_gain_1=1.05", "pressure_offset_1=500.0")
    rod = CosseratRod(load_robot("licher2025"), 3)
    numbers = rod.nominal_parameters.copy()
    numbers[rod.parameter_names.index("bending_compliance")] = 45.0
    acting = PRESSURES * [1.05, 1.0, 1.0] + [500.0, 0.0, 0.0]
    expected = rod.equilibrium(acting, numbers)
    np.testing.assert_allclose(told.state, expected, atol=1e-7)


def test_a_reset_begins_there_again_and_safety_does_not():
    estimator = made("bending_compliance=45.0")
    estimator.update(PRESSURES, {}, 0.0)
    estimator.reset()
    again = estimator.update(PRESSURES, {}, 0.0)
    assert again.parameters["bending_compliance"] == pytest.approx(45.0)
    assert estimator.describe()["initial_parameters"] == again.parameters
    estimator._filter._fall_back()
    safe = estimator._filter.update(PRESSURES, {}, PERIOD)
    assert safe.parameters["bending_compliance"] == pytest.approx(ROBOT.bending_compliance)


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("stiffness=2.0", r"begins_with: 'stiffness' is not estimated; allowed are bending_compl"),
        ("bending_compliance", r"begins_with: 'bending_compliance' is not allowed: must be name="),
        ("bending_compliance=soft", "must be name=number"),
        ("bending_compliance=nan", "must be name=number"),
        ("bending_compliance=-1", "begins_with: bending_compliance = -1 is outside its bounds: "),
        ("pressure_offset_1=3e4", "30000 is outside its bounds: must be from -20000 to 20000"),
        ("tip_mass=0.01,tip_mass=0.02", "each name once"),
    ],
)
def test_what_it_cannot_begin_with_is_one_line(text, line):
    with pytest.raises(UserError, match=line):
        made(text)


def estimator_of(path, **texts):
    options = SimulationOptions.of_options({"reference.learned": str(path), **texts})
    parts = simulation_system(options, path.parent / "bag").parts
    return next(part.parameters for part in parts if part.name == "estimator")


def test_a_repeated_motion_begins_where_its_filter_ended(tmp_path):
    path, own = tmp_path / "motion.json", tmp_path / "own.py"
    found = {"bending_compliance": 47.123456789012345, "hysteresis_2_of_1": -1e-17}
    still = {"motion": {}, "period": 0.01, "errors": [], "shift": [(0.0, 0.0, 0.0)]}
    motion = LearnedMotion(robot=ROBOT.name, **still)
    motion.save(path)
    assert "begins_with" not in estimator_of(path)
    motion.model_copy(update={"parameters": found}).save(path)
    texts = estimator_of(path)["begins_with"]
    assert first(texts).parameters["bending_compliance"] == pytest.approx(47.123456789012345)
    place = "softcr_estimation.model_filter:ModelFilter"
    assert estimator_of(path, robot=ROBOT.name, estimator=place)["begins_with"] == texts
    with pytest.raises(UserError, match="learned of robot licher2025_chain, must be of licher2025"):
        estimator_of(path, robot="licher2025")
    own.write_text(  # an estimator without such a setting is not told
        "class Mine:\n    def __init__(self, context, settings): ...\n"
        "    def reset(self): ...\n    def update(self, inputs, measurements, stamp): ...\n"
    )
    assert "begins_with" not in estimator_of(path, robot=ROBOT.name, estimator=f"{own}:Mine")
