"""Studies of controllers that no paper has."""
