"""What safety knows, and which condition asks for which action: the table of rules.

Actions are ordered and the further one wins (the way of PX4's failsafe framework). Each rule also
says what a vent that it leads to is latched as.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from enum import IntEnum
from typing import NamedTuple

from softcr_hardware.safety_settings import SafetySettings

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


Broken = Callable[[Flags, SafetySettings, float], bool]
"""(flags, settings, highest command [Pa]) -> whether the rule's condition holds."""


class Rule(NamedTuple):
    """A condition and what it asks for.

    Attributes:
        reason: in words; no two rules have the same.
        action: asked for.
        broken: the condition.
        lasting: name of the setting for how long it must last; empty for not at all.
        latch: what the vent it leads to is latched as.
        about: attribute of Flags that says what it is about; empty for none.
    """

    reason: str
    action: Action
    broken: Broken
    lasting: str = ""
    latch: Latch = Latch.OPERATOR
    about: str = ""

    def named(self, flags: Flags) -> str:
        """The reason, with what it is about."""
        if not self.about:
            return self.reason
        about = getattr(flags, self.about)
        return f"{self.reason}: {about if isinstance(about, str) else ', '.join(about)}"


def is_fresh(age: float, limit: float) -> bool:
    """Whether an age [s] is that of something present; NaN and what is yet to come are not."""
    return -_AHEAD <= age <= limit


VENT_ASKED = "vent asked for"
_M = Latch.MACHINE
RULES: tuple[Rule, ...] = (
    Rule(VENT_ASKED, Action.VENT_NOW, lambda f, s, high: f.vent),
    Rule("emergency stop", Action.VENT_NOW, lambda f, s, high: f.stopped),
    Rule("24 V missing", Action.VENT_NOW, lambda f, s, high: f.unpowered, latch=_M),
    Rule(
        "bus silent",
        Action.VENT_NOW,
        lambda f, s, high: not is_fresh(f.exchange_age, s.exchange_vent),
        latch=_M,
    ),
    Rule(
        "slaves not operational",
        Action.VENT_NOW,
        lambda f, s, high: not f.slaves_operational,
        latch=_M,
    ),
    Rule(
        "output watchdog not armed",
        Action.VENT_NOW,
        lambda f, s, high: not f.watchdog_armed,
        latch=_M,
    ),
    Rule(
        "pressure fault",
        Action.VENT_NOW,
        lambda f, s, high: bool(f.pressure_fault),
        latch=_M,
        about="pressure_fault",
    ),
    Rule(
        "pressures not believable",
        Action.VENT_NOW,
        lambda f, s, high: not is_fresh(f.pressure_age, s.pressure_vent),
        latch=_M,
    ),
    Rule(
        "overpressure",
        Action.VENT_NOW,
        lambda f, s, high: not f.highest_pressure <= high + s.overpressure,
        latch=_M,
    ),
    Rule(
        "deadman released",
        Action.RAMP_TO_VENT,
        lambda f, s, high: s.require_operator and not f.operator_pressed,
    ),
    Rule(
        "operator silent",
        Action.RAMP_TO_VENT,
        lambda f, s, high: s.require_operator and not is_fresh(f.operator_age, s.operator_vent),
    ),
    Rule(
        "commands still of several nodes",
        Action.RAMP_TO_VENT,
        lambda f, s, high: bool(f.commanders),
        "several_vent",
        about="commanders",
    ),
    Rule(
        "commands silent",
        Action.RAMP_TO_VENT,
        lambda f, s, high: not is_fresh(f.command_age, s.command_vent),
    ),
    Rule(
        "poses silent",
        Action.RAMP_TO_VENT,
        lambda f, s, high: s.require_mocap and not is_fresh(f.mocap_age, s.mocap_vent),
    ),
    Rule(
        "operator late",
        Action.HOLD,
        lambda f, s, high: s.require_operator and not is_fresh(f.operator_age, s.operator_hold),
    ),
    Rule(
        "commands of several nodes",
        Action.HOLD,
        lambda f, s, high: bool(f.commanders),
        about="commanders",
    ),
    Rule(
        "commands late", Action.HOLD, lambda f, s, high: not is_fresh(f.command_age, s.command_hold)
    ),
    Rule(
        "poses late",
        Action.HOLD,
        lambda f, s, high: s.require_mocap and not is_fresh(f.mocap_age, s.mocap_hold),
    ),
    Rule(
        "poses missing",
        Action.PREDICT_ONLY,
        lambda f, s, high: s.require_mocap and not is_fresh(f.mocap_age, s.mocap_predict),
    ),
    Rule(
        "wrenches silent",
        Action.WARN,
        lambda f, s, high: not is_fresh(f.force_torque_age, s.force_torque_warn),
    ),
    Rule("impaired", Action.WARN, lambda f, s, high: bool(f.impaired), about="impaired"),
)
"""All of them; of several that ask for the same action the first is the reason."""
