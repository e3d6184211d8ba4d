"""The implicit reference integrator as a model: that integrator, and what it is not for."""

from itertools import pairwise

import numpy as np
import pytest

from softcr_models import load_robot
from softcr_models.model import TIP, nominal_parameters
from softcr_models.models import make_model
from softcr_papers.pawlowski2019.reference.implicit_motion import ImplicitMotion
from softcr_papers.pawlowski2019.reference.reference_rod import Loads, ReferenceRod

ROBOT = load_robot("tendon_arm").replace(base_orientation=(0.3, -1.2, 0.4), tip_cap_length=0.01)
LEVELS = np.array([[0.1, 0.2, 0.0, 0.05], [0.3, 0.1, 0.0, 0.15], [0.5, 0.0, 0.1, 0.0]])


@pytest.mark.parametrize("tendons", ["constant", "exact"])
@pytest.mark.parametrize("space", ["euler", "midpoint"])
def test_a_rollout_is_the_integrator(tendons, space):
    """Inputs act at the half of a step."""
    robot = ROBOT.replace(tendon_model=tendons)
    model = make_model("reference", robot, {"points": 10, "space": space})
    numbers = nominal_parameters(model.parameters)
    start = model.equilibrium(LEVELS[0], numbers)
    found = model.rollout(start, LEVELS[None], numbers, 0.04)[0]
    motion = ImplicitMotion(ReferenceRod.of_robot(robot), 10, 0.04, space)
    state = motion.rest_state()
    state.strains[:] = start[: len(start) // 2].reshape(-1, 6)
    for row, (begin, end) in enumerate(pairwise(LEVELS)):
        tip = motion.advance(state, Loads(inputs=0.5 * (begin + end)), 1)[0]
        want = np.concatenate((state.strains.ravel(), state.velocities.ravel()))
        assert found[row] / model.state.scale == pytest.approx(want / model.state.scale, abs=1e-6)
        pose = model.observe((TIP,), found[row][None], None, numbers[None])[TIP][0]
        assert pose[:, 3] - 0.01 * pose[:, 2] == pytest.approx(tip, abs=1e-7)


def test_it_predicts_what_the_rod_of_the_house_does():
    """Other equations of space and time: within 1 mm where the tip moves by 18."""
    reference = make_model("reference", ROBOT, {"points": 20, "space": "midpoint"})
    house = make_model("rod", ROBOT, {"intervals": 10, "substeps": 4, "single_precision": False})
    levels = np.zeros((1, 31, 4))
    levels[0, :, 0], levels[0, :, 1] = 0.25 * (1 - np.cos(0.06 * np.pi * np.arange(31))), 0.1
    tips = []
    for model in (reference, house):
        numbers = nominal_parameters(model.parameters)
        start = model.equilibrium(levels[0, 0], numbers)
        tips.append(model.rollout_tips(start, levels, numbers, 0.02)[0, :, :, 3])
    assert np.ptp(tips[1], axis=0).max() > 0.015
    assert np.linalg.norm(tips[0] - tips[1], axis=1).max() < 1e-3


def test_longer_steps_are_divided():
    model = make_model("reference", ROBOT, {"points": 10, "longest_step": 0.02})
    numbers = nominal_parameters(model.parameters)[None]
    start = model.equilibrium(LEVELS[0], numbers[0])[None]
    middle = 0.5 * (LEVELS[0] + LEVELS[1])
    whole = model.step(start, LEVELS[:1], LEVELS[1:2], numbers, 0.04)
    half = model.step(start, LEVELS[:1], middle[None], numbers, 0.02)
    halves = model.step(half, middle[None], LEVELS[1:2], numbers, 0.02)
    assert whole == pytest.approx(halves, abs=1e-12)


def test_parameters_are_those_of_a_scaled_rod():
    model = make_model("reference", ROBOT, {"points": 10})
    names = [f"{kind}_compliance" for kind in ("bending", "shear", "torsion", "dilatation")]
    halves = {name: getattr(ROBOT, name) / 2 for name in names}
    stiff = make_model("reference", ROBOT.replace(**halves), {"points": 10})
    # viscosity is stiffness times relaxation time
    numbers, plain = np.array([2.0, 2.0, 1.0]), nominal_parameters(model.parameters)
    start = model.equilibrium(LEVELS[0], numbers)
    assert start == pytest.approx(stiff.equilibrium(LEVELS[0], plain), abs=1e-9)
    found = model.rollout(start, LEVELS[None], numbers, 0.04)
    assert found == pytest.approx(stiff.rollout(start, LEVELS[None], plain, 0.04), abs=1e-6)


def test_a_step_that_is_not_found_is_not_a_number():
    model = make_model("reference", ROBOT.replace(relaxation_times=(1e-7,) * 6), {"points": 40})
    start = model.equilibrium(LEVELS[0], nominal_parameters(model.parameters))
    levels = np.tile(LEVELS[-1], (1, 40, 1))
    found = model.rollout(start, levels, nominal_parameters(model.parameters), 1e-4)[0]
    lost = np.isnan(found).all(axis=1)
    assert lost[-1]
    assert np.isfinite(found[~lost]).all()
