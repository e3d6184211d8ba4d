"""What a structural plant adds to a rod."""
