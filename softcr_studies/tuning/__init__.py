"""Searches for better numbers of filter and controllers, on plants that are not the model."""
