"""Zero and noise of the pressure sensors, while all chambers are open to the air."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from softcr_hardware.commissioning.findings import Finding
from softcr_hardware.commissioning.record import StepRecord
from softcr_hardware.commissioning.session import Session, Step, found
from softcr_hardware.ethercat.terminals import FULL_SCALE_COUNTS, FULL_SCALE_VOLTS, Sensor
from softcr_models.errors import UserError

_LOOK = 0.5  # [s]

MOST_NOISE = 300.0
"""Standard deviation of a vented chamber's reading, at most [Pa]."""
LEAST_NOISE = 0.5
"""At least so much, in counts of the terminal: the guard takes a sensor without noise as broken."""
MOST_OFFSET = 0.3
"""Distance of a zero from the file's that a calibration may take out [V]."""
DAILY_DRIFT = 0.02
"""From day to day a zero moves by less [V]."""

_FEWEST = 100
_COUNT = FULL_SCALE_VOLTS / FULL_SCALE_COUNTS


@dataclass(frozen=True, eq=False)
class Zeros:
    """Of all sensors, in the order of the station's chambers.

    Attributes:
        volts: (m,) medians [V].
        noise: (m,) standard deviations [Pa].
    """

    volts: np.ndarray
    noise: np.ndarray


def zeros(
    samples: np.ndarray, sensors: Sequence[Sensor], names: Sequence[str], daily: bool
) -> tuple[Zeros, list[Finding]]:
    """Zeros, and what is wrong with them.

    Args:
        samples: (T, m) of vented chambers [V].
        sensors: of the station file.
        names: of the chambers.
        daily: whether the file has been commissioned before.

    Raises:
        UserError: too few samples.
    """
    good = samples[np.isfinite(samples).all(axis=1)]
    if len(good) < _FEWEST:
        raise UserError(f"zero: {len(good)} good samples, must be {_FEWEST}")
    volts, spread = np.median(good, axis=0), good.std(axis=0)
    slopes = np.array([sensor.pascal_per_volt for sensor in sensors])
    found: list[Finding] = []
    for index, (name, sensor) in enumerate(zip(names, sensors, strict=True)):
        here = f"the sensor of {name}"
        away = volts[index] - sensor.zero
        most = DAILY_DRIFT if daily else MOST_OFFSET
        if abs(away) > most:
            question = "" if daily else ": is it this sensor, and is its chamber vented?"
            found.append(
                Finding(
                    words=f"{here} reads {volts[index]:.3f} V without pressure, the file has "
                    f"{sensor.zero:.3f}, must be within {most} V{question}"
                )
            )
        noise = spread[index] * slopes[index]
        if noise > MOST_NOISE:
            found.append(
                Finding(
                    words=f"{here} varies by {noise:.0f} Pa without pressure, must be below "
                    f"{MOST_NOISE:.0f}: shield, earth, or a chamber that still empties"
                )
            )
        if spread[index] < LEAST_NOISE * _COUNT:
            found.append(
                Finding(
                    words=f"{here} has no noise ({1e6 * spread[index]:.0f} uV, must be "
                    f"{1e6 * LEAST_NOISE * _COUNT:.0f}): is it connected?"
                )
            )
    return Zeros(volts, spread * slopes), found


def _run(session: Session) -> StepRecord:
    session.air(False)
    drive, data = session.drive, session.bench.data
    drive.exhaust(2.0)
    volts = data.volts(drive.exhaust_look(_LOOK))
    sensors = [chamber.sensor for chamber in session.bench.station.chambers]
    seen, findings = zeros(volts, sensors, session.names, session.daily)
    data.zero = seen.volts
    lines = [
        f"{name}: zero {zero:.3f} V, noise {noise:.0f} Pa"
        for name, zero, noise in zip(session.names, seen.volts, seen.noise, strict=True)
    ]
    values = {"volts": np.round(seen.volts, 5).tolist(), "noise": np.round(seen.noise, 1).tolist()}
    return found(findings, lines, **values)


STEP = Step("zero", "zero and noise of the pressure sensors", _run)
