"""Strain models learned from how the shape moves: segments, equations of motion, what matters.

Valadas, Stölzle, Liu, Della Santina, Learning Low-Dimensional Strain Models of Soft Robots by
Looking at the Evolution of Their Shape (2024), Section III.
"""
