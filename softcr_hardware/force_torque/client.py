"""A Net F/T through pynetft, watched: it may say that it streams and deliver nothing.

pynetft asks the box for its calibration, streams, and connects again by itself when records stop or
the status is serious. What it does not see: a box that was switched off and on counts its samples
from the beginning, and if it had not been up for long pynetft waits, streaming, until the old
number is passed; a box whose count stands still it believes for ever. Then a new client is made.
"""

import contextlib
import math
from collections.abc import Callable, Iterator
from itertools import islice
from typing import Any

import pynetft
from pynetft._conversion import to_health

from softcr_hardware.backoff import Backoff
from softcr_hardware.force_torque.readings import Readings
from softcr_models.errors import UserError

RDT_PORT, HTTP_PORT = 49152, 80

STALL = 0.5
"""Streaming without a new sample for so long is believed to be none [s]."""

_FIRST_PAUSE, _LONGEST_PAUSE = 0.25, 5.0  # [s] between new clients
_QUEUE = 1024  # samples kept when all are wanted: 0.15 s of the fastest stream


class NetFtClient:
    """Readings of one box.

    Attributes:
        restarts: new clients there have been.
        calibration: of the box, as last told; None before it was.
        recalibrated: times it changed.
    """

    def __init__(
        self,
        host: str,
        rdt_port: int = RDT_PORT,
        http_port: int = HTTP_PORT,
        every: bool = False,
        most_restarts: int = 1000,
    ):
        """Touches no network yet.

        Args:
            host: name or IP address.
            rdt_port, http_port: of the box.
            every: whether `take` brings every sample, or the newest.
            most_restarts: new clients, before the box is left alone.

        Raises:
            UserError: host or port that cannot be.
        """
        config = pynetft.Config(sensor_host=host, rdt_port=rdt_port, http_port=http_port)
        self._where = f"force-torque sensor {host}"
        self._make: Callable[[], pynetft.Client] = lambda: pynetft.Client(
            config, queue_size=_QUEUE if every else 1
        )
        self._every = every
        try:
            self._client = self._make()
        except pynetft.ConfigurationError as error:
            raise UserError(f"{self._where}: {error}") from None
        self.restarts = self.recalibrated = 0
        self.calibration: pynetft.Calibration | None = None
        self._backoff = Backoff(_FIRST_PAUSE, _LONGEST_PAUSE, most_restarts)
        self._newest = -math.inf
        self._sequence = -1
        self._stalled = False

    def open(self, now: float) -> None:
        """Start to stream at `now` [s]; the box need not be there yet.

        Raises:
            UserError: no thread or socket could be had.
        """
        self._newest = now
        try:
            self._client.start()
        except pynetft.NetFTError as error:
            raise UserError(f"{self._where}: {error}") from None

    def close(self) -> None:
        """Stop streaming; any number of times."""
        self._client.stop()

    def take(self, now: float) -> Readings:
        """New readings at `now` [s]; at most one unless every one is wanted."""
        fresh = []
        # as many as a queue holds at most: who takes more slowly than they come would never end
        for sample in islice(self._samples(), _QUEUE):
            time = 1e-9 * sample.received_at_ns
            # a new client would bring the one sample of a box whose count stands still again
            if time > self._newest and sample.ft_sequence != self._sequence:
                fresh.append(sample)
                self._newest, self._sequence = time, sample.ft_sequence
        self._stalled = self._stalled and not fresh
        if not fresh:
            self._watch(now)
        return Readings.of(fresh)

    def health(self) -> pynetft.Health:
        """As pynetft has it, whatever bytes the box's name has."""
        try:
            return self._client.health()
        except UnicodeDecodeError:
            native = self._client._native
            renamed: Any = _Renamed(native.health())
            return to_health(renamed, native.queue_dropped_count())

    def renew(self, now: float) -> None:
        """Ask the box for its calibration anew, with a new client, at `now` [s]."""
        self._replace()
        self._newest = now

    def look_at_calibration(self) -> None:
        """Notice a calibration that changed; it is asked for with each connection."""
        configuration = self.health().sensor_configuration
        if configuration is None or configuration.calibration == self.calibration:
            return
        self.recalibrated += self.calibration is not None
        self.calibration = configuration.calibration

    def trouble(self, now: float) -> str:
        """Why nothing comes, in a line; empty if something does."""
        if now - self._newest <= STALL / 2:
            return ""
        if self._stalled and self._backoff.given_up:
            return f"no new samples, gave up after {self._backoff.attempts} new clients"
        health = self.health()
        if health.last_status not in (0, _MONITOR) and health.last_error.startswith("serious"):
            return f"sensor status 0x{health.last_status:08X}: overload or fault, see its manual"
        if health.state == pynetft.ClientState.STREAMING:
            return f"the box streams no new samples ({health.last_ft_progress})"
        return f"the box is silent: {health.last_error or health.state.value}"

    def _samples(self) -> Iterator[pynetft.Sample]:
        if self._every:
            with contextlib.suppress(TimeoutError, pynetft.SensorFaultError):
                yield from self._client.samples(0.0)
        elif (newest := self._client.latest_sample()) is not None:
            yield newest

    def _watch(self, now: float) -> None:
        """Replace a client that says it streams, or that ended, and brings nothing."""
        state = self.health().state
        dead = state in (pynetft.ClientState.FAULTED, pynetft.ClientState.STOPPED)
        if not dead and (state != pynetft.ClientState.STREAMING or now - self._newest < STALL):
            return
        if not self._stalled:
            self._stalled = True
            self._backoff.lost(now - _FIRST_PAUSE)
        if self._backoff.due(now):
            self._replace()

    def _replace(self) -> None:
        self.restarts += 1
        self._client.stop()
        self._client = self._make()
        with contextlib.suppress(pynetft.NetFTError):  # then it is stopped, and due again
            self._client.start()


class _Renamed:
    """Something native of pynetft; a product name whose bytes are not UTF-8, which pynetft raises
    at, is told as such."""

    product_name = "(not UTF-8)"

    def __init__(self, native: Any):
        self._native = native

    def __getattr__(self, name: str) -> Any:
        value = getattr(self._native, name)
        return _Renamed(value) if name == "sensor_configuration" and value is not None else value


_MONITOR = 0x80010000
"""A condition somebody set in the box has been met: no fault."""
