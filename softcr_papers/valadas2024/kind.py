"""The kind of robots that this paper adds: planar ones of segments of constant strain."""

from softcr_models.robots.kinds import Kind

STRAIN = Kind(
    "a planar robot of segments of constant strain",
    "softcr_papers.valadas2024.strain.arm:StrainArm",
    "torque",
    "generalised force on a strain: [N m] on bending, [N] on shear and axial strain",
    loop="softcr_papers.valadas2024.strain_loop:StrainLoop",
    report="softcr_papers.valadas2024.strain_report:StrainReport",
)
