"""The kind of robots that this paper adds: arms of constant-curvature bodies, driven by tendons."""

from softcr_models.robots.kinds import Kind

ARM = Kind(
    "an arm driven by tendons",
    "softcr_papers.dalenberg2024.arm:Arm",
    "tendon",
    "change of a tendon's length against the zero state [m]",
    "positions",
    loop="softcr_papers.dalenberg2024.arm_loop:ArmLoop",
    report="softcr_papers.dalenberg2024.arm_report:ArmReport",
)
