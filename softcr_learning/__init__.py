"""What trains: surrogates of a robot's rod, and the studies that searches share."""
