"""Simulated robots: plants, what is wrong with them, sensors, the simulator block."""
