"""What this paper adds to the names of commands."""

from softcr_runtime.settings.registry import Entry, Names

NAMES: Names = {
    "learn": {
        "strain": Entry(
            "softcr_papers.valadas2024.learn_strain:strain",
            "Learn a planar robot of constant-strain segments, and write its robot file.",
        ),
    },
}  # fmt: skip
