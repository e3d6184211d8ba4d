"""What a structural plant adds to a rod, one effect in each file."""
