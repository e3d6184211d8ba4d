"""What this paper adds to the names of controllers, estimators, plants and references."""

from softcr_runtime.settings.registry import Entry, Names

NAMES: Names = {
    "controller": {
        "strain_regulator": Entry(
            "softcr_papers.valadas2024.strain_regulator:StrainRegulator",
            "P-satI-D on strains with the model's feed-forward, Valadas et al. (2024)",
            "strain_regulator",
        ),
    },
    "estimator": {
        "shape": Entry(
            "softcr_papers.valadas2024.shape_estimator:ShapeEstimator",
            "strains that fit all markers of a planar robot, rates by a filter",
        ),
    },
    "plant": {
        "strain": Entry(
            "softcr_papers.valadas2024.strain_plant:StrainPlant",
            "a planar robot, torques on its strains",
        ),
    },
    "reference": {
        "strain_setpoints": Entry(
            "softcr_papers.valadas2024.strain_references:StrainSetpoints",
            "shapes of a strain robot, one after the other",
        ),
        "strain_sines": Entry(
            "softcr_papers.valadas2024.strain_references:StrainSines",
            "sinusoidal strains of a strain robot",
        ),
    },
}  # fmt: skip
