"""Lengths of the lines of a rod, and what drives lines otherwise than by their inputs."""

from dataclasses import replace

import numpy as np
import pytest

from softcr_models import CosseratRod, UserError, load_robot
from softcr_models.rod_model.tendon_lengths import tendon_lengths
from softcr_papers.pawlowski2019.reference.actuator_lines import Line
from softcr_papers.pawlowski2019.reference.drives import (
    Drive,
    equilibrium_of_drives,
    held,
    inserted_muscle,
    length_change,
    line_changes,
    liquid,
    rest_length,
    sealed_gas,
    spring_law,
)
from softcr_papers.pawlowski2019.reference.explicit_motion import ExplicitMotion
from softcr_papers.pawlowski2019.reference.reference_rod import Loads, ReferenceRod
from softcr_papers.pawlowski2019.reference.statics import NoEquilibrium, equilibrium

ROBOT = load_robot("tendon_arm").replace(
    tendon_model="exact", base_orientation=(0.3, -1.2, 0.4),
    actuators=[
        {"type": "tendon", "name": "a", "angle": 0.0, "lever_arm": 0.004},
        {"type": "tendon", "name": "b", "angle": 2.0, "lever_arm": 0.004,
         "routing": {"kind": "helical", "pitch": 0.6}},
    ],
)  # fmt: skip
ROD, LOADS = ReferenceRod.of_robot(ROBOT), Loads(inputs=[0.4, 0.3])
AREA = 1e-5
PLACE = np.array([[3e-3, 1e-3, 0.0], [0.0, 0.0, 0.0]])


def beside(places):
    return np.tile(PLACE, (len(places), 1, 1))


def changes_of(rod, rest):
    return line_changes(rod, rest.arc_lengths, rest.strains)


def with_line(pull, **about):
    """The floating rod with one line beside its centre."""
    line = Line("line", beside, pull, **about)
    return replace(ROD, weight=np.zeros(3)).with_lines([line], 5e-3)


def arc_strain(tension):
    """(6,) of a rod that one straight line bends: K (xi - xi*) = -T [e; r x e]."""
    rod, (x, y, _) = with_line(1.0), PLACE[0]
    along = np.array([0.0, 0.0, 1.0])
    return rod.rest_strain - tension / rod.stiffness * np.array([*along, y, -x, 0.0])


def arc_length(tension):
    """Of that line [m]."""
    strain, (x, y, _) = arc_strain(tension), PLACE[0]
    return 0.1 * (strain[2] + strain[3] * y - strain[4] * x)


def test_lengths_are_those_of_the_rod_of_the_house():
    rest = equilibrium(ROD, LOADS, "pseudospectral", 15)
    house = CosseratRod(ROBOT, 40)
    state = house.equilibrium(np.array([0.4, 0.3]))
    want = tendon_lengths(house, state) - tendon_lengths(house, house.rest_state())
    assert changes_of(ROD, rest) == pytest.approx(want, abs=2e-6)


@pytest.mark.parametrize("method", ["explicit_midpoint", "pseudospectral"])
def test_tensions_come_back_from_the_lengths_that_they_make(method):
    given = equilibrium(ROD, LOADS, method, 11)
    drives = [length_change(ROD, each) for each in changes_of(ROD, given)]
    found, tensions = equilibrium_of_drives(ROD, drives, None, method, 11)
    assert tensions == pytest.approx([0.4, 0.3], abs=1e-6)
    assert found.poses == pytest.approx(given.poses, abs=1e-7)


def test_one_line_may_be_pulled_and_another_have_its_length():
    given = equilibrium(ROD, LOADS, "explicit_midpoint", 11)
    drives = [held(0.4), length_change(ROD, changes_of(ROD, given)[1])]
    _, tensions = equilibrium_of_drives(ROD, drives, None, "explicit_midpoint", 11)
    assert tensions == pytest.approx([0.4, 0.3], abs=1e-6)


# -- chambers -------------------------------------------------------------------------------------


def test_a_chamber_changes_its_volume():
    """Pressure does the work that bends the rod: dE = p dV. By (2.53), an integral over the
    unloaded length, the volume would not change."""
    pressure, step = 3e4, 3e2
    rod = with_line(-AREA)

    def energy_and_volume(p):
        rest = equilibrium(rod, Loads(inputs=[p]), points=3)
        strain = rest.strains[0] - rod.rest_strain  # the same everywhere
        volume = AREA * changes_of(rod, rest)[0]
        return 0.5 * rod.length * strain @ (rod.stiffness * strain), volume

    (less, small), (more, large) = map(energy_and_volume, (pressure - step, pressure + step))
    assert more - less == pytest.approx(pressure * (large - small), rel=1e-4)
    assert large - small > 1e-3 * step / pressure * AREA * rod.length


def test_a_volume_of_liquid_gives_its_pressure():
    """By the formula of an arc: the chamber's length is linear in its pressure."""
    rod = with_line(-AREA)
    (line,) = rod.lines
    want = 2e4
    volume = AREA * arc_length(-want * AREA)
    found, (pressure,) = equilibrium_of_drives(rod, [liquid(rod, line, volume)], points=5)
    assert pressure == pytest.approx(want, rel=1e-7)
    assert found.strains[0] == pytest.approx(arc_strain(-want * AREA), abs=1e-7)


def test_a_sealed_gas_is_softer_than_its_rest_pressure():
    """(p + p_0) V stays: the pressure that is left when the chamber has grown."""
    rod = with_line(-AREA)
    (line,) = rod.lines
    outside, filled = 1e5, 4e4
    amount = (outside + filled) * AREA * rest_length(rod, line)
    _, (pressure,) = equilibrium_of_drives(
        rod, [sealed_gas(rod, line, amount, outside)], points=5
    )  # fmt: skip
    volume = AREA * arc_length(-pressure * AREA)
    assert (pressure + outside) * volume == pytest.approx(amount, rel=1e-8)
    assert 0.5 * filled < pressure < 0.97 * filled


def test_a_cable_has_no_volume():
    rod = with_line(1.0)
    with pytest.raises(UserError, match=r"^line: is a cable, which has no volume$"):
        liquid(rod, rod.lines[0], 1e-6)


# -- muscles fixed at their ends ------------------------------------------------------------------


def test_an_inserted_muscle_has_the_tension_of_its_length():
    """(2.65) to (2.67): the length that the law was given is that of the bent rod."""
    rod = with_line(1.0)
    (line,) = rod.lines
    gain, stiffness, q = 0.2, 15.0, 2.0
    law = spring_law(gain, stiffness, 0.1)
    found, (tension,) = equilibrium_of_drives(
        rod, [inserted_muscle(rod, line, law, q, 0.3)], points=5
    )  # fmt: skip
    # an arc's length is linear in the tension: one linear equation
    slope = arc_length(1.0) - arc_length(0.0)
    want = gain * q / (1.0 - stiffness * slope)
    assert tension == pytest.approx(want, rel=1e-7)
    assert tension == pytest.approx(law(q, 0.1 + changes_of(rod, found)[0]), rel=1e-7)
    assert tension < 0.97 * gain * q


def test_inserted_muscles_in_space_agree_with_their_laws():
    laws = [spring_law(0.1, 20.0, 0.1), spring_law(0.15, 5.0, 0.1)]
    drives = [
        inserted_muscle(ROD, line, law, 2.0, 0.2) for line, law in zip(ROD.lines, laws, strict=True)
    ]
    found, tensions = equilibrium_of_drives(ROD, drives, points=11)
    lengths = [rest_length(ROD, line) for line in ROD.lines] + changes_of(ROD, found)
    want = [law(2.0, length) for law, length in zip(laws, lengths, strict=True)]
    assert tensions == pytest.approx(want, rel=1e-6)


def test_an_inserted_muscle_keeps_the_energy_of_a_motion():
    """A spring from base to end that is stretched at the start: what it gives, the rod has."""
    rod = replace(with_line(1.0), viscosity=np.zeros(6))
    stiffness, rest = 30.0, 0.09
    law = spring_law(0.0, stiffness, rest)
    motion = ExplicitMotion(rod, 8)
    state = motion.rest_state()
    middles = motion.interval * (np.arange(7) + 0.5)
    begin, energies, bent = 0.5 * stiffness * (0.1 - rest) ** 2, [], 0.0
    for _ in range(1500):
        length = 0.1 + line_changes(rod, middles, state.strains)[0]
        energies.append(motion.energy(state) + 0.5 * stiffness * (length - rest) ** 2)
        bent = max(bent, motion.energy(state) / begin)
        motion.advance(state, Loads(inputs=[law(0.0, length)]), 1)
    assert bent > 0.1
    assert energies == pytest.approx([begin] * len(energies), rel=0.02)


# -- bad input ------------------------------------------------------------------------------------


def test_a_cable_that_would_have_to_push_is_told():
    drives = [length_change(ROD, 4e-3)] * 2
    with pytest.raises(NoEquilibrium, match="a cable from 0 N on, which would be slack"):
        equilibrium_of_drives(ROD, drives, None, "explicit_midpoint", 11)


def test_each_line_has_a_drive():
    with pytest.raises(UserError, match="drives: 1 are given, this rod has 2 lines"):
        equilibrium_of_drives(ROD, [Drive(lambda tension, _: tension, 0.0)])
