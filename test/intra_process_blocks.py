"""Two small blocks for the tests of nodes that share a process."""

from softcr_runtime.blocks.block import BlockBase, Input, Output


class Doubler(BlockBase):
    """Commands twice the measured pressures."""

    name = "doubler"
    inputs = (Input("pressure/state", "lead"),)
    outputs = ("pressure/command",)

    def tick(self, now, samples):
        return [Output("pressure/command", now, 2.0 * samples["pressure/state"].value)]


class Keeper(BlockBase):
    """Keeps the commands that it hears."""

    name = "keeper"
    inputs = (Input("pressure/command", "lead"),)

    def __init__(self, robot, settings):
        super().__init__(robot, settings)
        self.heard = []

    def tick(self, now, samples):
        self.heard.append((now, samples["pressure/command"].value))
        return []
