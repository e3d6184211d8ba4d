"""`softcr commission`: the command and its options."""

from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from softcr_hardware.commissioning.options import BenchOptions
from softcr_runtime.settings.command_line import command


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
    """Commission a bench: find mistakes of wiring and mounting, measure the bench, write its files.

    This leads through the steps on the real bench, or with --virtual on one in memory. The findings
    of each step are kept in the output directory, and the same command continues where it stopped.
    The last step writes station, calibration and mounting files, and renames existing ones. The
    exit code is 1 while something must be corrected by hand.

    Args:
        output: directory of the record and of the written files.
        daily: check the files of the output directory against the bench in two minutes; only
            the record of the day is written.
        begin: step to begin at: devices, zero, sensors, exhaust, survey, wiring, slope, leak,
            flow, base, force_torque, watchdog or deadman; empty: the first that is not done.
        yes: answer every question with yes and hold no switch, for a bench with nobody near it.
        answers: YAML file with answers: gauge (kPa by chamber of the output), refuse
            (questions).
        serials: serial numbers of the parts, in words, for the record.

    Raises:
        UserError: files or devices that cannot be used.
    """
    from softcr_hardware.commissioning.whole import Asked, commissioned  # brings kernels with it

    asked = Asked(output, daily, begin, yes, answers, serials)
    return commissioned(options, asked)
