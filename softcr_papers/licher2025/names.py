"""What this paper adds to the names of commands."""

from softcr_runtime.settings.registry import Entry, Names

NAMES: Names = {
    "command": {
        "train": Entry("softcr_papers.licher2025.train:train", "train the surrogate of a robot"),
        "verify-surrogate": Entry(
            "softcr_papers.licher2025.verify_surrogate:verify_surrogate",
            "compare a surrogate with its rod",
        ),
    },
}  # fmt: skip
