"""The command `softcr learn policy`; read by `softcr --help`, so it imports nothing."""

COMMANDS = {
    "softcr learn": {
        "policy": (
            "softcr_papers.pawlowski2019.learn_policy:policy",
            "Learn a policy in simulation.",
        )
    }
}
