"""A controller of one's own that something happens to, in a file as a person writes it."""

FILE = """
import os, signal
import numpy as np

class Mine:
    needs_state = False

    def __init__(self, context, settings):
        self.size, self.ticks = context.model.inputs.size, 0

    def reset(self):
        pass

    def command(self, observation):
        self.ticks += 1
        if self.ticks WHEN:
            HAPPENS
        return np.full(self.size, 30e3)
"""


def written(path, when, happens):
    """The name of one to which something happens, a line of Python, in ticks such as "== 20"."""
    path.write_text(FILE.replace("WHEN", when).replace("HAPPENS", happens))
    return f"{path}:Mine"
