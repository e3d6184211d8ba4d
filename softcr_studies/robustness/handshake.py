"""Random sequences of faults, operators' actions and time jumps: what may arm the valves.

Beside the state machine stands a short reference that knows nothing of its code: it keeps the
cycles in a row in which all was good, the messages that came in them, what was vented, reset, let
go of and looked at, and says of each cycle whether the valves may be armed in it. A sequence fails
where they are armed and may not, where a fault of the machine does not vent in its own cycle, or
where a vent leaves no latch. A reset needs the operator's switch released since the vent, and
arming needs it released since the reset.
"""

import math
import random
from dataclasses import dataclass

from pydantic import Field

from softcr_hardware.safety.safety import Action, Decision, Flags, Latch, Safety
from softcr_hardware.safety.settings import SafetySettings
from softcr_studies.frame.study import Cell, Metric, Must, Result, Seeds, Study, StudySettings

MAXIMUM = 1e5
SHORT = SafetySettings(
    handshake_samples=12, handshake_messages=3, handshake_time=0.012, clear_time=0.01,
    hold_limit=0.3, ramp_limit=0.3,
)  # fmt: skip
"""Numbers that let a short sequence hold several armings; what is counted is the same."""

_LIMITS = {"exchange": 0.05, "pressures": 0.05, "commands": 0.1, "poses": 0.05, "operator": 0.2}
_PERIODS = {
    "exchange": 0.001, "pressures": 0.001, "commands": 0.004, "poses": 0.003, "operator": 0.005,
}  # fmt: skip
_MESSAGES = ("commands", "poses", "operator")
_MACHINE = ("slaves", "watchdog", "pressure fault", "overpressure")
_SWITCHES = (*_MACHINE, "released", "several", "operators", "not empty", "far from the command")
_JUMPS = (0.15, 0.25, 1.0, 3600.0, 1e9, -0.05, -1.0, -1e6, math.nan, math.inf, -math.inf)


@dataclass
class Asked:
    """What an operator does in a cycle; `looked` is the cycle in which he saw the generation that
    he asks for, `generation` that one."""

    vent: bool = False
    reset: bool = False
    checked: bool = False
    enable: bool = False
    looked: int = -1
    generation: int | None = None


class Oracle:
    """The reference; `violations` are told in words by raising AssertionError."""

    def __init__(self, settings: SafetySettings):
        """Vented, nothing seen."""
        self._settings = settings
        self._good, self._messages, self._lasted = 0, dict.fromkeys(_MESSAGES, 0), 0.0
        self._latched, self._held, self._broke_off = False, False, -1
        self._let_go = False  # of the switch, since it broke off

    def see(
        self, cycle: int, step: float, good: bool, released: bool, came: set[str], asked: Asked,
        before: Decision,
    ) -> bool:  # fmt: skip
        """Whether the valves may be armed in this cycle.

        Args:
            cycle: its number.
            step: of the time since the last one [s]; 0 for none that counts.
            good: every source fresh, nothing broken, no bad sample, chambers empty.
            released: the operator's signal is fresh, of one node, and says so of the switch.
            came: sources whose messages came.
            asked: by an operator.
            before: of the cycle before.
        """
        self._let_go |= released
        if before.enabled:
            self._forget()
            return False
        if asked.reset and self._let_go and (asked.checked or not self._held):
            self._latched = self._held = self._let_go = False
            self._broke_off = cycle
            self._forget()
        if asked.vent:
            self._vented(cycle, self._held)
        if not good or not step > 0.0 or self._latched or not self._let_go or asked.reset:
            self._forget()
            return False
        self._good += 1
        self._lasted += step
        for name in came & set(_MESSAGES):
            self._messages[name] += 1
        settings = self._settings
        enough = (
            self._good >= settings.handshake_samples
            and self._lasted >= settings.handshake_time - 1e-5
            and min(self._messages.values()) >= settings.handshake_messages
        )
        return enough and asked.enable and asked.looked >= self._broke_off

    def vented(self, cycle: int, decision: Decision) -> None:
        """The valves were vented from enabled."""
        assert decision.latch > Latch.NONE, f"cycle {cycle}: a vent without a latch"
        self._vented(cycle, decision.latch is Latch.HELD)

    def _vented(self, cycle: int, held: bool) -> None:
        self._latched, self._held, self._broke_off = True, held, cycle
        self._let_go = False
        self._forget()

    def _forget(self) -> None:
        self._good, self._messages, self._lasted = 0, dict.fromkeys(_MESSAGES, 0), 0.0


class RandomBench:
    """A state machine on a bench whose parts fail, among operators who press anything."""

    def __init__(
        self, seed: int, settings: SafetySettings = SHORT, oracle: Oracle | None = None
    ) -> None:
        """One sequence.

        Args:
            seed: of everything that happens.
            settings: of the state machine.
            oracle: the reference; None for one of the same settings.
        """
        self._random = random.Random(seed)
        self._safety = Safety(settings, MAXIMUM)
        self._settings = settings
        self._oracle = oracle or Oracle(settings)
        self._time = self._told = 100.0
        self._came = dict.fromkeys(_PERIODS, -math.inf)
        self._silent: set[str] = set()
        self._broken: set[str] = set()
        self._bad = ""
        self._seen: list[tuple[int, int]] = [(0, 0)]  # cycle and generation that somebody saw
        self._last = Asked()

    def run(self, cycles: int) -> int:
        """Let so many cycles pass; returns how often the valves were armed.

        Raises:
            AssertionError: a violation, in words.
        """
        return sum(self._cycle(cycle) for cycle in range(cycles))

    def _cycle(self, cycle: int) -> bool:
        before = self._safety.decision
        self._happen()
        told, step = self._pass_time()
        came = {
            name for name, period in _PERIODS.items()
            if name not in self._silent and self._time - self._came[name] >= period - 1e-9
        }  # fmt: skip
        for name in came:
            self._came[name] = self._time
        asked = self._ask(cycle, before)
        flags, good, released = self._flags(told, asked)
        may = self._oracle.see(cycle, step, good, released, came, asked, before)
        decision = self._safety.update(told, flags)
        armed = decision.enabled and not before.enabled
        assert may or not armed, f"cycle {cycle}: armed, which the handshake did not see"
        assert decision.enabled == (decision.action < Action.VENT_NOW), f"cycle {cycle}: action"
        must_vent = asked.vent or bool(self._broken & set(_MACHINE))
        must_vent |= math.isfinite(told) and step < 0.0
        assert not (must_vent and decision.enabled), f"cycle {cycle}: not vented at once"
        if before.enabled and not decision.enabled:
            self._oracle.vented(cycle, decision)
        self._bad = ""
        return armed

    def _happen(self) -> None:
        """Something fails, or is mended."""
        chance = self._random.random
        if chance() < 0.03:
            self._silent ^= {self._random.choice(tuple(_PERIODS))}
        if chance() < 0.02:
            self._broken ^= {self._random.choice(_SWITCHES)}
        if chance() < 0.04:
            self._broken ^= {"released"}
        if chance() < 0.10:
            self._silent.clear()
            self._broken.clear()
        if chance() < 0.01:
            self._bad = self._random.choice(("bus", "command", "pressures"))

    def _pass_time(self) -> tuple[float, float]:
        """The time that is told, and the step that counts: negative for a jump ahead."""
        true = self._random.choice((0.001, 0.001, 0.001, 0.002, 0.004))
        self._time += true
        told = self._time
        if self._random.random() < 0.005:
            told += self._random.choice(_JUMPS)
        if not math.isfinite(told):
            return told, 0.0
        step, self._told = told - self._told, told
        if step > self._settings.cycle_vent:
            return told, -1.0
        return told, max(step, 0.0)

    def _ask(self, cycle: int, before: Decision) -> Asked:
        chance = self._random.random
        if chance() < 0.3:
            self._seen.append((cycle, before.generation))
            del self._seen[:-20]
        looked, generation = self._random.choice((self._seen[-1], self._random.choice(self._seen)))
        asked = Asked(
            vent=chance() < 0.01,
            reset=chance() < 0.05 and not self._last.reset,
            checked=chance() < 0.5,
            enable=chance() < 0.5,
            looked=looked,
            generation=generation,
        )
        if chance() < 0.2:  # now, whatever it is
            asked.looked, asked.generation = cycle, None
            if asked.reset or asked.vent:
                asked.enable = False
        self._last = asked
        return asked

    def _flags(self, told: float, asked: Asked) -> tuple[Flags, bool, bool]:
        """What the state machine is told, whether it is all good, and whether the operator is
        seen to have let go of the switch."""
        time = told if math.isfinite(told) else self._told
        ages = {name: time - came for name, came in self._came.items()}
        broken = self._broken
        fresh = all(-0.1 <= ages[name] <= limit for name, limit in _LIMITS.items())
        flags = Flags(
            operator_pressed="released" not in broken,
            operator_age=ages["operator"],
            command_age=ages["commands"],
            mocap_age=ages["poses"],
            force_torque_age=0.0,
            exchange_age=ages["exchange"],
            slaves_operational="slaves" not in broken,
            watchdog_armed="watchdog" not in broken,
            pressure_age=ages["pressures"],
            highest_pressure=1.3e5 if "overpressure" in broken else
            (2e4 if "not empty" in broken else 0.0),
            pressure_error=2e4 if "far from the command" in broken else 0.0,
            pressure_fault="chamber_1: sensor frozen" if "pressure fault" in broken else "",
            commanders="one and another" if "several" in broken else "",
            operators="one and another" if "operators" in broken else "",
            bad=(self._bad,) if self._bad else (),
            reset=asked.reset,
            checked=asked.checked,
            enable=asked.enable,
            generation=asked.generation,
            vent=asked.vent,
        )  # fmt: skip
        heard = -0.1 <= ages["operator"] <= _LIMITS["operator"] and "operators" not in broken
        return flags, fresh and not broken and not self._bad, heard and "released" in broken


class Settings(StudySettings):
    """How many sequences, of how many cycles."""

    seeds: Seeds = 10
    sequences: int = Field(
        2000, ge=1, le=10_000_000, description="number of sequences of each seed"
    )
    cycles: int = Field(400, ge=1, le=100_000, description="number of cycles of each sequence")


def run(cell: Cell) -> Result:
    """Sequences of one seed."""
    settings, armings, violations = cell.settings, 0, 0
    note = ""
    for number in range(settings.sequences):
        try:
            armings += RandomBench((cell.seed << 32) + number).run(settings.cycles)
        except AssertionError as error:
            violations += 1
            note = note or f"sequence {number}: {error}"
    return {"armings": armings, "violations": violations, "note": note}


STUDY = Study(
    name="robustness/handshake",
    source="",
    summary="random sequences of faults, operators and time jumps: nothing arms unseen",
    run=run,
    cases=lambda settings: ("state machine",),
    methods=("shipped",),
    settings=Settings,
    metrics=(
        Metric("armings", "-", "armings"),
        Metric("violations", "-", "violations"),
    ),
    musts=(Must("violations", 0.0),),
    exact="The handshake is shortened to 12 cycles and 3 messages of each source, so that a short "
    "sequence holds several armings; time passes in steps of 1 to 4 ms between its jumps.",
    about={"cycles": 400},
)
