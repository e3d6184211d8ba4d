"""The simulated plant's own mechanics: finite elements on SE(3), shared with no model."""
