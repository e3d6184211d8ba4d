"""A robot's parameters from recordings: what can be identified, and the fit of a rod."""
