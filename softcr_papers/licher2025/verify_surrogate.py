"""`softcr verify-surrogate`: the command."""

from pathlib import Path
from typing import Annotated

from pydantic import Field

from softcr_runtime.settings.command_line import RobotName, command


@command
def verify_surrogate(
    *,
    robot: RobotName = "licher2025",
    network: str = "",
    motions: Annotated[int, Field(ge=1)] = 20,
    only_times: bool = False,
    results: Path = Path("results/surrogates/verification"),
) -> int:
    """Evaluate a network by free-running motions, compared with the rod that it replaces.

    Args:
        robot: name or YAML file of the robot.
        network: path without ending; empty: the robot's shipped network.
        motions: number of motions of 10 s per row.
        only_times: measure only the times of steps and ticks on this processor (Table V).
        results: directory in which a folder is made.

    Raises:
        UserError: the robot or the network cannot be used.
    """
    from softcr_papers.licher2025.studies.surrogate_verdict import (
        judged,  # brings torch and kernels with it
    )

    return judged(robot, network, motions, only_times, results)
