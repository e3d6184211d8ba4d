"""The experiments of Licher et al. 2025, Sec. V-B: reference, plant, and what was published.

References are motions of the nominal rod, as fine as the plant, caused by pressures inside the box
(35 +- 20 kPa unless said otherwise), so that a plant a few per cent stiffer can follow them. The
plant's own tip is the reference where the pressures lie on the edge of the box (5b).
"""

from dataclasses import dataclass, field

from softcr_control.reference_settings import ReferenceSettings
from softcr_hardware.plant import Mismatch
from softcr_runtime.registry import GRADIENT_MPC, NEMPC

MODEL_BASED = (NEMPC, GRADIENT_MPC)
RIVAL = "koopman"
CONTROLLERS = (*MODEL_BASED, RIVAL)
RATE_HZ = 70.0
SETTLED = 2.0  # from here on a setpoint counts, and a motion that fades in [s]


@dataclass(frozen=True)
class Bounds:
    """What the tip's mean error must and should not exceed [mm], by controller.

    Attributes:
        must, goal: in the order of MODEL_BASED; nothing is asked of the rival.
    """

    must: tuple[float, float]
    goal: tuple[float, float]


@dataclass(frozen=True)
class Difference:
    """How plant and sensors differ from what filter and controller know.

    Attributes:
        mismatch: of the rod.
        intervals: of the plant's rod.
        lever_factor: on the lever arm of its first chamber.
        lag_pole: of its pressure lag [1/s], steady gain as in the file; None: the file's.
        pressure_bias, pressure_gain: the sensors read gain * pressure + bias (m,) [Pa], and the
            valves bring the reading to the command.
        tip_noise: standard deviation of each measured coordinate [m].
        pressure_noise: standard deviation of each reading [Pa].
        dropout: chance that a tip pose is missing.
        latency: ticks by which commands act later than the usual one; the controllers are told, as
            far as they can answer.
    """

    mismatch: Mismatch = field(
        default=Mismatch(bending_compliance_factor=0.95, tip_mass_factor=1.1)
    )
    intervals: int = 20
    lever_factor: float = 1.0
    lag_pole: float | None = None
    pressure_bias: tuple[float, ...] = (0.0, 0.0, 0.0)
    pressure_gain: float = 1.0
    tip_noise: float = 2e-4
    pressure_noise: float = 0.0
    dropout: float = 0.0
    latency: int = 0


@dataclass(frozen=True)
class Case:
    """One run: what the rod should do, and how the plant differs from the model.

    Attributes:
        name: of the row.
        reference: what the rod should do.
        duration: of a run [s].
        paper: published mean tip error of the paper's own controller [mm]; None: none.
        paper_koopman: published mean tip error of the paper's rival [mm].
        bounds: of the mean tip error after SETTLED.
        difference: between plant and model.
        adaptive: whether the filter estimates parameters; if not, the model keeps the file's.
        learns_lag: whether the controller estimates the pressure lag.
        controllers: who runs.
        rate_hz: of the loop [Hz].
        model_intervals: of filter's and controller's rod.
        from_plant: whether the plant, not the nominal rod, makes the reference.
        learned_on: the plant the rival has learned from; None: that of the case.
    """

    name: str
    reference: ReferenceSettings
    duration: float = 12.0
    paper: float | None = None
    bounds: Bounds | None = None
    difference: Difference = Difference()
    adaptive: bool = True
    learns_lag: bool = True
    controllers: tuple[str, ...] = CONTROLLERS
    rate_hz: float = RATE_HZ
    model_intervals: int = 5
    from_plant: bool = False
    paper_koopman: float | None = None
    learned_on: Difference | None = None

    @property
    def period(self) -> float:
        """Of the loop [s]."""
        return 1.0 / self.rate_hz

    def published(self, controller: str) -> float | None:
        """Mean tip error [mm] that one of CONTROLLERS is to be compared with."""
        return self.paper_koopman if controller == RIVAL else self.paper

    def bound(self, controller: str) -> tuple[float | None, float | None]:
        """Must and goal [mm]; None: nothing is asked."""
        if self.bounds is None or controller == RIVAL:
            return None, None
        number = MODEL_BASED.index(controller)
        return self.bounds.must[number], self.bounds.goal[number]


def _fast() -> ReferenceSettings:
    """Experiment 4a: sines up to 1.5 Hz."""
    return ReferenceSettings(kind="trajectory")


def _slow() -> ReferenceSettings:
    """Experiment 5a: sines up to 0.2 Hz."""
    return ReferenceSettings(kind="trajectory", frequencies=(0.05, 0.12, 0.2), fade_in=2.0)


def _circle(frequency: float) -> ReferenceSettings:
    return ReferenceSettings(kind="circle", frequency=frequency)


def _circles() -> tuple[Case, ...]:
    published = {
        0.2: (3.7, 6.8), 0.4: (8.7, 8.0), 0.6: (8.9, 10.4),
        0.8: (8.4, 12.3), 1.0: (7.3, 13.9), 1.5: (18.2, 18.1),
    }  # fmt: skip
    bounds = Bounds((2.0, 2.0), (0.7, 0.7))
    return tuple(
        Case(
            f"circle {frequency:g} Hz",
            _circle(frequency),
            max(6.0, SETTLED + 2 / frequency),
            mpc,
            bounds,
            paper_koopman=rival,
        )
        for frequency, (mpc, rival) in published.items()
    )


# Experiment 6: the file says 49.9 rad/(N m m), the actuator has 45
_SOFTNESS = Difference(Mismatch(bending_compliance_factor=45.0 / 49.9, tip_mass_factor=1.1))

EXPERIMENTS: dict[str, tuple[Case, ...]] = {
    "4a": (Case("trajectory to 1.5 Hz", _fast(), 12.0, 2.68, Bounds((1.5, 0.7), (0.7, 0.25))),),
    "4b": (
        Case(
            "setpoint (45, 25, 15) kPa",
            ReferenceSettings(kind="setpoint"),
            6.0,
            2.82,
            Bounds((0.8, 0.3), (0.3, 0.1)),
        ),
    ),
    "5a": (
        Case(
            "trajectory to 0.2 Hz",
            _slow(),
            30.0,
            2.57,
            Bounds((1.2, 0.5), (0.5, 0.2)),
            paper_koopman=5.68,
        ),
    ),
    "5b": (
        Case(
            "setpoint (60, 30, 0) kPa",
            ReferenceSettings(kind="setpoint", inputs=(60e3, 30e3, 0.0)),
            6.0,
            1.69,
            Bounds((0.8, 0.5), (0.3, 0.1)),
            from_plant=True,
            paper_koopman=6.90,
        ),
    ),
    "5c": _circles(),
    "6": (
        Case("adaptive", _slow(), 30.0, 1.69, difference=_SOFTNESS),
        Case("fixed compliance", _slow(), 30.0, 5.10, difference=_SOFTNESS, adaptive=False),
    ),
    "rate": tuple(
        Case(
            f"trajectory to 1.5 Hz, {rate:g} Hz",
            _fast(),
            6.0,
            bounds=Bounds((1.5, 0.7), (0.7, 0.25)),
            controllers=(GRADIENT_MPC,),
            rate_hz=rate,
        )
        for rate in (RATE_HZ, 500.0)
    ),
    "pressure-chain": (
        Case(
            "sensors read (1, -1, 0.5) kPa too much",
            _fast(),
            bounds=Bounds((1.5, 1.5), (0.8, 0.8)),
            difference=Difference(pressure_bias=(1e3, -1e3, 0.5e3)),
        ),
        Case(
            "lever of chamber 1 +5 %",
            _fast(),
            bounds=Bounds((2.5, 2.5), (1.0, 1.0)),
            difference=Difference(lever_factor=1.05),
        ),
    ),
}
