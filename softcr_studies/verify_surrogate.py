"""`softcr verify-surrogate`: the command."""

from pathlib import Path
from typing import Annotated

from pydantic import Field

from softcr_runtime.command_line import RobotName, command


@command
def verify_surrogate(
    *,
    robot: RobotName = "licher2025",
    network: str = "",
    motions: Annotated[int, Field(ge=1)] = 20,
    only_times: bool = False,
    results: Path = Path("results/surrogates/verification"),
) -> int:
    """Judge a network: free-running motions beside the rod it stands for.

    Args:
        robot: name or YAML file.
        network: path without ending; empty for the robot's shipped one.
        motions: of 10 s per row.
        only_times: Table V alone: steps and ticks on this processor.
        results: where a folder is made.

    Raises:
        UserError: the robot or the network cannot be used.
    """
    from softcr_studies.surrogate_verdict import judged  # brings torch and kernels with it

    return judged(robot, network, motions, only_times, results)
