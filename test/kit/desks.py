"""Whoever sends a tip to goals, tick by tick."""

from softcr_control.goals.block import PATH, POSE, STATE, STREAM
from softcr_runtime.blocks.sample import Sample

PERIOD = 1 / 70


class Desk:
    """A block whose ticks and goals a test makes, and what it says: rows of its reference and
    states of its goals."""

    def __init__(self, block):
        self.block = block
        self.now, self.rows, self.states = 1_000_000_000, [], []

    @property
    def tips(self):
        """The tip wanted in each tick so far [m]."""
        return [each.tip_positions[0] for each in self.rows]

    def tick(self, count=1, **said):
        topics = {"pose": POSE, "path": PATH, "stream": STREAM}
        for _ in range(count):
            self.now += round(1e9 * PERIOD)
            given = {topics[name]: value for name, value in said.items()}
            samples = {each: Sample(each, self.now, value, 0.0) for each, value in given.items()}
            for output in self.block.tick(self.now, samples):
                (self.states if output.topic == STATE else self.rows).append(output.value)
        return self
