"""The valve station as data: terminals in their order, what hangs on each channel, loop, scaling.

Process data of the terminals known here (Beckhoff, "AI Standard" 0x1A00 and "AO Output" 0x1600): an
input channel is a status word and a 16-bit value, an output channel a 16-bit value, 0 to 0x7FFF for
0 to 10 V. What is known of a terminal by its name stands in `families`.
"""

from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, model_validator

from softcr_hardware.ethercat.families import (
    BECKHOFF,
    FIRST_SETTINGS,
    PRODUCTS,
    SETTINGS,
    Family,
    Setting,
    Unit,
)
from softcr_hardware.ethercat.pressure_guard.settings import GuardSettings
from softcr_hardware.ethercat.station_wiring import (
    check_signals,
    check_watched,
    check_wires,
    first_bits,
)
from softcr_models.errors import UserError
from softcr_models.files.number_types import NonNegative, Positive
from softcr_models.files.yaml_files import load_yaml

FULL_SCALE_VOLTS = 10.0
FULL_SCALE_COUNTS = 0x7FFF

STATUS_FAULT = 0x4043
"""Underrange (bit 0), overrange (1), error (6), value invalid (14) of an input's status word."""
STATUS_TOGGLE = 0x8000
"""Changes with each new value of an input (bit 15 of its status word)."""

Volts = Annotated[float, Field(ge=0.0, le=FULL_SCALE_VOLTS)]
Signal = Annotated[float, Field(ge=0.0, le=20.0)]
"""Of an analog channel: [V], or [mA] where its terminal measures or gives currents."""


class _Data(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class Terminal(_Data):
    """One slave of the chain; its identity is compared with its EEPROM.

    The name alone is enough for a terminal of `families.PRODUCTS`; others are described in full.
    """

    name: Annotated[str, Field(min_length=1)]
    vendor: Annotated[int, Field(ge=1, le=0xFFFFFFFF)]
    product: Annotated[int, Field(ge=1, le=0xFFFFFFFF)]
    inputs: Annotated[int, Field(ge=0, le=16, description="input channels")] = 0
    outputs: Annotated[int, Field(ge=0, le=16, description="output channels")] = 0
    family: Family | None = Field(
        default=None,
        description="terminal type whose settings it has; by default the one known by the name, or "
        "none",
    )
    unit: Unit = Field("V", description="signal of its analog channels: 0 to 10 V, or 4 to 20 mA")
    first_settings: Annotated[
        int, Field(ge=0x2000, le=0xFFFF, description="CoE index of the first channel's settings")
    ] = FIRST_SETTINGS

    @model_validator(mode="before")
    @classmethod
    def _known(cls, given: Any) -> Any:
        """Fill in what the name tells."""
        product = PRODUCTS.get(given.get("name", "")) if isinstance(given, dict) else None
        if product is None:
            return given
        known = {
            "vendor": BECKHOFF,
            "product": product.code,
            "family": product.family,
            "unit": product.unit,
            "first_settings": product.first_settings,
        }
        if not given.keys() & {"inputs", "outputs"}:
            known |= {"inputs": product.inputs, "outputs": product.outputs}
        return known | given

    @property
    def settings(self) -> tuple[Setting, ...]:
        """What must hold of each channel, by CoE; empty where nothing is known."""
        return SETTINGS.get(self.family or "", ())

    @property
    def digital(self) -> bool:
        """Whether its channels are single bits; it has no mailbox then."""
        return self.family in ("EL10xx", "EL20xx")

    @property
    def has_mailbox(self) -> bool:
        """Couplers and digital terminals have none."""
        return bool(self.inputs or self.outputs) and not self.digital

    @property
    def input_bytes(self) -> int:
        """Of process data: bits, or a status and a value of two bytes each a channel."""
        return (self.inputs + 7) // 8 if self.digital else 4 * self.inputs

    @property
    def output_bytes(self) -> int:
        """Of process data: bits, or two bytes a channel."""
        return (self.outputs + 7) // 8 if self.digital else 2 * self.outputs


class Channel(_Data):
    """Where something is wired to: both count from 1, as on the terminals."""

    terminal: Annotated[int, Field(ge=1, description="position in the chain")]
    channel: Annotated[int, Field(ge=1)]


class Sensor(Channel):
    """A pressure sensor: pressure = (volts - zero) * pascal_per_volt.

    On a terminal of 4 to 20 mA all of it is in mA, the slope in Pa/mA.
    """

    zero: Signal = Field(description="output at zero gauge pressure [V]")
    pascal_per_volt: Positive = Field(description="slope [Pa/V]")
    lowest: Signal = Field(0.0, description="output below which the sensor counts as broken [V]")
    highest: Signal = Field(20.0, description="output above which the sensor counts as broken [V]")


class Chamber(_Data):
    """One chamber: the sensor that reads it and the output that drives its valve."""

    name: Annotated[str, Field(min_length=1)]
    sensor: Sensor
    valve: Channel
    second_sensor: Sensor | None = Field(
        default=None,
        description="second sensor of the same chamber, on an input of its own; the two are "
        "compared",
    )


class WatchdogWire(_Data):
    """A wire from a spare output to a spare input: it shows what the output does when frames stop.

    The output must be of a terminal that drives valves, and drive none itself.
    """

    output: Channel
    input: Channel


class ValveMap(_Data):
    """Command of a proportional valve: closed in the middle, exhaust and fill at the ends."""

    type: Literal["flow"] = "flow"
    exhaust: Volts = Field(
        description="command at which the valve is fully open to the exhaust [V]"
    )
    closed: Volts = Field(description="middle of the closed range [V]")
    fill: Volts = Field(description="command at which the valve is fully open to the supply [V]")
    dead_band: NonNegative = Field(description="half width of the closed range [V]")
    when_dead: Volts = Field(
        0.0, description="output of the terminal after its watchdog has tripped [V]"
    )
    lag: Annotated[
        float, Field(ge=0.0, le=0.05, description="lag of the valve behind its command [s]")
    ] = 0.003

    @model_validator(mode="after")
    def _safe_when_dead(self) -> "ValveMap":
        if not (self.exhaust < self.closed < self.fill or self.exhaust > self.closed > self.fill):
            raise ValueError(
                f"closed {self.closed} V must lie between exhaust {self.exhaust} V "
                f"and fill {self.fill} V"
            )
        if not self.is_exhausting(self.when_dead):
            raise ValueError(
                f"when_dead {self.when_dead} V does not open the exhaust: a dead host would leave "
                "the chambers full; swap the valve's ports or set the terminal's safe value"
            )
        return self

    def is_exhausting(self, command: float) -> bool:
        """Whether a command opens the exhaust."""
        side = 1.0 if self.exhaust > self.closed else -1.0
        return side * (command - self.closed) > self.dead_band

    @property
    def unpowered(self) -> float:
        """The command that is like having no supply: centred by its springs, it is closed."""
        return self.closed


_EMPTY = 0.02
"""Of a regulator's range: less is empty."""


class PressureRegulator(_Data):
    """A proportional pressure regulator with a loop of its own: its command is a pressure.

    It is a line from `empty` to `full`, of 0-10 V or 4-20 mA, and follows with a first-order lag.
    """

    type: Literal["pressure"]
    empty: Signal = Field(description="command of zero gauge pressure [V], or [mA]")
    full: Signal = Field(description="command of the pressure `range` [V], or [mA]")
    range: Positive = Field(description="gauge pressure at `full` [Pa]")
    when_dead: Signal = Field(
        0.0, description="output of the terminal after its watchdog has tripped [V]"
    )
    lag: Annotated[
        float,
        Field(gt=0.0, le=1.0, description="lag of the chamber's pressure behind the command [s]"),
    ] = 0.05

    @model_validator(mode="after")
    def _safe_when_dead(self) -> "PressureRegulator":
        if self.empty == self.full:
            raise ValueError(f"empty and full are both {self.empty}")
        if not self.is_exhausting(self.when_dead):
            raise ValueError(
                f"when_dead {self.when_dead} commands {self.pressure_at(self.when_dead):.0f} Pa: a "
                "dead host would leave the chambers full; set the terminal's safe value"
            )
        return self

    def pressure_at(self, command: float) -> float:
        """What it regulates to [Pa] at a command."""
        return max((command - self.empty) / (self.full - self.empty), 0.0) * self.range

    def is_exhausting(self, command: float) -> bool:
        """Whether it empties its chamber, as near as its output is exact."""
        return self.pressure_at(command) <= _EMPTY * self.range

    @property
    def exhaust(self) -> float:
        """The command that empties."""
        return self.empty

    @property
    def unpowered(self) -> float:
        """The command that is like having no supply: it exhausts."""
        return self.empty


class Flow(_Data):
    """How fast a fully open valve changes the pressure: rate = k * (end pressure - pressure)."""

    supply: Positive = Field(description="gauge pressure of the supply [Pa]")
    fill_rate: Positive = Field(description="k towards the supply [1/s]")
    exhaust_rate: Positive = Field(description="k towards zero gauge pressure [1/s]")


class Supply(_Data):
    """What stands before the valves; the regulator's pressure itself is `flow.supply`."""

    gauge: Sensor | None = Field(
        default=None, description="gauge of the supply pressure, on a spare input"
    )
    dump_valve: bool = Field(
        default=False,
        description="whether there is a valve that empties the manifold when it has no current",
    )
    accept_high: bool = Field(
        default=False,
        description="whether the operator accepts the supply pressure in a chamber whose valve "
        "sticks open",
    )


class StopChain(_Data):
    """What digital terminals have to do with stopping; each is left out where there is none.

    The chain of emergency stops is closed, an input at 24 V, while nobody has pressed anything. The
    output lets the dump valve's current flow, which keeps the air on; it falls on every vent, and
    by its terminal's own watchdog.
    """

    stop_input: Channel | None = Field(
        default=None, description="input that has 24 V while the chain of emergency stops is closed"
    )
    supply_24v_input: Channel | None = Field(
        default=None, description="input that has 24 V while valves and sensors are supplied"
    )
    dump_valve_output: Channel | None = Field(
        default=None,
        description="output for the current of a valve that empties the manifold when it has none",
    )
    fill_time: Annotated[
        float, Field(ge=0.0, le=5.0, description="lag of the manifold behind the dump valve [s]")
    ] = 0.5


class Gains(_Data):
    """The pressure loop: wanted rate of pressure from error, its integral, and the setpoint's."""

    proportional: NonNegative = Field(description="pole of the closed loop [1/s]")
    integral: NonNegative = Field(0.0, description="[1/s^2]")
    derivative: NonNegative = Field(0.0, description="gain on the measured pressure [-]")
    feed_forward: Annotated[float, Field(ge=0.0, le=1.0)] = 0.0
    integral_limit: NonNegative = Field(description="largest contribution of the integral [Pa/s]")
    filter_time: NonNegative = Field(0.002, description="time constant of the derivative [s]")


class Station(_Data):
    """Everything about the valves of one robot that is not the robot's."""

    description: str = ""
    watchdog: Annotated[
        float, Field(ge=0.01, le=0.1, description="watchdog time of the outputs [s]")
    ] = 0.1
    terminals: Annotated[tuple[Terminal, ...], Field(min_length=1)]
    chambers: Annotated[tuple[Chamber, ...], Field(min_length=1)]
    valve: Annotated[ValveMap | PressureRegulator, Field(discriminator="type")]
    flow: Flow
    supply: Supply = Supply()
    stop_chain: StopChain = StopChain()
    gains: Gains
    guard: GuardSettings = GuardSettings()
    watchdog_wires: tuple[WatchdogWire, ...] = Field(
        default=(), description="wires from spare outputs to spare inputs, which prove the watchdog"
    )
    sample_age: Annotated[
        float,
        Field(
            ge=0.0,
            le=0.01,
            description="age of a pressure when it is read: a terminal that converts on the frame "
            "reports what it measured at the frame before [s]",
        ),
    ] = 0.0
    arming_test: bool = Field(
        default=True,
        description="whether each chamber gets a pulse of 4 kPa before the valves are enabled; "
        "without it, swapped or dead channels are found only once air is commanded",
    )

    @model_validator(mode="before")
    @classmethod
    def _of_its_kind(cls, given: Any) -> Any:
        """A valve without a type controls flow; a regulator's rates are those of its lag."""
        valve = given.get("valve") if isinstance(given, dict) else None
        if not isinstance(valve, dict):
            return given
        valve = {"type": "flow"} | valve
        given = given | {"valve": valve}
        lag, flow = valve.get("lag", 0.05), given.get("flow")
        if valve["type"] != "pressure" or not isinstance(flow, dict):
            return given
        rate = 1.0 / lag if isinstance(lag, int | float) and lag > 0.0 else 1.0
        return given | {"flow": {"fill_rate": rate, "exhaust_rate": rate} | flow}

    @property
    def flow_valve(self) -> ValveMap:
        """The valves, where they control flow.

        Raises:
            UserError: they are pressure regulators.
        """
        if isinstance(self.valve, ValveMap):
            return self.valve
        raise UserError("station: its valves are pressure regulators, this is for flow valves only")

    @model_validator(mode="after")
    def _wired(self) -> "Station":
        check_wires(self)
        check_signals(self)
        check_watched(self)
        for direction in ("inputs", "outputs"):
            first_bits(self, direction)
        return self

    @property
    def has_dump_valve(self) -> bool:
        """Whether a valve that loses its current empties the manifold."""
        return self.supply.dump_valve or self.stop_chain.dump_valve_output is not None


def load_station(name_or_path: str | Path, chambers: tuple[str, ...] | None = None) -> Station:
    """The station of `config/ethercat/NAME.yaml`, or of the YAML file at a path.

    Args:
        name_or_path: which.
        chambers: names the station must serve, in this order; None for any.

    Raises:
        UserError: one line with the file, the field, the value found and what is allowed.
    """
    station = load_yaml(name_or_path, "ethercat", Station, "station")
    served = tuple(chamber.name for chamber in station.chambers)
    if chambers is not None and served != chambers:
        raise UserError(
            f"station {name_or_path}: chambers are {list(served)}, the robot's are {list(chambers)}"
        )
    return station
