"""Equations of Pawlowski (2019) that are no part of a solver's text, as printed and as they are."""

import numpy as np
import pytest

from softcr_papers.pawlowski2019.lie import se3
from softcr_papers.pawlowski2019.reference.actuator_lines import distributed_wrench, section_wrench

STRAINS = np.array(  # xi(s) = rows @ (1, s)
    [[0.02, -0.3], [-0.01, 0.4], [1.02, -0.2], [5.0, -80.0], [-7.0, 90.0], [4.0, 60.0]]
)


def strain(s):
    return STRAINS @ [1.0, s]


def pose(s, steps=400):
    """Of the section at s in the base's frame."""
    found, h = np.eye(4), s / steps
    for k in range(steps):
        found = found @ se3.exp(h * strain((k + 0.5) * h))
    return found


def offset(s):
    turn = 20.0 * s
    place = 3e-3 * np.array([np.cos(turn), np.sin(turn), 0.0])
    return np.stack((place, 6e-2 * np.array([-np.sin(turn), np.cos(turn), 0.0])))


def force(s):
    """F of a cable with friction, which changes along it [N], and F'."""
    return 0.5 * np.exp(-8.0 * s), -4.0 * np.exp(-8.0 * s)


def test_a_force_that_changes_along_the_cable_acts_at_the_cable():
    """(2.45): the lever of F' is r_a, not -p, which depends on where the base lies."""
    s, step = 0.06, 1e-6

    def inside(at):  # F [e; r x e]
        return -force(at)[0] * section_wrench(offset(at), strain(at))

    slope = (inside(s + step) - inside(s - step)) / (2 * step)
    want = slope - se3.ad(strain(s)).T @ inside(s)  # as seen from the turning section
    place = offset(s)[0]
    curving = -400.0 * place
    value, change = force(s)
    along = value * distributed_wrench(offset(s), curving, strain(s), STRAINS[:, 1])
    direction = -section_wrench(offset(s), strain(s))[:3]
    ours = along + change * np.concatenate((direction, np.cross(place, direction)))
    assert ours == pytest.approx(want, abs=1e-7)
    lever = -pose(s)[:3, 3]
    printed = along + change * np.concatenate((direction, np.cross(lever, direction)))
    assert np.abs(printed - want).max() > 0.01


def test_a_varied_velocity_has_the_rate_of_the_variation():
    """(3.6): d eta = (dh)' + ad(eta) dh, as (1.32); printed without the dot."""
    eta, size = np.array([0.3, -0.2, 0.5, 1.0, -2.0, 0.7]), 1e-5
    first, rate = np.array([0.1, 0.2, -0.1, 0.4, 0.3, -0.5]), np.array([1.0, 0, 0.5, -1, 2, 0.3])

    def moved(t, part):  # g exp(part (dh + t dh')) with g = exp(t eta)
        return se3.exp(t * eta) @ se3.exp(part * (first + t * rate))

    def velocity(part):
        ends = se3.inverse(moved(-size, part)) @ moved(size, part)
        return se3.log(ends) / (2 * size)

    found = (velocity(1e-4) - velocity(-1e-4)) / 2e-4
    assert found == pytest.approx(rate + se3.ad(eta) @ first, abs=1e-5)
    assert np.abs(found - (first + se3.ad(eta) @ first)).max() > 0.1
