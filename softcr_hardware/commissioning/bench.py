"""What commissioning needs of a bench: valves' bus, cameras, force-torque sensor, a clock.

Two benches are of this kind: the virtual one, whose time passes only when it is asked for, and the
real one, whose drivers run without ROS.
"""

from dataclasses import dataclass
from typing import Literal, Protocol

import numpy as np

from softcr_hardware.ethercat.process_data import ProcessData, Sample
from softcr_hardware.ethercat.terminals import Station
from softcr_hardware.optitrack.calibration import MocapCalibration


class Bench(Protocol):
    """A bench; `open` before everything else.

    Attributes:
        station: the file of valves and sensors that is commissioned.
        calibration: the file of the cameras that is commissioned.
        data: volts of the sensors <-> pressures, by the station file.
        period: of an exchange while valves are timed [s].
        calm_period: of an exchange while nothing changes [s].
        realtime: whether time passes by itself; else only in exchanges.
    """

    station: Station
    calibration: MocapCalibration
    data: ProcessData
    period: float
    calm_period: float
    realtime: bool

    def open(self) -> None:
        """Bring everything up, valves on exhaust. UserError in one line where it cannot."""
        ...

    def close(self) -> None:
        """Valves on exhaust; any number of times."""
        ...

    @property
    def now(self) -> float:
        """The time [s]."""
        ...

    def exchange(self, volts: np.ndarray, period: float) -> Sample | None:
        """Wait for the next moment of a grid of `period` [s], then exchange.

        Args:
            volts: (m,) commands of the outputs [V].
            period: [s].

        Returns:
            What the inputs say, or None when not every terminal took part.
        """
        ...

    def check(self) -> str:
        """What is wrong with the terminals; empty for nothing."""
        ...

    def recover(self) -> None:
        """Operational again, on exhaust, after a pause without frames; at once where it is.

        Raises:
            UserError: it cannot be.
        """
        ...

    def silence(self, duration: float) -> Sample | None:
        """Send no frame for `duration` [s], as a host that has died.

        Returns:
            What the inputs say at the end of it, before any output is written again; None where
            the terminals do not tell.
        """
        ...

    def body(self) -> tuple[float, np.ndarray] | None:
        """Time [s] and (4, 4) pose of the tip's rigid body in the cameras' world, as it came last;
        None without cameras, or while the body is not tracked."""
        ...

    def wrench(self) -> tuple[float, np.ndarray] | None:
        """Time [s] and (6,) reading [N, N m] in the sensor's own axes; None without a sensor."""
        ...

    def identity(self) -> dict[str, str]:
        """Who the devices are, in words, by the name of the device."""
        ...

    def problems(self) -> list[str]:
        """What the devices' own settings have wrong, a line each."""
        ...


About = Literal["air on", "air off", "gauge", "release", "hold", "unplug", "plug"]


@dataclass(frozen=True)
class Question:
    """Something that a person is asked to do or to read.

    Attributes:
        about: what it is about, for who answers from a list.
        words: for a person.
        channel: of the valve that it is about, from 0; -1 for none. Of `unplug`, the valve on
            whose hose the sensor sits whose cable is to be pulled, and of `plug` put back.
    """

    about: About
    words: str
    channel: int = -1


class Operator(Protocol):
    """The person beside the bench."""

    def tell(self, line: str) -> None:
        """Say something that needs no answer."""
        ...

    def ask(self, question: Question) -> "Pending":
        """Begin to ask. The answer is `yes` or `no`; of a gauge its reading [kPa], or empty."""
        ...

    def holds(self, now: float) -> bool:
        """Whether the deadman's switch is held at `now` [s]."""
        ...


class Pending(Protocol):
    """A question that waits for its answer: call it until it has one."""

    def __call__(self) -> str | None:
        """The answer; None while there is none."""
        ...
