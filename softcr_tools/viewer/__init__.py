"""`softcr view`: the running system on a browser page."""

from softcr_tools.viewer.command import main

__all__ = ["main"]
