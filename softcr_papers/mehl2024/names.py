"""What this paper adds to the names of estimators."""

from softcr_runtime.settings.registry import Entry, Names

NAMES: Names = {
    "estimator": {
        "cc": Entry(
            "softcr_papers.mehl2024.cc_block:CcEstimatorBlock",
            "one constant-curvature arc from the sensor under the base, in open loop",
        ),
    },
}  # fmt: skip
