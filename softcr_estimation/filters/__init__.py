"""Gaussian filters over any model, extended and unscented, in square-root form."""
