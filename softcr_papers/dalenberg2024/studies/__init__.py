"""Dalenberg, A-PCC (MSc thesis, TU Delft): adaptive piecewise constant curvature.

The thesis bears no date; its hardware includes a Raspberry Pi 5, on sale since the end of 2023.
"""
