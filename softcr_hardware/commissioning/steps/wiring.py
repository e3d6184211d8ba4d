"""What the survey says of wires, hoses and mountings."""

import numpy as np

from softcr_hardware.commissioning.exhaust import reversed_words
from softcr_hardware.commissioning.explanation import Explanation, explained
from softcr_hardware.commissioning.record import StepRecord
from softcr_hardware.commissioning.session import Session, Step, found
from softcr_hardware.commissioning.survey import Survey, own_rise


def _run(session: Session) -> StepRecord:
    survey = Survey.model_validate(session.value("survey", "survey"))
    known = session.value("sensors", "sensors") if session.has("sensors", "sensors") else None
    if session.daily:
        known = None
    file, model = session.bench.calibration, session.model
    best, findings = session.drive.beside(
        lambda: explained(survey, file, model, session.names, known, session.axes)
    )
    wrong = np.array(session.value("exhaust", "reversed"))
    valves = best.valves if best is not None else tuple(range(len(wrong)))
    for channel in np.flatnonzero(wrong):
        findings.append(reversed_words(session.names[valves[channel]]))
    if best is None:
        return found(findings)
    signs = [float(np.sign(own_rise(survey, channel))) for channel in range(len(wrong))]
    return found(findings, _lines(best, session.names), signs=signs, **values_of(best))


def values_of(best: Explanation) -> dict[str, object]:
    """An explanation as plain data."""
    values: dict[str, object] = {
        name: [int(each) for each in getattr(best, name)]
        for name in ("valves", "sensors", "hoses", "bends", "answers")
    }
    values["mirror"] = [best.mirror.kind, best.mirror.axis]
    if best.alignment is not None:
        values["alignment"] = {
            "base": best.alignment.base.tolist(),
            "tip": best.alignment.tip.tolist(),
            "position": best.alignment.position.tolist(),
            "residual": best.alignment.residual,
        }
    return values


def _lines(best: Explanation, names: tuple[str, ...]) -> list[str]:
    return [
        f"output of {name}: sensor of {names[sensor]} answers, {names[chamber]} bends"
        for name, sensor, chamber in zip(names, best.answers, best.bends, strict=True)
    ]


STEP = Step("wiring", "wires, hoses and mountings", _run)
