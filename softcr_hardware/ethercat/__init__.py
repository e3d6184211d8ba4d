"""Pressure valves and sensors over EtherCAT: terminals, master, pressure loop, emulator."""
