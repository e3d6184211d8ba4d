"""The studies of Valadas et al.: their cells, at their smallest."""

import numpy as np
import pytest

from softcr_models.errors import UserError
from softcr_papers.valadas2024.strain.kinematics import strains_between
from softcr_papers.valadas2024.studies import (
    authors_data,
    baselines,
    control,
    exact_rod,
    fusion,
    lens,
    markers,
    other_plants,
    regression,
    rod_motion,
)
from softcr_papers.valadas2024.studies.robots import CASES, sine_torques
from softcr_studies.frame.study import Cell


def test_torques_of_the_test_are_the_published_ones():
    """At t = 1 s by hand; case 2 has other amplitudes of bending than case 1."""
    one, two = sine_torques(3), sine_torques(6)
    assert one.shape == (700, 3)
    assert two.shape == (700, 6)
    np.testing.assert_allclose(one[100, 0], 0.03 * (np.sin(3.0) + np.cos(1.0)))
    np.testing.assert_allclose(two[100, 0], 0.02 * (np.sin(3.0) + np.cos(1.0)))
    np.testing.assert_allclose(one[100, 2], 2.0 * np.sin(2.0) - np.cos(1.0))
    np.testing.assert_allclose(two[100, 5], -np.sin(3.0) - np.cos(2.0))


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_starts_bend_as_published(case):
    turns = np.rad2deg(case.starts[:, 0::3] * case.arm.lengths)
    assert case.starts.shape == (8, len(case.amplitudes))
    assert 119.0 < np.abs(turns).min() <= np.abs(turns).max() < 341.0
    assert not case.starts[:, list(case.stiff)].any()


def test_three_segments_have_the_shapes_of_an_affine_curvature():
    cell = Cell(fusion.Affine(shapes=60), fusion.EXACT, 0, fusion.Settings())
    found = fusion.run(cell)
    assert found["segments"] == 3
    assert found["position, refined ends"] < 0.25
    assert found["position, all markers"] < 0.25
    assert found["position, segment ends"] < 0.746
    assert found["angle, refined ends"] < 0.5 * found["angle, segment ends"]  # of all poses alike


def test_the_first_row_is_far_better_than_published():
    found = regression.run(Cell(regression.ROWS[0], regression.WEAK, 0, regression.Settings()))
    assert found["tip"] < 0.5
    assert found["angle"] < 0.015
    assert found["strains dropped as in the paper"] == 100.0


def test_a_straight_rod_without_weight_has_the_strains_of_its_torques():
    true = rod_motion.true_rod()
    rod = rod_motion.PlanarRod(true.robot.replace(gravity=0.0, tip_mass=1e-6), 5)
    levels = np.array([[30e3, 10e3]])
    lengths = np.array([true.robot.length])
    poses = rod.poses(rod.rod.equilibrium(levels[0, [0, 1, 1]])[None])[0]
    bending, shear, axial = strains_between(poses[[0, -1]], np.r_[0.0, lengths])
    numbers = rod_motion.numbers_of(true.robot)
    stiffness = [numbers[f"stiffness_{kind}"] for kind in ("bending", "shear", "axial")]
    torques = rod.torques(levels, lengths)[0] / lengths[0]
    np.testing.assert_allclose([bending, shear, axial], torques / stiffness, atol=1e-6)
    assert abs(bending) > 4.0


def test_a_rod_has_the_numbers_that_it_was_given():
    robot = rod_motion.true_rod().robot
    numbers = {name: 1.1 * value for name, value in rod_motion.numbers_of(robot).items()}
    found = rod_motion.numbers_of(rod_motion.with_numbers(robot, numbers))
    assert found == pytest.approx(numbers)


@pytest.mark.slow
def test_three_segments_predict_an_exact_rod():
    cell = Cell(exact_rod.CASE, exact_rod.THREE, 0, exact_rod.Settings())
    found = exact_rod.run(cell)
    assert found["segments"] == 3
    assert found["strains kept"] == 100.0
    assert found["tip"] < 1.0


def test_the_law_holds_an_exact_rod_as_it_holds_the_papers_robot():
    settings = other_plants.Settings(hold=2.0)
    own, exact, lost = (
        other_plants.run(Cell(plant, control.LEARNED, 0, settings))
        for plant in (other_plants.OWN, *other_plants.OTHERS[:1], other_plants.OTHERS[-1])
    )
    assert exact[other_plants.LOST] == own[other_plants.LOST] == lost[other_plants.LOST] == 0.0
    assert exact[other_plants.SHAPE] < 2.0 * own[other_plants.SHAPE]
    assert lost[other_plants.SHAPE] > 1.5 * exact[other_plants.SHAPE]
    # of an exact rod constant strains are not the shape
    assert exact[other_plants.TIP] > 1.5 * own[other_plants.TIP]


@pytest.mark.parametrize("view", lens.VIEWS, ids=lambda view: view.name)
def test_a_calibrated_camera_sees_marks_where_they_are(view):
    pytest.importorskip("cv2")
    found = lens.run(Cell(view, lens.CALIBRATED, 0, lens.Settings(frames=2)))
    assert found[lens.POSITION] < 0.03
    ideal = lens.run(Cell(view, lens.IDEAL, 0, lens.Settings(frames=2)))
    assert (ideal[lens.POSITION] > 0.05) == (view is not lens.VIEWS[0])


def test_without_the_board_in_the_first_image_a_line_says_so():
    cv2 = pytest.importorskip("cv2")
    camera = lens.lens_camera(lens.Camera.of_robot(0.17), lens.VIEWS[-1], 0.0)
    images = [lens.render_board(camera, lens.Board())] * 6
    lens.calibrated(images, camera, lens.Board())
    empty = np.full_like(images[0], 255)
    assert cv2.countNonZero(empty) == empty.size
    with pytest.raises(UserError, match=r"^calibration: the board is seen in 5 of 6 images"):
        lens.calibrated([empty, *images[1:]], camera, lens.Board())


@pytest.fixture(scope="module")
def like_the_authors(tmp_path_factory):
    """A folder with a motion, a test and a rollout of case 1 that are ours, in their format."""
    folder, case = tmp_path_factory.mktemp("authors"), CASES[0]
    robot = case.training(0)
    torques, strains = case.test(Cell(case, "", 0, None))
    ones = np.repeat(strains[:-1], 10, axis=0)
    ones[::10] = strains[:-1]
    files = {
        "training/cv/X.npy": np.concatenate([robot.strains, robot.rates], axis=-1),
        "training/cv/Tau.npy": robot.motion.torques,
        "validation/sinusoidal_actuation/X_val.npy": np.concatenate([ones, 0 * ones], -1)[None],
        "validation/sinusoidal_actuation/Tau_val.npy": np.repeat(torques, 10, axis=0)[None],
    }
    motions = folder / authors_data._MOTIONS / "ns-1_dof-3"
    rollouts = folder / authors_data._ROLLOUTS / "ns-1" / "sinusoidal_actuation"
    rollouts.mkdir(parents=True)
    for name, values in files.items():
        (motions / name).parent.mkdir(parents=True, exist_ok=True)
        np.save(motions / name, values)
    np.save(rollouts / "ns-1_q_true.npy", 0.0 * ones.T)
    np.save(rollouts / "ns-1_q_pred.npy", 0.0 * ones.T + np.array([[0.0], [0.0], [0.01]]))
    return folder


def test_the_authors_files_are_scored(like_the_authors):
    settings = authors_data.Settings(data=str(like_the_authors))
    case = authors_data.CASES[0]
    found = authors_data.run(Cell(case, authors_data.ROLLOUT, 0, settings))
    assert found[authors_data.TIP] == pytest.approx(1.0)  # a hundredth of 100 mm
    assert found[authors_data.ANGLE] == 0.0
    found = authors_data.run(Cell(case, authors_data.LEARNED, 0, settings))
    assert found[authors_data.TIP] < 0.1


def test_files_that_are_not_the_authors_are_named(like_the_authors, tmp_path):
    def run(folder):
        settings = authors_data.Settings(data=str(folder))
        return authors_data.run(Cell(authors_data.CASES[0], authors_data.ROLLOUT, 0, settings))

    with pytest.raises(UserError, match=r"q_pred.npy is missing; clone github.com/mstoelzle/pcs-r"):
        run(tmp_path)
    path = authors_data._ROLLOUTS / "ns-1" / "sinusoidal_actuation" / "ns-1_q_pred.npy"
    (tmp_path / path).parent.mkdir(parents=True)
    (tmp_path / path).write_bytes(b"no array")
    with pytest.raises(UserError, match=r"q_pred.npy is no array of numbers$"):
        run(tmp_path)
    np.save(tmp_path / path, np.zeros((2, 7000)))
    with pytest.raises(UserError, match=r"q_pred.npy: must have shape \(3, 7000\)$"):
        run(tmp_path)


def test_trajectories_of_marks_are_put_in_the_order_of_the_strains():
    poses = np.random.default_rng(0).normal(size=(8, 5, 21, 3))
    order = [3, 1, 0, 2, 7, 6, 5, 4]
    np.testing.assert_array_equal(authors_data._in_order(poses[order], poses), poses)
    with pytest.raises(UserError, match="are not those of the strains"):
        authors_data._in_order(np.repeat(poses[:1], 8, axis=0), poses)


# --- Table III: artefacts of the published figures, what diverges, the order ---


def test_begin_of_the_test_is_the_straight_robot():
    """Markers at 68, 119 and 170 mm on the y axis; scrambled it is what the public data show."""
    cell = Cell(markers.CASE.name, baselines.OURS, 0, None)
    straight = np.array([0, 0.068, 0, 0, 0.119, 0, 0, 0.17, 0])
    np.testing.assert_allclose(markers.straight_pose(), straight, atol=1e-12)
    np.testing.assert_allclose(markers.test_truth(cell).poses[0], straight, atol=1e-12)
    scrambled = np.array([0.0255, 0.034, 0.0425, 0, 0, 0, 0, 0, 0])
    np.testing.assert_allclose(markers.scrambled_pose(), scrambled, atol=1e-12)


def test_nine_of_ten_milliseconds_are_predicted_where_the_artefact_is():
    """The last frame of an interval twice, and each interval with its own torque."""

    def moved(begin, torques):
        return begin + np.concatenate([[0.0], np.cumsum(torques[:, 0])])[:, None]

    torques = np.repeat([1.0, 100.0, 0.0], 10)[:, None]
    found = markers.nine_of_ten(moved, np.zeros(1), torques)[:, 0]
    np.testing.assert_array_equal(found[:11], [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 9])
    np.testing.assert_array_equal(found[[11, 19, 20, 21, 30]], [109, 909, 909, 909, 909])
    assert len(found) == 31


def test_errors_are_those_of_eq_9_and_what_diverges_has_none():
    true = np.tile(markers.straight_pose(), (3, 1))
    truth = markers.Truth(np.zeros(6), np.zeros((20, 6)), true, 10)
    found = np.tile(true[0], (21, 1))
    found[:, 0] += 0.003  # x of a marker of three
    found[10, 5] += 0.3  # angle of one of three, in one frame of three
    errors = markers.marker_errors("test", truth, found)
    assert errors == {
        "test diverges": 0.0,
        "test position": pytest.approx(1.0),
        "test angle": pytest.approx(0.1 / 3.0),
    }
    for far in (17.1, np.nan):
        found[7, 3] = far
        errors = markers.marker_errors("test", truth, found)
        assert errors == {"test diverges": 100.0, "test until it diverges": pytest.approx(0.007)}


def test_table_has_published_repeated_and_corrected_errors_side_by_side():
    class Fake:
        @staticmethod
        def by_method():
            node = {"test position": 118.0, "test position, artefacts": 300.0}
            lost = {"test diverges": 100.0}
            ours = {"test position": 0.03}
            return {("c", "NODE"): [node, lost], ("c", "LNN"): [lost], ("c", "ours"): [ours]}

    lines = baselines.paper_table(Fake()).splitlines()
    shown = {
        method: [cell.strip() for cell in line.split("|")[3:-1]]
        for line in lines
        for method in ("NODE", "LNN", "ours")
        if line.startswith(f"| {method} | test position [mm] |")
    }
    repeated, corrected = "300 (1 of 2 diverge)", "118 (1 of 2 diverge)"
    assert shown["NODE"] == ["245.6", repeated, corrected]
    assert shown["LNN"] == ["infinite", "diverges", "diverges"]
    assert shown["ours"] == ["9.8", "", "0.03"]


@pytest.mark.slow
def test_a_strain_model_is_far_better_than_quickly_trained_networks(tmp_path):
    """Minutes: the order of Table III, of one seed."""

    def found(method):
        settings = baselines.Settings(networks=str(tmp_path))
        return baselines.run(Cell(markers.CASE.name, method, 0, settings))

    ours = found(baselines.OURS)
    assert ours["training position"] < 0.5
    assert ours["training angle"] < 0.01
    assert ours["test position"] < 1.0
    assert ours["test angle"] < 0.02
    networks = {method: found(method) for method in baselines.NETWORKS}
    for errors in networks.values():
        for quantity in baselines.QUANTITIES:
            assert errors.get(quantity, np.inf) > 10.0 * ours[quantity]
    still = found(baselines.STILL)
    for method in ("NODE", "CON"):
        assert networks[method]["training position"] < 0.5 * still["training position"]
    lnn = networks["LNN"].get("training position", np.inf)
    assert lnn > max(networks[method]["training position"] for method in ("NODE", "CON"))
