"""What is late, stops and is lost in a run on virtual time: options, and what a system makes of
them."""

import re
import zlib
from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Annotated, Any

from pydantic import AfterValidator, BaseModel, ConfigDict, Field

from softcr_models.errors import UserError
from softcr_runtime.blocks.block import CLOCK, BlockBase
from softcr_runtime.blocks.system import Computing, Missing, Part, Stop, Wire
from softcr_runtime.settings.node_settings import setting_values
from softcr_runtime.wire.topics import ACTUATOR_TOPICS

MODE = "virtual"
"""Value of the option `mode`."""

LONGEST = 10_000.0
"""That a tick may take [ms]."""

_NUMBER = r"(\d+\.?\d*|\.\d+)"
_COMPUTING = re.compile(rf"{_NUMBER}(?:\.\.{_NUMBER})?")
_STOP = re.compile(rf"{_NUMBER}@{_NUMBER}")
_MISSING = re.compile(rf"(\d+)@{_NUMBER}(?:/{_NUMBER})?")

_TOPICS = {
    "camera": ("mocap/tip/pose", "mocap/body/poses"),
    "pressures": tuple(topic for topic in ACTUATOR_TOPICS if topic.endswith("/state")),
    "wrenches": ("force_torque/wrench",),
    "commands": tuple(topic for topic in ACTUATOR_TOPICS if topic.endswith(("/plan", "/command"))),
}
"""Whose messages may be missing, and the topics that carry them with robots of each kind."""


def computing_of(text: str) -> Computing:
    """How long ticks take, from milliseconds or a range of them: `20`, `5..35`.

    Raises:
        ValueError: it is neither, or a time above `LONGEST`.
    """
    shortest, longest = _matched(_COMPUTING, text)
    first, last = float(shortest), float(longest or shortest)
    if not first <= last <= LONGEST:
        raise ValueError(text)
    return Computing(1e-3 * first, 1e-3 * last)


def stops_of(text: str) -> tuple[Stop, ...]:
    """Stops from a list of `SECONDS@TIME`.

    Raises:
        ValueError: it is none, or one of them takes no time.
    """
    stops = tuple(Stop(*map(float, _matched(_STOP, each))) for each in _listed(text))
    if any(stop.seconds == 0.0 for stop in stops):
        raise ValueError(text)
    return stops


def missing_of(text: str) -> tuple[Missing, ...]:
    """Missing messages from a list of `COUNT@TIME` or `COUNT@TIME/EVERY`.

    Raises:
        ValueError: it is none, or a number of messages or a distance is 0.
    """
    found = []
    for each in _listed(text):
        count, at, every = _matched(_MISSING, each)
        if int(count) == 0 or (every and float(every) == 0.0):
            raise ValueError(text)
        found.append(Missing(int(count), float(at), float(every or 0.0)))
    return tuple(found)


def _listed(text: str) -> list[str]:
    return [each.strip() for each in text.split(",")] if text else []


def _matched(pattern: re.Pattern[str], text: str) -> tuple[Any, ...]:
    found = pattern.fullmatch(text)
    if found is None:
        raise ValueError(text)
    return found.groups()


def _checked(parsed: Callable[[str], Any]) -> AfterValidator:
    def check(text: str) -> str:
        parsed(text)
        return text

    return AfterValidator(check)


def _field(default: str, said: str, allowed: str) -> Any:
    return Field(default, description=said, json_schema_extra={"in_words": allowed})


_OF_TICKS = "computing time of each tick; from a range, a random time for each tick"
_IN_MS = f"milliseconds from 0 to {LONGEST:g}, or a range of them, such as 5..35"
_STOPS_ALLOWED = "SECONDS@TIME, such as 0.3@4.0; several separated by commas"
_MISSING_ALLOWED = "COUNT@TIME or COUNT@TIME/EVERY, such as 6@4.0/0.5; several separated by commas"

_Milliseconds = Annotated[str, _checked(computing_of)]
_Stops = Annotated[str, _checked(stops_of)]
_Missing = Annotated[str, _checked(missing_of)]


class _Late(BaseModel):
    """When what plays a role answers."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    computing_ms: _Milliseconds = _field("0", _OF_TICKS, _IN_MS)
    stops: _Stops = _field(
        "", f"stops, during which nothing is computed: {_STOPS_ALLOWED}",
        _STOPS_ALLOWED,
    )  # fmt: skip


class _LateEstimator(_Late):
    computing_ms: _Milliseconds = _field("2", _OF_TICKS, _IN_MS)


class _LateController(_Late):
    computing_ms: _Milliseconds = _field("5", _OF_TICKS, _IN_MS)


class _Lossy(BaseModel):
    """What does not come of some messages."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    missing: _Missing = _field(
        "", f"missing messages: so many from a time on, and again every so many seconds: "
        f"{_MISSING_ALLOWED}",
        _MISSING_ALLOWED,
    )  # fmt: skip


class VirtualTime(BaseModel):
    """What is late, stops and is lost in a run on virtual time."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)

    controller: _LateController = _LateController()
    estimator: _LateEstimator = _LateEstimator()
    plant: _Late = _Late()
    reference: _Late = _Late()
    camera: _Lossy = _Lossy()
    pressures: _Lossy = _Lossy()
    wrenches: _Lossy = _Lossy()
    commands: _Lossy = _Lossy()
    lost: float = Field(
        default=0.0, ge=0.0, le=1.0, description="fraction of all messages that are lost at random"
    )

    def in_words(self, roles: Iterable[str]) -> str:
        """What holds in a run in which these roles are played, for one line."""
        computing = [f"{role} {getattr(self, role).computing_ms}" for role in roles]
        told = [
            f"{name} {value}"
            for name, value in setting_values(self).items()
            if value and not name.endswith("computing_ms")
        ]
        return "; ".join([f"computing [ms]: {', '.join(computing)}", *told])

    def computing(self, role: str, seed: int) -> Computing:
        """How long the ticks of what plays a role take; `seed` is of the run."""
        late: _Late = getattr(self, role)
        seconds = computing_of(late.computing_ms)
        return replace(seconds, stops=stops_of(late.stops), seed=_own_seed(seed, role))

    def late(self, part: Part, block: BlockBase, role: str, seed: int) -> Part:
        """A part of a system as it computes and hears in the run.

        Args:
            part: its wires may have latencies and losses of their own.
            block: made of it.
            role: that it plays; empty for one that computes as the part says.
            seed: of the run.
        """
        if role:
            part = replace(part, computing=self.computing(role, seed))
        wires = {
            each.topic: self._wire(part, each.topic, seed)
            for each in block.inputs
            if each.topic != CLOCK
        }
        return replace(part, wires={**part.wires, **wires})

    def _wire(self, part: Part, topic: str, seed: int) -> Wire:
        """The way of a topic to a part, with more that is lost."""
        wire = part.wires.get(topic, Wire())
        named = [name for name, topics in _TOPICS.items() if topic in topics]
        more = [each for name in named for each in missing_of(getattr(self, name).missing)]
        wire = replace(wire, missing=(*wire.missing, *more))
        if not self.lost:
            return wire
        lost = 1.0 - (1.0 - wire.lost) * (1.0 - self.lost)
        return replace(wire, lost=lost, seed=_own_seed(seed, f"{part.name} {topic}"))

    def refuse_without_effect(self, roles: set[str], heard: set[str]) -> None:
        """Refuse what would change nothing in a run.

        Args:
            roles: that are played in it.
            heard: topics that somebody hears.

        Raises:
            UserError: in one line, the option and why.
        """
        for role in ("controller", "estimator", "plant", "reference"):
            given = getattr(self, role).model_fields_set
            if role not in roles and given:
                raise UserError(
                    f"option {role}.{min(given)}: has no meaning here: this run has no {role}"
                )
        for name, topics in _TOPICS.items():
            if getattr(self, name).missing and not heard.intersection(topics):
                raise UserError(
                    f"option {name}.missing: has no meaning here: nobody listens to "
                    f"{' or '.join(topics)} in this run"
                )


def _own_seed(seed: int, name: str) -> int:
    """Of one thing in a run that has a seed."""
    return zlib.crc32(f"{seed} {name}".encode())
