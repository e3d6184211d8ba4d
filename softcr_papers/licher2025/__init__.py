"""Licher et al. (2025): the neural surrogate of the rod, and the experiments with it."""
