"""What this paper adds to the names of controllers and plants."""

from softcr_runtime.settings.registry import Entry, Names

NAMES: Names = {
    "controller": {
        "apcc": Entry(
            "softcr_papers.dalenberg2024.apcc.block:ApccBlock",
            "adaptive piecewise constant curvature for tendon-driven arms, Dalenberg (2024)",
        ),
    },
    "plant": {
        "arm": Entry(
            "softcr_papers.dalenberg2024.arm_plant:TendonArmPlant", "an arm driven by tendons"
        ),
    },
}  # fmt: skip
