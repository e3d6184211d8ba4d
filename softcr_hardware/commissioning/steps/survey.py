"""The survey: one chamber after the other is filled, and everything looks at what happens.

What it measured is data; the step `wiring` says which wires and mountings it tells of.
"""

import math
from collections.abc import Callable

import numpy as np
import pinocchio as pin
from pydantic import BaseModel, ConfigDict

from softcr_hardware.commissioning.bench import Bench
from softcr_hardware.commissioning.drive import Drive, Trace
from softcr_hardware.commissioning.findings import Finding
from softcr_hardware.commissioning.pulse import (
    Pulse,
    PulseAnswer,
    answering_sensor,
    pulse_answer,
    pulse_of,
)
from softcr_hardware.commissioning.record import StepRecord
from softcr_hardware.commissioning.session import Session, Step, found
from softcr_hardware.ethercat.terminals import Flow
from softcr_models.errors import UserError

PROBE = 3000.0
"""First, so much air goes in, to see how strong the valve is [Pa]."""
DOSE = 8000.0
"""Then so much [Pa]."""

_OPENING = 0.06  # slow enough for a late cycle not to matter
_WEAKER, _STRONGER = 0.85, 2.0  # of the probe's answer, that the dose takes into account
_SETTLING = 5.0  # of the rod after a change of pressure [s]
_LOOKING = 3.0  # [s]
_FEWEST = 10  # poses or wrenches of a mean
_MUCH = 0.7  # of a chamber's air, by its logarithm, that may leak while the rod settles
_LEAST_SETTLING, _LEAST_LOOKING = 0.5, 0.75  # [s]
_STILL = 0.015  # standard deviation of what rests [m]

Numbers = tuple[float, ...]


class Look(BaseModel):
    """The means of a while in which the rod rests.

    Attributes:
        pressures: (m,) [Pa].
        position: (3,) of the tip's body in the cameras' world [m]; empty without cameras.
        rotation: (9,) of it, by rows.
        wrench: (6,) in the sensor's own axes [N, N m]; empty without a sensor.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    pressures: Numbers
    position: Numbers = ()
    rotation: Numbers = ()
    wrench: Numbers = ()

    @property
    def turned(self) -> np.ndarray:
        """(3, 3) rotation of the body."""
        return np.array(self.rotation).reshape(3, 3)


class Survey(BaseModel):
    """What was seen of the resting rod, and of each channel's chamber filled.

    Attributes:
        rest: all vented.
        channels: (m,) the channel's valve closed behind a dose of air.
        rises: (m, m) of the sensors when each channel was probed, less those before [Pa].
        expected: of a probe by the station file [Pa].
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    rest: Look
    channels: tuple[Look, ...]
    rises: tuple[Numbers, ...]
    expected: float


def take_survey(drive: Drive, say: Callable[[str], None] = lambda line: None) -> Survey:
    """Fill one chamber after the other.

    Raises:
        Interrupted: see Drive.
        UserError: the rod does not come to rest, or a device says too little.
    """
    drive.rest(_SETTLING)
    rest = _look(drive, lambda seen: drive.rest(_LOOKING, look=seen), "at rest")
    looks, rises = [], []
    flow = drive.bench.station.flow
    pulse = pulse_of(PROBE, flow, _OPENING)
    for channel, name in enumerate(drive.names):
        say(f"{name}: a pulse of {PROBE / 1e3:.0f} kPa, then {DOSE / 1e3:.0f} kPa for a while")
        trace = drive.pulse(channel, pulse)
        answer = pulse_answer(channel, pulse, flow, trace.times, trace.pressures)
        rises.append(tuple(answer.rises.tolist()))
        settling, looking = _patience(answer)
        dose = dose_of(float(np.abs(answer.rises).max()) / answer.expected, flow)
        drive.fill(channel, dose.opening, dose.fill)
        drive.hold(channel, settling)

        def held(
            seen: Callable[[], None], channel: int = channel, looking: float = looking
        ) -> Trace:
            return drive.hold(channel, looking, seen)

        looks.append(_look(drive, held, name))
        drive.exhaust()
        drive.rest(_LOOKING)
    return Survey(rest=rest, channels=tuple(looks), rises=tuple(rises), expected=pulse.rise(flow))


def dose_of(strength: float, flow: Flow) -> Pulse:
    """The pulse that fills a chamber to `DOSE`, for a valve of so much of the file's flow.

    Within bounds: a sensor of a wrong slope makes a valve look stronger or weaker than it is.
    """
    wanted = DOSE / float(np.clip(strength, _WEAKER, _STRONGER))
    return pulse_of(wanted, flow, _OPENING)


def _patience(answer: PulseAnswer) -> tuple[float, float]:
    """Times to settle and to look [s]: a chamber that leaks is looked at while there is air."""
    sensor = answering_sensor(answer)
    if sensor is None:
        return _SETTLING, _LOOKING
    rate = float(answer.loss[sensor] / answer.rises[sensor])
    if rate * _SETTLING < _MUCH:
        return _SETTLING, _LOOKING
    return max(_MUCH / rate, _LEAST_SETTLING), max(min(_MUCH / rate, _LOOKING), _LEAST_LOOKING)


def _look(drive: Drive, wait: Callable[[Callable[[], None]], Trace], where: str) -> Look:
    """Means while `wait` calls what it is given after each exchange."""
    bodies: dict[float, np.ndarray] = {}
    wrenches: dict[float, np.ndarray] = {}
    bench: Bench = drive.bench

    def see() -> None:
        if (body := bench.body()) is not None:
            bodies[body[0]] = body[1]
        if (wrench := bench.wrench()) is not None:
            wrenches[wrench[0]] = wrench[1]

    begin = bench.now
    trace = wait(see)
    found: dict[str, Numbers] = {}
    seen = [body for time, body in bodies.items() if time >= begin]
    if seen:
        found |= _mean_body(np.array(seen), where)
    felt = [wrench for time, wrench in wrenches.items() if time >= begin]
    if felt:
        _check_count(len(felt), "wrenches", where)
        found["wrench"] = tuple(np.mean(felt, axis=0).tolist())
    pressures = np.nanmean(trace.pressures, axis=0)
    return Look(pressures=tuple(pressures.tolist()), **found)


def _mean_body(bodies: np.ndarray, where: str) -> dict[str, Numbers]:
    """Position and rotation in the middle of what may still swing a little."""
    _check_count(len(bodies), "poses", where)
    spread = float(np.sqrt(bodies[:, :3, 3].var(axis=0).sum()))
    if not spread < _STILL:
        raise UserError(
            f"{where}: the tip's body moves by {1e3 * spread:.1f} mm while it should rest, must be "
            f"below {1e3 * _STILL:.0f}: is the rod free, the air steady, the body well seen?"
        )
    first = bodies[0, :3, :3]
    turns = [pin.log3(first.T @ body[:3, :3]) for body in bodies]
    rotation = first @ pin.exp3(np.mean(turns, axis=0))
    position = bodies[:, :3, 3].mean(axis=0)
    return {
        "position": tuple(position.tolist()),
        "rotation": tuple(np.asarray(rotation).ravel().tolist()),
    }


def _check_count(count: int, what: str, where: str) -> None:
    if count < _FEWEST:
        raise UserError(
            f"{where}: {count} {what} in {_LOOKING:.0f} s, must be {_FEWEST} or more: is the "
            f"{'body tracked' if what == 'poses' else 'box streaming'}?"
        )


def own_rise(survey: Survey, channel: int) -> float:
    """The largest change of a sensor that a channel's probe caused [Pa]."""
    return max(survey.rises[channel], key=math.fabs)


def _run(session: Session) -> StepRecord:
    session.air(True)
    survey = take_survey(session.drive, session.operator.tell)
    findings = []
    if not survey.rest.position:
        findings.append(Finding(words="no cameras: directions of the chambers were not seen"))
    lines = []
    for name, rises in zip(session.names, survey.rises, strict=True):
        told = ", ".join(f"{each / 1e3:.1f}" for each in rises)
        lines.append(f"output of {name}: sensors rise by {told} kPa")
    return found(findings, lines, survey=survey.model_dump(mode="json"))


STEP = Step("survey", "a pulse into each chamber", _run)
