"""Base and tip's body in the cameras' world, from the directions of bending."""

import numpy as np

from softcr_hardware.commissioning.base_fit import (
    MOST_POSITION,
    MOST_ROTATION,
    Alignment,
    BaseFit,
    fitted,
)
from softcr_hardware.commissioning.findings import Finding
from softcr_hardware.commissioning.mirrors import Mirror
from softcr_hardware.commissioning.record import StepRecord
from softcr_hardware.commissioning.session import Session, Step, found
from softcr_hardware.commissioning.survey import Survey

_BENDING = 0.35  # of the model's that a rod of this file may differ by [-]


def _run(session: Session) -> StepRecord:
    survey = Survey.model_validate(session.value("survey", "survey"))
    if not survey.rest.position:
        return found([], ["no cameras: base and body stay as the file has them"])
    if not session.has("wiring", "alignment"):
        return found([Finding(words="base: the directions of bending make no sense, see wiring")])
    told = session.value("wiring", "alignment")
    begin = Alignment(
        np.array(told["base"]), np.array(told["tip"]), np.array(told["position"]), told["residual"]
    )
    bends = session.value("wiring", "bends")
    pressures = [
        abs(session.scale(channel) * look.pressures[sensor])
        for channel, (look, sensor) in enumerate(
            zip(survey.channels, session.answers(), strict=True)
        )
    ]
    mirror = Mirror(*session.value("wiring", "mirror"))

    def fit_base() -> BaseFit:
        paths = [session.model.path(c, p) for c, p in zip(bends, pressures, strict=True)]
        file = session.bench.calibration
        return fitted(file, survey.rest, survey.channels, paths, begin, mirror)

    fit = session.drive.beside(fit_base)
    position, rotation = fit.position_residual, float(np.degrees(fit.rotation_residual))
    findings = []
    if not fit.good:
        findings.append(
            Finding(
                words=f"base: residuals {1e3 * position:.1f} mm and {rotation:.1f} deg, must be "
                f"below {1e3 * MOST_POSITION:.0f} mm and {np.degrees(MOST_ROTATION):.0f} deg"
            )
        )
    for name, bending in zip(session.names, fit.bending, strict=True):
        if abs(bending - 1.0) > _BENDING:
            findings.append(
                Finding(
                    words=f"output of {name}: the rod bends {bending:.2f} times as far as the "
                    f"model, must be {1 - _BENDING:.2f} to {1 + _BENDING:.2f}: another rod, or a "
                    "wrong slope"
                )
            )
    lines = [
        f"residual {1e3 * position:.2f} mm, {rotation:.2f} deg; the rod bends "
        f"{fit.bending.mean():.2f} times as far as the model",
        "the pivot of the body was fitted, too" if fit.pivot_fitted else "the pivot is the file's",
    ]
    return found(
        findings,
        lines,
        calibration=fit.calibration.model_dump(mode="json"),
        position_residual=position,
        rotation_residual_deg=rotation,
        bending=fit.bending.tolist(),
    )


STEP = Step("base", "base and tip in the cameras' world", _run)
