"""The pressure guard of a station: every chamber's detectors, and the supply's."""

import math
from typing import Any

import numpy as np

from softcr_hardware.ethercat.pressure_guard.detectors import (
    PressureFault,
    arm_channel,
    guarded_volts,
    watch_channel,
)
from softcr_hardware.ethercat.pressure_guard.records import CHANNEL
from softcr_hardware.ethercat.pressure_guard.settings import GuardSettings
from softcr_hardware.ethercat.process_data import Sample
from softcr_models.room_kernels import compiled, one_compiles

_LONGEST_GAP = 0.1
"""Time the flow model goes on without a cycle [s]; the terminals' watchdog vents as soon."""
_GAUGE_FILTER = 0.05  # [s]
_GAUGE_SILENT = 0.1  # [s] without a reading of the gauge


class PressureGuard:
    """Looks at every exchange, shapes every command.

    Attributes:
        fault: what stands now, in words with the chamber's name; empty for nothing.
        counts_disarmed: whether the fault is one that counts while the valves are vented, too.
        channels: (m,) CHANNEL, to be read.
        supply: gauge pressure of the supply [Pa]: of the gauge, or of the station file.
    """

    def __init__(
        self,
        names: tuple[str, ...],
        settings: GuardSettings,
        constants: Any,
        maximum: float,
        closed_volts: float,
        regulated: bool = True,
        paired: tuple[bool, ...] = (),
        gauged: bool = False,
    ):
        """Disarmed.

        Args:
            names: of the chambers.
            settings: thresholds.
            constants: (1,) CONSTANTS of valve and flow; filled in here and kept, so that a measured
                supply is known to who shares them.
            maximum: highest command [Pa].
            closed_volts: where the valves are taken to be [V].
            regulated: whether measured pressures steer the valves; pings need it.
            paired: (m,) which chambers have a second sensor; () for none.
            gauged: whether the supply has a gauge.
        """
        fill_in(constants, settings, maximum, regulated)
        self.fault, self.counts_disarmed = "", False
        self.supply = self._filed = float(constants["supply"][0])
        self._names, self._settings, self._constants = names, settings, constants
        self._closed, self._paired, self._gauged = closed_volts, paired, gauged
        self._gauge, self._ungauged = math.nan, 0.0
        with one_compiles():
            self._compile()
        self.forget()

    def forget(self) -> None:
        """Nothing was seen yet, as after a loss of the bus."""
        self.channels = np.zeros(len(self._names), CHANNEL)
        for name in ("count", "pressure", "predicted"):
            self.channels[name] = np.nan
        self.channels["position"] = self._closed
        self.channels["paired"] = self._paired or False
        self._ungauged = 0.0
        self._time = self._came = -np.inf
        self.fault, self.counts_disarmed = "", False

    def watch(
        self,
        now: float,
        acted: np.ndarray,
        sample: Sample | None,
        pressures: np.ndarray,
        second: np.ndarray,
        expected: np.ndarray,
        gauge: float = np.nan,
    ) -> None:
        """Look at the exchange of a cycle; sets `fault`.

        Args:
            now: of the cycle [s].
            acted: (m,) what the valves were given since the last cycle [V].
            sample: of the wire; None where the exchange was lost.
            pressures: (m,) of the sample [Pa].
            second: (m,) of the second sensors [Pa]; NaN for none.
            expected: (m,) by the pressure loop [Pa].
            gauge: of the supply [Pa]; NaN for none.
        """
        dt = min(now - self._time, _LONGEST_GAP)
        self._time = now
        gap = dt
        if sample is not None:
            gap = min(now - self._came, _LONGEST_GAP)
            self._came = now
            self._see_supply(gauge, gap)
        volts, broken, toggles = (
            (sample.volts, sample.broken, sample.toggles) if sample is not None else self._nothing
        )
        index = self._look(
            self.channels, self._constants, dt, acted, sample is not None,
            volts, broken, toggles, pressures, second, expected, gap,
        )  # fmt: skip
        self._judge(index)

    def _see_supply(self, gauge: float, dt: float) -> None:
        """The gauge's word on the supply, low-passed."""
        if not math.isfinite(gauge):
            self._ungauged += dt if self._gauged else 0.0
            return
        self._ungauged = 0.0
        before = gauge if math.isnan(self._gauge) else self._gauge
        self._gauge = before + (gauge - before) * dt / (dt + _GAUGE_FILTER)
        self.supply = self._gauge
        self._constants["supply"] = max(self._gauge, 1.0)

    def _judge(self, index: int) -> None:
        self.fault, self.counts_disarmed = "", False
        if index >= 0:
            fault = PressureFault(int(self.channels["fault"][index]))
            self.fault = f"{self._names[index]}: {fault.words}"
            self.counts_disarmed = fault == PressureFault.FROZEN
        elif self._ungauged >= _GAUGE_SILENT:
            self.fault, self.counts_disarmed = "supply gauge silent", True
        elif abs(self.supply - self._filed) > self._settings.supply_tolerance * self._filed:
            self.fault = (
                f"supply {self.supply / 1e3:.0f} kPa, must be {self._filed / 1e3:.0f} kPa "
                f"within {self._settings.supply_tolerance:.0%}"
            )
            self.counts_disarmed = True

    def volts(self, openings: np.ndarray, dt: float) -> np.ndarray:
        """(m,) commands [V] of the next cycle for wanted openings (m,), `dt` [s] after the last."""
        volts = np.empty(len(openings))
        self._command(self.channels, self._constants, openings, dt, volts)
        return volts

    def _look(self, *everything: Any) -> int:
        """Index of the first chamber with a fault; -1 for none."""
        return int(_watch_all(*everything))

    def _command(self, *everything: Any) -> None:
        """Fills in (m,) commands [V]."""
        _all_volts(*everything)

    def summary(self) -> dict[str, list[float]]:
        """For diagnostics, by chamber: `pings` asked for; `nearest`, the largest share of a flow
        residual's threshold since the valves were enabled: 1 vents."""
        return {
            "pings": self.channels["pings"].tolist(),
            "nearest": self.channels["nearest"].round(2).tolist(),
        }

    def arm(self, expected: np.ndarray) -> None:
        """The valves are enabled with the loop at (m,) [Pa]: what was before does not count."""
        for index, each in enumerate(expected.tolist()):
            arm_channel(self.channels[index], each)

    def _compile(self) -> None:
        count = len(self._names)
        nothing = np.zeros(count)
        self._nothing = (nothing, np.zeros(count, bool), np.zeros(count, bool))
        self.forget()
        self.watch(0.0, nothing, None, nothing, nothing, nothing)
        self.volts(nothing, 1.0)
        self.arm(nothing)


def fill_in(constants: Any, settings: GuardSettings, maximum: float, regulated: bool) -> None:
    """Thresholds into (1,) CONSTANTS."""
    for name in constants.dtype.names:
        if name in GuardSettings.model_fields:
            constants[name] = getattr(settings, name) or 0.0
    constants["flow_tolerance"], constants["opening_tolerance"] = settings.tolerances
    constants["maximum"], constants["regulated"] = maximum, regulated


@compiled
def _watch_all(
    channels: np.ndarray,
    constants: np.ndarray,
    dt: float,
    acted: np.ndarray,
    came: bool,
    volts: np.ndarray,
    broken: np.ndarray,
    toggles: np.ndarray,
    pressures: np.ndarray,
    second: np.ndarray,
    expected: np.ndarray,
    gap: float,
) -> int:
    """Index of the first chamber with a fault; -1 for none."""
    found = -1
    for index in range(len(channels)):
        fault = watch_channel(
            channels[index], constants[0], dt, acted[index], came and not broken[index],
            volts[index], toggles[index], pressures[index], second[index], expected[index], gap,
        )  # fmt: skip
        if fault != 0 and found < 0:
            found = index
    return found


@compiled
def _all_volts(
    channels: np.ndarray,
    constants: np.ndarray,
    openings: np.ndarray,
    dt: float,
    volts: np.ndarray,
) -> None:
    for index in range(len(channels)):
        volts[index] = guarded_volts(channels[index], constants[0], openings[index], dt)
