"""Safety as a pure state machine: (time, flags) -> action. No clock, no ROS, no model of the robot.

The valves are either disarmed, which means vented, or enabled. One table, `RULES`, says which
condition asks for which action, and the further action wins:

- enabling needs every condition from PREDICT_ONLY up to be clear, and the chambers to be empty,
  over a handshake of good samples from every source *before* anything moves (`Handshake`); an
  arming test that has passed; the operator's switch, which must have been seen released in the
  present generation and be pressed now; and somebody who asks for it with that generation;
- WARN, PREDICT_ONLY and HOLD end when their conditions have been clear for `clear_time`;
- RAMP_TO_VENT never ends but in VENT_NOW, and VENT_NOW disarms;
- every vent from enabled is latched by its cause, and so is a vent that somebody asks for while
  disarmed. Only an explicit reset forgets it, while the operator's switch is released, and a
  handshake begins from zero. Each latch, each reset and each change of the numbers begins a new
  generation: an enable that was asked for earlier is void, and so is a switch that was pressed
  earlier.

An age that is NaN and values that are not numbers count as the worse case. Time that jumps ahead is
a fault; time that goes back, or is no number, stands still.
"""

import math
import re
from collections import deque
from dataclasses import dataclass

from softcr_hardware.safety.handshake import Handshake
from softcr_hardware.safety.rules import (
    VENT_ASKED,
    Action,
    Flags,
    Latch,
    Rule,
    Switch,
    broken_rules,
    switch_seen,
)
from softcr_hardware.safety.settings import SafetySettings

__all__ = ["Action", "Decision", "Flags", "Latch", "Safety", "Switch", "Transition"]

_TRANSITIONS_KEPT = 1000
_REPEATS = 600.0
"""The same cause of a machine's again within this time is kept until a check has passed [s]."""
_MEASURED = re.compile(r"-?\d+\.\d+|-?\d+(?= (kPa|Pa|ms|s)\b)")
_JUMPED = Rule("clock jumped", Action.VENT_NOW, latch=Latch.MACHINE)
_HELD_ON = "deadman's switch held since before: let go of it, then hold it again"
_TEST_FAILED = Rule("arming test", Action.VENT_NOW, latch=Latch.MACHINE, about="test_failed")


@dataclass(frozen=True)
class Transition:
    """A change of action, of being enabled or of the latch, at `time` [s], and why."""

    time: float
    before: Action
    after: Action
    enabled: bool
    reason: str
    latch: Latch = Latch.NONE

    @property
    def words(self) -> str:
        """In a line: `none -> hold: commands late`."""
        state = "" if self.enabled else " (disarmed)"
        if self.latch:
            state = f" (disarmed, latched {self.latch.letter})"
        return f"{self.before.words} -> {self.after.words}{state}: {self.reason}"


@dataclass(frozen=True)
class Decision:
    """What to do now.

    Attributes:
        action: the furthest that anything asks for.
        enabled: whether commands may reach the valves at all.
        reason: of the action; of not being enabled.
        blockers: while disarmed, what keeps the valves from being enabled.
        latch: what must be reset first.
        cause: of the latch; empty for none.
        generation: of latches and resets; an enable must ask for this one.
        counts: while disarmed, good samples of the handshake: source, how many, how many needed.
        testing: whether the arming test may open the valves, which are not enabled.
        switch: how the operator's switch is seen.
    """

    action: Action
    enabled: bool
    reason: str
    blockers: tuple[str, ...] = ()
    latch: Latch = Latch.NONE
    cause: str = ""
    generation: int = 0
    counts: tuple[tuple[str, int, int], ...] = ()
    testing: bool = False
    switch: Switch = Switch.SILENT


class Safety:
    """The state machine; `update` is all it does.

    Attributes:
        settings: its numbers.
        decision: the last one.
        transitions: the newest thousand.
        transition_count: all of them.
    """

    def __init__(self, settings: SafetySettings, maximum_pressure: float, held: str = ""):
        """Disarmed.

        Args:
            settings: numbers.
            maximum_pressure: commands reach up to it [Pa].
            held: cause of a latch of the class HELD that was kept from before; empty for none.
        """
        self.settings = settings
        self._latch, self._cause = (Latch.HELD, held) if held else (Latch.NONE, "")
        self.decision = Decision(
            Action.VENT_NOW, False, held or "not enabled yet", (), self._latch, self._cause
        )
        self._said: tuple[object, ...] = ()  # what the decision was last made of
        self.transitions: deque[Transition] = deque(maxlen=_TRANSITIONS_KEPT)
        self.transition_count = 0
        self._maximum = maximum_pressure
        self._generation = 0
        self._handshake = Handshake()
        self._testing = False
        self._seen = -math.inf  # time as it was told
        self._time = 0.0  # own time, which neither jumps nor goes back
        self._step = 0.0
        self._jumped = False
        self._since = -math.inf  # when the action of the decision began
        self._asked = -math.inf  # when the action, or one beyond it, was last asked for
        self._began: dict[str, float] = {}  # of conditions that are broken
        self._machine_causes: dict[str, float] = {}  # and when they were last latched
        self._vent_before = self._reset_before = False
        self._released = False  # whether the switch was seen released in this generation

    def use(self, settings: SafetySettings) -> None:
        """Other numbers, while disarmed; a new generation begins."""
        self.settings = settings
        self._begin_generation()

    def update(self, time: float, flags: Flags) -> Decision:
        """Decide.

        Args:
            time: [s] on a clock that does not jump; one that goes back, or is no number, is taken
                as standing still, and one that jumps ahead by more than `cycle_vent` as a fault.
            flags: what is known now.
        """
        self._advance(time)
        switch = switch_seen(flags, self.settings)
        self._released = self._released or switch in (Switch.RELEASED, Switch.NOT_REQUIRED)
        broken = self._broken(flags)
        before = self.decision
        if before.enabled:
            action, enabled, reason = self._while_enabled(broken, flags)
            blockers: tuple[str, ...] = ()
        else:
            action, enabled, reason, blockers = self._while_disarmed(broken, flags)
        self._vent_before, self._reset_before = flags.vent, flags.reset
        counts = () if enabled else self._handshake.counts(self.settings)
        said = (
            action, enabled, reason, blockers, self._latch, self._cause, self._generation,
            counts, self._testing, switch,
        )  # fmt: skip
        if said == self._said:  # nearly always: to make another one costs more than to compare
            return before
        self._said = said
        self.decision = decision = Decision(*said)
        if (action, enabled, self._latch) != (before.action, before.enabled, before.latch):
            self._since = self._time
            self.transition_count += 1
            self.transitions.append(
                Transition(self._seen, before.action, action, enabled, reason, self._latch)
            )
        return decision

    def _advance(self, time: float) -> None:
        """Let the own time go on, but neither jump nor go back."""
        self._step, self._jumped = 0.0, False
        if not math.isfinite(time):
            return
        step, self._seen = time - self._seen, time
        if step == math.inf:  # the first
            self._time = time
        elif step > self.settings.cycle_vent:
            self._jumped = True
        else:
            self._step = max(step, 0.0)
            self._time += self._step

    def _broken(self, flags: Flags) -> list[tuple[Rule, str]]:
        """The rules that ask for an action, in the order of the table, and their reasons."""
        broken = broken_rules(flags, self.settings, self._maximum)
        before = self._began
        if broken or before:
            self._began = {rule.reason: before.get(rule.reason, self._time) for rule in broken}
        found = [
            (rule, rule.named(flags))
            for rule in broken
            if not rule.lasting
            or self._time - self._began[rule.reason] >= getattr(self.settings, rule.lasting)
        ]
        if self._jumped:
            found.append((_JUMPED, _JUMPED.reason))
        return found

    # --- disarmed -----------------------------------------------------------------------------

    def _while_disarmed(
        self, broken: list[tuple[Rule, str]], flags: Flags
    ) -> tuple[Action, bool, str, tuple[str, ...]]:
        reason = self.decision.reason
        if flags.reset and not flags.vent and self._reset(flags):  # a vent that lasts wins
            reason = "reset"
        if flags.vent and not self._vent_before:
            self._latch_at_least(Latch.OPERATOR, VENT_ASKED)
            reason = VENT_ASKED
        if flags.changed:
            self._latch_at_least(Latch.HELD, f"settings changed: {flags.changed}")
        blockers = [said for rule, said in broken if rule.action >= Action.PREDICT_ONLY]
        if self._testing and (blockers or flags.test_failed or not flags.untested):
            self._testing = False
        if flags.test_failed and not self._latch:
            reason = _TEST_FAILED.named(flags)
            self._latch_as(_TEST_FAILED, reason)
        if not self._testing:  # whose pulses fill chambers, and which lacks a sample or two
            blockers += [f"bad samples: {name}" for name in flags.bad]
            if not flags.highest_pressure <= self.settings.near_empty:
                blockers.append("chambers not empty")
            if not flags.pressure_error <= self.settings.near_empty:
                blockers.append("pressures not near the command")
        if self._latch:
            first = "pass a check, then reset it" if self._latch is Latch.HELD else "reset it first"
            if not self._released:
                first = f"let go of the deadman's switch, then {first.removesuffix(' first')}"
            blockers.append(f"latched {self._latch.letter}, {self._cause}: {first}")
        elif not self._released and flags.operator_pressed:
            blockers.append(_HELD_ON)
        clear = not blockers and not flags.reset and not self._testing
        self._handshake.see(self._seen, self._step, clear, flags)
        if blockers:
            return Action.VENT_NOW, False, reason, tuple(blockers)
        if not self._handshake.complete(self.settings) and not self._testing:
            return Action.VENT_NOW, False, reason, ("handshake under way",)
        asked = flags.enable and flags.generation in (None, self._generation)
        if flags.untested:
            self._testing = self._testing or asked
            said = "arming test under way" if self._testing else "arming test: ask to begin it"
            return Action.VENT_NOW, False, reason, (said,)
        if not asked or not self._handshake.complete(self.settings):
            return Action.VENT_NOW, False, reason, ()
        warning, why = max(
            ((rule.action, said) for rule, said in broken),
            key=lambda item: item[0],
            default=(Action.NONE, "enabled"),
        )
        self._asked = self._time
        return warning, True, why, ()

    def _reset(self, flags: Flags) -> bool:
        """Forget the latch, if the operator's switch has been released since; one that needs a
        check stays until that has passed."""
        if (
            self._reset_before
            or not self._released
            or (self._latch is Latch.HELD and not flags.checked)
        ):
            return False
        if self._latch is Latch.HELD:
            self._machine_causes.clear()
        self._latch, self._cause = Latch.NONE, ""
        self._begin_generation()
        return True

    # --- enabled ------------------------------------------------------------------------------

    def _while_enabled(
        self, broken: list[tuple[Rule, str]], flags: Flags
    ) -> tuple[Action, bool, str]:
        now, settings = self.decision, self.settings
        rule, reason = max(broken, key=lambda item: item[0].action, default=(None, "all clear"))
        wanted = rule.action if rule else Action.NONE
        lasted = self._time - self._since
        if now.action == wanted == Action.HOLD and lasted >= settings.hold_limit:
            wanted, reason = Action.RAMP_TO_VENT, f"held too long: {now.reason}"
        if now.action == Action.RAMP_TO_VENT and wanted <= now.action:
            empty = flags.highest_pressure <= settings.near_empty
            if not empty and lasted < settings.ramp_limit:
                return now.action, True, now.reason
            wanted, reason = Action.VENT_NOW, now.reason
        if wanted >= now.action:
            self._asked = self._time
        elif self._time - self._asked < settings.clear_time:
            return now.action, True, now.reason
        if wanted == Action.VENT_NOW:
            strongest = [each for each in broken if each[0].action == Action.VENT_NOW]
            if strongest:  # of several causes the one that is hardest to forget is latched
                self._latch_as(*max(strongest, key=lambda item: item[0].latch))
            else:
                self._latch_at_least(Latch.OPERATOR, reason)
        return wanted, wanted < Action.VENT_NOW, reason

    # --- latches ------------------------------------------------------------------------------

    def _latch_as(self, rule: Rule, cause: str) -> None:
        """Latch what a rule says; a machine's cause that comes again is held."""
        latch = rule.latch
        if latch is Latch.MACHINE:
            key = _MEASURED.sub("", cause)  # whatever the figures are
            if self._time - self._machine_causes.get(key, -math.inf) <= _REPEATS:
                latch, cause = Latch.HELD, f"{cause}, again within {_REPEATS / 60:.0f} minutes"
            self._machine_causes[key] = self._time
        self._latch_at_least(latch, cause)

    def _latch_at_least(self, latch: Latch, cause: str) -> None:
        """A higher class stays, with its cause; a new generation begins."""
        if latch > self._latch:
            self._latch, self._cause = latch, cause
        self._begin_generation()

    def _begin_generation(self) -> None:
        """Whoever asked before has asked for something else, and nothing seen before counts."""
        self._generation += 1
        self._testing, self._released = False, not self.settings.require_operator
        self._handshake.forget()
