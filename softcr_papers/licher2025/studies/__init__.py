"""Studies after Licher et al. 2025: rod, surrogate, filter and control of a pneumatic arm."""
