"""What every model of the house promises, whatever it is made of."""

import os
import subprocess
import sys
from dataclasses import dataclass

import numpy as np
import pytest
from kit.refusals import one_line
from oracles.random_arms import random_file
from scipy.integrate import solve_ivp

from softcr_models import UserError, load_robot
from softcr_models.files.yaml_files import validated
from softcr_models.model import TIP, Model, nominal_parameters
from softcr_models.models import MODELS, make_model
from softcr_models.robots.robot import Robot
from softcr_papers.dalenberg2024.arm import load_arm
from softcr_papers.dalenberg2024.arm_dynamics import ArmDynamics, TendonGains
from softcr_papers.dalenberg2024.arm_model import ArmModel, ArmModelSettings
from softcr_papers.dalenberg2024.arm_plant import ArmPlant
from softcr_papers.mehl2024.section_model import ConstantCurvatureSection
from softcr_papers.valadas2024.lagrangian import Lagrangian
from softcr_papers.valadas2024.strain.arm import load_strain_arm

ROD, ARM = load_robot("licher2025"), load_arm("dalenberg_robot1")
STRAIN = load_strain_arm("pcs_two_segments")
TENDONS = load_robot("tendon_arm")
LAG = {"tension_lag": {"gain": 11.0, "pole": 10.94}}
EVERYTHING = validated(Robot, random_file(0, 3) | LAG, "")
MIDPOINT = {"points": 8, "space": "midpoint", "kirchhoff": True}
CHAIN = {"hysteresis_radii": [1000.0], "hose_time": 0.025, "curvature_stiffness": True}


@dataclass(frozen=True)
class Case:
    """A model, a step length [s], and how well its numbers repeat relative to their scale [-].

    Attributes:
        precision: of the model's rollouts.
        steady: how far a step leaves an equilibrium.
        resolved: whether a step resolves what a jump of the inputs excites; the midpoint rule in
            time rings instead.
    """

    name: str
    robot: object
    settings: dict
    dt: float
    precision: float
    steady: float
    resolved: bool = True


CASES = (
    Case("rod", ROD, {}, 1 / 70, 1e-4, 1e-6),
    Case("rod", ROD, {"single_precision": False}, 1 / 70, 1e-9, 1e-6),
    Case("rod", ROD.replace(estimated_payload=True), {}, 1 / 70, 1e-4, 1e-6),
    Case("rod", ROD.replace(pressure_chain=CHAIN), {}, 1 / 70, 1e-4, 1e-6),
    Case("rod", EVERYTHING, {"intervals": 2}, 1 / 70, 1e-4, 1e-6),
    Case("ddpinn", ROD, {}, 1 / 70, 1e-4, 3e-2),
    Case("constant_curvature", ROD, {}, 1 / 70, 1e-12, 1e-9),
    Case("arm", ARM, {}, 0.02, 1e-12, 1e-4),
    Case("arm", ARM, {"sections": "bodies", "payload": 0.2}, 0.02, 1e-12, 1e-4),
    Case("strain", STRAIN, {}, 0.01, 1e-4, 1e-6),
    Case("reference", TENDONS, {"points": 12}, 0.02, 1e-9, 1e-6, False),
    Case("reference", TENDONS, MIDPOINT, 0.02, 1e-9, 1e-6, False),
)


def name_of(case):
    return f"{case.robot.name} {case.name}{case.settings or ''}"


@pytest.fixture(scope="module", params=CASES, ids=name_of)
def case(request):
    return request.param


@pytest.fixture(scope="module")
def model(case):
    if case.name == "ddpinn":
        pytest.importorskip("torch")
    model = make_model(case.name, case.robot, case.settings)
    model.warm_up()
    return model


def inputs_of(model: Model, *shape: int, share: float = 0.2, seed: int = 0) -> np.ndarray:
    """(*shape, m) near the middle of what is allowed."""
    spread = np.random.default_rng(seed).uniform(-0.5, 0.5, (*shape, model.inputs.size))
    return 0.5 * (model.inputs.low + model.inputs.high) + share * model.inputs.range * spread


def states_of(model: Model, batch: int, dt: float) -> np.ndarray:
    """(batch, nx) on their way somewhere else."""
    levels = inputs_of(model, batch, 3)
    start = model.equilibrium(levels[0, 0], nominal_parameters(model.parameters))
    rolled = model.rollout(start, levels, nominal_parameters(model.parameters), dt)
    return np.asarray(rolled[:, -1], float)


def close(model: Model, found: np.ndarray, expected: np.ndarray, tolerance: float) -> None:
    scale = model.state.scale
    np.testing.assert_allclose(found / scale, expected / scale, rtol=0.0, atol=tolerance)


def test_every_name_of_the_house_is_among_the_cases():
    assert {case.name for case in CASES} == set(MODELS)


def test_it_says_what_it_is(model):
    assert isinstance(model, Model)
    assert TIP in model.outputs
    assert model.outputs[TIP].shape == (3, 4)
    groups = np.concatenate([group.indices for group in model.state])
    assert sorted(groups) == list(range(model.state.size))
    assert len({each.name for each in model.parameters}) == len(model.parameters) > 0
    for each in model.parameters:
        assert each.low <= each.nominal <= each.high
        assert each.low < each.high
        assert each.transform == "linear" or each.low > 0.0
    assert len(set(model.inputs.names)) == model.inputs.size


def test_a_batch_is_its_candidates(model, case):
    states, levels = states_of(model, 5, case.dt), inputs_of(model, 5, 2, seed=1)
    numbers = nominal_parameters(model.parameters) * np.linspace(0.9, 1.1, 5)[:, None]
    batch = model.step(states, levels[:, 0], levels[:, 1], numbers, case.dt)
    assert batch.dtype == np.float64
    for row in range(5):
        one = slice(row, row + 1)
        single = model.step(states[one], levels[one, 0], levels[one, 1], numbers[one], case.dt)
        close(model, single[0], batch[row], 1e-5 if case.name == "ddpinn" else 1e-9)
    shared = model.step(states, levels[:1, 0], levels[:1, 1], numbers[:1], case.dt)
    begin, end = np.repeat(levels[:1].swapaxes(0, 1), 5, axis=1)
    each = model.step(states, begin, end, np.repeat(numbers[:1], 5, 0), case.dt)
    np.testing.assert_array_equal(shared, each)


def test_a_rollout_is_repeated_steps(model, case):
    start, levels = states_of(model, 1, case.dt)[0], inputs_of(model, 3, 5, seed=2)
    numbers = nominal_parameters(model.parameters)
    rolled = model.rollout(start, levels, numbers, case.dt)
    assert rolled.shape == (3, 4, model.state.size)
    states = np.repeat(start[None], 3, axis=0)
    for step in range(4):
        states = model.step(states, levels[:, step], levels[:, step + 1], numbers[None], case.dt)
        close(model, rolled[:, step], states, case.precision)
    tips = model.rollout_tips(start, levels, numbers, case.dt)
    observed = model.observe((TIP,), rolled.reshape(12, -1), None, numbers[None])[TIP]
    np.testing.assert_allclose(tips, observed.reshape(3, 4, 3, 4), atol=1e-5)


def test_inputs_are_linear_within_a_step(model, case):
    """Two half steps with the middle in between are one step, but for the integration's error."""
    if not case.resolved:
        pytest.skip("its inputs within a step are tested in test_reference_model.py")
    start = states_of(model, 1, case.dt)
    begin, end = inputs_of(model, 2, 1, seed=3)
    numbers, middle = nominal_parameters(model.parameters)[None], 0.5 * (begin + end)
    whole = model.step(start, begin, end, numbers, case.dt)
    half = model.step(start, begin, middle, numbers, 0.5 * case.dt)
    halves = model.step(half, middle, end, numbers, 0.5 * case.dt)
    held = model.step(start, begin, begin, numbers, case.dt)
    error, effect = (np.abs(each - whole) / model.state.scale for each in (halves, held))
    assert error.max() < 0.5 * effect.max()


def test_an_equilibrium_is_steady(model, case):
    inputs = inputs_of(model, seed=4)
    for factor in (1.0, 1.05):
        numbers = factor * nominal_parameters(model.parameters)
        state = model.equilibrium(inputs, numbers)
        after = model.step(state[None], inputs[None], inputs[None], numbers[None], case.dt)[0]
        moved = np.abs(after - state) / model.state.scale
        if "integrals" in model.state.names:
            # these grow with the error that weight leaves, by no more than error times dt
            integrals = model.state["integrals"]
            assert moved[integrals].max() < 2.0 * case.dt
            moved[integrals] = 0.0
        assert moved.max() < case.steady


def test_outputs_have_their_shapes(model, case):
    states, inputs = states_of(model, 4, case.dt), inputs_of(model, 4, seed=5)
    numbers = nominal_parameters(model.parameters)[None]
    for acting in (inputs, inputs[:1]):
        found = model.observe(tuple(model.outputs), states, acting, numbers)
        for name, info in model.outputs.items():
            assert found[name].shape == (4, *info.shape)
            assert np.isfinite(found[name]).all()
            if info.kind == "pose":
                rotation = found[name][..., :3]
                turned_back = rotation @ np.swapaxes(rotation, -1, -2)
                np.testing.assert_allclose(turned_back, np.tile(np.eye(3), (4, 1, 1)), atol=1e-9)
    for name, info in model.outputs.items():
        if info.needs_inputs:
            with pytest.raises(UserError, match="needs the model's inputs"):
                model.observe((name,), states, None, numbers)
        else:
            model.observe((name,), states, None, numbers)
    with pytest.raises(UserError, match="'tail': unknown; known are tip"):
        model.observe(("tail",), states, inputs, numbers)


@pytest.mark.parametrize("wrong", [np.nan, np.inf])
def test_a_candidate_that_is_not_finite_does_not_disturb_others(model, case, wrong):
    states, levels = states_of(model, 3, case.dt), inputs_of(model, 3, 2, seed=6)
    numbers = np.repeat(nominal_parameters(model.parameters)[None], 3, axis=0)
    well = model.step(states, levels[:, 0], levels[:, 1], numbers, case.dt)
    states[1, model.state.size // 2] = wrong
    ill = model.step(states, levels[:, 0], levels[:, 1], numbers, case.dt)
    assert np.isnan(ill[1]).any()
    assert not np.isinf(ill[1]).any()
    close(model, ill[[0, 2]], well[[0, 2]], 1e-5 if case.name == "ddpinn" else 1e-9)


def test_wrong_arguments_get_one_line(model, case):
    numbers, levels = nominal_parameters(model.parameters), inputs_of(model, 2, 2)
    states = states_of(model, 2, case.dt)
    begin, end = levels[:, 0], levels[:, 1]
    for arguments, complaint in (
        ((states[:, 1:], begin, end, numbers[None], 0.01), "states of shape"),
        ((states, begin[:, 1:], end, numbers[None], 0.01), "begin of shape"),
        ((states, begin, end[0], numbers[None], 0.01), "end of shape"),
        ((states, begin, end, numbers[None, 1:], 0.01), "parameters of shape"),
        ((states, begin, end, numbers[None], 0.0), "dt: 0.0 s is not allowed"),
        ((states, begin, end, numbers[None], np.nan), "dt: nan s is not allowed"),
    ):
        with one_line(complaint):
            model.step(*arguments)
    with pytest.raises(UserError, match="inputs of shape"):
        model.rollout(states[0], begin, numbers, 0.01)


# -- one section of constant curvature ------------------------------------------------------------


@pytest.fixture(scope="module")
def section():
    return ConstantCurvatureSection.of_robot(ROD.replace(base_orientation=(0.4, 0.2, 0.1)))


def test_a_section_moves_as_lagrange_and_scipy_say(section):
    assert isinstance(section, Lagrangian)
    levels = inputs_of(section, 2, share=1.0, seed=7)
    numbers = nominal_parameters(section.parameters)

    def slope(t, state):
        q, rate = state[:3], state[3:]
        pressures = levels[0] + t / 0.05 * (levels[1] - levels[0])
        force = section.actuation(q) @ pressures - section.gravity_force(q)
        force -= section.stiffness_matrix() @ q + section.damping_matrix() @ rate
        force -= section.coriolis(q, rate) @ rate
        return np.r_[rate, np.linalg.solve(section.inertia(q), force)]

    start = np.array([0.01, -0.02, 0.01, -0.2, 0.1, 0.05])
    exact = solve_ivp(slope, (0.0, 0.05), start, rtol=1e-9, atol=1e-11).y[:, -1]
    errors = []
    for ticks in (20, 40):
        grid = np.linspace(levels[0], levels[1], ticks + 1)
        found = section.rollout(start, grid[None], numbers, 0.05 / ticks)[0, -1]
        errors.append(np.abs(found - exact).max())
    assert np.abs(exact - start)[:3].max() > 5e-3
    assert errors[1] < 0.3 * errors[0]  # second order
    assert errors[1] < 0.01 * np.abs(exact - start).max()


def test_the_sensor_under_a_still_section_bears_its_weight(section):
    model, pressures = section.section, np.array([4e4, 1e4, 0.0])
    numbers = nominal_parameters(section.parameters)
    state = section.equilibrium(pressures, numbers)
    wrench = section.observe(("base_wrench",), state[None], pressures[None], numbers[None])
    expected = np.zeros(6)
    for mass, position, _, _ in model.mass_points(state[:3], np.zeros(3)):
        weight = mass * model.gravity
        expected[:3] += weight
        expected[3:] += np.cross(position + np.array([0.0, 0.0, section.base_height]), weight)
    np.testing.assert_allclose(wrench["base_wrench"][0], expected, atol=1e-9)


def test_a_section_ends_where_its_cap_does(section):
    """Half a turn of the arc about y, by hand: the tip points down."""
    model, numbers = section.section, nominal_parameters(section.parameters)[None]
    state = np.zeros((1, 6))
    state[0, 0] = np.pi * model.radius
    found = section.observe(("tip", "shape"), state, None, numbers)
    across = 2.0 * model.rest_length / np.pi
    cap, base = ROD.tip_cap_length, ROD.sensor_to_base_cap + ROD.base_cap_length
    np.testing.assert_allclose(found["tip"][0, :, 3], [across, 0.0, base - cap], atol=1e-9)
    np.testing.assert_allclose(found["tip"][0, :, 2], [0.0, 0.0, -1.0], atol=1e-9)
    np.testing.assert_allclose(found["shape"][0, -1], [across, 0.0, base], atol=1e-9)
    np.testing.assert_allclose(found["shape"][0, 0], [0.0, 0.0, base], atol=1e-12)


# -- an arm of several sections -------------------------------------------------------------------


def test_an_arm_steps_as_its_equations_do_in_finer_steps():
    """Against ArmDynamics.advance, another method, in 100 times shorter steps; a load of 0.3 kg."""
    model = ArmModel.of_robot(ARM, ArmModelSettings(sections="bodies", quadrature=5))
    exact, gains = ArmDynamics(ARM, payload=0.3), TendonGains(space="configuration")
    wanted, numbers = inputs_of(model, seed=8, share=0.3), np.array([1.0, 0.3])
    levels = np.minimum(1.0, np.arange(21) / 5.0)[:, None] * wanted
    start = model.equilibrium(levels[0], numbers)
    state = exact.rest()
    state.q[:] = start[:15]
    found = model.rollout(start, levels[None], numbers, 0.02)[0]
    size = np.abs(found[-1, :15] - start[:15]).max()
    for tick in range(20):
        for part in np.arange(0.025, 1.0, 0.05):
            between = levels[tick] + part * (levels[tick + 1] - levels[tick])
            exact.advance(state, between, 0.001, gains, 5e-5)
        assert np.abs(found[tick, :15] - state.q).max() < 0.01 * size
    assert size > 0.2
    np.testing.assert_allclose(found[-1, 30:], state.integral, atol=3e-3 * np.abs(wanted).max())


def test_an_arm_predicts_a_plant_of_more_bodies():
    """One section from rack to rack for the plant's five bodies."""
    model, plant = ArmModel.of_robot(ARM), ArmPlant(ARM)
    numbers, wanted = nominal_parameters(model.parameters)[None], np.zeros(9)
    wanted[[0, 3, 6]] = -0.01, -0.03, -0.05
    state = model.equilibrium(np.zeros(9), numbers[0])[None]
    rest = plant.sensed(0).true_tip_pose[:3, 3]
    errors, ways = [], []
    for tick in range(50):
        command = min(1.0, (tick + 1) / 20.0) * wanted
        plant.follow(command)
        plant.advance(0.02)
        state = model.step(state, command[None], command[None], numbers, 0.02)
        true = plant.sensed(0).true_tip_pose[:3, 3]
        tip = model.observe((TIP,), state, None, numbers)[TIP][0, :, 3]
        errors.append(np.linalg.norm(tip - true))
        ways.append(np.linalg.norm(true - rest))
    assert max(ways) > 0.1
    assert max(errors) < 0.1 * max(ways)


def test_racks_are_where_the_arm_measures_them():
    model, plant = ArmModel.of_robot(ARM, ArmModelSettings(sections="bodies")), ArmPlant(ARM)
    plant.follow(inputs_of(model, seed=9, share=0.3))
    plant.advance(0.5)
    sample = plant.sensed(0)
    state = np.zeros((1, model.state.size))
    state[0, :15] = sample.q
    found = model.observe(tuple(model.outputs), state, None, np.array([[1.0, 0.0]]))
    for number, pose in enumerate(sample.poses):
        np.testing.assert_allclose(found[f"rack_{number + 1}"][0], pose[:3], atol=1e-9)
    np.testing.assert_allclose(found["tip"][0], sample.true_tip_pose[:3], atol=1e-9)
    np.testing.assert_allclose(found["shape"][0, -1], sample.true_tip_pose[:3, 3], atol=1e-9)


def test_a_payload_pulls_and_a_stiffer_arm_gives_less():
    model = ArmModel.of_robot(ARM)
    sag = [
        np.abs(model.equilibrium(np.zeros(9), np.array(numbers))[2:9:3]).sum()
        for numbers in ((1.0, 0.0), (1.0, 0.5), (2.0, 0.5))
    ]
    assert sag[1] > 1.5 * max(sag[0], sag[2])


# -- by name --------------------------------------------------------------------------------------


def test_names_that_mean_no_model_get_one_line(tmp_path):
    file = tmp_path / "mine.py"
    file.write_text("class Mine:\n    pass\n\nclass Broken(\n")
    (tmp_path / "other.py").write_text("class Mine:\n    pass\n")
    known = "rod, ddpinn, arm, constant_curvature, reference, strain"
    there = "it has RodSettings, RodPrediction"
    for name, complaint in (
        ("spring", f"did you mean strain\\? known are {known}"),
        ("no.such.module:Model", "no module no"),
        ("softcr_models.prediction:Nothing", f"no class Nothing there; {there}"),
        (f"{tmp_path}/absent.py:Mine", "absent.py:Mine': no such file"),
        (f"{file}:Mine", "mine.py:Mine': SyntaxError: .*line 4"),
        (f"{tmp_path}/other.py:Mine", r"has no of_robot\(robot, settings\)"),
    ):
        with one_line(complaint):
            make_model(name, ROD)


def test_a_model_is_for_its_kind_of_robot_and_has_its_own_settings():
    of_arms = dict.fromkeys(("rod", "ddpinn", "constant_curvature", "reference"), ARM)
    for name, robot in (of_arms | {"arm": ROD, "strain": ROD}).items():
        with pytest.raises(UserError, match=f"model '{name}': is for .* which {robot.name} is not"):
            make_model(name, robot)
    with pytest.raises(UserError, match="longest_step: -1 is not allowed"):
        make_model("arm", ARM, {"longest_step": -1})
    with pytest.raises(UserError, match="wheels: unknown; known are device, intervals"):
        make_model("rod", ROD, {"wheels": 4})


def test_a_file_from_outside_is_a_model(tmp_path):
    (tmp_path / "mine.py").write_text(
        "from softcr_papers.mehl2024.section_model import ConstantCurvatureSection\n"
        "class Mine:\n"
        "    @classmethod\n"
        "    def of_robot(cls, robot):\n"
        "        return ConstantCurvatureSection.of_robot(robot)\n"
    )
    name = f"{tmp_path}/mine.py:Mine"
    assert isinstance(make_model(name, ROD), ConstantCurvatureSection)
    with pytest.raises(UserError, match="has no settings"):
        make_model(name, ROD, {"device": "cpu"})


def test_importing_compiles_and_opens_nothing(tmp_path):
    names = "softcr_control, softcr_estimation, softcr_models.models"
    for each in ("dalenberg2024.arm", "mehl2024.section", "valadas2024.strain.strain"):
        names += f", softcr_papers.{each}_model"
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path)}
    subprocess.run([sys.executable, "-c", f"import {names}"], env=environment, check=True)
    assert [path for path in tmp_path.rglob("*") if path.is_file()] == []
