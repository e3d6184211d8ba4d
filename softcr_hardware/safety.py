"""Safety as a pure state machine: (time, flags) -> action. No clock, no ROS, no model of the robot.

Actions are ordered and the further one wins (the way of PX4's failsafe framework). The valves are
either disarmed, which means vented, or enabled. One table, `_RULES`, says which condition asks for
which action:

- enabling needs every condition from PREDICT_ONLY up to be clear for `handshake_time`, and the
  chambers to be empty: poses fresh, slaves operational with their watchdog armed, pressures
  believable, commands and the operator's signal flowing *before* anything moves;
- WARN, PREDICT_ONLY and HOLD end when their conditions have been clear for `clear_time`;
- RAMP_TO_VENT never ends but in VENT_NOW, and VENT_NOW disarms; only an operator enables again.

An age that is NaN, negative time steps and values that are not numbers count as the worse case.
"""

import math
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from enum import IntEnum

from softcr_hardware.safety_settings import SafetySettings

_TRANSITIONS_KEPT = 1000


class Action(IntEnum):
    """What is done to the chambers; a larger number is further."""

    NONE = 0
    WARN = 1
    PREDICT_ONLY = 2
    HOLD = 3
    RAMP_TO_VENT = 4
    VENT_NOW = 5

    @property
    def words(self) -> str:
        """As in sentences: `ramp to vent`."""
        return self.name.lower().replace("_", " ")


@dataclass(slots=True)  # not frozen: that would cost more than the rest of a fast cycle's safety
class Flags:
    """What is known at one moment. Ages [s] since the last good one; infinite for never.

    Attributes:
        operator_pressed: whether the deadman's switch is held.
        operator_age, command_age, mocap_age, force_torque_age: of messages that were accepted.
        exchange_age: of a bus exchange with the full working counter.
        slaves_operational: every slave says so itself.
        watchdog_armed: the slaves' own watchdog was seen to work since the bus came up.
        pressure_age: of a believable sample of every chamber.
        highest_pressure: of the newest believable sample [Pa].
        pressure_error: largest |measured - sent| of a chamber [Pa].
        pressure_fault: what speaks against believing a pressure; empty for nothing. It vents, and
            stays latched until somebody resets it.
        impaired: names of what runs worse than it should.
        reset: somebody has looked at a latched fault, and asks now to forget it.
        enable: the operator asks now for the valves to be enabled.
        vent: somebody asks now for them to be vented.
    """

    operator_pressed: bool = False
    operator_age: float = math.inf
    command_age: float = math.inf
    mocap_age: float = math.inf
    force_torque_age: float = math.inf
    exchange_age: float = math.inf
    slaves_operational: bool = False
    watchdog_armed: bool = False
    pressure_age: float = math.inf
    highest_pressure: float = math.inf
    pressure_error: float = math.inf
    pressure_fault: str = ""
    impaired: tuple[str, ...] = ()
    reset: bool = False
    enable: bool = False
    vent: bool = False


@dataclass(frozen=True)
class Transition:
    """A change of action or of being enabled, at `time` [s], and why."""

    time: float
    before: Action
    after: Action
    enabled: bool
    reason: str

    @property
    def words(self) -> str:
        """In a line: `none -> hold: commands late`."""
        state = "" if self.enabled else " (disarmed)"
        return f"{self.before.words} -> {self.after.words}{state}: {self.reason}"


@dataclass(frozen=True)
class Decision:
    """What to do now.

    Attributes:
        action: the furthest that anything asks for.
        enabled: whether commands may reach the valves at all.
        reason: of the action; of not being enabled.
        blockers: while disarmed, what keeps the valves from being enabled.
    """

    action: Action
    enabled: bool
    reason: str
    blockers: tuple[str, ...] = ()


_Broken = Callable[[Flags, SafetySettings, float], bool]


def _older(age: str, limit: str, needed: str = "") -> _Broken:
    """Whether an age lies beyond a limit; `needed` names a setting that may switch the rule off."""

    def broken(flags: Flags, settings: SafetySettings, maximum: float) -> bool:
        if needed and not getattr(settings, needed):
            return False
        return not getattr(flags, age) <= getattr(settings, limit)  # NaN is old

    return broken


_PRESSURE_FAULT = "pressure fault"

# reason, action, condition, name of the setting for how long it must last ("" for not at all)
_RULES: tuple[tuple[str, Action, _Broken, str], ...] = (
    ("vent asked for", Action.VENT_NOW, lambda f, s, high: f.vent, ""),
    ("bus silent", Action.VENT_NOW, _older("exchange_age", "exchange_vent"), ""),
    ("slaves not operational", Action.VENT_NOW, lambda f, s, high: not f.slaves_operational, ""),
    ("output watchdog not armed", Action.VENT_NOW, lambda f, s, high: not f.watchdog_armed, ""),
    (_PRESSURE_FAULT, Action.VENT_NOW, lambda f, s, high: bool(f.pressure_fault), ""),
    ("pressures not believable", Action.VENT_NOW, _older("pressure_age", "pressure_vent"), ""),
    (
        "overpressure",
        Action.VENT_NOW,
        lambda f, s, high: not f.highest_pressure <= high + s.overpressure,
        "",
    ),
    (
        "deadman released",
        Action.RAMP_TO_VENT,
        lambda f, s, high: s.require_operator and not f.operator_pressed,
        "",
    ),
    (
        "operator silent",
        Action.RAMP_TO_VENT,
        _older("operator_age", "operator_vent", "require_operator"),
        "",
    ),
    ("commands silent", Action.RAMP_TO_VENT, _older("command_age", "command_vent"), ""),
    ("poses silent", Action.RAMP_TO_VENT, _older("mocap_age", "mocap_vent", "require_mocap"), ""),
    ("operator late", Action.HOLD, _older("operator_age", "operator_hold", "require_operator"), ""),
    ("commands late", Action.HOLD, _older("command_age", "command_hold"), ""),
    ("poses late", Action.HOLD, _older("mocap_age", "mocap_hold", "require_mocap"), ""),
    (
        "poses missing",
        Action.PREDICT_ONLY,
        _older("mocap_age", "mocap_predict", "require_mocap"),
        "",
    ),
    ("wrenches silent", Action.WARN, _older("force_torque_age", "force_torque_warn"), ""),
    ("impaired", Action.WARN, lambda f, s, high: bool(f.impaired), ""),
)


def _named(reason: str, flags: Flags) -> str:
    """The reason, with what it is about."""
    about = {"impaired": ", ".join(flags.impaired), _PRESSURE_FAULT: flags.pressure_fault}
    return f"{reason}: {about[reason]}" if reason in about else reason


class Safety:
    """The state machine; `update` is all it does.

    Attributes:
        decision: the last one.
        transitions: the newest thousand.
        transition_count: all of them.
        latched: the pressure fault that vented the valves and was not reset yet; empty for none.
    """

    def __init__(self, settings: SafetySettings, maximum_pressure: float):
        """Disarmed; commands reach up to `maximum_pressure` [Pa]."""
        self.settings = settings
        self.decision = Decision(Action.VENT_NOW, False, "not enabled yet")
        self.transitions: deque[Transition] = deque(maxlen=_TRANSITIONS_KEPT)
        self.transition_count = 0
        self.latched = ""
        self._maximum = maximum_pressure
        self._time = -math.inf
        self._since = -math.inf  # when the action of the decision began
        self._asked = -math.inf  # when the action, or one beyond it, was last asked for
        self._blocked = math.nan  # when something last stood against enabling
        self._began: dict[str, float] = {}  # of conditions that are broken

    def update(self, time: float, flags: Flags) -> Decision:
        """Decide.

        Args:
            time: [s] on a clock that does not jump; one that goes back, or is no number, is taken
                as standing still.
            flags: what is known now.
        """
        if time > self._time and math.isfinite(time):
            self._time = time
        if math.isnan(self._blocked):
            self._blocked = self._time
        broken = self._broken(flags)
        if self.decision.enabled:
            decision = self._while_enabled(broken, flags)
        else:
            decision = self._while_disarmed(broken, flags)
        before = self.decision
        self.decision = decision
        if (decision.action, decision.enabled) != (before.action, before.enabled):
            self._since = self._time
            self.transition_count += 1
            self.transitions.append(
                Transition(
                    self._time, before.action, decision.action, decision.enabled, decision.reason
                )
            )
        return decision

    def _broken(self, flags: Flags) -> list[tuple[Action, str]]:
        """What asks for an action, in the order of the table."""
        found = []
        for reason, action, condition, lasting in _RULES:
            if not condition(flags, self.settings, self._maximum):
                self._began.pop(reason, None)
                continue
            began = self._began.setdefault(reason, self._time)
            if not lasting or self._time - began >= getattr(self.settings, lasting):
                found.append((action, _named(reason, flags)))
        return found

    def _while_disarmed(self, broken: list[tuple[Action, str]], flags: Flags) -> Decision:
        blockers = [reason for action, reason in broken if action >= Action.PREDICT_ONLY]
        if not flags.highest_pressure <= self.settings.near_empty:
            blockers.append("chambers not empty")
        if not flags.pressure_error <= self.settings.near_empty:
            blockers.append("pressures not near the command")
        if flags.reset:
            self.latched = ""
        if self.latched:
            blockers.append(f"{self.latched}: reset it first")
        if blockers:
            self._blocked = self._time
        elif not self._time - self._blocked >= self.settings.handshake_time:
            blockers.append("handshake under way")
        if not blockers and flags.enable:
            action, reason = max(broken, key=lambda item: item[0], default=(Action.NONE, "enabled"))
            self._asked = self._time
            return Decision(action, True, reason)
        return Decision(Action.VENT_NOW, False, self.decision.reason, tuple(blockers))

    def _while_enabled(self, broken: list[tuple[Action, str]], flags: Flags) -> Decision:
        now, settings = self.decision, self.settings
        wanted, reason = max(broken, key=lambda item: item[0], default=(Action.NONE, "all clear"))
        lasted = self._time - self._since
        if now.action == wanted == Action.HOLD and lasted >= settings.hold_limit:
            wanted, reason = Action.RAMP_TO_VENT, f"held too long: {now.reason}"
        if now.action == Action.RAMP_TO_VENT and wanted <= now.action:
            empty = flags.highest_pressure <= settings.near_empty
            if not empty and lasted < settings.ramp_limit:
                return now
            wanted, reason = Action.VENT_NOW, now.reason
        if wanted >= now.action:
            self._asked = self._time
        elif self._time - self._asked < settings.clear_time:
            return now
        if any(said.startswith(_PRESSURE_FAULT) for _, said in broken):
            self.latched = _named(_PRESSURE_FAULT, flags)
        return Decision(wanted, wanted < Action.VENT_NOW, reason)
