"""Robot II of Dalenberg, Appendix A: bodies as printed, their material reconstructed."""

from softcr_papers.dalenberg2024.studies.robots import Arrangement, robot_study

ARRANGEMENTS = (
    Arrangement("poses", "dalenberg_robot2", (0.15, 0.225, -0.1875), 1.5, 18.5, "pose",
                ("R16", "R17", "R18"), ("R19", "R19 lower", "R19 upper")),
)  # fmt: skip

STUDY = robot_study(
    "dalenberg2024/robot-2",
    "Dalenberg, MSc thesis, Appendix A",
    "adaptive against fixed lengths on a finer arm, Robot II of reconstructed material",
    ARRANGEMENTS,
)
