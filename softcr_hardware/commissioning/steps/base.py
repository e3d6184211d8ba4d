"""Base and tip's body in the cameras' world, from the directions in which the rod bends.

With the model's poses T of the tip, base frame, for the vented rod and for each chamber filled,

    body in world = W T inverse(X),    W = base in world,  X = tip in body.

The directions of displacements and of rotations give the rotation of W, those of rotations in the
body's own axes that of X; the resting pose gives the position. How far the rod bends need not be
known: each chamber has a factor on its pressure.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pinocchio as pin
from scipy.optimize import least_squares
from scipy.spatial.transform import Rotation

from softcr_hardware.commissioning.expectation import BendingPath, Bent, Expectation
from softcr_hardware.commissioning.findings import Finding
from softcr_hardware.commissioning.mirrors import Mirror
from softcr_hardware.commissioning.record import StepRecord
from softcr_hardware.commissioning.session import Session, Step, found
from softcr_hardware.commissioning.steps.survey import Look, Survey
from softcr_hardware.optitrack.calibration import MocapCalibration, Placement

_BENDING = 0.35  # of the model's that a rod of this file may differ by [-]

MOST_POSITION = 0.002
"""Residual beyond which a calibration is refused, root mean square of all positions [m]."""
MOST_ROTATION = np.radians(2.0)
"""The same of rotations [rad]."""

_LEVER = 0.07  # that makes a rotation comparable with a displacement [m]
_PIVOT = 0.02  # how far the body's pivot may be from where the file has it, standard deviation [m]
_ROUNDS = 4
_SCALE_LIMITS = (0.3, 1.55)


@dataclass(frozen=True, eq=False)
class Alignment:
    """Rotations that bring the model's bending to what the cameras saw.

    Attributes:
        base: (3, 3) base in world.
        tip: (3, 3) tip in body.
        position: (3,) base in world [m].
        residual: root mean square over the displacements' [-].
    """

    base: np.ndarray
    tip: np.ndarray
    position: np.ndarray
    residual: float


@dataclass(frozen=True, eq=False)
class BaseFit:
    """A calibration and how well it explains what was seen.

    Attributes:
        calibration: with the new base and tip.
        position_residual: root mean square [m].
        rotation_residual: root mean square [rad].
        bending: (m,) how much the rod bends over what the model expects [-].
        pivot_fitted: whether the pivot of the body was looked for, too.
    """

    calibration: MocapCalibration
    position_residual: float
    rotation_residual: float
    bending: np.ndarray
    pivot_fitted: bool

    @property
    def good(self) -> bool:
        """Whether it is within the bounds."""
        return self.position_residual <= MOST_POSITION and self.rotation_residual <= MOST_ROTATION


def aligned(
    rest: Look, looks: Sequence[Look], bent: Sequence[Bent], mirror: Mirror, model: Expectation
) -> Alignment:
    """Rotations by directions alone, for one idea of who bends whom.

    Args:
        rest, looks: what the cameras saw; of each channel.
        bent: what the model expects of the chamber that a channel is thought to fill.
        mirror: signs that the stream is thought to have wrong.
        model: at rest.
    """
    first = mirror.rotation(rest.turned)
    start = mirror.positions(np.array(rest.position))
    turned = [mirror.rotation(look.turned) for look in looks]
    moved = np.array([mirror.positions(np.array(look.position)) - start for look in looks])
    turns = np.array([pin.log3(each @ first.T) for each in turned])
    own = np.array([pin.log3(first.T @ each) for each in turned])
    sizes = np.linalg.norm(turns, axis=1) / [max(np.linalg.norm(each.turn), 1e-9) for each in bent]
    shifts = np.array([s * each.displacement for s, each in zip(sizes, bent, strict=True)])
    model_turns = np.array([s * each.turn for s, each in zip(sizes, bent, strict=True)])
    model_own = np.array([s * each.own_turn for s, each in zip(sizes, bent, strict=True)])
    arms = np.array([each - first for each in turned])  # what a pivot adds to the displacement
    pivot = np.zeros(3)
    for _ in range(_ROUNDS):
        seen = np.concatenate([moved - arms @ pivot, _LEVER * turns])
        base = _rotation(np.concatenate([shifts, _LEVER * model_turns]), seen)
        pivot = _pivot(arms, moved - shifts @ base.T)
    away = moved - arms @ pivot - shifts @ base.T
    turned_away = _LEVER * (turns - model_turns @ base.T)
    scale = np.sqrt((shifts**2).sum() / len(bent))
    tip = _rotation(model_own, own, also=(base, first, model.rest[:3, :3]))
    own_away = _LEVER * (own - model_own @ tip.T)
    worst = np.sqrt(((away**2).sum() + (turned_away**2).sum() + (own_away**2).sum()) / len(bent))
    position = start - first @ pivot - base @ model.rest[:3, 3]
    return Alignment(base, tip, position, float(worst / max(scale, 1e-9)))


def fitted(
    file: MocapCalibration,
    rest: Look,
    looks: Sequence[Look],
    paths: Sequence[BendingPath],
    begin: Alignment,
    mirror: Mirror,
) -> BaseFit:
    """The calibration that explains all poses best.

    Args:
        file: whose position of the tip in the body holds unless the poses speak against it.
        rest, looks: what the cameras saw.
        paths: of the chambers that the channels fill.
        begin: where to begin.
        mirror: signs that the stream has wrong.
    """
    with_pivot = [_solved(file, rest, looks, paths, begin, mirror, free) for free in (False, True)]
    kept, freed = with_pivot
    much_better = freed.position_residual < 0.5 * kept.position_residual
    return freed if kept.position_residual > 0.25 * MOST_POSITION and much_better else kept


def _solved(
    file: MocapCalibration,
    rest: Look,
    looks: Sequence[Look],
    paths: Sequence[BendingPath],
    begin: Alignment,
    mirror: Mirror,
    free_pivot: bool,
) -> BaseFit:
    positions = np.array([mirror.positions(np.array(each.position)) for each in (rest, *looks)])
    rotations = [mirror.rotation(each.turned) for each in (rest, *looks)]
    pivot = np.array(file.tip_in_body.position)
    count = len(looks)

    def frames(x: np.ndarray) -> tuple[pin.SE3, pin.SE3]:
        base = pin.SE3(begin.base @ pin.exp3(x[:3]), begin.position + x[3:6])
        tip = pin.SE3(begin.tip @ pin.exp3(x[6:9]), pivot + x[9 + count :] if free_pivot else pivot)
        return base, tip

    def away(x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        base, tip = frames(x)
        poses = [paths[0].rest, *(p.pose(s) for p, s in zip(paths, x[9 : 9 + count], strict=True))]
        bodies = [base * pin.SE3(pose) * tip.inverse() for pose in poses]
        moved = np.array([each.translation for each in bodies]) - positions
        turned = np.array(
            [pin.log3(R.T @ each.rotation) for R, each in zip(rotations, bodies, strict=True)]
        )
        return moved, turned

    def residuals(x: np.ndarray) -> np.ndarray:
        moved, turned = away(x)
        prior = x[9 + count :] / _PIVOT
        return np.concatenate([moved.ravel() / 1e-3, _LEVER * turned.ravel() / 1e-3, prior])

    size = 9 + count + 3 * free_pivot
    low, high = np.full(size, -np.inf), np.full(size, np.inf)
    low[9 : 9 + count], high[9 : 9 + count] = _SCALE_LIMITS
    start = np.zeros(size)
    start[9 : 9 + count] = 1.0
    x = least_squares(residuals, start, bounds=(low, high), x_scale="jac").x
    moved, turned = away(x)
    base, tip = frames(x)
    calibration = file.model_copy(
        update={
            "base_in_world": Placement.of(base.homogeneous),
            "tip_in_body": Placement.of(tip.homogeneous),
        }
    )
    return BaseFit(
        calibration,
        float(np.sqrt((moved**2).sum(axis=1).mean())),
        float(np.sqrt((turned**2).sum(axis=1).mean())),
        x[9 : 9 + count],
        free_pivot,
    )


def _rotation(
    model: np.ndarray, seen: np.ndarray, also: tuple[np.ndarray, ...] | None = None
) -> np.ndarray:
    """(3, 3) rotation that brings vectors (n, 3) of the model closest to those seen.

    `also` may bring base, body and resting tip, whose rotations must agree with this one: vectors
    in a plane alone do not tell it from its mirror image.
    """
    if also is None:
        return np.array(Rotation.align_vectors(seen, model)[0].as_matrix())
    base, body, tip = also
    there = (base @ tip).T @ body  # body in tip: the inverse of tip in body
    axes = 0.3 * np.linalg.norm(model, axis=1).mean() * np.eye(3)
    both = np.concatenate([seen, axes @ there])
    return np.array(Rotation.align_vectors(both, np.concatenate([model, axes]))[0].as_matrix())


def _pivot(arms: np.ndarray, away: np.ndarray) -> np.ndarray:
    """(3,) body's origin from the tip, in the body's own axes, that explains (n, 3) best [m]."""
    weight = 1e-3 / _PIVOT
    matrix = np.concatenate([arms.reshape(-1, 3), weight * np.eye(3)])
    return np.linalg.lstsq(matrix, np.concatenate([away.ravel(), np.zeros(3)]), rcond=None)[0]


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
