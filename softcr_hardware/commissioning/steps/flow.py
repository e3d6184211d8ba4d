"""Flow, dead band and lag of each valve."""

from dataclasses import asdict
from functools import partial

import numpy as np

from softcr_hardware.commissioning.findings import Finding
from softcr_hardware.commissioning.record import StepRecord
from softcr_hardware.commissioning.session import Session, Step, found
from softcr_hardware.commissioning.valve_fit import (
    ValveFit,
    changed_words,
    fitted_valve,
    flow_pieces,
    mean_fit,
    spread_words,
)

_PAUSE = 0.4  # [s]


def _run(session: Session) -> StepRecord:
    session.air(True)
    drive, station = session.drive, session.bench.station
    leaks = session.value("leak", "rates")
    fits: list[ValveFit] = []
    for channel, sensor in enumerate(session.answers()):
        session.operator.tell(f"output of {session.names[channel]}: pulses of several openings")
        traces = []
        for pieces in flow_pieces(station.flow):
            drive.exhaust(_PAUSE)
            traces.append(drive.play(channel, pieces))
        leak = max(leaks[channel], 0.0) if np.isfinite(leaks[channel]) else 0.0
        scale = session.scale(channel)
        told = traces, sensor, scale, station.flow_valve, station.flow, leak
        fits.append(drive.beside(partial(fitted_valve, *told)))
    valves = [session.valve_name(channel) for channel in range(len(fits))]
    findings = [Finding(words=words) for words in spread_words(fits, valves)]
    common = mean_fit(fits)
    if session.daily:
        findings += [
            Finding(words=words)
            for words in changed_words(common, station.flow_valve, station.flow)
        ]
    lines = [_line(name, fit) for name, fit in zip(valves, fits, strict=True)]
    return found(findings, lines, fits=[asdict(fit) for fit in fits], common=asdict(common))


def _line(name: str, fit: ValveFit) -> str:
    return (
        f"valve of {name}: fill {fit.fill_rate:.1f} 1/s, exhaust {fit.exhaust_rate:.1f} 1/s, "
        f"closed {fit.closed:.3f} V +- {fit.dead_band:.3f}, lag {1e3 * fit.lag:.1f} + "
        f"{1e3 * fit.age:.1f} ms, residual {fit.residual:.0f} Pa"
    )


STEP = Step("flow", "flow, dead band and lag of the valves", _run)
