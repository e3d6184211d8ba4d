"""Predictive controllers and what they share: horizon, knots, lag, limits, offsets."""
