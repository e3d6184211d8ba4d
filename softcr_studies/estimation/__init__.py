"""Studies of what estimators find beside the state."""
