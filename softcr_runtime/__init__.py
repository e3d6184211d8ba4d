"""What moves blocks: topics, messages, timing, the base of every node."""
