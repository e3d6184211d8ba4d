"""What every node shares: timing, the table of topics, messages, settings and the node's base."""
