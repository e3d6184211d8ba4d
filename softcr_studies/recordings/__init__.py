"""Studies on recordings of real robots, which a person brings."""
