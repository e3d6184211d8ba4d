"""References: where the robot should be over the coming ticks."""
