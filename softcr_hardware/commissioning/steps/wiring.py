"""Which wires and mountings explain a survey: the explanation with the fewest mistakes.

Of each channel the survey says which sensor answered and where the tip went. Three exchanges lie
behind that, of valves V, of sensors T and of hoses H:

    sensor that answers = inverse(T)(V(channel)),      chamber that bends = H(V(channel))

and each turn or mirror image of the cameras' world makes another chamber of each direction. All of
them are tried. A mistake costs 1, one that is hard to make (a crooked angle, a tilt) more; of what
looks the same to all sensors, the cheapest is what is told, and the next is named beside it.
"""

import itertools
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np
import pinocchio as pin

from softcr_hardware.commissioning.expectation import Bent, Expectation
from softcr_hardware.commissioning.findings import Finding, exchanged_words, swaps, turn_words
from softcr_hardware.commissioning.mirrors import MIRRORS, NO_MIRROR, Mirror
from softcr_hardware.commissioning.record import StepRecord
from softcr_hardware.commissioning.session import Session, Step, found
from softcr_hardware.commissioning.steps.base import Alignment, aligned
from softcr_hardware.commissioning.steps.exhaust import reversed_words
from softcr_hardware.commissioning.steps.force_torque import MOST_RESIDUAL, MountingFit, mounting
from softcr_hardware.commissioning.steps.survey import Survey, own_rise
from softcr_hardware.optitrack.calibration import MocapCalibration

SMALL_TURN = np.radians(5.0)
"""A turn below is an inaccuracy, not a mistake [rad]."""
FAR = 0.05
"""A base that stands further from where the file has it has another place [m]."""

_ANSWERS = 0.25  # of the expected rise; less is no answer
_FITS = 0.35  # residual of directions, over the displacements, that is no contradiction [-]
_ALIKE = 0.3  # explanations that cost no more above the best are named beside it
_CROOKED = 1.9  # cost of a turn that is no quarter turn
_TILT = 1.3  # of a quarter turn about another axis than z
_FLIPPED = 2.5  # of a force-torque sensor that is not just turned about z
_MIRROR = 1.0
_PLACE = 0.8  # of a base that stands elsewhere
_MISFIT = 8.0  # of the residual of directions
_MOST_CHAMBERS = 6  # of which all exchanges are tried

Order = tuple[int, ...]


@dataclass(frozen=True, eq=False)
class Explanation:
    """One idea of how the bench is wired and mounted.

    Attributes:
        valves, sensors, hoses: (m,) whose part each chamber has, from 0.
        bends: (m,) chamber that each channel fills.
        answers: (m,) sensor that answers each channel.
        mirror: signs that the stream has wrong.
        alignment: of base and body; None without cameras.
        mounting: of the force-torque sensor; None without one.
        turns: rotation vectors of base, body and force-torque sensor against their files [rad].
        away: of the base from where its file has it [m].
        cost: of its mistakes.
    """

    valves: Order
    sensors: Order
    hoses: Order
    bends: Order
    answers: Order
    mirror: Mirror = NO_MIRROR
    alignment: Alignment | None = None
    mounting: MountingFit | None = None
    turns: dict[str, np.ndarray] = field(default_factory=dict)
    away: float = 0.0
    cost: float = 0.0

    def words(self, names: Sequence[str]) -> list[Finding]:
        """Its mistakes."""
        lines = [
            Finding(words=words, mend="file")
            for what, order in (
                ("sensors", self.sensors),
                ("valves", self.valves),
                ("hoses", self.hoses),
            )
            for words in exchanged_words(what, order, names)
        ]
        if self.mirror.words:
            lines.append(Finding(words=self.mirror.words))
        said = {
            "base": "the base is {}: base_in_world of the file is wrong",
            "body": "the tip body's axes are {}: tip_in_body of the file is wrong",
            "force_torque": "the force-torque sensor is mounted {}",
        }
        for name, turn in self.turns.items():
            if np.linalg.norm(turn) > SMALL_TURN:
                lines.append(Finding(words=said[name].format(turn_words(turn)), mend="file"))
        if self.away > FAR:
            lines.append(
                Finding(
                    words=f"the base stands {self.away:.2f} m from where base_in_world of the file "
                    "has it",
                    mend="file",
                )
            )
        return lines


def explained(
    survey: Survey,
    file: MocapCalibration,
    model: Expectation,
    names: Sequence[str],
    sensors: Sequence[int] | None = None,
    axes: np.ndarray | None = None,
) -> tuple[Explanation | None, list[Finding]]:
    """The explanation with the fewest mistakes.

    Args:
        survey: with or without cameras and force-torque sensor.
        file: of the cameras, as it was until now.
        model: of the robot.
        names: of the chambers.
        sensors: (m,) on the hose of whose valve each chamber's sensor sits, where cables were
            pulled to see it; None where that is to be guessed.
        axes: (3, 3) of the force-torque sensor in the base frame, as its file has them.

    Returns:
        The explanation, None where there is none; and what is wrong, each in a line.
    """
    answers, broken = _answers(survey, names)
    if answers is None:
        return None, broken
    axes = np.eye(3) if axes is None else axes
    known = None if sensors is None else tuple(sensors)
    ideas = sorted(_ideas(survey, answers, file, model, known, axes), key=lambda idea: idea.cost)
    if not ideas:
        return None, [
            *broken,
            Finding(
                words="the tip does not bend as the model's chambers do, whichever hoses, axes and "
                "mirror images are assumed: is the rod free, and the robot file of this rod?"
            ),
        ]
    best = ideas[0]
    found = best.words(names)
    others = [idea.words(names) for idea in ideas[1:4] if idea.cost - best.cost < _ALIKE]
    return best, [*broken, *_with_others(found, others)]


def _with_others(found: list[Finding], others: Sequence[list[Finding]]) -> list[Finding]:
    """What was found, with what it could be instead where it is not sure."""
    sets = [{each.words for each in other} for other in others]
    sure = set.intersection(*sets) if sets else {each.words for each in found}
    doubtful = [each for each in found if each.words not in sure]
    told = []
    for other in sets:
        own = sorted(other - {each.words for each in found})
        told.append(" and ".join(own) or "none of it")
    if not told or not doubtful:
        return found
    first = doubtful[0].model_copy(update={"could_be": "; or: ".join(told)})
    return [first if each is doubtful[0] else each for each in found]


def _answers(survey: Survey, names: Sequence[str]) -> tuple[Order | None, list[Finding]]:
    """Which sensor answers each channel, None where that is no exchange, and wrong signs."""
    found: list[int] = []
    wrong: list[Finding] = []
    for channel, name in enumerate(names):
        rises = np.array(survey.rises[channel])
        if np.abs(rises).max() < _ANSWERS * survey.expected:
            wrong.append(Finding(words=_silent(survey, channel, name)))
            continue
        sensor = int(np.argmax(np.abs(rises)))
        found.append(sensor)
        if own_rise(survey, channel) < 0.0:
            wrong.append(
                Finding(
                    words=f"the sensor of {names[sensor]} has the wrong sign: it falls by "
                    f"{-own_rise(survey, channel) / 1e3:.1f} kPa while its chamber fills"
                )
            )
    if len(found) == len(names) and len(set(found)) < len(found):
        twice = next(each for each in found if found.count(each) > 1)
        channels = [name for name, each in zip(names, found, strict=True) if each == twice]
        wrong.append(
            Finding(
                words=f"the sensor of {names[twice]} answers the valves of {' and '.join(channels)}"
            )
        )
    complete = len(set(found)) == len(names)
    return (tuple(found) if complete else None), wrong


def _silent(survey: Survey, channel: int, name: str) -> str:
    words = f"no sensor answers the valve of {name}"
    look = survey.channels[channel]
    if not look.position:
        return f"{words}: is the air on, the valve's cable and the hose connected?"
    moved = np.linalg.norm(np.array(look.position) - np.array(survey.rest.position))
    if moved > 0.003:
        return f"{words}, but the tip moves by {1e3 * moved:.0f} mm: its sensor or its line is dead"
    return f"{words}, and the tip rests: its valve's cable, the air or the hose is not connected"


def _ideas(
    survey: Survey,
    answers: Order,
    file: MocapCalibration,
    model: Expectation,
    sensors: Order | None,
    axes: np.ndarray,
) -> Iterator[Explanation]:
    """All explanations that no sensor contradicts."""
    count = len(answers)
    seen, felt = bool(survey.rest.position), bool(survey.rest.wrench)
    orders = list(_orders(count))
    valves = orders if sensors is None else [tuple(sensors[each] for each in answers)]
    if not seen:
        for order in valves:
            yield _wired(answers, order, order)
        return
    pressures = [
        abs(look.pressures[sensor]) for look, sensor in zip(survey.channels, answers, strict=True)
    ]
    bent = [[model.bent(chamber, p) for chamber in range(count)] for p in pressures]
    for bends in orders:
        chosen = [row[chamber] for row, chamber in zip(bent, bends, strict=True)]
        mount = mounting(survey.rest, survey.channels, chosen, axes) if felt else None
        wired = [_wired(answers, each, bends) for each in valves]
        least = min(idea.cost for idea in wired)
        for mirror in MIRRORS:
            for idea in wired:
                if idea.cost < least + 1e-9:
                    yield from _mounted(survey, idea, chosen, mirror, mount, file, model, axes)


def _orders(count: int) -> Iterator[Order]:
    if count <= _MOST_CHAMBERS:
        yield from itertools.permutations(range(count))
        return
    yield tuple(range(count))
    for first, second in itertools.combinations(range(count), 2):
        order = list(range(count))
        order[first], order[second] = second, first
        yield tuple(order)


def _wired(answers: Order, valves: Order, bends: Order) -> Explanation:
    """With these valves exchanged, what sensors and hoses must be."""
    count = len(answers)
    sensors, hoses = [0] * count, [0] * count
    for channel in range(count):
        sensors[answers[channel]] = valves[channel]
        hoses[valves[channel]] = bends[channel]
    cost = swaps(valves) + swaps(sensors) + swaps(hoses)
    return Explanation(valves, tuple(sensors), tuple(hoses), bends, answers, cost=float(cost))


def _mounted(
    survey: Survey,
    wired: Explanation,
    bent: Sequence[Bent],
    mirror: Mirror,
    mount: MountingFit | None,
    file: MocapCalibration,
    model: Expectation,
    axes: np.ndarray,
) -> Iterator[Explanation]:
    """With cameras, body and sensor as they must then be mounted; nothing where that cannot be."""
    fit = aligned(survey.rest, survey.channels, bent, mirror, model)
    if fit.residual > _FITS:
        return
    cost = wired.cost + (_MIRROR if mirror.kind != "none" else 0.0) + _MISFIT * fit.residual
    turns = {
        "base": np.array(pin.log3(file.base_in_world.pose[:3, :3].T @ fit.base)),
        "body": np.array(pin.log3(fit.tip @ file.tip_in_body.pose[:3, :3].T)),
    }
    cost += sum(_turn_cost(turn) for turn in turns.values())
    away = float(np.linalg.norm(fit.position - np.array(file.base_in_world.position)))
    if away > FAR:
        cost += _PLACE
    if mount is not None:
        if mount.residual > MOST_RESIDUAL:
            return
        turn = np.array(pin.log3(axes.T @ mount.rotation))
        turns["force_torque"] = turn
        cost += _turn_cost(turn) if mount.about_z else _FLIPPED
    wiring = wired.valves, wired.sensors, wired.hoses, wired.bends, wired.answers
    yield Explanation(*wiring, mirror, fit, mount, turns, away, cost)


def _turn_cost(turn: np.ndarray) -> float:
    """Of a rotation vector (3,) [rad]; larger turns cost a little more than smaller ones."""
    angle = float(np.linalg.norm(turn))
    if angle < SMALL_TURN:
        return 0.0
    rotation = np.abs(pin.exp3(turn))
    quarter = bool((np.minimum(rotation, 1.0 - rotation) < math.sin(1.4 * SMALL_TURN)).all())
    upright = abs(turn[2]) > math.cos(SMALL_TURN) * angle
    cost = (1.0 if upright else _TILT) if quarter else _CROOKED
    return cost + 0.05 * angle / math.pi


def _run(session: Session) -> StepRecord:
    survey = Survey.model_validate(session.value("survey", "survey"))
    known = session.value("sensors", "sensors") if session.has("sensors", "sensors") else None
    if session.daily:
        known = None
    file, model = session.bench.calibration, session.model
    best, findings = session.drive.beside(
        lambda: explained(survey, file, model, session.names, known, session.axes)
    )
    wrong = np.array(session.value("exhaust", "reversed"))
    valves = best.valves if best is not None else tuple(range(len(wrong)))
    for channel in np.flatnonzero(wrong):
        findings.append(reversed_words(session.names[valves[channel]]))
    if best is None:
        return found(findings)
    signs = [float(np.sign(own_rise(survey, channel))) for channel in range(len(wrong))]
    return found(findings, _lines(best, session.names), signs=signs, **values_of(best))


def values_of(best: Explanation) -> dict[str, object]:
    """An explanation as plain data."""
    values: dict[str, object] = {
        name: [int(each) for each in getattr(best, name)]
        for name in ("valves", "sensors", "hoses", "bends", "answers")
    }
    values["mirror"] = [best.mirror.kind, best.mirror.axis]
    if best.alignment is not None:
        values["alignment"] = {
            "base": best.alignment.base.tolist(),
            "tip": best.alignment.tip.tolist(),
            "position": best.alignment.position.tolist(),
            "residual": best.alignment.residual,
        }
    return values


def _lines(best: Explanation, names: tuple[str, ...]) -> list[str]:
    return [
        f"output of {name}: sensor of {names[sensor]} answers, {names[chamber]} bends"
        for name, sensor, chamber in zip(names, best.answers, best.bends, strict=True)
    ]


STEP = Step("wiring", "wires, hoses and mountings", _run)
