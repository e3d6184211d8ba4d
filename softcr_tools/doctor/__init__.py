"""`softcr doctor`: what stands in the way of a run, and what mends it."""
