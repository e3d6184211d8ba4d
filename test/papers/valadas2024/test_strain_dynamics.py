"""Lagrange's equations of strain robots against integrals, energy, SciPy; their files."""

import numpy as np
import pytest
from kit.refused_calls import refused
from scipy.integrate import quad_vec

from softcr_models.model import nominal_parameters
from softcr_models.robots.robot import available_robots
from softcr_papers.valadas2024.strain.arm import identified_arm, load_strain_arm
from softcr_papers.valadas2024.strain.dynamics import StrainDynamics
from softcr_papers.valadas2024.strain.integration import Integration, simulate, typical_state
from softcr_papers.valadas2024.strain.kinematics import StrainKinematics
from softcr_papers.valadas2024.strain.strain_model import LagrangianModel, StrainModelSettings

TWO = load_strain_arm("pcs_two_segments")
DYNAMICS = StrainDynamics(TWO.numbers)
KEPT = [0, 2, 3, 5]
LESS = {"stiffness": TWO.numbers.stiffness[KEPT], "damping": TWO.numbers.damping[KEPT]}
REDUCED = StrainDynamics(TWO.numbers.replace(active=KEPT, **LESS))
SIZES = np.array([60.0, 0.3, 0.3, 60.0, 0.3, 0.3])


def state(seed, dynamics=DYNAMICS):
    random, sizes = np.random.default_rng(seed), SIZES[dynamics.numbers.active]
    return random.uniform(-1.0, 1.0, len(sizes)) * sizes, random.normal(size=len(sizes)) * sizes


def torques(steps, seed):
    """As the data to learn from: a new draw every 10 ms."""
    largest = np.array([0.04, 0.4, 0.4, 0.03, 0.2, 0.2])
    return np.random.default_rng(seed).uniform(-1.0, 1.0, (steps, 6)) * largest


@pytest.mark.parametrize("dynamics", [DYNAMICS, REDUCED], ids=["all", "reduced"])
def test_inertia_is_the_integral_of_the_kinetic_energy(dynamics):
    """By adaptive quadrature over Jacobians that are differences of poses."""
    q, _ = state(1, dynamics)
    numbers, chain = dynamics.numbers, StrainKinematics(dynamics.numbers.lengths)
    full, ends = numbers.full(q), np.r_[0.0, np.cumsum(numbers.lengths)]

    def integrand(s, i):
        moves = np.diag(1e-5 * SIZES)[numbers.active]
        ahead, back = ([chain.poses(full + k * move, [s])[0] for move in moves] for k in (1, -1))
        j = (np.subtract(ahead, back) / (2.0 * moves.max(axis=1, keepdims=True))).T
        return numbers.mass[i] * j[:2].T @ j[:2] + numbers.inertia[i] * np.outer(j[2], j[2])

    expected = sum(
        quad_vec(lambda s, i=i: integrand(s, i), ends[i], ends[i + 1], epsrel=1e-9)[0]
        for i in range(2)
    )
    inertia = dynamics.inertia(q)
    size = np.sqrt(np.outer(np.diag(expected), np.diag(expected)))
    np.testing.assert_allclose(inertia / size, expected / size, atol=1e-7)
    assert np.linalg.eigvalsh(inertia).min() > 0.0


@pytest.mark.parametrize("dynamics", [DYNAMICS, REDUCED], ids=["all", "reduced"])
@pytest.mark.parametrize("seed", range(3))
def test_forces_are_lagranges(dynamics, seed):
    """d/dt dL/dq' - dL/dq by differences of the energy, which is made of poses."""
    q, rate = state(seed, dynamics)
    acceleration = np.random.default_rng(4).normal(size=len(q)) * 100.0 * SIZES[: len(q)]
    numbers, still = dynamics.numbers, np.zeros(len(q))

    def lagrangian(q):
        return dynamics.energy(q, rate) - 2.0 * dynamics.energy(q, still)

    steps = np.diag(1e-5 * SIZES[numbers.active])
    by_q = np.array([lagrangian(q + h) - lagrangian(q - h) for h in steps])
    by_q = by_q / (2.0 * steps.sum(axis=1))
    change = (dynamics.inertia(q + 1e-6 * rate) - dynamics.inertia(q - 1e-6 * rate)) / 2e-6
    moment = change @ rate + dynamics.inertia(q) @ acceleration
    expected = moment - by_q + numbers.damping * rate
    found = dynamics.torque(q, rate, acceleration)
    np.testing.assert_allclose(found, expected, rtol=1e-6, atol=1e-6 * np.abs(expected).max())
    np.testing.assert_allclose(dynamics.acceleration(q, rate, found), acceleration, rtol=1e-8)
    coriolis = dynamics.coriolis(q, rate)
    split = coriolis @ rate + dynamics.gravity_force(q) + dynamics.inertia(q) @ acceleration
    split = split + dynamics.stiffness_matrix() @ q + dynamics.damping_matrix() @ rate
    np.testing.assert_allclose(split, found, rtol=1e-10, atol=1e-12)
    skew = change - 2.0 * coriolis  # inertia and Coriolis forces belong together
    np.testing.assert_allclose(skew, -skew.T, atol=1e-7 * np.abs(skew).max())


def test_integrators_agree():
    q, _ = state(5)
    start, held = np.r_[q, np.zeros(6)], torques(2, 5)
    exact = simulate(DYNAMICS, start, held, 0.01, Integration("radau", 1e-9))
    for how, bound in (
        (Integration("rodas", 1e-6), 1e-6),
        (Integration("rodas", 1e-8), 1e-8),
        (Integration("tsit5", fixed_step=5e-5), 1e-6),
        (Integration("bdf", 1e-6), 1e-4),
    ):
        error = (simulate(DYNAMICS, start, held, 0.01, how) - exact) / typical_state(DYNAMICS)
        assert np.abs(error).max() < bound, how
    errors = [
        np.abs(simulate(DYNAMICS, start, held, 0.01, Integration(fixed_step=step)) - exact).max()
        for step in (2e-4, 1e-4)
    ]
    assert errors[0] > 10.0 * errors[1]  # fourth order
    assert errors[1] > 0.0


def test_rodas_has_its_order():
    """Which it loses with wrong derivatives of the acceleration."""
    numbers = TWO.numbers.replace(damping=0.02 * TWO.numbers.damping)  # else errors are rounding
    start = np.r_[20.0, 0.05, 0.1, -30.0, 0.05, -0.05, np.zeros(6)]
    torques = np.array([[0.02, 0.1, 0.5, -0.01, 0.0, 0.0]])

    def end(how):
        return simulate(StrainDynamics(numbers), start, torques, 2e-3, how)[0, -1]

    true, scale = end(Integration(tolerance=1e-12)), typical_state(StrainDynamics(numbers))
    errors = [
        np.abs((end(Integration(fixed_step=2e-3 / pieces)) - true) / scale).max()
        for pieces in (8, 16, 32)
    ]
    ratios = np.divide(errors[:-1], errors[1:])
    assert ((ratios > 14.0) & (ratios < 18.0)).all()


def test_a_motion_that_an_explicit_method_loses_is_nan_and_leaves_the_others_alone():
    stiff = StrainDynamics(load_strain_arm("pcs_stiff_shear").numbers)
    starts = np.zeros((2, 6))
    starts[1, 1] = 0.1
    held = np.zeros((3, 3))
    lost = simulate(stiff, starts, held, 0.05, Integration("tsit5", fixed_step=1e-3))
    assert np.isnan(lost[1, -1]).all()
    assert np.isfinite(lost[0]).all()
    assert np.isfinite(simulate(stiff, starts, held, 0.05)).all()


def test_torques_between_grid_points_are_linear_in_a_model_and_held_in_data():
    model = LagrangianModel(TWO, StrainModelSettings(tolerance=1e-8))
    numbers, (begin, end) = nominal_parameters(model.parameters)[None], torques(2, 6)
    start = np.r_[state(6)[0], np.zeros(6)][None]
    found = model.step(start, begin[None], end[None], numbers, 0.01)[0]
    ramp = begin + (end - begin) * (np.arange(2000)[:, None] + 0.5) / 2000
    exact = simulate(DYNAMICS, start, ramp, 0.01 / 2000, Integration(tolerance=1e-9))[0, -1]
    np.testing.assert_allclose(found / model.state.scale, exact / model.state.scale, atol=2e-6)


def test_the_hanging_robot_is_longer_and_straight():
    model = LagrangianModel(TWO)
    rest = model.equilibrium(np.zeros(6), nominal_parameters(model.parameters))
    assert np.abs(rest[[0, 1, 3, 4]]).max() < 1e-12
    assert (rest[[2, 5]] > 0.0).all()


# -- files ----------------------------------------------------------------------------------------


def test_material_becomes_the_numbers_of_the_paper():
    numbers = load_strain_arm("pcs_one_segment").numbers
    np.testing.assert_allclose(numbers.stiffness, [1.2566e-3, 1.6755, 12.566], rtol=1e-4)
    stiff = load_strain_arm("pcs_stiff_axial_shear").numbers
    np.testing.assert_allclose(stiff.stiffness[[2, 4]], [12566.0, 1675.5], rtol=1e-4)
    short = TWO.model_copy(update={"stiffness_convention": "integrated"}).numbers
    np.testing.assert_allclose(
        short.stiffness, TWO.numbers.stiffness * np.repeat([0.07, 0.1], 3), rtol=1e-14
    )


@pytest.mark.parametrize("name", available_robots(("strain",)))
def test_identified_numbers_come_back_from_a_file(name, tmp_path):
    numbers = load_strain_arm(name).numbers
    kept = numbers.active[numbers.active != 1]
    numbers = numbers.replace(
        active=kept, stiffness=numbers.stiffness[kept], damping=numbers.damping[kept]
    )
    arm = identified_arm("found", numbers, (0.0, 9.81), (0.2, 5.0, 5.0))
    arm.save(tmp_path / "found.yaml")
    again = load_strain_arm(tmp_path / "found.yaml")
    assert again == arm
    for field in ("lengths", "mass", "inertia", "weight", "stiffness", "damping", "active"):
        np.testing.assert_array_equal(getattr(again.numbers, field), getattr(numbers, field))
    assert "shear_1" not in again.numbers.names


def test_what_is_not_allowed_gets_one_line():
    numbers, still, nothing = TWO.numbers, np.zeros(12), np.zeros((3, 6))
    refused(
        (lambda: simulate(DYNAMICS, np.zeros(6), nothing, 0.01), "states of shape"),
        (lambda: simulate(DYNAMICS, still, nothing[:, :5], 0.01), "torques of shape"),
        (lambda: simulate(DYNAMICS, still, nothing, 0.0), "dt 0.0 s"),
        (lambda: Integration("tsit5"), "fixed_step is missing"),
        (lambda: Integration("radau", fixed_step=1e-3), "fixed_step is not allowed"),
        (lambda: Integration(tolerance=0.0), "tolerance 0.0"),
        (lambda: DYNAMICS.inertia(np.zeros(5)), "strains of shape"),
        (lambda: numbers.replace(mass=[1.0]), "mass: must have a number for each"),
        (lambda: numbers.replace(active=[0, 0]), "must have a number for each of 2 strains"),
        (lambda: numbers.replace(weight=[np.nan, 1.0]), "weight .* must be finite"),
    )
