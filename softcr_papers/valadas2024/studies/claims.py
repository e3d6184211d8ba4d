"""What Valadas et al. (2024) claim, as rows of our tables."""

from softcr_papers.valadas2024.studies import (
    baselines,
    control,
    fusion,
    lens,
    other_plants,
    regression,
)
from softcr_papers.valadas2024.studies.shapes import IMAGES
from softcr_studies.frame.claims import Claim

_ALL = tuple(row.name for row in regression.ROWS if row.paper[0] == row.paper[0])
CLAIMS = (
    Claim(
        "Few segments of constant strain, fused from images, have the robot's shapes (Table I)",
        "valadas2024/fusion", f"position, {fusion.ENDS}", methods=(IMAGES,),
    ),
    Claim(
        "A model regressed from 4 s of motion predicts 7 s of another one (Table II): least "
        "squares, Eq. (7), of accelerations by central differences, as in the authors' code",
        "valadas2024/regression", "tip", methods=(regression.DIFFERENCES,),
        why="the paper has one draw of torques, of which the table has ten; with the second "
        "derivative of the filter's cubic, as the text has it, errors are some 2.5 times as large, "
        "with the paper's monomials they are alike in the half of the runs that do not run away",
    ),
    Claim(
        "The same by the weak form, which is ours",
        "valadas2024/regression", "tip", cases=_ALL, methods=(regression.WEAK,),
        published_by=regression.PLAIN,
    ),
    Claim(
        "Strains that are too stiff are found and dropped (Eq. 8)",
        "valadas2024/regression", "strains dropped as in the paper", at_least=True, bound=100.0,
        why="the printed limit of 100 MPa would keep the stiff axial strain of case 5",
    ),
    Claim(
        "The learned strain model predicts the test (Table III)",
        "valadas2024/baselines", "test position", methods=(baselines.OURS,),
    ),
    Claim(
        "Its error is a small part of that of the best network (Table III)",
        "valadas2024/baselines", "test position, best network over ours", at_least=True,
    ),
    Claim(
        "Networks learn the training motion (Table III)",
        "valadas2024/baselines", "training position", methods=baselines.NETWORKS,
        why="the networks here are trained for a minute (`--preset full`: ten), the paper's for "
        "3000 epochs",
    ),
    Claim(
        "With the learned feed-forward all strains reach their setpoints (Fig. 8), error as a "
        "multiple of the authors'",
        "valadas2024/control", control.RATIO, methods=(control.LEARNED,), bound=1.0,
        why="the integral of bending remembers the last setpoint; with a quarter of its gain, or "
        "sampled at 200 Hz, the errors are below the authors' (further rows)",
    ),
    Claim(
        "Beyond the paper: on exact rods the same law leaves at most twice the error of its own "
        "robot",
        "valadas2024/other-plants", other_plants.RATIO, bound=2.0,
        why="a payload and wrong lengths are errors of the feed-forward, for which the slow "
        "integral of shear does not make up in 5 s",
    ),
    Claim(
        "Beyond the paper: marks are found through a lens, by a tilted camera, to 0.05 mm",
        "valadas2024/lens", lens.POSITION, methods=(lens.CALIBRATED,), bound=0.05,
    ),
)  # fmt: skip
