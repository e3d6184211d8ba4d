"""Goals that are set while a robot runs: a pose, a path, or a stream that the tip follows."""
