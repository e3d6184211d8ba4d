"""Each EtherCAT terminal: who it is, and whether its settings are as they must be."""

from softcr_hardware.ethercat.inspection import TerminalFacts, can_inspect, inspect_terminals
from softcr_hardware.ethercat.terminals import load_station
from softcr_models.errors import UserError
from softcr_tools.doctor.finding import FAIL, WARN, Finding, judged


def terminals(interface: str, station: str) -> list[Finding]:
    """Identity, revision and settings of each terminal, read where pysoem is installed."""
    if not can_inspect():
        return []  # told of among the packages
    try:
        return [
            check_terminal(each) for each in inspect_terminals(interface, load_station(station))
        ]
    except UserError as error:
        mend = "fix adapter, frames and station file first"
        return [Finding("terminals' settings", WARN, f"not read: {error}", mend)]


def check_terminal(facts: TerminalFacts) -> Finding:
    """Whether a terminal is the one of the station file, and its settings as they must be.

    Settings that are not are mended when the valves are brought up: a warning, because whoever has
    changed them will miss them.
    """
    expected = facts.expected
    said = f"{facts.name}, revision 0x{facts.revision:08X}"
    if (control := facts.output_control) is not None:
        watchdog = "on" if control & 0x40 else "off; corrected when the bus is brought up"
        said += f", EEPROM: outputs' control 0x{control:02X} (watchdog {watchdog})"
    if facts.settings:
        said += f", {facts.settings} settings read"
    wanted = expected.vendor, expected.product
    other = (
        f"{facts.name} (vendor 0x{facts.identity[0]:X}, product 0x{facts.identity[1]:08X}), must "
        f"be {expected.name} (vendor 0x{wanted[0]:X}, product 0x{wanted[1]:08X})"
    )
    return judged(f"terminal {facts.position}", said,
        (facts.identity != wanted, FAIL, other, "exchange it, or name another --station"),
        (facts.trouble, FAIL, f"{said}: {facts.trouble}",
         "switch the terminals' 24 V off and on; if it stays, exchange the terminal"),
        (facts.wrong, WARN, f"{said}: {'; '.join(facts.wrong)}",
         "softcr up hardware corrects it; check first whether another program needs it as it is")
    )  # fmt: skip
