"""How the force-torque sensor is mounted, and its bias."""

import numpy as np
import pinocchio as pin

from softcr_hardware.commissioning.findings import Finding
from softcr_hardware.commissioning.force_torque_fit import MOST_RESIDUAL, mounting
from softcr_hardware.commissioning.record import StepRecord
from softcr_hardware.commissioning.session import Session, Step, found
from softcr_hardware.commissioning.survey import Survey


def _run(session: Session) -> StepRecord:
    survey = Survey.model_validate(session.value("survey", "survey"))
    if not survey.rest.wrench:
        return found([], ["no force-torque sensor"])
    bends, answers = session.value("wiring", "bends"), session.answers()
    bent = [
        session.model.bent(chamber, abs(session.scale(channel) * look.pressures[sensor]))
        for channel, (chamber, look, sensor) in enumerate(
            zip(bends, survey.channels, answers, strict=True)
        )
    ]
    fit = mounting(survey.rest, survey.channels, bent, session.axes)
    bias = fit.bias(survey.rest, session.model.rest_wrench)
    findings = []
    if fit.residual > MOST_RESIDUAL:
        findings.append(
            Finding(
                words=f"the force-torque sensor's moments miss the model's directions by "
                f"{100 * fit.residual:.0f} %, must be below {100 * MOST_RESIDUAL:.0f} %: does "
                "something touch the rod or the sensor's cable pull?"
            )
        )
    quaternion = pin.Quaternion(fit.rotation).coeffs()
    force = ", ".join(f"{each:.2f}" for each in bias[:3])
    lines = [f"residual {100 * fit.residual:.1f} %; bias of the force {force} N"]
    return found(
        findings,
        lines,
        quaternion=np.round(quaternion, 6).tolist(),
        bias=np.round(bias, 6).tolist(),
        residual=fit.residual,
    )


STEP = Step("force_torque", "mounting and bias of the force-torque sensor", _run)
