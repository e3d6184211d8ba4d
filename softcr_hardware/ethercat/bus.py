"""The EtherCAT master (pysoem, an optional package) of one valve station.

One way leads to operation, at the start and after every loss: `open`. It compares every terminal
with the station file, brings its settings to hold and reads them back, likewise the output
watchdog, goes PREOP - SAFEOP - OP, and then proves the watchdog: outputs on exhaust, it falls
silent and sees the terminals leave OP by themselves, and what their outputs do where a wire shows
it.

The working counter says that slaves answered, not that they are well: a tripped watchdog leaves it
as it was. So `check` asks for the states; exchanges alone prove nothing.
"""

import socket
import time
from collections.abc import Callable
from typing import Any, Protocol

import numpy as np

from softcr_hardware.ethercat.interfaces import check_interface, needs_privileges, own_interface
from softcr_hardware.ethercat.output_watchdog import OutputWatchdog
from softcr_hardware.ethercat.process_data import ProcessData, Sample
from softcr_hardware.ethercat.service_data import ServiceData
from softcr_hardware.ethercat.terminal_settings import settle, wanted_settings
from softcr_hardware.ethercat.terminals import Station
from softcr_models.errors import UserError

_ATTEMPTS = 3  # per transition
_STATE_TIMEOUT = 300_000  # [us] for a state to be reached
# [us] a frame is waited for: on a shared machine it comes up to 11 ms late, which is a late cycle,
# not an absent slave. The kernel rounds up: a lost frame costs 16-20 ms (8 if 1 ms is asked for)
_EXCHANGE_TIMEOUT = 10_000
_CYCLES_TO_OP = 100
_CYCLE = 0.002  # [s] between exchanges on the way to OP
_SILENCE = 1.5  # of the watchdog's time, to prove it
_BRING_UPS = 2  # whole attempts, where answers are lost on the way
_WIRE_EXCHANGES = 10  # until an input shows what comes along a wire
_WIRE_TOLERANCE = 0.1  # [V], or [mA]


class _PassingError(Exception):
    """What may be well in another attempt."""


class ValveBus(Protocol):
    """What the valve driver needs; the real master, or a stand-in for tests without a network."""

    @property
    def watchdog_armed(self) -> bool:
        """Whether the outputs' own watchdog was seen to work since `open`."""
        ...

    def open(self) -> None:
        """To operation, outputs on exhaust; again after a loss. UserError in one line."""
        ...

    def exchange(self, volts: np.ndarray) -> Sample | None:
        """Send valve commands (m,) [V]; the sample, or None if not every slave took part."""
        ...

    def check(self) -> str:
        """What is wrong with the slaves' states; empty if all are operational."""
        ...

    def close(self) -> None:
        """Outputs safe, slaves to INIT; idempotent."""
        ...


class EtherCatBus:
    """The real master. Not thread-safe: one thread owns it from `open` to `close`.

    Attributes:
        watchdog_armed: see `ValveBus`.
        incomplete: exchanges without the full working counter since the first `open`.
        mended: settings of terminals that the last `open` found wrong, in words.
    """

    def __init__(
        self,
        interface: str,
        station: Station,
        data: ProcessData,
        say: Callable[[str], None] = lambda line: None,
    ):
        """Opens nothing yet; `say` is told which settings of terminals were mended.

        Raises:
            UserError: pysoem is not installed.
        """
        self._say = say
        self._soem = _pysoem()
        self._interface = interface
        self._station = station
        self._data = data
        self._safe = np.full(len(station.chambers), station.valve.exhaust)
        # SOEM's own expectation leaves out terminals of fewer than eight bits that share a byte;
        # each that takes outputs counts 2, each that gives inputs 1 (ETG.1000.4)
        self._complete = sum(2 * bool(t.outputs) + bool(t.inputs) for t in station.terminals)
        self._master: Any = None
        self._lock: socket.socket | None = None
        self.watchdog_armed = False
        self.incomplete = 0
        self.mended: list[str] = []

    def open(self) -> None:
        """To operation; see the module.

        Raises:
            UserError: one line: interface, terminal and what was expected.
        """
        self.close()
        check_interface(self._interface)
        self.mended = []
        for attempt in range(1, _BRING_UPS + 1):
            self.close()
            self._lock = own_interface(self._interface)
            try:
                return self._bring_up()
            except (self._soem.WkcError, _PassingError) as error:
                self.close()
                if attempt == _BRING_UPS:
                    lost = f"interface {self._interface!r}: a terminal stopped answering"
                    raise UserError(str(error) or lost) from None
            except BaseException:
                self.close()
                raise

    def exchange(self, volts: np.ndarray) -> Sample | None:
        """One cycle on the wire; other threads of Python may run meanwhile."""
        master = self._master
        if master is None:
            return None
        for position, data in self._data.pack(volts).items():
            master.slaves[position - 1].output = data
        master.send_processdata(release_gil=True)
        counter = master.receive_processdata(timeout=_EXCHANGE_TIMEOUT, release_gil=True)
        if counter != self._complete:
            self.incomplete += 1
            return None
        return self._data.unpack(self._inputs())

    def listen(self) -> Sample | None:
        """What the inputs say while the outputs have no say, as after a watchdog; None if nothing.

        The frames bring outputs as well, which a terminal out of operation does not use. There are
        two: a terminal that converts when a frame comes tells of it in the next.
        """
        master, heard = self._master, 0
        if master is None:
            return None
        for _ in range(2):
            time.sleep(_CYCLE)
            master.send_processdata(release_gil=True)
            heard = master.receive_processdata(timeout=_EXCHANGE_TIMEOUT, release_gil=True)
        if heard <= 0:
            return None
        inputs = {place: master.slaves[place - 1].input for place in self._data.input_positions}
        return self._data.unpack(inputs)

    def check(self) -> str:
        """States of all slaves in words, when not all are operational."""
        if self._master is None:
            return "the bus is not open"
        self._master.read_state()
        wrong = [
            f"position {position} {terminal.name}: {self._state_words(slave)}"
            for position, (slave, terminal) in enumerate(self._paired(), 1)
            if slave.state != self._soem.OP_STATE
        ]
        return ", ".join(wrong)

    def close(self) -> None:
        """Outputs on exhaust while that is possible, then INIT."""
        master, self._master = self._master, None
        self.watchdog_armed = self._data.air_on = False
        if master is not None:
            try:
                if master.slaves and master.expected_wkc:
                    self._master = master
                    self.exchange(self._safe)
                    self._master = None
                master.state = self._soem.INIT_STATE
                master.write_state()
            finally:
                master.close()
        if self._lock is not None:
            self._lock.close()
            self._lock = None

    # --- bring-up -----------------------------------------------------------------------------

    def _bring_up(self) -> None:
        master = self._soem.Master()
        try:
            master.open(self._interface)
        except ConnectionError:
            raise needs_privileges(self._interface) from None
        self._master = master
        found = master.config_init()
        self._check_identities(max(found, 0))
        self._reach(self._soem.PREOP_STATE, "PREOP")
        self._settle()
        for watchdog in self._watchdogs():
            watchdog.set_time(self._station.watchdog)
        master.manual_state_change = 1  # not to SAFEOP before the watchdogs listen
        try:
            master.config_map()
        except self._soem.ConfigMapError as error:
            first = str(error.error_list[0])
            raise _PassingError(f"interface {self._interface!r}: mapping failed: {first}") from None
        self._check_sizes()
        for watchdog in self._watchdogs():
            watchdog.listen()
        self._reach(self._soem.SAFEOP_STATE, "SAFEOP")
        for watchdog in self._watchdogs():
            watchdog.check_listens()
            watchdog.check_time(self._station.watchdog)
        self._prove_watchdog()
        self._acknowledge()
        self._operate()
        self.watchdog_armed = True

    def _check_identities(self, found: int) -> None:
        expected = self._station.terminals
        if found == 0:
            raise UserError(
                f"interface {self._interface!r}: no EtherCAT terminal answers; is the coupler "
                "powered and plugged into this interface?"
            )
        for position, (slave, terminal) in enumerate(self._paired(), 1):
            if (slave.man, slave.id) != (terminal.vendor, terminal.product):
                raise UserError(
                    f"interface {self._interface!r} position {position}: found {slave.name} "
                    f"(vendor 0x{slave.man:X}, product 0x{slave.id:08X}), must be {terminal.name} "
                    f"(vendor 0x{terminal.vendor:X}, product 0x{terminal.product:08X})"
                )
        if found != len(expected):
            raise UserError(
                f"interface {self._interface!r}: found {found} terminals, must be {len(expected)}: "
                f"{', '.join(terminal.name for terminal in expected)}"
            )

    def _check_sizes(self) -> None:
        for position, (slave, terminal) in enumerate(self._paired(), 1):
            sizes = len(slave.input), len(slave.output)
            if sizes != (terminal.input_bytes, terminal.output_bytes):
                raise _PassingError(
                    f"position {position} {terminal.name}: process data of {sizes[0]} bytes in, "
                    f"{sizes[1]} out; must be {terminal.input_bytes} and {terminal.output_bytes}"
                )

    def _settle(self) -> None:
        for position, (slave, terminal) in enumerate(self._paired(), 1):
            if wanted := wanted_settings(self._station, position):
                where = f"position {position} {terminal.name}"
                objects = ServiceData(self._soem, slave, where)
                for mended in settle(objects, wanted, where):
                    self.mended.append(f"{where}: {mended}")
                    self._say(f"{where}: mended: {mended}")

    def _reach(self, state: int, name: str) -> None:
        """A transition of all slaves, with as many attempts as are reasonable."""
        for _ in range(_ATTEMPTS):
            if self._master.state_check(state, _STATE_TIMEOUT) == state:
                return
            self._master.state = state
            self._master.write_state()
        self._master.read_state()
        wrong = [
            f"{terminal.name}: {self._state_words(slave)}"
            for slave, terminal in self._paired()
            if slave.state != state
        ]
        raise UserError(
            f"interface {self._interface!r}: {name} not reached in {_ATTEMPTS} attempts: "
            f"{', '.join(wrong) or 'no answer'}"
        )

    def _operate(self) -> None:
        """From SAFEOP to OP, outputs on exhaust."""
        operational = self._soem.OP_STATE
        for _ in range(_ATTEMPTS):
            self.exchange(self._safe)
            self._master.state = operational
            self._master.write_state()
            for _ in range(_CYCLES_TO_OP):
                self.exchange(self._safe)
                if self._master.state_check(operational, 2000) == operational:
                    self.exchange(self._safe)
                    return
                time.sleep(_CYCLE)
        self._reach(operational, "OP")

    def _prove_watchdog(self) -> None:
        watchdogs = self._watchdogs()
        for watchdog in watchdogs:
            watchdog.wait_for_trip()
        self._operate()
        self._check_wires(testing=True)
        silence = _SILENCE * self._station.watchdog
        self.exchange(self._safe)
        time.sleep(silence)
        self._master.read_state()
        for watchdog, (slave, terminal) in zip(watchdogs, self._with_outputs(), strict=True):
            if slave.state == self._soem.OP_STATE:
                raise UserError(
                    f"{terminal.name}: still operational after {silence:.3f} s of silence: its "
                    "output watchdog does not work; the valves stay disarmed"
                )
            watchdog.check_tripped()
        self._check_wires(testing=False)

    def _check_wires(self, testing: bool) -> None:
        """What inputs show of the outputs that are wired to them: in operation something else than
        after the watchdog, so that a wire that is not there is seen.
        """
        wires = self._station.watchdog_wires
        if not wires:
            return
        wanted = self._data.wire_signals(testing)
        for _ in range(_WIRE_EXCHANGES):
            self.exchange(self._safe)
            time.sleep(_CYCLE)
        found = self._data.wire_readings(self._inputs())
        for wire, must, seen in zip(wires, wanted, found, strict=True):
            if abs(seen - must) <= _WIRE_TOLERANCE:  # NaN is wrong
                continue
            source = self._station.terminals[wire.output.terminal - 1].name
            target = self._station.terminals[wire.input.terminal - 1].name
            when = "in operation" if testing else "after its watchdog"
            raise UserError(
                f"watchdog wire from {source} channel {wire.output.channel} to {target} channel "
                f"{wire.input.channel}: reads {seen:.2f} {when}, must be {must:.2f} within "
                f"{_WIRE_TOLERANCE}; the valves stay disarmed"
            )

    def _acknowledge(self) -> None:
        """Back to SAFEOP without the error that the watchdog left."""
        for slave, _ in self._with_outputs():
            slave.state = self._soem.SAFEOP_STATE + self._soem.STATE_ACK
            slave.write_state()

    # --- helpers ------------------------------------------------------------------------------

    def _paired(self) -> list[tuple[Any, Any]]:
        return list(zip(self._master.slaves, self._station.terminals, strict=False))

    def _watchdogs(self) -> list[OutputWatchdog]:
        return [
            OutputWatchdog(self._soem, slave, terminal) for slave, terminal in self._with_outputs()
        ]

    def _inputs(self) -> dict[int, bytes]:
        slaves = self._master.slaves
        return {place: slaves[place - 1].input for place in self._data.input_positions}

    def _with_outputs(self) -> list[tuple[Any, Any]]:
        return [(slave, terminal) for slave, terminal in self._paired() if terminal.outputs]

    def _state_words(self, slave: Any) -> str:
        soem = self._soem
        names = {
            soem.NONE_STATE: "no answer",
            soem.INIT_STATE: "INIT",
            soem.PREOP_STATE: "PREOP",
            soem.SAFEOP_STATE: "SAFEOP",
            soem.OP_STATE: "OP",
        }
        words = names.get(slave.state & 0x0F, f"state {slave.state}")
        if slave.state & soem.STATE_ERROR:
            words += f" with error ({soem.al_status_code_to_string(slave.al_status)})"
        return words


def _pysoem() -> Any:
    try:
        import pysoem
    except ImportError:
        raise UserError(
            "EtherCAT needs pysoem (SOEM, GPL-3.0 or commercial licence), which is not installed: "
            "pip install 'softcr[ethercat]'"
        ) from None
    return pysoem
