"""Shapes from images: what was drawn is found, to a small part of a pixel."""

import sys

import numpy as np
import pytest
from kit.refused_calls import refused

from softcr_models import UserError
from softcr_papers.valadas2024.learning.camera import Camera, Marks
from softcr_papers.valadas2024.strain.kinematics import StrainKinematics
from softcr_papers.valadas2024.studies.images import fill_gaps

LENGTH = 0.17
CHAIN = StrainKinematics(np.array([0.07, 0.1]))
CAMERA, MARKS = Camera.of_robot(LENGTH, 1400), Marks.of_robot(LENGTH)


def a_shape(turns, linear=(0.0, 0.0)):
    kappas = np.deg2rad(turns) / CHAIN.lengths
    return CHAIN.poses(np.r_[kappas[0], linear, kappas[1], linear], MARKS.places)


@pytest.fixture(scope="module")
def images():
    pytest.importorskip("cv2")
    from softcr_papers.valadas2024.learning import images

    return images


@pytest.mark.parametrize(
    ("turns", "linear"),
    [((0, 0), (0.0, 0.0)), ((30, -80), (0.2, -0.1)), ((-285, 120), (-0.1, 0.1)),
     ((90, 200), (0.0, 0.2)), ((-250, 264), (0.1, 0.0))],
)  # fmt: skip
def test_what_is_drawn_is_found(images, turns, linear):
    poses = a_shape(turns, linear)
    found = images.detect(images.render(poses, CAMERA, MARKS), CAMERA, MARKS)
    pixel = 1.0 / CAMERA.scale
    # OpenCV itself draws upright edges 0.15 pixels off
    assert np.linalg.norm(found[:, :2] - poses[:, :2], axis=1).max() < 0.2 * pixel
    # counted on beyond half a turn, as the shape does
    assert np.abs(found[:, 2] - poses[:, 2]).max() < 0.02


def test_a_finer_image_is_more_exact(images):
    poses = a_shape((100, -150), (0.1, 0.1))
    errors = []
    for height in (700, 2800):
        camera = Camera.of_robot(LENGTH, height)
        found = images.detect(images.render(poses, camera, MARKS), camera, MARKS)
        errors.append(np.linalg.norm(found[:, :2] - poses[:, :2], axis=1).mean())
    assert errors[1] < 0.5 * errors[0]
    assert errors[1] < 5e-6


@pytest.mark.parametrize("turns", [(0, 0), (-285, 120), (90, 200), (250, 60)])
def test_marks_are_sought_where_all_of_them_are(images, turns):
    image = images.render(a_shape(turns), CAMERA, MARKS)
    part, corner = images._with_marks(image, CAMERA, MARKS)
    assert part.size < 0.5 * image.size
    assert (255 - part.astype(int)).sum() == (255 - image.astype(int)).sum()
    left, top = corner.astype(int)
    np.testing.assert_array_equal(
        part, image[top : top + part.shape[0], left : left + part.shape[1]]
    )


def test_a_hidden_mark_gets_one_line(images):
    image = images.render(a_shape((40, 40)), CAMERA, MARKS)
    column, row = np.round(CAMERA.pixels(a_shape((40, 40))[7, :2])).astype(int)
    image[row - 20 : row + 20, column - 25 : column + 25] = 255
    with pytest.raises(UserError, match="20 of 21 marks are seen; the backbone crosses"):
        images.detect(image, CAMERA, MARKS)
    with pytest.raises(UserError, match="image of float64 and shape"):
        images.detect(image.astype(float), CAMERA, MARKS)
    jumps = a_shape((40, 40))
    jumps[9:, 0] += 0.08
    with pytest.raises(UserError, match="mark 9 is not where the marks before it lead to"):
        images.detect(images.render(jumps, CAMERA, MARKS), CAMERA, MARKS)


def test_without_opencv_a_line_says_what_to_install(monkeypatch):
    from softcr_papers.valadas2024.learning import images

    monkeypatch.setitem(sys.modules, "cv2", None)
    with pytest.raises(UserError, match=r"pip install 'softcr\[images\]'"):
        images.render(a_shape((0, 0)), CAMERA, MARKS)


def test_pixels_and_points_are_inverse():
    points = np.random.default_rng(0).normal(size=(5, 2))
    np.testing.assert_allclose(CAMERA.points(CAMERA.pixels(points)), points, atol=1e-12)
    assert CAMERA.pixels(np.array([0.0, LENGTH]))[1] < CAMERA.base[1]  # up in the image


def test_lost_frames_are_filled_where_few_are():
    t = 1e-3 * np.arange(60)
    poses = np.stack([a_shape((60 * np.sin(30 * s), 90 * np.cos(40 * s))) for s in t])[None]
    holed = poses.copy()
    holed[0, [10, 11, 30]] = np.nan
    np.testing.assert_allclose(fill_gaps(holed), poses, atol=2e-3)
    np.testing.assert_array_equal(fill_gaps(holed)[0, 12], poses[0, 12])
    holed[0, 40:47] = np.nan
    with pytest.raises(UserError, match="more than 5 frames in a row are lost"):
        fill_gaps(holed)
    holed[0, 0] = np.nan
    with pytest.raises(UserError, match="first or last frame is lost"):
        fill_gaps(holed)


def test_what_is_not_allowed_gets_one_line():
    refused(
        (lambda: Camera(0, 10, 1.0, (0.0, 0.0)), "camera of 0 x 10 pixels"),
        (lambda: Marks(np.zeros(2), 0.01, 0.02), "must be longer across"),
    )
