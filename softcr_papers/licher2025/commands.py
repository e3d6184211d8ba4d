"""Commands of `softcr` for the surrogate; read by `softcr --help`, so it imports nothing."""

COMMANDS = {
    "softcr": {
        "train": ("softcr_papers.licher2025.train:train", "train the surrogate of a robot"),
        "verify-surrogate": (
            "softcr_papers.licher2025.verify_surrogate:verify_surrogate",
            "compare a surrogate with its rod",
        ),
    }
}
