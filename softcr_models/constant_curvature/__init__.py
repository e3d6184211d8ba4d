"""Constant-curvature models: kinematics of any number of sections, dynamics of one (003, 004)."""
