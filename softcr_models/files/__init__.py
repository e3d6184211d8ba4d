"""Files of robots, numbers and tables: read whole, bounded, refused in one clear line."""
