"""The bench's devices in software: chambers, sensors, faults, also on virtual time."""
