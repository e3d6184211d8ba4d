"""Mehl et al. (2024): a constant-curvature filter on the force-torque sensor under the base."""
