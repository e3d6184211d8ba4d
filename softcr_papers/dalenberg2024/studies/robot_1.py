"""Robot I of Dalenberg, Sec. V-B: by positions and by poses. Its set-up is not printed."""

from softcr_papers.dalenberg2024.studies.robots import Arrangement, robot_study

_FAR = (0.325, 0.15, -0.275)
ARRANGEMENTS = (
    Arrangement("I, positions", "dalenberg_robot1", _FAR, 1.8, 40.5, "position",
                ("R2", "R3", "R4"), ("R5", "R6", "R7")),
    Arrangement("II, poses", "dalenberg_robot1", _FAR, 1.8, 24.5, "pose",
                ("R12", "R13", "R14"), ("R15", "R15 lower", "R15 upper"), "R8"),
)  # fmt: skip

STUDY = robot_study(
    "dalenberg2024/robot-1",
    "Dalenberg, MSc thesis, Sec. V-B",
    "adaptive against fixed lengths on a finer arm, reconstructed Robot I",
    ARRANGEMENTS,
)
