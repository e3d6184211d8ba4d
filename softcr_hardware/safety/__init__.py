"""What decides whether valves may follow commands: rules, limits, the arming handshake."""
