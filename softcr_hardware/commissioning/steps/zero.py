"""Zero and noise of the sensors, with the air shut off."""

import numpy as np

from softcr_hardware.commissioning.record import StepRecord
from softcr_hardware.commissioning.session import Session, Step, found
from softcr_hardware.commissioning.zero import zeros

_LOOK = 0.5  # [s]


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
