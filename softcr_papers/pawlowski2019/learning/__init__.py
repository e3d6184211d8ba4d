"""Policies that are learned on many rods at a time: plant, tasks, environments, training."""
