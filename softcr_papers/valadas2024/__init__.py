"""Valadas et al. (2024): strain models learned from the motion of a shape."""
