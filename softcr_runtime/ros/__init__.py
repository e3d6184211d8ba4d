"""Nodes: blocks and drivers as ROS 2 lifecycle nodes, their threads, processes, parameters."""
