"""How the force-torque sensor is mounted, from the moments of the bent rod, and its bias.

The weight of a bent rod pulls at a lever: each chamber gives a change of moment whose direction the
model knows. The sensor reads it in its own axes.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pinocchio as pin
from scipy.spatial.transform import Rotation

from softcr_hardware.commissioning.expectation import Bent
from softcr_hardware.commissioning.findings import Finding
from softcr_hardware.commissioning.record import StepRecord
from softcr_hardware.commissioning.session import Session, Step, found
from softcr_hardware.commissioning.steps.survey import Look, Survey

MOST_RESIDUAL = 0.2
"""Residual beyond which a mounting is refused, over the moments' own size [-]."""


@dataclass(frozen=True, eq=False)
class MountingFit:
    """The sensor's axes in the frame that it should have.

    Attributes:
        rotation: (3, 3) axes of the sensor in the base frame.
        residual: root mean square over the moments' own size [-].
        about_z: whether its turn against the file was found among those about z alone.
    """

    rotation: np.ndarray
    residual: float
    about_z: bool

    def bias(self, rest: Look, expected: np.ndarray) -> np.ndarray:
        """(6,) what the sensor says too much of the resting rod, in its own axes [N, N m].

        Args:
            rest: with its wrench.
            expected: (6,) of the model, in the base frame.
        """
        own = np.concatenate([self.rotation.T @ expected[:3], self.rotation.T @ expected[3:]])
        return np.array(rest.wrench) - own


def mounting(
    rest: Look, looks: Sequence[Look], bent: Sequence[Bent], axes: np.ndarray
) -> MountingFit:
    """The sensor's axes for one idea of who bends whom.

    Moments of an upright rod lie in a plane, so a turn about z is preferred where it explains them:
    a sensor upside down would do so as well.

    Args:
        rest, looks: with the wrenches of the resting rod and of each channel filled.
        bent: what the model expects of each.
        axes: (3, 3) of the sensor in the base frame, as its file has them.
    """
    start = np.array(rest.wrench)
    seen = np.array([np.array(look.wrench)[3:] - start[3:] for look in looks]) @ axes.T
    model = np.array([each.wrench[3:] for each in bent])
    sizes = np.linalg.norm(seen, axis=1) / np.maximum(np.linalg.norm(model, axis=1), 1e-12)
    model = model * sizes[:, None]
    flat = _about_z(model, seen)
    free = np.array(Rotation.align_vectors(model, seen)[0].as_matrix())
    flat_residual, free_residual = (_residual(each, model, seen) for each in (flat, free))
    if flat_residual <= max(MOST_RESIDUAL, 1.5 * free_residual):
        return MountingFit(flat @ axes, flat_residual, True)
    return MountingFit(free @ axes, free_residual, False)


def _about_z(model: np.ndarray, seen: np.ndarray) -> np.ndarray:
    """(3, 3) rotation about z that brings what was seen (n, 3) closest to the model."""
    dot = (model[:, :2] * seen[:, :2]).sum()
    cross = (seen[:, 0] * model[:, 1] - seen[:, 1] * model[:, 0]).sum()
    return np.array(Rotation.from_euler("z", np.arctan2(cross, dot)).as_matrix())


def _residual(rotation: np.ndarray, model: np.ndarray, seen: np.ndarray) -> float:
    away = ((seen @ rotation.T - model) ** 2).sum()
    return float(np.sqrt(away / max((model**2).sum(), 1e-18)))


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
