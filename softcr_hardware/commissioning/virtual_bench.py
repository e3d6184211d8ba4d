"""A bench on virtual time, with mistakes of wiring and mounting for practice, and its operator.

Valves, chambers and rod are those behind `softcr emulate`; terminals are in memory.
"""

import math
from collections.abc import Callable
from dataclasses import replace
from typing import Literal

import numpy as np

from softcr_hardware.commissioning.bench import About, Pending, Question
from softcr_hardware.emulation.bench_mistakes import BenchMistakes, MistakenActuator
from softcr_hardware.emulation.chambers import ChamberErrors
from softcr_hardware.ethercat.memory_bus import MemoryBus
from softcr_hardware.ethercat.process_data import ProcessData, Sample
from softcr_hardware.ethercat.terminals import Station
from softcr_hardware.optitrack.calibration import MocapCalibration
from softcr_models.errors import UserError
from softcr_simulation.plant import SimulatedPlant

_CAMERA_PERIOD = 1 / 120  # [s]
_GAUGE_NOISE = 50.0  # of the operator's second gauge, standard deviation [Pa]
_THINKING = 1.0  # of an operator [s]
_PATIENCE, _LONGEST = 0.1, 0.5  # [s] the rod is not asked about


class VirtualBench:
    """See `Bench`. The air is off at first.

    Attributes:
        actuator: valves, hoses, chambers.
        bus: its terminals.
        mistakes: it has.
        truth: what base and body really are.
        air: whether there is pressure at the valves.
        unplugged: input whose sensor's cable is pulled, from 0; None for none.
    """

    period = 0.001
    calm_period = 0.04
    realtime = False

    def __init__(
        self,
        true_station: Station,
        truth: MocapCalibration,
        plant: SimulatedPlant,
        mistakes: BenchMistakes | None = None,
        errors: ChamberErrors | None = None,
        seed: int = 0,
        station: Station | None = None,
        calibration: MocapCalibration | None = None,
    ) -> None:
        """At rest and vented.

        Args:
            true_station: as the bench was meant to be wired; mistakes and errors come on top.
            truth: what base and body really are, see `BenchMistakes.calibration`.
            plant: the rod and its sensors' noise.
            mistakes: of wiring and mounting.
            errors: how valves and chambers differ from the station file.
            seed: of the noise.
            station, calibration: the files that are commissioned; None for the true ones.

        Raises:
            UserError: a mistake names a chamber that the station does not have, or the file has a
                channel that the bench does not.
        """
        self.station, self.calibration = station or true_station, calibration or truth
        self.data, self._true_data = ProcessData(self.station), ProcessData(true_station)
        self.mistakes, self.truth = mistakes or BenchMistakes(), truth
        self.actuator = MistakenActuator(true_station, plant, errors, self.mistakes)
        self._outputs = _places(self.station, true_station, "valve")
        self._inputs = _places(self.station, true_station, "sensor")
        self._random = np.random.default_rng(seed)
        self._lived = 0.0
        self._time, self._supply = 0.0, self.actuator.chambers["supply"].copy()
        self.bus = MemoryBus(
            true_station, self._true_data, self.actuator, lambda: self._time, seed=seed
        )
        self._volts = np.full(len(true_station.chambers), true_station.valve.exhaust)
        self._when_dead = true_station.valve.when_dead
        self._body: tuple[float, np.ndarray] | None = None
        self._wrench: tuple[float, np.ndarray] | None = None
        self.unplugged: int | None = None
        self.air = False
        self.turn_air(False)

    def open(self) -> None:
        self.exchange(np.full(len(self._volts), self.station.valve.exhaust), self.period)

    def close(self) -> None:
        self._volts = np.full(len(self._volts), self.station.valve.exhaust)

    @property
    def now(self) -> float:
        return self._time

    def exchange(self, volts: np.ndarray, period: float) -> Sample | None:
        self._time += period
        self._volts = np.asarray(volts, float)[np.argsort(self._outputs)]
        self._true_data.air_on = self.data.air_on
        sample = self.bus.exchange(self._volts)
        self._live()
        return self._wired(sample)

    def check(self) -> str:
        return ""

    def recover(self) -> None:
        """See Bench."""

    def silence(self, duration: float) -> Sample:
        """See Bench; the watchdog puts out its safe value meanwhile."""
        listening = min(duration, self.station.watchdog)
        self._pass(listening, self._volts)
        dead = np.full(len(self._volts), self._when_dead)
        self._pass(duration - listening, self._volts if self.mistakes.keeps_last_output else dead)
        return self._wired(self.bus.read())

    def body(self) -> tuple[float, np.ndarray] | None:
        self._see()
        return self._body

    def wrench(self) -> tuple[float, np.ndarray] | None:
        self._see()
        return self._wrench

    def identity(self) -> dict[str, str]:
        terminals = ", ".join(terminal.name for terminal in self.station.terminals)
        return {
            "terminals": f"{terminals} (virtual)",
            "cameras": "virtual",
            "force_torque": "virtual",
        }

    def problems(self) -> list[str]:
        return []

    def turn_air(self, on: bool) -> None:
        """The shut-off valve of the air."""
        self.air = on
        self.actuator.chambers["supply"] = self._supply if on else 0.0

    def gauge(self, channel: int) -> float:
        """What a second gauge says on the hose of the valve that an output drives, from 0 [Pa]."""
        hose = self.actuator.valve_of(int(self._outputs[channel]))
        return float(self.actuator.pressures[hose] + _GAUGE_NOISE * self._random.standard_normal())

    def _wired(self, sample: Sample) -> Sample:
        """In the order of the commissioned station's chambers."""
        order = self._inputs
        # of the order's indices these are copies: a bus may give the same arrays again
        volts, broken = sample.volts[order], sample.broken[order]
        if self.unplugged is not None:
            cut = order == self.unplugged
            volts[cut], broken[cut] = 0.0, True
        return replace(sample, volts=volts, broken=broken, toggles=sample.toggles[order])

    def _pass(self, duration: float, volts: np.ndarray) -> None:
        """Time without an exchange."""
        while duration > 1e-9:
            piece = min(duration, _LONGEST)
            self._time += piece
            duration -= piece
            self.actuator.advance(self._time, volts)
            self._live()

    def _live(self) -> None:
        """The rod moves on, which does not remember pressures for long."""
        if self._time - self._lived >= _PATIENCE:
            self._lived = self._time
            self.actuator.move_rod(self._time)

    def _see(self) -> None:
        """What cameras and force-torque sensor see, at the rate of the cameras."""
        if self._body is not None and self._time - self._body[0] < _CAMERA_PERIOD:
            return
        self._lived = self._time
        measured = self.actuator.see(self._time)
        assert measured.tip_pose is not None  # this plant loses none
        body = self.truth.body(measured.tip_pose)
        self._body = self._time, self.mistakes.streamed(body)
        self._wrench = self._time, self.mistakes.felt(measured.wrench)


def _places(
    station: Station, true_station: Station, kind: Literal["valve", "sensor"]
) -> np.ndarray:
    """(m,) which channel of the true station each chamber's valve or sensor is wired to."""
    wires = [getattr(chamber, kind) for chamber in true_station.chambers]
    places = [(wire.terminal, wire.channel) for wire in wires]
    found = []
    for chamber in station.chambers:
        wire = getattr(chamber, kind)
        if (wire.terminal, wire.channel) not in places:
            raise UserError(
                f"station: {kind} of {chamber.name}, terminal {wire.terminal} channel "
                f"{wire.channel}: the virtual bench has none there"
            )
        found.append(places.index((wire.terminal, wire.channel)))
    return np.array(found)


def differences(seed: int, names: tuple[str, ...]) -> tuple[ChamberErrors, dict[str, float]]:
    """How a bench differs from its files before anybody measured it.

    Args:
        seed: of the choice.
        names: of the chambers.

    Returns:
        Of valves and chambers; and offsets of the sensors [V].
    """
    random = np.random.default_rng(seed)
    gains = random.uniform(0.9, 1.1, 2).tolist()
    errors = ChamberErrors(
        fill_gain=gains[0],
        exhaust_gain=gains[1],
        dead_band=float(random.uniform(-0.03, 0.03)),
        lag=float(random.uniform(-0.001, 0.001)),
        output_bits=12,
    )
    offsets = random.uniform(-0.05, 0.05, len(names)).tolist()
    return errors, dict(zip(names, offsets, strict=True))


class VirtualOperator:
    """Does at once what is asked, and reads the second gauge; the deadman's switch is held.

    Attributes:
        told: all that was said and asked.
        refuses: questions that are answered with `no`.
    """

    def __init__(
        self,
        bench: VirtualBench,
        refuses: tuple[About, ...] = (),
        say: Callable[[str], None] = lambda line: None,
    ) -> None:
        """Beside a bench; `say` hears all that is said and asked."""
        self._bench, self.refuses, self._say = bench, refuses, say
        self.told: list[str] = []
        self._released = math.inf

    def tell(self, line: str) -> None:
        self.told.append(line)
        self._say(line)

    def ask(self, question: Question) -> Pending:
        self.tell(question.words)
        answer = "yes"
        if question.about in self.refuses:
            answer = "" if question.about == "gauge" else "no"
        elif question.about == "gauge":
            answer = f"{self._bench.gauge(question.channel) / 1e3:.3f}"
        elif question.about in ("air on", "air off"):
            self._bench.turn_air(question.about == "air on")
        elif question.about == "unplug":
            self._bench.unplugged = self._bench.actuator.sensor_on(question.channel)
        elif question.about == "plug":
            self._bench.unplugged = None
        elif question.about == "release":
            self._released = self._bench.now + _THINKING
        return lambda: answer

    def holds(self, now: float) -> bool:
        """See Operator; what was released is held again after a while."""
        if now >= self._released + _THINKING:
            self._released = math.inf
        return now < self._released
