"""Mehl et al. (2024): the shape of a section from the force-torque sensor under its base."""
