"""Pawlowski (2019): reference solvers, look-ahead controllers, learned policies."""
