"""Blocks, what they exchange, and the executor of virtual time that runs them. No ROS."""
