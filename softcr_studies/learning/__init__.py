"""Studies of learned policies that no paper has."""
