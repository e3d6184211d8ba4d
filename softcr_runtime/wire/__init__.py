"""Topics: names, types, qualities of service, and how a value becomes a message and back."""
