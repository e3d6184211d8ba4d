"""Loads that cannot act on a rod, and rods with too many intervals, are told in one line each."""

import numpy as np
import pytest
from kit.refusals import one_line

from softcr_models import CosseratRod, load_robot
from softcr_models.rod.point_loads import PointLoad

NAN, INF = float("nan"), float("inf")


def test_a_rod_of_more_intervals_than_there_is_room_for_is_one_line():
    arm = load_robot("two_segments")
    for count in (33, 0):
        with one_line(f"^intervals: {count} is not allowed: 1 to 32 of each of 2 seg"):
            CosseratRod(arm, count)
    assert CosseratRod(arm, 32).total_intervals == 64


@pytest.mark.parametrize(
    ("load", "line"),
    [
        ({"force": (0.0, NAN, 0.0)}, "load: force [0.0, nan, 0.0], wrench"),
        ({"wrench": (0.0, 0.0, 0.0, INF, 0.0, 0.0)}, "load: force [0.0, 0.0, 0.0], wrench [0.0, 0"),
        ({"force": (0.1, 0.2)}, "load: force of shape (2,) and wrench of shape (6,): allowed are"),
        ({"force": "down"}, "load: force 'down' is not allowed: must be numbers"),
        ({"force": (0.1, 0.0, 0.0), "node": 7}, "load: node 7 is not allowed: 1 to 6"),
        ({"force": (0.1, 0.0, 0.0), "node": 0}, "load: node 0 is not allowed: 1 to 6"),
        ({"force": (0.1, 0.0, 0.0), "node": 1.5}, "load: node 1.5 is not allowed: 1 to 6"),
    ],
)
@pytest.mark.parametrize(
    "method", ["derivative", "equilibrium", "linearize", "step", "base_wrench"]
)
def test_a_load_that_cannot_act_is_one_line(load, line, method):
    rod = CosseratRod(load_robot("two_segments"), 3)
    given = {"loads": (PointLoad(**load),)}
    if method == "equilibrium":
        arguments = (np.zeros(6),)
    else:
        arguments = (rod.rest_state(), np.zeros(6), *((0.01,) if method == "step" else ()))
    with one_line() as told:
        getattr(rod, method)(*arguments, **given)
    assert str(told.value).startswith(line)
