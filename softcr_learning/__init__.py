"""What is trained: surrogates of rods, strain models from recordings, and policies."""
