"""`softcr commission`: the command and its options."""

from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from softcr_runtime.command_line import command
from softcr_tools.commission.options import BenchOptions


@command
def commission(
    options: BenchOptions,
    *,
    output: Path = Path("commissioning"),
    daily: bool = False,
    begin: Annotated[str, Parameter(name="--from")] = "",
    yes: bool = False,
    answers: Path | None = None,
    serials: str = "",
) -> int:
    """Commission a bench: find what is wired or mounted wrong, measure it, write its files.

    Leads through the steps, on the real bench or with --virtual on one in memory. What each step
    found is kept in the output directory: the same command goes on where it ended. The last step
    writes station, calibration and mounting files; files that were there are kept under another
    name. The exit code is 1 while something is to be mended by hand.

    Args:
        output: directory of the record and of the written files.
        daily: check the files of the output directory against the bench in two minutes; nothing is
            written but the record of the day.
        begin: step to begin at: devices, zero, sensors, exhaust, survey, wiring, slope, leak, flow,
            base, force_torque, watchdog or deadman; empty for the first that is not done.
        yes: answer every question with yes, and hold no switch: on a bench where nobody is near.
        answers: YAML file with answers: gauge (kPa by chamber of the output), refuse (questions).
        serials: of the parts, in words, for the record.

    Raises:
        UserError: files or devices that cannot be used.
    """
    from softcr_tools.commission.whole import Asked, commissioned  # brings kernels with it

    asked = Asked(output, daily, begin, yes, answers, serials)
    return commissioned(options, asked)
