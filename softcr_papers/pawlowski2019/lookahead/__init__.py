"""Predictive controllers that hold a command for several ticks: NLSQ, LQR and iLQR."""
