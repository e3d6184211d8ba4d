"""Strain models learned from shapes: what was put in comes out, and bad data are refused."""

from dataclasses import replace

import numpy as np
import pytest
from kit.refused_calls import refused

from softcr_models import UserError
from softcr_papers.valadas2024.learning.basis import Basis, acceleration_rows, weak_rows
from softcr_papers.valadas2024.learning.fusion import FusionSettings, fuse, fuse_to, sweep
from softcr_papers.valadas2024.learning.learn import (
    LearnSettings,
    learn,
    learn_dynamics,
    regression_of_strains,
)
from softcr_papers.valadas2024.learning.material import regress_material
from softcr_papers.valadas2024.learning.motion import ShapeMotion
from softcr_papers.valadas2024.learning.regression import SolverSettings, regress
from softcr_papers.valadas2024.learning.shape_fit import (
    PoseNoise,
    fit_strains,
    nearest_markers,
    refine_lengths,
    shape_errors,
)
from softcr_papers.valadas2024.learning.simulated import simulated_motion, tip_errors
from softcr_papers.valadas2024.learning.smoothing import Smoothing
from softcr_papers.valadas2024.learning.sparsification import Stiffest, sparsify
from softcr_papers.valadas2024.strain.affine_curvature import affine_poses
from softcr_papers.valadas2024.strain.arm import load_strain_arm
from softcr_papers.valadas2024.strain.dynamics import StrainDynamics
from softcr_papers.valadas2024.strain.integration import simulate
from softcr_papers.valadas2024.strain.kinematics import StrainKinematics
from softcr_papers.valadas2024.strain.strain_model import LagrangianModel
from softcr_papers.valadas2024.studies.robots import CASES, sine_torques

ONE, TWO, _, STIFF_SHEAR, STIFF_BOTH = CASES
SIZES = np.array([60.0, 0.25, 0.25])


def moving(lengths, frames=200, seed=0, markers=21):
    """A motion of independent sines of all strains: kinematics alone."""
    random, n = np.random.default_rng(seed), 3 * len(lengths)
    t = 1e-3 * np.arange(frames)[:, None]
    phases, speeds = random.uniform(0.0, 2.0 * np.pi, n), random.uniform(10.0, 40.0, n)
    strains = np.sin(speeds * t + phases) * np.resize(SIZES, n)
    places = np.linspace(0.0, sum(lengths), markers)
    poses = StrainKinematics(np.array(lengths)).poses(strains, places)
    return ShapeMotion(poses[None], places, np.zeros((1, frames, n)), 1e-3), strains


def simulated(case, trajectories=4, tolerance=1e-7):
    random = np.random.default_rng(3)
    torques = random.uniform(-1.0, 1.0, (trajectories, 50, len(case.amplitudes)))
    starts, torques = case.starts[:trajectories], torques * case.amplitudes
    return simulated_motion(case.arm.numbers, starts, torques, tolerance=tolerance)


@pytest.fixture(scope="module")
def two():
    return simulated(TWO)


# -- segments -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("lengths", "kept"),
    [([0.1], [0, 20]), ([0.07, 0.1], [0, 8, 20]), ([0.05, 0.1, 0.06], [0, 5, 14, 20])],
)
def test_segments_end_at_the_markers_next_to_the_true_ends(lengths, kept):
    """The second end of three segments is 0.3 of an interval from one marker, 0.7 from another."""
    motion, _ = moving(lengths)
    for settings in (FusionSettings(), FusionSettings(scale="constants")):
        found = fuse(motion, settings)
        np.testing.assert_array_equal(found.kept, kept)
        assert len(found.history) >= 2
        assert len(found.history[0].distances) == 19
    noisy = motion.with_noise(1e-4, np.deg2rad(0.5), np.random.default_rng(1))
    assert fuse(noisy, FusionSettings(scale="constants", denoise=15)).segments == len(lengths)


def test_the_shapes_of_one_segment_come_back_exactly():
    motion, strains = moving([0.1])
    found = fuse(motion)
    distance, angle = shape_errors(motion, found.lengths, found.strains)
    assert distance < 1e-12  # 1e-9 mm
    assert angle < 1e-12
    np.testing.assert_allclose(found.strains[0], strains, atol=1e-9)


@pytest.mark.parametrize("lengths", [[0.07, 0.1], [0.05, 0.1, 0.06]])
def test_ends_between_markers_are_refined_to_the_true_ones(lengths):
    motion, strains = moving(lengths)
    found = fuse(motion)
    refined = refine_lengths(motion, found.lengths)
    np.testing.assert_allclose(refined, lengths, atol=1e-7)
    fit, sizes = fit_strains(motion, refined), np.resize(SIZES, strains.shape[1])
    np.testing.assert_allclose(fit.strains[0] / sizes, strains / sizes, atol=1e-5)
    coarse = shape_errors(motion, found.lengths, fit_strains(motion, found.lengths).strains)
    tips = shape_errors(motion, found.lengths, found.strains)
    assert coarse[0] < tips[0]  # all markers are better than the ends of the segments


def test_ends_go_to_the_nearest_markers():
    motion, _ = moving((0.05, 0.1, 0.06))
    found = nearest_markers(motion, np.array([0.05, 0.1, 0.06]))
    np.testing.assert_allclose(found, [0.0525, 0.0945, 0.063])
    with pytest.raises(UserError, match="a marker of its own"):
        nearest_markers(motion, np.array([0.001, 0.149, 0.06]))


def test_a_fit_to_all_markers_takes_noise_away():
    motion, strains = moving([0.07, 0.1])
    noise = PoseNoise(1e-4, np.deg2rad(0.5))
    noisy = motion.with_noise(noise.position, noise.angle, np.random.default_rng(2))
    fit = fit_strains(noisy, np.array([0.07, 0.1]), noise=noise)
    ends = StrainKinematics(np.array([0.07, 0.1])).strains(noisy.poses[:, :, [8, 20]])
    ours = np.std(fit.strains[0, :, 3] - strains[:, 3])
    assert ours < 0.5 * np.std(ends[0, :, 3] - strains[:, 3])
    # root mean square of the residuals over the noise, 60 markers' numbers for 6 strains
    assert abs(np.sqrt((fit.residuals**2).mean()) - np.sqrt(54.0 / 63.0)) < 0.02


def test_a_curvature_without_steps_is_cut_pair_by_pair():
    random = np.random.default_rng(4)
    ends = random.uniform(-30.0, 30.0, (200, 2))
    places = np.linspace(0.0, 0.15, 21)
    poses = affine_poses(np.c_[ends[:, 0], ends[:, 1] - ends[:, 0]], 0.15, places)
    motion = ShapeMotion(poses[None], places, np.zeros((1, 200, 3)), 1e-3)
    found = fuse_to(motion, 1)
    assert [each.segments for each in found] == list(range(20, 0, -1))
    errors = [shape_errors(motion, each.lengths, each.strains)[0] for each in found]
    assert errors[-3] < 0.746e-3  # the paper's of three segments
    assert errors[0] < 1e-5 < errors[-3] < errors[-1]
    # ends of segments go far from a poor start
    refined = refine_lengths(motion, np.array([0.0075, 0.06, 0.0825]))
    fit = fit_strains(motion, refined)
    assert shape_errors(motion, refined, fit.strains)[0] < 0.15e-3
    front = sweep(motion, [1e-6, 10.0])
    assert (front[0].segments, front[1].segments) == (20, 1)


def test_the_order_of_the_markers_does_not_matter():
    motion, _ = moving([0.07, 0.1])
    order = np.random.default_rng(5).permutation(21)
    mixed = ShapeMotion(motion.poses[:, :, order], motion.places[order], motion.torques, 1e-3)
    np.testing.assert_array_equal(mixed.poses, motion.poses)
    np.testing.assert_array_equal(mixed.places, motion.places)


# -- equations of motion --------------------------------------------------------------------------


def a_basis(numbers, gravity=9.81):
    return Basis(numbers.lengths, numbers.down, gravity, numbers.active)


def errors_of(regression, numbers):
    """(4,) largest relative error of masses, moments of inertia, stiffnesses, dampings."""
    kept = np.isin(numbers.active, regression.basis.active)
    true = {
        "mass": numbers.mass, "inertia": numbers.inertia,
        "stiffness": numbers.stiffness[kept], "damping": numbers.damping[kept],
    }  # fmt: skip
    return {kind: np.abs(regression.of(kind) / each - 1.0).max() for kind, each in true.items()}


@pytest.mark.parametrize("gravity", [9.81, None])
@pytest.mark.parametrize("name", ["pcs_one_segment", "pcs_two_segments", "pcs_three_segments"])
def test_the_regression_is_exact_on_its_own_equations(name, gravity):
    numbers = load_strain_arm(name).numbers
    random, n = np.random.default_rng(0), 3 * len(numbers.lengths)
    strains, rates, accelerations = (
        random.uniform(-size, size, (1, 300, n)) * np.resize(SIZES, n) for size in (1, 100, 1e4)
    )
    torques = StrainDynamics(numbers).torque(strains, rates, accelerations)
    basis = a_basis(numbers, gravity)
    found = regress(basis, acceleration_rows(basis, strains, rates, accelerations, torques))
    assert max(errors_of(found, numbers).values()) < 1e-7
    np.testing.assert_allclose(found.numbers.weight, numbers.weight, rtol=1e-6)
    assert found.residuals.max() < 1e-9


def test_exact_motions_and_windows_of_them_give_the_exact_numbers(two):
    basis, numbers = a_basis(TWO.arm.numbers), TWO.arm.numbers
    rows = acceleration_rows(basis, two.strains, two.rates, two.accelerations, two.motion.torques)
    assert max(errors_of(regress(basis, rows), numbers).values()) < 1e-3
    rows = weak_rows(basis, two.strains, two.rates, two.motion.torques, 1e-3)
    errors = errors_of(regress(basis, rows), numbers)
    # the integrals are sums over frames of 1 ms, and moments of inertia hardly matter here
    assert errors.pop("inertia") < 0.05
    assert max(errors.values()) < 0.01


def test_a_material_that_all_segments_share_comes_back():
    """Of three segments, the last with another mass; rows are those of exact motions."""
    lengths = np.array([0.07, 0.06, 0.05])
    random = np.random.default_rng(1)
    q, rate, acceleration = random.normal(size=(3, 2, 60, 9)) * np.tile(SIZES, 3)
    per_length, damping = np.array([0.02, 45.0, 170.0]), np.array([1e-4, 0.2, 0.8])
    numbers = TWO.arm.numbers.replace(
        lengths=lengths, mass=np.array([0.7, 0.7, 3.0]), inertia=np.array([1e-4, 1e-4, 8e-4]),
        weight=9.81 * np.array([0.7, 0.7, 3.0]), down=np.array([0.0, -1.0]),
        stiffness=np.outer(lengths, per_length).ravel(), active=np.arange(9),
        damping=np.outer(lengths, damping).ravel(),
    )  # fmt: skip
    torques = StrainDynamics(numbers).torque(q, rate, acceleration)
    basis = Basis(lengths, numbers.down, 9.81, np.arange(9))
    rows = acceleration_rows(basis, q, rate, acceleration, torques)
    found = regress_material(basis, rows, ["body", "body", "tip"])
    assert len(found.names) == 10
    truths = {
        "mass_body": 0.7, "mass_tip": 3.0, "inertia_body": 1e-4, "inertia_tip": 8e-4,
        "stiffness_shear": 45.0, "damping_axial": 0.8,
    }  # fmt: skip
    for name, truth in truths.items():
        assert found.of(name)[0] == pytest.approx(truth, rel=1e-8)
    np.testing.assert_allclose(found.regression.numbers.stiffness, numbers.stiffness, rtol=1e-8)
    weightless = replace(basis, gravity=None)
    refused(
        (lambda: regress_material(basis, rows, ["body"]), "one for each of 3"),
        (lambda: regress_material(weightless, rows, ["body"] * 3), "known gravity"),
        (lambda: found.of("colour"), "none of"),
    )


def test_a_model_is_learned_from_noisy_poses(two, tmp_path):
    """Half of the paper's data: 2 s of motion; judged over 2 s of other torques."""
    random = np.random.default_rng(6)
    noisy = two.motion.with_noise(*TWO.noise, random)
    fusion = FusionSettings(scale="constants", denoise=15)
    settings = LearnSettings(fusion=fusion, noise=PoseNoise(*TWO.noise))
    found = learn(noisy, settings)
    np.testing.assert_allclose(found.lengths, [0.07, 0.1], atol=2e-4)
    assert not found.sparsified.removed
    assert not found.sparsified.negative
    regression = found.regression
    truth = np.r_[TWO.arm.numbers.stiffness, TWO.arm.numbers.damping]
    values = np.r_[regression.of("stiffness"), regression.of("damping")]
    np.testing.assert_allclose(values, truth, rtol=0.03)

    arm = found.arm("found", (0.2, 5.0, 5.0))
    arm.save(tmp_path / "found.yaml")
    numbers = load_strain_arm(tmp_path / "found.yaml").numbers
    torques = sine_torques(6)[:200]
    true = simulate(StrainDynamics(TWO.arm.numbers), np.zeros(12), torques, 0.01)[0, :, :6]
    error = tip_errors(numbers, np.zeros(6), torques, 0.01, true, TWO.arm.lengths)
    assert error[0] < 0.5e-3
    assert error[1] < 0.015
    assert LagrangianModel(arm).inputs.names[5] == "axial_2"


def test_standard_errors_are_those_of_repeated_draws():
    """Twelve draws of the noise on one motion, whose segments are known."""
    motion = simulated(ONE).motion
    settings = LearnSettings(noise=PoseNoise(1e-4, 2e-3), limits=None)
    known, lengths = fuse(motion), np.array([0.1])
    noisy = [motion.with_noise(1e-4, 2e-3, np.random.default_rng(seed)) for seed in range(12)]
    found = [learn_dynamics(each, known, lengths, settings).regression for each in noisy]
    spread = np.std([each.values for each in found], axis=0, ddof=1)
    told = np.mean([each.errors for each in found], axis=0)
    ratio = told / spread
    assert ((ratio > 0.4) & (ratio < 2.5)).all(), dict(zip(found[0].names, ratio, strict=True))


def test_the_paper_s_regression_is_worse_than_windows(two):
    numbers = TWO.arm.numbers
    plain = LearnSettings(
        weak=False, filter_torques=False, smoothing=Smoothing(25, 3),
        solver=SolverSettings(reweightings=0, scaled=False, bounded=False),
    )  # fmt: skip
    filtered = replace(plain, filter_torques=True, solver=SolverSettings())
    about = two.motion, numbers.lengths, two.strains, np.arange(6)
    regressions = [regression_of_strains(*about, s) for s in (plain, filtered, LearnSettings())]
    sizes = [errors_of(each, numbers)["stiffness"] for each in regressions]
    assert sizes[0] > sizes[1] > sizes[2]
    assert sizes[2] < 5e-3


@pytest.mark.parametrize(
    ("case", "names"), [(STIFF_SHEAR, {"shear_1"}), (STIFF_BOTH, {"axial_1", "shear_2"})]
)
def test_strains_that_are_too_stiff_are_dropped(case, names):
    data = simulated(case)
    numbers, settings = case.arm.numbers, LearnSettings()

    def regression_of(active):
        strains = data.strains * np.isin(np.arange(data.strains.shape[-1]), active)
        return regression_of_strains(data.motion, numbers.lengths, strains, active, settings)

    found = sparsify(regression_of, numbers.lengths, case.limits)
    assert {each.name for each in found.removed} == names
    for each in found.removed:
        assert each.stiffness > each.largest
    errors = errors_of(found.regression, numbers)
    assert max(errors["stiffness"], errors["damping"]) < 0.02


def test_limits_are_those_of_the_paper():
    limits = Stiffest().of(np.array([0.1]))
    np.testing.assert_allclose(limits, [12.6, 168.0, 126e3], rtol=5e-3)
    np.testing.assert_allclose(Stiffest(integrated=True).of(np.array([0.1])), 0.1 * limits)


# -- what is refused ------------------------------------------------------------------------------


def test_bad_data_get_one_line():
    motion, _ = moving([0.07, 0.1], 40)
    times, nowhere = 1e-3 * np.arange(40), motion.poses[:, :1].repeat(40, 1) * 0.0
    hole, jump = motion.poses.copy(), motion.poses.copy()
    hole[0, 7, 3] = np.nan
    jump[0, 7, 3:, 2] += 6.0

    def other(**fields):
        return replace(motion, **fields)

    def learned(ends, **told):
        return learn_dynamics(motion, None, np.array(ends), LearnSettings(**told))

    def timed(times):
        return ShapeMotion.of_times(times, motion.poses[0], motion.places, motion.torques[0])

    refused(
        (lambda: moving([0.1], 20), "motion of 20 frames: must have 30 or more; record longer"),
        (lambda: other(poses=hole), "trajectory 0, frame 7: marker 3 is missing"),
        (lambda: other(poses=jump), "jumps by more than half a turn after marker 2"),
        (lambda: other(torques=motion.torques[:, 1:]), "must have a row for each of 1 x 40"),
        (lambda: other(torques=motion.torques[..., :4]), "three columns for each segment"),
        (lambda: other(places=0.0 * motion.places), "must be of different markers"),
        (lambda: other(period=0.0), "period 0.0 s"),
        (lambda: fuse(other(poses=nowhere)), "no marker"),
        (lambda: FusionSettings(threshold=0.0), "threshold 0.0"),
        (lambda: Smoothing(10), "window 10 and order 3 are not allowed"),
        (lambda: fuse_to(motion, 0), "segments 0: must be from 1 to 20"),
        (lambda: fit_strains(motion, np.array([0.1])), "must be above 0 and add up to 0.17 m"),
        (lambda: fit_strains(motion, np.array([0.169, 0.001])), "a marker of its own"),
        (lambda: learned([0.17]), "torques of 2 segments, but the shapes have 1"),
        (lambda: learned([0.07, 0.1], half_width=25), "40 frames: the regression needs 51 or more"),
        (lambda: timed(times[::-1]), "frames out of order: frame 1 has the time"),
        (lambda: timed(np.r_[times[:20], times[20:] + 0.5]), "frames are not evenly spaced"),
    )


def test_a_motion_that_says_nothing_about_an_unknown_is_refused():
    numbers = ONE.arm.numbers
    random = np.random.default_rng(0)
    strains, rates, accelerations = (
        random.normal(size=(1, 100, 3)) * SIZES * size for size in (1, 100, 1e4)
    )
    for each in (strains, rates, accelerations):
        each[..., 1] = 0.0
    basis = a_basis(numbers)
    torques = StrainDynamics(numbers).torque(strains, rates, accelerations)
    with pytest.raises(UserError, match="says nothing about stiffness_shear_1; drive that strain"):
        regress(basis, acceleration_rows(basis, strains, rates, accelerations, torques))
    still = [np.ones((1, 50, 3)) * SIZES] * 3
    still = acceleration_rows(basis, *still, torques[:, :50])
    with pytest.raises(UserError, match=r"does not tell \w+ and \w+ apart"):
        regress(basis, still)
