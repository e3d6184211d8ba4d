"""Settings and names: what a block can be told, from which words and files."""
