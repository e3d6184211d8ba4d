"""The rod as a model: rows of nodes, sub-steps, tendons, clearance, linearisation."""
