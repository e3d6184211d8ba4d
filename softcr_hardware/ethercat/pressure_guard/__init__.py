"""Whether a chamber's pressure sensor is to be believed: detectors of the fast cycle, one a file."""
