"""Lengths of the lines of a rod: the house's, and the tensions that make them."""

from dataclasses import replace

import numpy as np
import pytest

from softcr_models import CosseratRod, UserError, load_robot
from softcr_models.reference.actuator_lines import Line
from softcr_models.reference.line_lengths import equilibrium_of_changes, line_changes
from softcr_models.reference.reference_rod import Loads, ReferenceRod
from softcr_models.reference.statics import NoEquilibrium, equilibrium
from softcr_models.tendon_lengths import tendon_lengths

ROBOT = load_robot("tendon_arm").replace(
    tendon_model="exact", base_orientation=(0.3, -1.2, 0.4),
    actuators=[
        {"type": "tendon", "name": "a", "angle": 0.0, "lever_arm": 0.004},
        {"type": "tendon", "name": "b", "angle": 2.0, "lever_arm": 0.004,
         "routing": {"kind": "helical", "pitch": 0.6}},
    ],
)  # fmt: skip
ROD, LOADS = ReferenceRod.of_robot(ROBOT), Loads(inputs=[0.4, 0.3])


def test_lengths_are_those_of_the_rod_of_the_house():
    rest = equilibrium(ROD, LOADS, "pseudospectral", 15)
    house = CosseratRod(ROBOT, 40)
    state = house.equilibrium(np.array([0.4, 0.3]))
    want = tendon_lengths(house, state) - tendon_lengths(house, house.rest_state())
    assert line_changes(ROD, rest) == pytest.approx(want, abs=2e-6)


@pytest.mark.parametrize("method", ["explicit_midpoint", "pseudospectral"])
def test_tensions_come_back_from_the_lengths_that_they_make(method):
    given = equilibrium(ROD, LOADS, method, 11)
    found, tensions = equilibrium_of_changes(ROD, line_changes(ROD, given), None, method, 11)
    assert tensions == pytest.approx([0.4, 0.3], abs=1e-6)
    assert found.poses == pytest.approx(given.poses, abs=1e-7)


def test_a_chamber_changes_its_volume():
    """Pressure does the work that bends the rod: dE = p dV. By (2.53), an integral over the
    unloaded length, the volume would not change."""
    area, pressure, step = 1e-5, 3e4, 3e2
    place = np.array([[3e-3, 1e-3, 0.0], [0.0, 0.0, 0.0]])
    chamber = Line("c", lambda s: np.tile(place, (len(s), 1, 1)), -area)
    rod = replace(ROD, weight=np.zeros(3)).with_lines([chamber], 5e-3)

    def energy_and_volume(p):
        rest = equilibrium(rod, Loads(inputs=[p]), points=3)
        strain = rest.strains[0] - rod.rest_strain  # the same everywhere
        return 0.5 * rod.length * strain @ (rod.stiffness * strain), area * line_changes(rod, rest)[
            0
        ]

    (less, small), (more, large) = map(energy_and_volume, (pressure - step, pressure + step))
    assert more - less == pytest.approx(pressure * (large - small), rel=1e-4)
    assert large - small > 1e-3 * step / pressure * area * rod.length


def test_a_cable_that_would_have_to_push_is_told():
    with pytest.raises(NoEquilibrium, match="a cable would be slack"):
        equilibrium_of_changes(ROD, [4e-3, 4e-3], None, "explicit_midpoint", 11)


def test_changes_that_are_not_allowed():
    with pytest.raises(UserError, match="must be 2 finite lengths"):
        equilibrium_of_changes(ROD, [1e-3])
    straight = ReferenceRod.of_robot(ROBOT.replace(tendon_model="constant"))
    with pytest.raises(UserError, match="every line must be a cable along its tangent"):
        equilibrium_of_changes(straight, [0.0, 0.0])
