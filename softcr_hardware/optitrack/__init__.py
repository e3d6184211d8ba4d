"""OptiTrack: poses of the tip out of Motive's stream, in the base frame and on our clock."""
