"""The exact rod on CUDA: the same text as on the processor, one thread per candidate."""
