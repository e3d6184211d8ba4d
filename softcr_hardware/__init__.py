"""Simulated plants and real devices: their errors, drivers, emulators, safety, commissioning.

ROS is only in `nodes`.
"""
