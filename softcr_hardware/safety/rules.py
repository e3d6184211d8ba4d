"""What safety knows, and which condition asks for which action: the rules.

Actions are ordered and the further one wins (the way of PX4's failsafe framework). Each rule also
says what a vent that it leads to is latched as. `broken_rules` has the conditions: all of them are
looked at in every fast cycle, where one function costs a fifth of a function for each rule.
"""

import math
from dataclasses import dataclass
from enum import IntEnum, StrEnum
from typing import NamedTuple

from softcr_hardware.safety.settings import SafetySettings

_AHEAD = 0.1
"""A message may be so far ahead of the present [s], for clocks differ; beyond, it is old."""


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


class Latch(IntEnum):
    """What keeps vented valves from being enabled; a larger number is harder to forget.

    OPERATOR: somebody, or the silence of somebody, vented them; a reset forgets it. MACHINE:
    something is broken; after a reset the arming test must pass anew. HELD: the same cause of a
    machine's again within ten minutes, or settings of terminals that changed; a daily check or a
    commissioning must have passed first.
    """

    NONE = 0
    OPERATOR = 1
    MACHINE = 2
    HELD = 3

    @property
    def letter(self) -> str:
        """`O`, `M` or `H`; empty for none."""
        return "" if self is Latch.NONE else self.name[0]


class Switch(StrEnum):
    """How the operator's switch is seen: as one node says, and no longer ago than holds."""

    RELEASED = "released"
    PRESSED = "pressed"
    SILENT = "silent"
    SEVERAL = "told by several nodes"
    NOT_REQUIRED = "not required"


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
        pressure_fault: what speaks against believing a pressure; empty for nothing.
        commanders: nodes that offer commands, where they are several; empty otherwise.
        operators: nodes that offer the operator's signal, where they are several; empty otherwise.
        stopped: whether the chain of emergency stops is open.
        unpowered: whether the 24 V of valves and sensors are missing.
        impaired: names of what runs worse than it should.
        bad: names of sources of which a sample was refused since the last moment.
        changed: settings of the terminals that a bus that came back no longer had as they were
            left; empty for none.
        untested: whether the arming test must still pass before the valves are enabled.
        test_failed: what the arming test has found; empty for nothing.
        reset: somebody has looked at what is latched, and asks now to forget it.
        checked: with a reset: a daily check or a commissioning has passed.
        enable: the operator asks now for the valves to be enabled.
        generation: with `enable`: the generation that it was asked for; None for the present one.
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
    commanders: str = ""
    operators: str = ""
    stopped: bool = False
    unpowered: bool = False
    impaired: tuple[str, ...] = ()
    bad: tuple[str, ...] = ()
    changed: str = ""
    untested: bool = False
    test_failed: str = ""
    reset: bool = False
    checked: bool = False
    enable: bool = False
    generation: int | None = None
    vent: bool = False


class Rule(NamedTuple):
    """A condition's name and what it asks for.

    Attributes:
        reason: in words; no two rules have the same.
        action: asked for.
        lasting: name of the setting for how long it must last; empty for not at all.
        latch: what the vent it leads to is latched as.
        about: attribute of Flags that says what it is about; empty for none.
    """

    reason: str
    action: Action
    lasting: str = ""
    latch: Latch = Latch.OPERATOR
    about: str = ""

    def named(self, flags: Flags) -> str:
        """The reason, with what it is about."""
        if not self.about:
            return self.reason
        about = getattr(flags, self.about)
        return f"{self.reason}: {about if isinstance(about, str) else ', '.join(about)}"


VENT_ASKED = "vent asked for"
_NOW, _RAMP, _M = Action.VENT_NOW, Action.RAMP_TO_VENT, Latch.MACHINE
RULES: tuple[Rule, ...] = (
    _VENT := Rule(VENT_ASKED, _NOW),
    _STOPPED := Rule("emergency stop", _NOW),
    _UNPOWERED := Rule("24 V missing", _NOW, latch=_M),
    _BUS_SILENT := Rule("bus silent", _NOW, latch=_M),
    _NOT_OPERATIONAL := Rule("slaves not operational", _NOW, latch=_M),
    _UNWATCHED := Rule("output watchdog not armed", _NOW, latch=_M),
    _PRESSURE_FAULT := Rule("pressure fault", _NOW, latch=_M, about="pressure_fault"),
    _NOT_BELIEVABLE := Rule("pressures not believable", _NOW, latch=_M),
    _OVERPRESSURE := Rule("overpressure", _NOW, latch=_M),
    _RELEASED := Rule("deadman released", _RAMP),
    _OPERATOR_SILENT := Rule("operator silent", _RAMP),
    _SEVERAL_OPERATORS := Rule("operator's signal of several nodes", _RAMP, about="operators"),
    _STILL_SEVERAL := Rule(
        "commands still of several nodes", _RAMP, lasting="several_vent", about="commanders"
    ),
    _COMMANDS_SILENT := Rule("commands silent", _RAMP),
    _POSES_SILENT := Rule("poses silent", _RAMP),
    _OPERATOR_LATE := Rule("operator late", Action.HOLD),
    _SEVERAL := Rule("commands of several nodes", Action.HOLD, about="commanders"),
    _COMMANDS_LATE := Rule("commands late", Action.HOLD),
    _POSES_LATE := Rule("poses late", Action.HOLD),
    _POSES_MISSING := Rule("poses missing", Action.PREDICT_ONLY),
    _WRENCHES_SILENT := Rule("wrenches silent", Action.WARN),
    _IMPAIRED := Rule("impaired", Action.WARN, about="impaired"),
)
"""All of them; of several that ask for the same action the first is the reason."""


def broken_rules(f: Flags, s: SafetySettings, high: float) -> list[Rule]:
    """The rules whose conditions hold, in the order of `RULES`.

    An age is fresh from a little ahead of the present up to the setting; NaN is not fresh.

    Args:
        f: what is known.
        s: from which ages and values on.
        high: highest command [Pa].
    """
    found: list[Rule] = []
    add, ahead = found.append, -_AHEAD
    if f.vent:
        add(_VENT)
    if f.stopped:
        add(_STOPPED)
    if f.unpowered:
        add(_UNPOWERED)
    if not ahead <= f.exchange_age <= s.exchange_vent:
        add(_BUS_SILENT)
    if not f.slaves_operational:
        add(_NOT_OPERATIONAL)
    if not f.watchdog_armed:
        add(_UNWATCHED)
    if f.pressure_fault:
        add(_PRESSURE_FAULT)
    if not ahead <= f.pressure_age <= s.pressure_vent:
        add(_NOT_BELIEVABLE)
    if not f.highest_pressure <= high + s.overpressure:
        add(_OVERPRESSURE)
    if s.require_operator:
        if not f.operator_pressed:
            add(_RELEASED)
        if not ahead <= f.operator_age <= s.operator_vent:
            add(_OPERATOR_SILENT)
        if f.operators:
            add(_SEVERAL_OPERATORS)
    if f.commanders:
        add(_STILL_SEVERAL)
    if not ahead <= f.command_age <= s.command_vent:
        add(_COMMANDS_SILENT)
    if s.require_mocap and not ahead <= f.mocap_age <= s.mocap_vent:
        add(_POSES_SILENT)
    if s.require_operator and not ahead <= f.operator_age <= s.operator_hold:
        add(_OPERATOR_LATE)
    if f.commanders:
        add(_SEVERAL)
    if not ahead <= f.command_age <= s.command_hold:
        add(_COMMANDS_LATE)
    if s.require_mocap:
        if not ahead <= f.mocap_age <= s.mocap_hold:
            add(_POSES_LATE)
        if not ahead <= f.mocap_age <= s.mocap_predict:
            add(_POSES_MISSING)
    if not ahead <= f.force_torque_age <= s.force_torque_warn:
        add(_WRENCHES_SILENT)
    if f.impaired:
        add(_IMPAIRED)
    return found


def switch_seen(f: Flags, s: SafetySettings) -> Switch:
    """How the operator's switch is seen, with the meaning of the flags of `broken_rules`."""
    if not s.require_operator:
        return Switch.NOT_REQUIRED
    if f.operators:
        return Switch.SEVERAL
    if not -_AHEAD <= f.operator_age <= s.operator_hold:
        return Switch.SILENT
    return Switch.PRESSED if f.operator_pressed else Switch.RELEASED
