"""Whether what a station file says of wires can be: channels, signals, watchdogs, shared bytes.

Each check raises ValueError with one line; pydantic tells it beside the file.
"""

from collections.abc import Iterator
from typing import TYPE_CHECKING

from softcr_hardware.ethercat.families import RANGES

if TYPE_CHECKING:  # they are checked while they are made
    from softcr_hardware.ethercat.terminals import Channel, Sensor, Station


def station_wires(station: "Station") -> Iterator[tuple[str, str, "Channel"]]:
    """Name of its owner, kind of channel, and place of every wire."""
    for name, sensor in _sensors(station):
        yield name, "inputs", sensor
    for chamber in station.chambers:
        yield chamber.name, "outputs", chamber.valve
    chain = station.stop_chain
    for name, kind, place in (
        ("stop_input", "digital inputs", chain.stop_input),
        ("supply_24v_input", "digital inputs", chain.supply_24v_input),
        ("dump_valve_output", "digital outputs", chain.dump_valve_output),
    ):
        if place is not None:
            yield name, kind, place
    for wire in station.watchdog_wires:
        yield "watchdog wire", "outputs", wire.output
        yield "watchdog wire", "inputs", wire.input


def check_wires(station: "Station") -> None:
    """Every wire ends at a channel that there is, and that no other one ends at."""
    taken: set[tuple[str, int, int]] = set()
    names = [chamber.name for chamber in station.chambers]
    if len(set(names)) != len(names):
        raise ValueError(f"chambers: names must differ, found {names}")
    for name, kind, wire in station_wires(station):
        where = f"{name}: terminal {wire.terminal} channel {wire.channel}"
        if wire.terminal > len(station.terminals):
            raise ValueError(f"{where}: there are {len(station.terminals)} terminals")
        terminal = station.terminals[wire.terminal - 1]
        digital, direction = kind.startswith("digital "), kind.removeprefix("digital ")
        there = getattr(terminal, direction) if terminal.digital == digital else 0
        if wire.channel > there:
            raise ValueError(f"{where}: {terminal.name} has {there} {kind}")
        if (kind, wire.terminal, wire.channel) in taken:
            raise ValueError(f"{where}: this channel is used twice")
        taken.add((kind, wire.terminal, wire.channel))


def check_signals(station: "Station") -> None:
    """Sensors and valves have signals that their terminals have."""
    for name, sensor in _sensors(station):
        _check_signal(station, name, sensor, sensor.zero)
    valve = station.valve
    for chamber in station.chambers:
        terminal = station.terminals[chamber.valve.terminal - 1]
        if valve.type == "pressure":
            for signal in (valve.empty, valve.full, valve.when_dead):
                _check_signal(station, chamber.name, chamber.valve, signal)
        elif terminal.unit != "V":
            raise ValueError(f"{chamber.name}: {terminal.name} gives mA; flow valves take V")
    for wire in station.watchdog_wires:
        units = [station.terminals[end.terminal - 1].unit for end in (wire.output, wire.input)]
        if units[0] != units[1]:
            raise ValueError(f"watchdog wire: from {units[0]} to {units[1]}; must be the same")


def check_watched(station: "Station") -> None:
    """Of every terminal that drives valves it can be read or measured what a watchdog does."""
    driving = {chamber.valve.terminal for chamber in station.chambers}
    wired = {wire.output.terminal for wire in station.watchdog_wires}
    for position in sorted(wired - driving):
        raise ValueError(
            f"watchdog wire: output of terminal {position}, which drives no valve; must be of one "
            f"of {sorted(driving)}"
        )
    for position in sorted(driving - wired):
        terminal = station.terminals[position - 1]
        if terminal.family not in ("EL40xx", "EL41xx"):
            raise ValueError(
                f"terminal {position} {terminal.name} drives valves, and nothing tells what its "
                "outputs do after the watchdog: family must be EL40xx or EL41xx, or "
                "watchdog_wires must lead from a spare output of it to a spare input"
            )


def first_bits(station: "Station", direction: str) -> dict[int, int]:
    """Where digital terminals, by position, have their first channel in their first byte.

    A master packs terminals of fewer than eight channels that follow each other into one byte;
    whoever has bytes of its own ends that.

    Args:
        station: whose.
        direction: `inputs` or `outputs`.

    Raises:
        ValueError: one of them would lie in two bytes.
    """
    found, bit = {}, 0
    for position, terminal in enumerate(station.terminals, 1):
        count = getattr(terminal, direction)
        if not count:
            continue
        if not terminal.digital or count >= 8:
            bit = 0
        elif bit + count > 8:
            raise ValueError(
                f"terminal {position} {terminal.name}: its {count} {direction} would lie in two "
                f"bytes, behind {bit} bits of the terminals before; put one of 8 channels, or an "
                "analog one, between them"
            )
        if terminal.digital:
            found[position] = bit
            bit = (bit + count) % 8
    return found


def _sensors(station: "Station") -> Iterator[tuple[str, "Sensor"]]:
    for chamber in station.chambers:
        yield chamber.name, chamber.sensor
        if chamber.second_sensor is not None:
            yield f"{chamber.name}, second sensor", chamber.second_sensor
    if station.supply.gauge is not None:
        yield "supply gauge", station.supply.gauge


def _check_signal(station: "Station", name: str, wire: "Channel", signal: float) -> None:
    terminal = station.terminals[wire.terminal - 1]
    high = RANGES[terminal.unit][1]
    if signal > high:
        raise ValueError(
            f"{name}: {signal} lies beyond the {high:g} {terminal.unit} of {terminal.name}"
        )
