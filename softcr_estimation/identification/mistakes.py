"""Mistakes that people make when they record: units, axes, frames, the order of inputs.

What is recorded is compared with what the first guess of the robot does, its lengths and
compliances fitted to the positions. Of all mistakes that are tried, the simplest that explains what
the fit does not is named; where a turned frame and another order of inputs explain it alike, both
are.
"""

import itertools
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Literal, NamedTuple

import numpy as np
from scipy.optimize import linear_sum_assignment
from scipy.spatial.transform import Rotation

from softcr_estimation.identification.misfits import Misfit, Where, misfits, rms
from softcr_models.errors import UserError
from softcr_models.identification.identifiable import names_of
from softcr_models.identification.measured_groups import (
    BASE_FORCE,
    BASE_MOMENT,
    POSITION,
    Group,
    groups_of,
)
from softcr_models.identification.rod_identification import (
    COARSE_INTERVALS,
    COARSE_SUBSTEPS,
    Recording,
    at_rest,
    fitted_groups,
    identify_motion,
    identify_static,
    in_motion,
)
from softcr_models.robots.robot import Robot
from softcr_models.rod.cosserat_rod import EquilibriumError
from softcr_models.rod.description import rod_inputs
from softcr_models.rod.discretise import base_height

LENGTHS = {"mm": 1e-3, "cm": 1e-2, "inches": 0.0254, "um": 1e-6}
PRESSURES = {"kPa": 1e3, "bar": 1e5, "MPa": 1e6, "mbar": 1e2, "psi": 6894.757}
TENSIONS = {"mN": 1e-3, "kN": 1e3, "gram-force": 9.80665e-3, "kilogram-force": 9.80665}
FORCES = TENSIONS
ANGLES = {"degrees": np.pi / 180.0}
MOMENTS = {"N mm": 1e-3, "N cm": 1e-2, "kgf cm": 9.80665e-2, "kN m": 1e3}
ATMOSPHERE = 101325.0  # [Pa]
REACH = 1.3  # of the length at the highest pressures: no tip is farther from the base
_BEYOND = 3.0  # times the highest input that is allowed: no input is higher
_FEW = 0.02  # of the highest input that is allowed: lower ones may be in another unit
_HALF = 0.5  # of the residual: a mistake that leaves more explains nothing
_ALIKE = 3.0  # times the least residual: what leaves less explains as much
_TURNED, _MOVED = np.radians(10.0), 0.1  # a frame's turn, and shift in lengths, that is a mistake
_ROWS = 42  # at rest that are looked at
_MOST_ORDERS = 24  # that are all tried
_OTHER_ORDER = 0.5  # by which correlations of inputs with commands in another order are larger
_AXES = "xyz"


def check_sizes(
    source: str, robot: Robot, inputs: np.ndarray, outputs: Mapping[str, np.ndarray]
) -> None:
    """Refuse what no robot like this can do, whatever its stiffness.

    Args:
        source: where from, for the message.
        robot: the first guess.
        inputs: (T, m) [Pa, N].
        outputs: (K, 3) by name of group; NaN where a sensor was silent.

    Raises:
        UserError: positions beyond the robot's reach, or inputs far beyond its limits; the line
            names the unit that they seem to be in.
    """
    height = base_height(robot)
    links = [each.connector.length for each in robot.segments if each.connector is not None]
    length = robot.length + robot.tip_cap_length + sum(links)
    farthest = height + REACH * (length + _stretch(robot))
    for group in groups_of(robot):
        if group.unit != "m" or group.name not in outputs:
            continue
        values = outputs[group.name]
        known = values[np.isfinite(values).any(axis=1)]
        far = np.sqrt(np.nansum(known**2, axis=1))  # cameras may see two coordinates alone
        # a few glints of the cameras are no mistake of the person
        if far.size and np.quantile(far, 0.8) > farthest:
            middle = float(np.median(far))
            unit = _likely(LENGTHS, middle, 0.3 * (height + length), farthest)
            hint = f"they seem to be in {unit}" if unit else "they may be of another frame"
            raise UserError(
                f"{source}: {group.name}: {middle:.4g} m from the base, but the robot is "
                f"{height + length:.4g} m long: {hint}; metres in the base frame are needed"
            )
    for what, columns, limit, units in _kinds(robot):
        highest = float(np.nanmax(np.abs(inputs[:, columns]), initial=0.0))
        if highest > _BEYOND * limit:
            si = robot.input_units[columns[0]]
            unit = _likely(units, highest, _FEW * limit, 1.2 * limit)
            hint = f": they seem to be in {unit}" if unit else ""
            raise UserError(
                f"{source}: {what} reach {highest:.4g} {si}, but the robot's limit is {limit:.4g} "
                f"{si}{hint}"
            )


def _stretch(robot: Robot) -> float:
    """How much longer the robot is at its highest pressures [m]; no weight."""
    highest = np.array(rod_inputs(robot).high)
    forces = robot.segment_actuation[:, 2] @ np.where(
        [unit == "Pa" for unit in robot.input_units], highest, 0.0
    )
    lengths = [each.length * each.dilatation_compliance for each in robot.segments]
    return float(np.array(lengths) @ forces)


def mistakes(where: Where, robot: Robot, recording: Recording) -> tuple[str, ...]:
    """Lines that name what seems to be wrong with a recording; empty where nothing explains it.

    Args:
        where: whether its rows are configurations at rest or samples of a motion.
        robot: the first guess.
        recording: that does not fit.
    """
    if where == "rest" and len(recording) > _ROWS:
        recording = recording.rows(np.linspace(0, len(recording) - 1, _ROWS).astype(int))
    case = _Case(where, robot)
    state = case.fitted(recording)
    units = list(_other_units(case, state))
    told, state = _best(case, state, units)
    if not told:
        both = [_frames_and_orders(case, each.recording, each.line) for each in units]
        told, state = _best(
            case, state, itertools.chain(_frames_and_orders(case, recording), *both)
        )
    if told and any(each.suspicious for each in state.misfits):
        lines, state = _best(case, state, _frames_and_orders(case, state.recording))
        told = [*told, *lines]
    return (*told, *_wrench_mistakes(case, state))


def suspects(where: Where, robot: Robot, recording: Recording) -> tuple[Misfit, ...]:
    """What a robot with fitted lengths and compliances leaves that is suspicious."""
    state = _Case(where, robot).fitted(recording)
    return tuple(each for each in state.misfits if each.suspicious)


def command_mistakes(robot: Robot, commands: np.ndarray, inputs: np.ndarray) -> tuple[str, ...]:
    """Lines that name what seems to be wrong with commands, beside what the inputs did.

    Args:
        robot: of which they are.
        commands: (T, m) that were asked for [Pa, N].
        inputs: (T, m) that were measured [Pa, N].
    """
    told = []
    for what, columns, limit, units in _kinds(robot):
        asked, acted = rms(commands[:, columns]), rms(inputs[:, columns])
        if max(asked, acted) < _FEW * limit or asked < 1e-9 * limit:
            continue
        sizes = {
            unit: size * asked / max(acted, 1e-300) for unit, size in {"": 1.0, **units}.items()
        }
        if unit := min(sizes, key=lambda unit: abs(np.log(max(sizes[unit], 1e-300)))):
            told.append(f"commands of {what} seem to be in {unit}")
    own = [each - each.mean(axis=0) for each in (commands, inputs)]
    own = [each / np.maximum(np.linalg.norm(each, axis=0), 1e-9) for each in own]
    alike = own[1].T @ own[0]  # of input i and command j
    order = linear_sum_assignment(-alike)[1]
    if alike[range(len(order)), order].sum() > alike.trace() + _OTHER_ORDER:
        names = robot.actuator_names
        holds = [names[int(np.flatnonzero(order == place)[0])] for place in range(len(order))]
        asked_in = ", ".join(f"command_{place + 1}" for place in range(len(order)))
        told.append(f"the commands seem to be in another order: {asked_in} hold {', '.join(holds)}")
    return tuple(told)


@dataclass(frozen=True, eq=False)
class _State:
    """A recording, perhaps with mistakes mended, and what a fit makes of it.

    Attributes:
        recording: as mended.
        predicted: (T, 3) by name of group, of the fitted robot; NaN where it has no such states.
        misfits: of it.
        left: what is left of the groups that were fitted, relative to what was recorded [-].
    """

    recording: Recording
    predicted: Mapping[str, np.ndarray]
    misfits: tuple[Misfit, ...]
    left: float


class _Mended(NamedTuple):
    """A recording without one mistake.

    Attributes:
        line: the mistake.
        recording: without it.
        simple: how likely people make it, from 0.
        kind: what was done wrong.
    """

    line: str
    recording: Recording
    simple: int
    kind: Literal["units", "frame", "order"]


class _Case:
    """A first guess and a way to fit it."""

    def __init__(self, where: Where, robot: Robot) -> None:
        self.where, self.robot = where, robot
        self.groups = groups_of(robot)
        self._names = tuple(n for n in names_of(robot, "rest") if not n.endswith("mass"))

    def guessed(self, recording: Recording) -> dict[str, np.ndarray]:
        """(T, 3) by name of group, of the first guess; NaN where it has no such states."""
        return self._predicted(self.robot, recording)

    def fitted(self, recording: Recording) -> _State:
        """Lengths and compliances fitted to positions, to the wrench if there are none."""
        positions = {n: v for n, v in recording.outputs.items() if n.endswith(POSITION)}
        seen = replace(recording, outputs=positions or recording.outputs)
        identify = identify_static if self.where == "rest" else identify_motion
        robot = self.robot
        with suppress(EquilibriumError, ValueError):
            robot = identify(robot, seen, COARSE_INTERVALS, self._names).robot
        predicted = self._predicted(robot, recording)
        found = misfits(self.where, self.robot, recording, predicted)
        own = {each.name for each in fitted_groups(robot, seen)}
        parts = [each.residual / each.size for each in found if each.group.name in own]
        return _State(recording, predicted, found, float(np.linalg.norm(parts)))

    def _predicted(self, robot: Robot, recording: Recording) -> dict[str, np.ndarray]:
        try:
            if self.where == "rest":
                return at_rest(robot, recording.inputs, self.groups, COARSE_INTERVALS)[0]
            return in_motion(robot, recording, self.groups, COARSE_INTERVALS, COARSE_SUBSTEPS)
        except EquilibriumError:
            return {each.name: np.full((len(recording), 3), np.nan) for each in self.groups}


def _best(case: _Case, state: _State, proposed: Iterable[_Mended]) -> tuple[list[str], _State]:
    """The simplest mistakes that explain as much as the best one, in one line; none: no line."""
    tried = [(each, case.fitted(each.recording)) for each in proposed]
    least = min((after.left for _, after in tried), default=np.inf)
    if not (np.isfinite(least) and least <= _HALF * state.left):
        return [], state
    good = sorted(
        ((each, after) for each, after in tried if after.left <= _ALIKE * least),
        key=lambda pair: (pair[0].simple, pair[1].left),
    )
    named = {each.kind: each.line for each, _ in reversed(good)}
    # what leaves nothing to be explained may be as well, if it is of another kind
    for each, after in tried:
        if not any(misfit.suspicious for misfit in after.misfits if misfit.group.by_cameras):
            named.setdefault(each.kind, each.line)
    return [", or ".join(named.values())], good[0][1]


# --- units of inputs ----------------------------------------------------------------------------


def _other_units(case: _Case, state: _State) -> Iterator[_Mended]:
    """Inputs that are low for the robot, or of absolute pressure."""
    recording = state.recording
    for what, columns, limit, units in _kinds(case.robot):
        own = recording.inputs[:, columns]
        highest = float(np.abs(own).max())
        for unit, size in units.items():
            if highest < _FEW * limit and _FEW * limit <= size * highest <= 1.2 * limit:
                yield _mended_inputs(
                    f"{what} seem to be in {unit} (the highest is {highest:.4g})",
                    recording, columns, size * own,
                )  # fmt: skip
        if units is PRESSURES and 0.7 * ATMOSPHERE < own.min() < 1.1 * ATMOSPHERE:
            yield _mended_inputs(
                f"{what} seem to be absolute (the lowest is {own.min():.4g} Pa)",
                recording, columns, own - ATMOSPHERE,
            )  # fmt: skip


def _mended_inputs(
    line: str, recording: Recording, columns: np.ndarray, values: np.ndarray
) -> _Mended:
    inputs = recording.inputs.astype(float)
    inputs[:, columns] = values
    return _Mended(line, replace(recording, inputs=inputs), 0, "units")


def _kinds(robot: Robot) -> Iterator[tuple[str, np.ndarray, float, Mapping[str, float]]]:
    """Inputs of a robot by quantity: its name, which inputs, their highest magnitude, units."""
    limits = rod_inputs(robot)
    highest = np.maximum(np.abs(limits.low), np.abs(limits.high))
    for quantity, units in (("pressure", PRESSURES), ("tension", TENSIONS), ("angle", ANGLES)):
        columns = np.flatnonzero(np.array(robot.quantities) == quantity)
        if len(columns):
            yield f"{quantity}s", columns, float(highest[columns].max()), units


def _likely(units: Mapping[str, float], value: float, low: float, high: float) -> str:
    """The unit in which a value lies between two in SI units; of several the one nearest to the
    middle."""
    middle = np.sqrt(low * high)
    inside = {unit: size for unit, size in units.items() if low <= size * value <= high}
    return min(inside, key=lambda u: abs(np.log(inside[u] * value / middle)), default="")


# --- frames of the cameras, order of inputs -----------------------------------------------------


def _frames_and_orders(case: _Case, recording: Recording, before: str = "") -> Iterator[_Mended]:
    """Other frames and orders of a recording, from which another mistake may have been mended."""
    guessed = case.guessed(recording)
    if all(np.isfinite(values).all() for values in guessed.values()):
        for each in (
            *_other_frames(case, recording, guessed), *_other_orders(case, recording, guessed)
        ):  # fmt: skip
            line = f"{before}; {each.line}" if before else each.line
            yield each._replace(line=line)


def _other_frames(
    case: _Case, recording: Recording, guessed: Mapping[str, np.ndarray]
) -> Iterator[_Mended]:
    names = [name for name in recording.outputs if name.endswith(POSITION)]
    if not names:
        return
    judged = slice(recording.run_in, None)
    measured = np.concatenate([recording.outputs[name][judged] for name in names])
    expected = np.concatenate([guessed[name][judged] for name in names])
    known = np.isfinite(measured).all(axis=1)
    measured, expected = measured[known], expected[known]
    if not len(measured):
        return
    centres = measured.mean(axis=0), expected.mean(axis=0)
    zero = np.zeros(3)

    def mended(line: str, turn: np.ndarray, shift: np.ndarray, simple: int) -> _Mended:
        outputs = dict(recording.outputs)
        outputs |= {name: outputs[name] @ turn.T + shift for name in names}
        return _Mended(line, replace(recording, outputs=outputs), simple, "frame")

    axes = sorted(
        _signed_axes(), key=lambda turn: rms(measured @ turn.T - expected) + 1e-6 * _changed(turn)
    )[:3]
    for turn in axes:
        if _changed(turn):
            yield mended(
                _axes_in_words(turn, names[0].removesuffix(POSITION)),
                turn,
                zero,
                1 + (np.linalg.det(turn) < 0.0),
            )
    moved = centres[1] - centres[0]
    if np.linalg.norm(moved) > _MOVED * case.robot.length:
        yield mended(_shift_in_words(moved), np.eye(3), moved, 2)
    for centre, simple in (((zero, zero), 3), (centres, 4)):
        turn = _turn_between(measured - centre[0], expected - centre[1])
        shift = centre[1] - turn @ centre[0]
        line = _turn_in_words(turn)
        if np.linalg.norm(Rotation.from_matrix(turn).as_rotvec()) > _TURNED:
            if simple == 4:
                line += f" and its origin to be at {_millimetres(shift)}"
            yield mended(line, turn, shift, simple)


def _signed_axes() -> Iterator[np.ndarray]:
    """(3, 3) each exchange of axes with each choice of signs."""
    for order in itertools.permutations(range(3)):
        for signs in itertools.product((1.0, -1.0), repeat=3):
            yield np.array(signs)[:, None] * np.eye(3)[list(order)]


def _changed(turn: np.ndarray) -> int:
    """How many axes are others, or have another sign."""
    return int((turn.diagonal() != 1.0).sum())


def _turn_between(measured: np.ndarray, expected: np.ndarray) -> np.ndarray:
    """(3, 3) rotation that brings vectors (T, 3) closest to others (Kabsch 1976)."""
    left, _, right = np.linalg.svd(expected.T @ measured)
    mirror = np.diag([1.0, 1.0, np.sign(np.linalg.det(left @ right))])
    turn: np.ndarray = left @ mirror @ right
    return turn


def _axes_in_words(turn: np.ndarray, stem: str, frame: str = "the cameras' frame") -> str:
    """Of a matrix that brings what was recorded in columns of a stem into the base frame."""
    holds = [int(np.argmax(np.abs(column))) for column in turn.T]
    signs = [turn[axis, column] for column, axis in enumerate(holds)]
    columns = [f"{stem}_{axis}" for axis in _AXES]
    moved = [column for column, axis in enumerate(holds) if column != axis]
    if len(moved) == 2 and min(signs) > 0.0:
        return f"{columns[moved[0]]} and {columns[moved[1]]} seem to be swapped"
    if not moved and signs.count(-1.0) == 1:
        return f"{columns[signs.index(-1.0)]} seems to have the opposite sign"
    told = [
        f"{'-' if sign < 0.0 else ''}{_AXES[axis]}" for sign, axis in zip(signs, holds, strict=True)
    ]
    line = f"{', '.join(columns)} seem to hold {', '.join(told)}"
    return f"{line} ({_turn_in_words(turn, frame)})" if np.linalg.det(turn) > 0.0 else line


def _turn_in_words(turn: np.ndarray, frame: str = "the cameras' frame") -> str:
    """Of the frame of what was recorded, seen from the base."""
    vector = Rotation.from_matrix(turn).as_rotvec()
    angle = float(np.linalg.norm(vector))
    axis = vector / max(angle, 1e-12)
    main = int(np.argmax(np.abs(axis)))
    about = ", ".join(f"{each:.2f}" for each in axis)
    if abs(axis[main]) > 0.98:
        angle, about = angle * np.sign(axis[main]), _AXES[main]
    return f"{frame} seems to be turned by {np.degrees(angle):.0f} degrees about {about}"


def _shift_in_words(moved: np.ndarray) -> str:
    return (
        f"positions seem to be measured from another origin, at {_millimetres(moved)} of the base"
    )


def _millimetres(vector: np.ndarray) -> str:
    return f"({', '.join(f'{round(1e3 * each)}' for each in vector)}) mm"


def _other_orders(
    case: _Case, recording: Recording, guessed: Mapping[str, np.ndarray]
) -> Iterator[_Mended]:
    """Inputs in the two other orders that fit the first guess best."""
    count = recording.inputs.shape[1]
    identity = tuple(range(count))
    named = fitted_groups(case.robot, recording)
    names = [each for each in named if each.unit == "m"] or named
    orders = _orders(case, recording, guessed, names)

    def off(order: tuple[int, ...]) -> float:
        found = case.guessed(_reordered(recording, order))
        parts = [
            rms(each.off(found[each.name], recording.outputs[each.name])) / max(each.noise, 1e-9)
            for each in names
            if np.isfinite(found[each.name]).all()
        ]
        return float(np.linalg.norm(parts)) if parts else np.inf

    ranked = sorted(
        (order for order in orders if order != identity),
        key=lambda order: off(order) * (1.0 + 0.01 * _displaced(order)),
    )
    kinds = enumerate(case.robot.quantities)
    columns = ", ".join(f"{kind}_{place + 1}" for place, kind in kinds)
    for order in ranked[:2]:
        holds = sorted(identity, key=lambda model: order[model])
        told = ", ".join(case.robot.actuator_names[model] for model in holds)
        line = f"the inputs seem to be in another order: {columns} hold {told}"
        yield _Mended(line, _reordered(recording, order), 1, "order")


def _reordered(recording: Recording, order: tuple[int, ...]) -> Recording:
    """With the recorded column order[i] as input i."""
    return replace(recording, inputs=recording.inputs[:, list(order)])


def _displaced(order: tuple[int, ...]) -> int:
    return sum(place != own for place, own in enumerate(order))


def _orders(
    case: _Case, recording: Recording, guessed: Mapping[str, np.ndarray], groups: Sequence[Group]
) -> list[tuple[int, ...]]:
    """All orders of a few inputs; of many the one in which each input moves the outputs as the
    model's does, and every exchange of two."""
    count = recording.inputs.shape[1]
    if np.prod(np.arange(1, count + 1)) <= _MOST_ORDERS:
        return list(itertools.permutations(range(count)))

    def gains(values: Callable[[Group], np.ndarray]) -> np.ndarray:
        """(m, 3 G) by which inputs move outputs, by least squares."""
        rows = np.hstack([values(each) / max(each.noise, 1e-9) for each in groups])
        known = np.isfinite(rows).all(axis=1)
        inputs = recording.inputs[known] - recording.inputs[known].mean(axis=0)
        found: np.ndarray = np.linalg.lstsq(inputs, rows[known] - rows[known].mean(axis=0))[0]
        return found

    theirs = gains(lambda each: recording.outputs[each.name])
    ours = gains(lambda each: guessed[each.name])
    apart = np.linalg.norm(ours[:, None] - theirs[None], axis=2)
    matched = tuple(int(each) for each in linear_sum_assignment(apart)[1])
    swaps = []
    for begin in {matched, tuple(range(count))}:
        for one, other in itertools.combinations(range(count), 2):
            order = list(begin)
            order[one], order[other] = order[other], order[one]
            swaps.append(tuple(order))
    return list(dict.fromkeys([matched, *swaps]))


# --- the force-torque sensor --------------------------------------------------------------------


def _wrench_mistakes(case: _Case, state: _State) -> list[str]:
    """Units, signs and axes of the wrench, of what the positions' fit predicts of it."""
    told = []
    for name, units in ((BASE_FORCE, FORCES), (BASE_MOMENT, MOMENTS)):
        found = next((each for each in state.misfits if each.group.name == name), None)
        if found is None or not found.suspicious:
            continue
        judged = slice(state.recording.run_in, None)
        measured = state.recording.outputs[name][judged]
        expected = state.predicted[name][judged]
        known = np.isfinite(measured).all(axis=1)
        measured, expected = measured[known], expected[known]
        tried = [
            (rms(size * measured @ turn.T - expected), _steps(turn) + (size != 1.0), unit, turn)
            for (unit, size), turn in itertools.product({"": 1.0, **units}.items(), _signed_axes())
        ]
        least = min(left for left, *_ in tried)
        if least > _HALF * found.residual or least > _HALF * rms(expected):
            continue
        good = [each for each in tried if each[0] <= _ALIKE * least]
        _, _, unit, turn = min(good, key=lambda each: each[:2][::-1])
        parts = [f"it seems to be in {unit}"] if unit else []
        if np.array_equal(turn, -np.eye(3)):
            parts.append("it seems to have the opposite sign, that of the wrench on the robot")
        elif _changed(turn):
            parts.append(_axes_in_words(turn, found.group.columns[0][:-2], "the sensor's frame"))
        told.append(f"{name}: {'; '.join(parts)}")
    return told


def _steps(turn: np.ndarray) -> int:
    """How far from what people do by mistake: the other sign, a turn, a mirror."""
    if _changed(turn) == 0:
        return 0
    if np.array_equal(turn, -np.eye(3)):
        return 1
    return 2 if np.linalg.det(turn) > 0.0 else 3
