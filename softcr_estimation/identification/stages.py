"""A robot's parameters in what was recorded of it: statics, damping, the inputs' lag, its chain.

Every rest of a second is a configuration; the longest motion from a rest, 12 s of it at most, gives
damping and whatever the configurations did not excite; commands beside it give the lag. Of a
robot with a `pressure_chain` the motion then gives its numbers, and compliance, tip mass and
damping anew.
What no recording excites stays as in the robot file, and is named.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np
import yaml

from softcr_estimation.identification.misfits import Misfit, Where, in_words, misfits, worst
from softcr_estimation.identification.mistakes import (
    check_sizes,
    command_mistakes,
    mistakes,
    suspects,
)
from softcr_estimation.identification.signals import Signals, read_bag, read_csv
from softcr_estimation.identification.stretches import (
    Samples,
    calm_of,
    held_commands,
    joined,
    longest_motion,
    rests,
    stretches,
)
from softcr_models.chain.identification import identify_chain
from softcr_models.errors import UserError
from softcr_models.identification.identifiable import names_of, parameters_of, with_parameters
from softcr_models.identification.measured_groups import TIP_POSITION, groups_of
from softcr_models.identification.rod_identification import (
    Fit,
    Recording,
    Work,
    at_rest,
    expected_work,
    identify_excited,
    identify_lag,
    identify_motion,
    identify_static,
    in_motion,
    lag_of,
)
from softcr_models.robots.robot import Robot
from softcr_models.rod.cosserat_rod import EquilibriumError
from softcr_models.rod.description import rod_inputs
from softcr_models.rod.section import MAX_INTERVALS, MAX_NODES

RESTS_PER_PARAMETER = 2  # different ones: fewer fit the parameters too well to know how well
DIFFERENT = 2e3  # [Pa]
DIFFERENT_TENSION = 0.02  # of the range of a tension or a motor's angle [-]
UNEXPLAINED = (
    "no exchange of axes, other unit, order of inputs or frame explains it; is it another robot, "
    "or is the first guess far off?"
)
DELAYS = 4  # periods by which pressures may answer late, 0 included
# Even, as the plant's: rates of the box scheme alternate from node to node, so the base wrench of a
# moving rod differs between odd and even grids, and damping found on 15 intervals is 2 % off.
MODEL_INTERVALS = 16
"""Of each segment, unless there are so many that a rod cannot have them."""


@dataclass(frozen=True, eq=False)
class Material:
    """What there is to identify from.

    Attributes:
        static: configurations at rest.
        motion: the longest one; None: nothing moved from a rest.
        different: of each input, how far configurations must lie apart [Pa, N]; a number is that
            of all.
    """

    static: Recording
    motion: Samples | None
    different: np.ndarray | float = DIFFERENT

    @property
    def different_rests(self) -> int:
        """How many configurations at rest lie apart from each other."""
        return len(np.unique(np.round(self.static.inputs / self.different), axis=0))


@dataclass(frozen=True)
class Found:
    """One parameter: value, relative half width of its 95 % interval, and what it is from."""

    value: float
    width: float
    source: str


@dataclass(frozen=True, eq=False)
class Identified:
    """What came of it.

    Attributes:
        robot: with all that was identified.
        found: by name.
        not_excited: names of all else.
        delay: of the inputs behind their commands [s]; None: no commands.
        notes: lines for the report.
        misfits: of each group that was recorded, at rest and in motion.
        warnings: what seems to be wrong with the recordings, though they were used.
    """

    robot: Robot
    found: dict[str, Found] = field(default_factory=dict)
    not_excited: tuple[str, ...] = ()
    delay: float | None = None
    notes: tuple[str, ...] = ()
    misfits: tuple[Misfit, ...] = ()
    warnings: tuple[str, ...] = ()


class UnlikeRobot(UserError):
    """Recordings that no robot like the first guess can have made.

    Attributes:
        misfits: of each group, as far as they are known.
    """

    def __init__(self, line: str, found: tuple[Misfit, ...]) -> None:
        """See the attributes."""
        super().__init__(line)
        self.misfits = found


def read_material(paths: Sequence[Path], robot: Robot) -> Material:
    """All configurations of all recordings, and the longest motion that is judged among them.

    Args:
        paths: bags, and files ending in .csv, .txt or .tsv.
        robot: that was recorded.

    Raises:
        UserError: a recording cannot be used or is not of such a robot, or there is neither rest
            nor motion in any.
    """
    read = [read_one(path, robot) for path in paths]
    calm = calm_of(robot)
    parts = [part for one in read if isinstance(one, Signals) for part in stretches(one, calm)]
    static = _joined(read, parts, robot)
    motions = [motion for part in parts if (motion := longest_motion(part)) is not None]
    longest = max(motions, key=lambda one: len(one) - one.recording.run_in, default=None)
    if longest is None and not len(static):
        sources = ", ".join(map(str, paths))
        raise UserError(f"{sources}: neither a rest of a second nor a motion of 2 s")
    return Material(static, longest, _different(robot))


def read_one(path: Path, robot: Robot) -> Signals | Recording:
    """What a bag, or a file ending in .csv, .txt or .tsv, holds of a robot.

    Raises:
        UserError: it cannot be used, or is not of such a robot.
    """
    one = (read_csv if _is_csv(path) else read_bag)(path, robot)
    if isinstance(one, Signals):
        outputs = {name: signal.values for name, signal in one.outputs.items()}
        check_sizes(one.source, robot, one.inputs.values, outputs)
    else:
        check_sizes(str(path), robot, one.inputs, one.outputs)
    return one


def static_of(read: Sequence[Signals | Recording], robot: Robot) -> Recording:
    """All configurations at rest of what was read; no rows without any."""
    calm = calm_of(robot)
    parts = [part for one in read if isinstance(one, Signals) for part in stretches(one, calm)]
    return _joined(read, parts, robot)


def _joined(
    read: Sequence[Signals | Recording], parts: Sequence[Samples], robot: Robot
) -> Recording:
    at_rest = [one for one in read if isinstance(one, Recording)]
    return joined([*at_rest, *(rests(part) for part in parts)], len(robot.actuators))


def model_intervals(robot: Robot) -> int:
    """Of each segment of the model's rod: MODEL_INTERVALS, or the largest even number allowed."""
    segments = len(robot.segments)
    most = min(MAX_INTERVALS, MAX_NODES - segments) // segments
    return min(MODEL_INTERVALS, max(1, most - most % 2))


def _different(robot: Robot) -> np.ndarray:
    """(m,) how far apart configurations are different ones [Pa, N, rad]."""
    limits = rod_inputs(robot)
    chambers = np.array(robot.quantities) == "pressure"
    return np.where(chambers, DIFFERENT, DIFFERENT_TENSION * (limits.high - limits.low))


def identify(
    robot: Robot,
    material: Material,
    intervals: int | None = None,
    tell: Callable[[str, Work], None] = lambda what, work: None,
    anyway: bool = False,
) -> Identified:
    """Statics, then damping with what is left, then lag.

    Args:
        robot: the first guess.
        material: of the recordings.
        intervals: of the model's rod, of each segment; None: MODEL_INTERVALS, fewer of many
            segments.
        tell: told what is done next, and how far it has come.
        anyway: whether recordings that do not fit are used all the same.

    Raises:
        UnlikeRobot: the recordings do not fit this robot.
        UserError: the rod of the first guess has no steady state, or diverges, where it was
            recorded.
    """
    result, intervals = Identified(robot), intervals or model_intervals(robot)
    try:
        tell("checks", Work())
        warnings = _unlike(robot, material, anyway, tell)
        result = _from_rests(result, material, intervals, tell)
        result = _from_motion(result, material.motion, intervals, tell)
        tell("lag of the inputs", Work())
        result = _from_commands(result, material.motion)
        if robot.pressure_chain is not None:
            tell("pressure chain", Work())
        result = _of_chain(result, material.motion)
        tell("residuals", Work())
        found = compared(result.robot, material, intervals)
    except EquilibriumError as error:
        raise UserError(f"robot {robot.name} cannot be where it was recorded: {error}") from None
    if bad := [each for each in found if each.bad]:
        line = f"{_off_in_words(worst(bad))}; {UNEXPLAINED}"
        if not anyway:
            raise UnlikeRobot(line, found)
        warnings = (*warnings, line)
    return replace(result, misfits=found, warnings=warnings)


def compared(robot: Robot, material: Material, intervals: int) -> tuple[Misfit, ...]:
    """What a robot's model leaves of each group, at rest and in motion.

    Raises:
        EquilibriumError: it has no steady state where it was recorded.
    """
    groups = groups_of(robot)
    found: list[Misfit] = []
    if len(material.static):
        seen, _ = at_rest(robot, material.static.inputs, groups, intervals)
        found += misfits("rest", robot, material.static, seen)
    if material.motion is not None:
        recording = material.motion.recording
        found += misfits("motion", robot, recording, in_motion(robot, recording, groups, intervals))
    return tuple(found)


def _unlike(
    robot: Robot, material: Material, anyway: bool, tell: Callable[[str, Work], None]
) -> tuple[str, ...]:
    """What seems to be wrong with recordings that no robot with other lengths and compliances
    would explain; raises UnlikeRobot unless they are used anyway."""
    told: list[str] = []
    parts: list[tuple[Where, Recording]] = []
    if len(material.static):
        parts.append(("rest", material.static))
    if material.motion is not None:
        parts.append(("motion", material.motion.recording))
    found: tuple[Misfit, ...] = ()
    if material.motion is not None and (asked := material.motion.commands) is not None:
        held = held_commands(asked, material.motion.stamps, 0)
        known = np.isfinite(held).all(axis=1)
        told += command_mistakes(robot, held[known], material.motion.recording.inputs[known])
    for where, recording in parts:
        if suspicious := suspects(where, robot, recording):
            found += suspicious
            tell("search for a mistake in the recordings", Work())
            told += [line for line in mistakes(where, robot, recording) if line not in told]
    if told and not anyway:
        what = f"{_off_in_words(worst(found))}: " if found else "the recordings do not fit: "
        raise UnlikeRobot(f"{what}{'; '.join(told)}", found)
    return tuple(told)


def _off_in_words(misfit: Misfit) -> str:
    group, where = misfit.group, {"rest": "at rest", "motion": "in motion"}[misfit.where]
    if not np.isfinite(misfit.residual):
        return f"the robot does not fit: its model has no state for the inputs {where}"
    return (
        f"the robot does not fit: {group.name} {where} is {in_words(group, misfit.residual)} off, "
        f"{misfit.times_noise:.0f} times the noise of its sensor"
    )


def _is_csv(path: Path) -> bool:
    return path.suffix.lower() in (".csv", ".txt", ".tsv")


def write_robot(robot: Robot, path: Path, comments: Sequence[str] = ()) -> None:
    """A robot file that `load_robot` reads, with comments above.

    Raises:
        OSError: it cannot be written.
    """
    content = robot.model_dump(mode="json", exclude_none=True)
    content["description"] = f"{robot.description}; identified by softcr".strip("; ")
    head = "".join(f"# {line}\n" for line in comments)
    path.write_text(head + yaml.safe_dump(content, sort_keys=False), encoding="utf-8")


def _from_rests(
    result: Identified, material: Material, intervals: int, tell: Callable[[str, Work], None]
) -> Identified:
    count, different = len(material.static), material.different_rests
    robot, wanted = result.robot, names_of(result.robot, "rest")
    fewest = RESTS_PER_PARAMETER * len(wanted)
    if different < fewest:
        note = (
            f"{different} different configurations at rest, {fewest} are needed: their "
            "parameters are identified from the motion"
        )
        return _with(result, None, wanted, "", note)
    fit, left = _searched(
        "statics", identify_static, robot, material.static, intervals, wanted, tell
    )
    return _with(result, fit, left, f"{count} configurations at rest")


def _from_motion(
    result: Identified, motion: Samples | None, intervals: int, tell: Callable[[str, Work], None]
) -> Identified:
    names = (*names_of(result.robot, "motion"), *result.not_excited)
    result = replace(result, not_excited=())
    if motion is None:
        return _with(result, None, names, "", "no motion of 2 s from a rest, or of 6 s")
    robot, recording = result.robot, motion.recording
    try:
        fit, left = _searched("motion", identify_motion, robot, recording, intervals, names, tell)
    except ValueError as error:  # the first rollout is not finite
        raise UserError(f"{motion.source}: the model diverges in the motion: {error}") from None
    note = ""
    if recording.run_in:
        skipped = recording.run_in * recording.period
        note = f"no motion begins at rest: its first {skipped:.1f} s were not evaluated"
    return _with(result, fit, left, f"a motion of {len(motion) * recording.period:.1f} s", note)


def _searched(
    what: str,
    identify: Callable[..., Fit],
    robot: Robot,
    recording: Recording,
    intervals: int,
    wanted: tuple[str, ...],
    tell: Callable[[str, Work], None],
) -> tuple[Fit | None, tuple[str, ...]]:
    """See `identify_excited`; what is left of the work is told."""
    name = what
    work = Work(lambda work: tell(name, work))

    def once(names: tuple[str, ...], start: Mapping[str, float]) -> Fit:
        nonlocal name
        name = f"{what}, {len(names)} parameters"
        # a fit that leaves one parameter out may follow for every third
        fits = 1 + (len(names) - 1) // 3
        work.expect(fits * expected_work(robot, recording, intervals, len(names)))
        return identify(robot, recording, intervals, names, start, work)

    return identify_excited(once, wanted)


def _from_commands(result: Identified, motion: Samples | None) -> Identified:
    """Gain and pole at the delay that explains the inputs best."""
    wanted = names_of(result.robot, "lag")
    if not wanted:
        return result
    lags = []
    for periods in range(DELAYS if motion is not None and motion.commands is not None else 0):
        assert motion is not None
        assert motion.commands is not None
        period, inputs = motion.recording.period, motion.recording.inputs
        delay = periods * period
        commands = held_commands(motion.commands, motion.stamps, round(1e9 * delay))
        known = np.isfinite(commands).all(axis=1)
        begin = int(known.argmax())
        if known.any() and len(commands) > begin + 2:
            told = commands[begin:-1], inputs[begin:], period
            lags.append((delay, *_fitted_lag(result.robot, *told)))
    if not lags:
        return _with(result, None, wanted, "", "no commands beside a motion")
    delay, fit, left, error = min(lags, key=lambda lag: lag[-1])
    what, within = "pressures", f"{error:.0f} Pa"
    if not result.robot.chambers:
        unit, what = ("mrad", "angles") if result.robot.motors else ("mN", "tensions")
        within = f"{1e3 * error:.1f} {unit}"
    note = f"{what} follow their commands {1e3 * delay:.1f} ms late, within {within} rms"
    done = _with(result, fit, left, f"commands and {what} of the motion", note)
    return replace(done, delay=delay)


def _of_chain(result: Identified, motion: Samples | None) -> Identified:
    """The chain's numbers with those of the rod that it is confounded with."""
    robot, wanted = result.robot, names_of(result.robot, "chain")
    if robot.pressure_chain is None:
        return result
    if motion is None or TIP_POSITION not in motion.recording.outputs:
        return _with(result, None, wanted, "", "no motion of the tip that determines the chain")
    try:
        fit = identify_chain(robot, motion.recording)
    except ValueError as error:
        raise UserError(f"{motion.source}: pressure_chain: {error}") from None
    source = f"a motion of {len(motion) * motion.recording.period:.1f} s, with the chain"
    damping = "bending_relaxation_time"
    values = dict(zip(fit.names, fit.values.tolist(), strict=True))
    widths = dict(zip(fit.names, fit.intervals.tolist(), strict=True))
    if factor := values.pop("damping_factor", 0.0):
        (values[damping],) = parameters_of(fit.robot, (damping,)).tolist()
        widths[damping] = widths["damping_factor"] / factor * values[damping]
    known = names_of(robot)
    found = dict(result.found) | {
        name: Found(value, widths[name] / max(abs(value), 1e-12), source)
        for name, value in values.items() if name in known
    }  # fmt: skip
    left = [name for name in (*result.not_excited, *wanted) if name not in found]
    note = f"with the chain the tip is {1e3 * fit.error:.2f} mm beside the recorded one"
    notes = (*result.notes, note)
    return replace(result, robot=fit.robot, found=found, not_excited=tuple(left), notes=notes)


def _fitted_lag(
    robot: Robot, commands: np.ndarray, inputs: np.ndarray, period: float
) -> tuple[Fit | None, tuple[str, ...], float]:
    """A fit, the names it left, and how far its inputs are from the measured, rms [Pa], without
    chambers [N]."""
    fit, left = identify_excited(
        lambda names, start: identify_lag(robot, commands, inputs, period, names, start),
        names_of(robot, "lag"),
    )
    lag = lag_of(robot if fit is None else fit.robot)
    off = lag.trajectory(inputs[0], commands[None], period)[0] - inputs
    if robot.chambers and robot.tendons:
        off = np.delete(off, robot.tendon_inputs, axis=1)
    return fit, left, float(np.sqrt((off**2).mean()))


def _with(
    result: Identified, fit: Fit | None, left: tuple[str, ...], source: str, note: str = ""
) -> Identified:
    """The result with a fit, and with what it left."""
    robot, found = result.robot, dict(result.found)
    if fit is not None:
        robot = with_parameters(robot, fit.names, fit.values.tolist())
        rows = zip(fit.names, fit.values.tolist(), fit.intervals.tolist(), strict=True)
        found |= {name: Found(value, width, source) for name, value, width in rows}
    notes = (*result.notes, note) if note else result.notes
    left = (*result.not_excited, *left)
    return replace(result, robot=robot, found=found, not_excited=left, notes=notes)
