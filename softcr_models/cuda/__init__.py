"""Kernels for NVIDIA GPUs in CUDA C++: their compiler, the exact rod, and the pressure chain."""
