"""What fixes the input of a line that is not given: its length, a volume, a muscle's law.

Each is one equation between the line's input and the change of its length, (2.47). The boundary
value problem of the statics grows by one unknown, the input, and by one equation for each, as with
Delta_guess = Delta of Pawlowski (2019), (2.65) to (2.67). A chamber's volume is its area times the
length that it has in the bent rod; (2.53) as printed takes the unloaded length and is a constant.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np
from scipy.interpolate import CubicSpline
from scipy.optimize import least_squares

from softcr_models.errors import UserError
from softcr_papers.pawlowski2019.reference.actuator_lines import Line, direction
from softcr_papers.pawlowski2019.reference.reference_rod import Loads, ReferenceRod
from softcr_papers.pawlowski2019.reference.statics import Method, NoEquilibrium, equilibrium
from softcr_papers.pawlowski2019.reference.steady import Equilibrium

_GOOD = 1e-9  # of what is wrong with a drive


@dataclass(frozen=True)
class Drive:
    """What fixes the input of a line.

    Attributes:
        wrong: input [N, Pa] and change of the line's length [m] -> what is wrong, in parts of what
            is asked [-].
        guess: of the input.
        known: whether the guess is what is asked.
    """

    wrong: Callable[[float, float], float]
    guess: float
    known: bool = False


def held(value: float) -> Drive:
    """The input itself is given, tension [N] or gauge pressure [Pa]."""
    return Drive(lambda now, _: now - value, value, known=True)


def length_change(rod: ReferenceRod, change: float, guess: float | None = None) -> Drive:
    """A cable on a spool: how much longer than in the unloaded rod it is, (2.47) [m]."""
    force = float(rod.scales[0]) if guess is None else guess
    return Drive(lambda _, found: (found - change) / rod.length, force)


def liquid(rod: ReferenceRod, line: Line, volume: float, guess: float = 1e3) -> Drive:
    """A chamber filled with so much of an incompressible liquid [m^3]."""
    area, rest = _chamber(rod, line)
    change = volume / area - rest
    return Drive(lambda _, found: (found - change) / rest, guess)


def sealed_gas(
    rod: ReferenceRod, line: Line, amount: float, outside: float = 101325.0, guess: float = 1e3
) -> Drive:
    """A chamber with a perfect gas of constant temperature: pressure times volume [J].

    Args:
        rod, line: whose chamber.
        amount: absolute pressure times volume.
        outside: absolute pressure around the rod [Pa].
        guess: of the gauge pressure [Pa].
    """
    area, rest = _chamber(rod, line)

    def wrong(pressure: float, found: float) -> float:
        return (pressure + outside) * area * (rest + found) / amount - 1.0

    return Drive(wrong, guess)


def inserted_muscle(
    rod: ReferenceRod, line: Line, law: Callable[[float, float], float], q: float, guess: float
) -> Drive:
    """A muscle that is fixed at its ends alone: its tension [N] by its input and length [m]."""
    rest = rest_length(rod, line)
    scale = max(abs(guess), 1e-3)
    return Drive(lambda tension, found: (tension - law(q, rest + found)) / scale, guess)


def spring_law(gain: float, stiffness: float, length: float) -> Callable[[float, float], float]:
    """k_q q + k (length now - length): a linear muscle, ours, as the thesis names none.

    Args:
        gain: k_q, tension per input [N].
        stiffness: k [N/m].
        length: at which it is unstrained [m].
    """
    return lambda q, now: gain * q + stiffness * (now - length)


def _chamber(rod: ReferenceRod, line: Line) -> tuple[float, float]:
    """Area [m^2] and length in the unloaded rod [m]."""
    if line.is_cable:
        raise UserError(f"{line.name}: is a cable, which has no volume")
    return -line.pull, rest_length(rod, line)


def rest_length(rod: ReferenceRod, line: Line) -> float:
    """Of a line in the unloaded rod [m]."""
    return _length(rod, line, np.linspace(*_span(rod, line), 201), rod.rest_strain)


def line_changes(rod: ReferenceRod, arc_lengths: np.ndarray, strains: np.ndarray) -> np.ndarray:
    """(m,) how much longer than in the unloaded rod each line is [m].

    Args:
        rod: whose lines.
        arc_lengths, strains: (P,) and (P, 6) of a state, rising.
    """
    changes = []
    for line in rod.lines:
        begin, end = _span(rod, line)
        inside = arc_lengths[(arc_lengths > begin) & (arc_lengths < end)]
        places = np.concatenate(([begin], inside, [end]))
        found = _strains_at(places, arc_lengths, strains)
        changes.append(
            _length(rod, line, places, found) - _length(rod, line, places, rod.rest_strain)
        )
    return np.array(changes)


def equilibrium_of_drives(
    rod: ReferenceRod,
    drives: Sequence[Drive],
    loads: Loads | None = None,
    method: Method = "implicit_midpoint",
    points: int = 21,
) -> tuple[Equilibrium, np.ndarray]:
    """The steady state, and the inputs (m,) of the lines that their drives lead to [N, Pa].

    Args:
        rod: whose lines are driven.
        drives: (m,) one per line.
        loads: beside the lines'; their inputs are not used.
        method, points: of `equilibrium`.

    Raises:
        NoEquilibrium: a cable would have to push, or no state was found.
        UserError: a wrong number of drives.
    """
    if len(drives) != len(rod.lines):
        raise UserError(f"drives: {len(drives)} are given, this rod has {len(rod.lines)} lines")
    loads, inputs = loads or Loads(), np.array([each.guess for each in drives], float)
    free = np.flatnonzero([not each.known for each in drives]).tolist()
    units = np.maximum(np.abs(inputs[free]), 1e-6)

    def steady(scaled: np.ndarray) -> Equilibrium:
        inputs[free] = units * scaled
        return equilibrium(rod, replace(loads, inputs=inputs), method, points)

    def wrong(scaled: np.ndarray) -> np.ndarray:
        found = steady(scaled)
        changes = line_changes(rod, found.arc_lengths, found.strains)
        return np.array([drives[i].wrong(float(inputs[i]), float(changes[i])) for i in free])

    if not free:
        return steady(np.zeros(0)), inputs
    lowest = np.where([rod.lines[i].is_cable for i in free], 0.0, -np.inf)
    solved = least_squares(
        wrong, inputs[free] / units, bounds=(lowest, np.inf), xtol=1e-14, ftol=1e-14, gtol=1e-14
    )
    if np.abs(solved.fun).max() > _GOOD:
        worst = rod.lines[free[np.abs(solved.fun).argmax()]].name
        raise NoEquilibrium(
            f"no inputs are what the drives ask, {worst} least: a cable from 0 N on, which would "
            "be slack, or beyond what the rod bears"
        )
    return steady(solved.x), inputs


def _span(rod: ReferenceRod, line: Line) -> tuple[float, float]:
    return line.span[0], min(line.span[1], rod.length)


def _strains_at(places: np.ndarray, arc_lengths: np.ndarray, strains: np.ndarray) -> np.ndarray:
    """(P, 6) linear between the given; at a line's end inside the rod that of the place before."""
    found = np.array([np.interp(places, arc_lengths, column) for column in strains.T]).T
    if places[-1] < arc_lengths[-1]:
        found[-1] = found[-2]
    return found


def _length(rod: ReferenceRod, line: Line, places: np.ndarray, strains: np.ndarray) -> float:
    """Of a line at rising places (P,) and strains (P, 6) or (6,) there [m]."""
    _, stretch = direction(line.offset(places), strains)
    return float(CubicSpline(places, stretch).integrate(places[0], places[-1]))
