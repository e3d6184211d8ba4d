"""Published experiments, tuning and benchmarks: one file each, on one frame."""
