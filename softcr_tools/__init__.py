"""The `softcr` command: starts systems, records them, reports on them."""
