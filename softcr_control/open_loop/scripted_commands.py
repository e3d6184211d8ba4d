"""Commands that are known beforehand, whatever the robot does: for recordings in open loop."""

from collections.abc import Iterable
from typing import Any

import numpy as np

from softcr_runtime.blocks.block import BlockBase, Input, Output, Samples
from softcr_runtime.blocks.command_packets import CommandPacket
from softcr_runtime.wire.robot_topics import robot_topics


class ScriptedCommands(BlockBase):
    """Answers the k-th sample of the actuators with row k, then holds the last one."""

    name = "scripted_commands"
    kinds = None

    def __init__(self, robot: Any, settings: Any, commands: np.ndarray) -> None:
        """See BlockBase.

        Args:
            robot: see BlockBase.
            settings: see BlockBase.
            commands: (T, m) [unit of the robot's inputs]. In lock-step a row is followed from the
                cycle after the one that it answers on.
        """
        super().__init__(robot, settings)
        topics = robot_topics(robot)
        self._plan, self._commands = topics.plan, commands
        self.inputs = (Input(topics.state, "lead"),)
        self.outputs = (topics.plan,)
        self.reset()

    def reset(self) -> None:
        self._ticks = 0

    def tick(self, now: int, samples: Samples) -> Iterable[Output]:
        """The row of this tick."""
        row = min(self._ticks, len(self._commands) - 1)
        self._ticks += 1
        due = now + round(1e9 * self.settings.period)
        return [Output(self._plan, now, CommandPacket.single(due, self._commands[row]))]

    def idle(self, now: int, why: str) -> Iterable[Output]:
        """No pressure; tendons at rest."""
        rest = np.zeros(self._commands.shape[1])
        return [Output(self._plan, now, CommandPacket.single(now, rest))]
