"""`softcr replay`: a recorded run again, through estimator and controller or onto the wire."""
