"""Commands that no controller computes: those of a motion, or of a script."""
