"""Terminals that are known by their product name: identity, channels, settings that must hold.

The settings are CoE objects 0x80n0 of channel n + 1 (ETG.5001 profiles 300 and 400), as the
documentation of the manufacturer (Beckhoff Information System, "Configuration data" of EL30xx,
EL31xx, EL40xx and EL41xx) lists them. Sub-indices, sizes and codes are the same in all four
families; the analog terminals differ in resolution and in whether a filter is on when delivered
(EL30xx: on; EL31xx: off). The filter of all channels is that of the first. In EL41x2 the first
channel's settings are at 0x8010. Product codes: the terminal's number times 65536 plus 0x3052.
"""

from typing import Literal, NamedTuple

Family = Literal["coupler", "EL10xx", "EL20xx", "EL30xx", "EL31xx", "EL40xx", "EL41xx"]
Unit = Literal["V", "mA"]

RANGES = {"V": (0.0, 10.0), "mA": (4.0, 20.0)}
"""Signals at counts 0 and 0x7FFF of an analog channel."""
BECKHOFF = 0x2
FIRST_SETTINGS, SETTINGS_STEP = 0x8000, 0x10
"""Index of the settings of the first channel, and from one channel to the next."""
RESTORE, RESTORE_WORD = (0x1011, 0x01), 0x64616F6C
"""The object that brings all settings back to those of delivery, and what is written to it."""


class Setting(NamedTuple):
    """One object of a channel.

    Attributes:
        subindex: of the channel's object.
        name: as the manufacturer writes it.
        size: of the value on the wire [bytes].
        must: the value that must hold; None: the count that `when_dead` is.
        words: what values mean.
        central: whether the first channel's holds for all.
    """

    subindex: int
    name: str
    size: int
    must: int | None
    words: tuple[str, ...] = ()
    central: bool = False

    def told(self, value: int) -> str:
        """A value and what it means."""
        return f"{value} ({self.words[value]})" if 0 <= value < len(self.words) else str(value)


_OFF_ON = ("off", "on")
_PRESENTATION = ("signed", "unsigned", "absolute with sign bit", "absolute")
WATCHDOG, DEFAULT_OUTPUT, DEFAULT_RAMP = 0x05, 0x13, 0x14
"""Sub-indices of what an output does when the watchdog trips."""
USER_SCALE, PRESENTATION, SCALE_OFFSET, SCALE_GAIN = 0x01, 0x02, 0x11, 0x12
"""Sub-indices of both inputs and outputs."""
ENABLE_FILTER, FILTER = 0x06, 0x15
"""Sub-indices of an input's filter."""

OUTPUT_SETTINGS = (
    Setting(USER_SCALE, "Enable user scale", 1, 0, _OFF_ON),
    Setting(PRESENTATION, "Presentation", 1, 0, _PRESENTATION),
    Setting(WATCHDOG, "Watchdog", 1, 0, ("default value", "ramp", "last output value")),
    Setting(0x07, "Enable user calibration", 1, 0, _OFF_ON),
    Setting(0x08, "Enable vendor calibration", 1, 1, _OFF_ON),
    Setting(DEFAULT_OUTPUT, "Default output", 2, None),
    Setting(DEFAULT_RAMP, "Default output ramp", 2, 0xFFFF),
)
"""Of each channel of an EL40xx or EL41xx."""

INPUT_SETTINGS = (
    Setting(USER_SCALE, "Enable user scale", 1, 0, _OFF_ON),
    Setting(PRESENTATION, "Presentation", 1, 0, _PRESENTATION),
    Setting(0x05, "Siemens bits", 1, 0, _OFF_ON),
    Setting(ENABLE_FILTER, "Enable filter", 1, 0, _OFF_ON, central=True),
    Setting(0x0A, "Enable user calibration", 1, 0, _OFF_ON),
    Setting(0x0B, "Enable vendor calibration", 1, 1, _OFF_ON),
)
"""Of each channel of an EL30xx or EL31xx."""

SETTINGS: dict[str, tuple[Setting, ...]] = {
    "EL30xx": INPUT_SETTINGS,
    "EL31xx": INPUT_SETTINGS,
    "EL40xx": OUTPUT_SETTINGS,
    "EL41xx": OUTPUT_SETTINGS,
}
"""By family; others have none."""

BITS = {"EL30xx": 12, "EL31xx": 16, "EL40xx": 12, "EL41xx": 16}
"""Resolution of the analog families; their process data are 16 bits in any case."""


class Product(NamedTuple):
    """What is known of a terminal by its name; counts are of channels."""

    family: Family
    number: int
    inputs: int = 0
    outputs: int = 0
    unit: Unit = "V"
    first_settings: int = FIRST_SETTINGS

    @property
    def code(self) -> int:
        """In the EEPROM."""
        return self.number << 16 | (0x2C52 if self.family == "coupler" else 0x3052)


def _products() -> dict[str, Product]:
    found = {"EK1100": Product("coupler", 1100)}
    rows: tuple[tuple[Family, Unit, str], ...] = (
        ("EL10xx", "V", "1002 1004 1008 1012 1014 1018"),
        ("EL20xx", "V", "2002 2004 2008 2022 2024"),
        ("EL30xx", "V", "3061 3062 3064 3068"),
        ("EL30xx", "mA", "3021 3022 3024 3051 3052 3054 3058"),
        ("EL31xx", "V", "3161 3162 3164"),
        ("EL31xx", "mA", "3121 3122 3124 3151 3152 3154"),
        ("EL40xx", "V", "4001 4002 4004 4008"),
        ("EL40xx", "mA", "4021 4022 4024 4028"),
        ("EL41xx", "V", "4102 4104"),
        ("EL41xx", "mA", "4122 4124"),
    )
    for family, unit, numbers in rows:
        outputs = family in ("EL20xx", "EL40xx", "EL41xx")
        for name in numbers.split():
            channels = int(name[-1])  # the last digit counts them
            first = 0x8010 if family == "EL41xx" and channels == 2 else FIRST_SETTINGS
            found[f"EL{name}"] = Product(
                family,
                int(name),
                0 if outputs else channels,
                channels if outputs else 0,
                unit,
                first,
            )
    return found


PRODUCTS = _products()
"""By name."""
