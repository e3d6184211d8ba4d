"""The public data of Valadas et al. (2024): their rollouts scored, our models of their motions.

A folder has their repositories `pcs-dynamic-regression` and `pcs-regression-plots`, cloned by the
user; nothing of them is part of softcr. "The authors' rollout" scores the strains that the paper's
models predicted in its test. "Learned here" learns from the same 4 s: from strains that they found
in renders or, of case 2, from the poses of marks that they did, and predicts the same test.
"""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from pydantic import Field

from softcr_models.errors import UserError
from softcr_papers.valadas2024.learning.fusion import fuse
from softcr_papers.valadas2024.learning.learn import LearnSettings, learn_dynamics
from softcr_papers.valadas2024.learning.motion import ShapeMotion
from softcr_papers.valadas2024.learning.shape_fit import PoseNoise, fit_strains, shape_errors
from softcr_papers.valadas2024.learning.simulated import MARKERS, mean_errors, tip_errors
from softcr_papers.valadas2024.learning.sparsification import Stiffest
from softcr_papers.valadas2024.strain.kinematics import StrainKinematics
from softcr_papers.valadas2024.studies.robots import CASES as ROBOTS
from softcr_papers.valadas2024.studies.robots import HOLD
from softcr_studies.frame.study import Cell, Metric, Must, Published, Result, Study, StudySettings

_MOTIONS = Path("pcs-dynamic-regression", "Source", "Soft Robot")
_ROLLOUTS = Path("pcs-regression-plots", "data")
_TEST = "sinusoidal_actuation"
_FRAME = 0.001  # of all their files [s]
_SEEN = PoseNoise(1e-5, 1e-3)  # of poses that are made of strains found in renders
_MARKED = PoseNoise(1e-4, 6e-3)  # of the poses of marks


@dataclass(frozen=True)
class Case:
    """A row of Table II.

    Attributes:
        name: in the table.
        folder: of the rollout.
        lengths: of the segments, as the rollout was made for [m].
        tip, angle: as printed [mm], [rad].
        kept: strains of the files of the rollout; empty: all.
        all_strains: whether the rollout of all strains is meant where there is another.
        motion: folder of the motion to learn from; empty: none was released.
        noise: of its poses.
        limits: of strains, which are dropped where they are stiffer; None: all are kept.
    """

    name: str
    folder: str
    lengths: tuple[float, ...]
    tip: float
    angle: float
    kept: tuple[int, ...] = ()
    all_strains: bool = False
    motion: str = ""
    noise: PoseNoise = _SEEN
    limits: Stiffest | None = None


_ONE, _TWO = (0.1,), (0.068, 0.102)
_STIFF = "ns-1_high_shear_stiffness"
CASES = (
    Case("1: 1S PCS", "ns-1", _ONE, 4.89, 0.113, motion="ns-1_dof-3"),
    Case("1: 1S PCS, noise", "ns-1_noise", _ONE, 13.7, 0.307, motion="ns-1_dof-3_noise",
         noise=PoseNoise(5e-4, float(np.deg2rad(1.0)))),
    Case("2: 2S PCS", "ns-2", _TWO, 5.22, 0.138, motion="ns-2_dof-3", noise=_MARKED),
    Case("2: 2S PCS, noise", "ns-2_noise", _TWO, 16.8, 0.135),
    Case("4: 1S PCS H-SH", _STIFF, _ONE, 4.57, 0.099, (0, 2), motion=_STIFF,
         limits=Stiffest()),
    Case("4: 1S PCS H-SH, all strains", _STIFF, _ONE, 5.14, 0.116, all_strains=True,
         motion=_STIFF),
    Case("5: 2S PCS H-AX/SH", "ns-2_high_stiffness", (0.07, 0.1), 17.9, 0.305, (0, 1, 3, 5),
         motion="ns-2_dof-3_high_stiffness", limits=ROBOTS[4].limits),
)  # fmt: skip
ROLLOUT, LEARNED = "the authors' rollout", "learned here"
TIP, ANGLE, BODY, TURN = "tip", "angle", "position, fused segments", "angle, fused segments"


class Settings(StudySettings):
    """See StudySettings."""

    data: str = Field("", description="folder with clones of the authors' two repositories")


def run(cell: Cell) -> Result:
    """Mean errors of the tip over the test, Eq. (10)."""
    case: Case = cell.case
    read = _reader(Path(cell.settings.data).expanduser())
    return _scored(case, read) if cell.method == ROLLOUT else _learned(case, read)


def _reader(folder: Path) -> Callable[[Path, tuple[int | None, ...]], np.ndarray]:
    """Reads an array of a shape, None for any size, of the folder.

    Raises:
        UserError: of the function, where a file is missing or is something else.
    """

    def read(path: Path, shape: tuple[int | None, ...]) -> np.ndarray:
        try:
            found = np.load(folder / path, allow_pickle=False)
        except FileNotFoundError:
            raise UserError(
                f"authors' data: {folder / path} is missing; clone github.com/mstoelzle/"
                f"{path.parts[0]} into {folder}"
            ) from None
        except (OSError, ValueError):
            raise UserError(f"authors' data: {folder / path} is no array of numbers") from None
        fits = isinstance(found, np.ndarray) and found.ndim == len(shape)
        if not fits or any(b not in (None, a) for a, b in zip(found.shape, shape, strict=True)):
            raise UserError(f"authors' data: {folder / path}: must have shape {shape}")
        return found.astype(float)

    return read


def _scored(case: Case, read: Callable[..., np.ndarray]) -> Result:
    """Their prediction against their truth."""
    start, size = f"{case.folder[:4]}_q", 3 * len(case.lengths)
    kept = case.kept or tuple(range(size))
    whole = "_all_strains" if case.all_strains else ""
    truth = "_all_strains" if case.all_strains or case.kept else ""
    folder = _ROLLOUTS / case.folder / _TEST
    found = np.zeros((7000, size))
    found[:, kept] = read(folder / f"{start}_pred{whole}.npy", (len(kept), 7000)).T
    true = read(folder / f"{start}_true{truth}.npy", (size, 7000)).T
    chain = StrainKinematics(np.array(case.lengths))
    position, angle = mean_errors(chain.tip(found), chain.tip(true))
    return {TIP: 1e3 * position, ANGLE: angle}


def _learned(case: Case, read: Callable[..., np.ndarray]) -> Result:
    """Our prediction against their truth."""
    lengths, size = np.array(case.lengths), 3 * len(case.lengths)
    folder, test = _MOTIONS / case.motion, _MOTIONS / case.motion / "validation" / _TEST
    strains = read(folder / "training" / "cv" / "X.npy", (8, 500, 2 * size))[..., :size]
    torques = read(folder / "training" / "cv" / "Tau.npy", (8, 500, size))
    places = np.linspace(0.0, lengths.sum(), MARKERS)
    poses, found = StrainKinematics(lengths).poses(strains, places), {}
    if case.noise is _MARKED:
        marks = read(folder / "training" / "cv" / "Chi_raw.npy", (4000, 3 * MARKERS))
        poses = _in_order(marks.reshape(8, 500, MARKERS, 3), poses)
    motion = ShapeMotion(poses, places, torques, _FRAME)
    if case.noise is _MARKED:
        fused = fuse(motion).lengths
        position, angle = shape_errors(motion, fused, fit_strains(motion, fused).strains)
        note = f"fused segments {np.round(1e3 * fused, 1).tolist()} mm"
        found = {BODY: 1e3 * position, TURN: angle, "note": note}
    settings = LearnSettings(noise=case.noise, limits=case.limits)
    numbers = learn_dynamics(motion, None, lengths, settings).regression.numbers
    true = read(test / "X_val.npy", (1, 7000, 2 * size))[0, :, :size]
    asked = read(test / "Tau_val.npy", (1, 7000, size))[0]
    every = round(HOLD / _FRAME)
    errors = tip_errors(
        numbers, true[0], asked[:-every:every], HOLD, true[::every], lengths
    )  # of 699 torques
    return {TIP: 1e3 * errors[0], ANGLE: errors[1], **found}


def _in_order(marks: np.ndarray, poses: np.ndarray) -> np.ndarray:
    """Trajectories (8, 500, 21, 3) of marks in the order of others: theirs are in another one."""
    apart = np.linalg.norm((marks[None, :, 0] - poses[:, None, 0])[..., :2], axis=-1).mean(axis=-1)
    order = apart.argmin(axis=1)
    if len(set(order.tolist())) < len(order):
        raise UserError("authors' data: poses of marks are not those of the strains beside them")
    return marks[order]


STUDY = Study(
    name="valadas2024/authors-data",
    source="Valadas et al. (2024), Tables I and II",
    summary="rollouts and motions of the authors' public data, which the user brings",
    run=run,
    cases=CASES,
    methods=lambda case: (ROLLOUT, LEARNED) if case.motion else (ROLLOUT,),
    settings=Settings,
    metrics=(
        Metric(TIP, "mm", TIP),
        Metric(ANGLE, "rad", ANGLE),
        Metric(BODY, "mm", BODY),
        Metric(TURN, "rad", TURN),
    ),
    published=(
        *(Published(TIP, case.tip, "simulation", case.name) for case in CASES),
        *(Published(ANGLE, case.angle, "simulation", case.name) for case in CASES),
        Published(BODY, 0.240, "simulation"),
        Published(TURN, 1.15e-2, "simulation"),
    ),
    musts=tuple(
        Must(name, value, 0.5 * value, case.name, LEARNED)
        for case in CASES
        for name, value in ((TIP, case.tip), (ANGLE, case.angle))
    ),
    exact="All motions are the authors' simulations of chains of constant strain, which our models "
    "are, too. We learn from the strains that they found, which for case 5 are the true ones bit "
    "for bit, and for case 2 from poses of marks; of its noisy row no motion was released. "
    "Rollouts of case 2 are scored with the lengths that they were made for, 68 and 102 mm; with "
    "70 and 100 mm they have the printed errors.",
    seeded=False,
    needs=("data",),
)  # fmt: skip
