"""A robot's parameters from recordings that a person brings."""
