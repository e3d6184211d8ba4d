"""Robots as data: what the file of a robot says, its rules, the arrays that follow from it."""
