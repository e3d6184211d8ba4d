"""The machine side: plant, drivers, safety. Plain modules; nodes live in `nodes`."""
