"""Valadas et al. (2024): strain models learned from the evolution of a shape."""
