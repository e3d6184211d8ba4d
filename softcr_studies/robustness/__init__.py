"""Studies of what a controller loses on a plant that it does not know."""
