"""The command `softcr learn strain`; read by `softcr --help`, so it imports nothing."""

COMMANDS = {
    "softcr learn": {
        "strain": (
            "softcr_papers.valadas2024.learn_strain:strain",
            "Learn a planar robot of constant-strain segments, and write its robot file.",
        )
    }
}
