"""Closed loops that several studies run: plants, filters and controllers together."""
