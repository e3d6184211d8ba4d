"""Pawlowski (2019): solvers of the Cosserat rod on one rod of silicone."""
