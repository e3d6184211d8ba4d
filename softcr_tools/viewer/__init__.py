"""`softcr view`: the running system on a browser page."""
