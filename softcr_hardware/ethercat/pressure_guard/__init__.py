"""Whether a chamber's pressure sensor is to be believed: the fast cycle's detectors, one a file."""
