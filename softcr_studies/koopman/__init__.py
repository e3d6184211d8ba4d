"""A linear model in lifted coordinates, identified from recordings, and its regulator."""
