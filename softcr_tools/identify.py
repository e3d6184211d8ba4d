"""`softcr identify`: the command."""

from pathlib import Path

from rich.console import Console

from softcr_models.robot import load_robot
from softcr_runtime.command_line import RobotName, command
from softcr_runtime.console import compile_kernels


@command
def identify(
    recordings: list[Path],
    /,
    *,
    robot: RobotName = "licher2025",
    anyway: bool = False,
    results: Path = Path("results"),
) -> int:
    """Find a robot's parameters in recordings and write its YAML file.

    A robot file with 95 % confidence intervals, a report that names what the recordings do not
    excite, and a figure go to results/identification/latest.

    Record each actuator, each pair and all of them at six levels (42 configurations of three),
    each held until the tip has come to rest for a second; then, from rest, 10 s of 0.1, 0.5 and
    1 Hz and a step to the least inputs. One recording may hold it all, or several may share it.

    Of a robot with a pressure_chain its numbers are found, too, in the longest motion, which begins
    at rest without pressure; they are written to its values.

    An arm of several segments has its lengths, compliances and relaxation times in each segment
    (bending_compliance_1, bending_compliance_2, ...).

    A bag needs pressure/state and one or more of mocap/tip/pose, mocap/body/poses (the robot file's
    sensors of the type pose) and force_torque/wrench, and for the pressure lag pressure/sent or
    pressure/command: `make sim`, a bench and tracking studies record them.

    A file ending in .csv, .tsv or .txt has a line of column names and a line per sample, in SI
    units: pressure_1 ... pressure_m (gauge, actuators in the robot file's order; tension_1 ...
    tension_m where they are tendons), and of the following what was measured: tip_x, tip_y, tip_z
    (base frame), NAME_x, NAME_y, NAME_z (of a sensor of the type pose), force_x, force_y, force_z,
    moment_x, moment_y, moment_z (of the sensor below the base), tip_qx, tip_qy, tip_qz, tip_qw or
    tip_roll, tip_pitch, tip_yaw (compared, not fitted). Further columns are time (without it every
    line is a configuration at rest), and for the lag command_1 ... command_m (inputs asked for).
    Their order is free, others are not read. Commas, semicolons or tabs may separate the cells, and
    decimals may have a comma.

    The residual of every group is told beside the noise of its sensor. Recordings that no robot
    like the first guess can have made are refused, with the mistake that would explain them: other
    units, swapped axes, a turned frame, inputs in another order.

    Args:
        recordings: bags and CSV files.
        robot: first guess: name or YAML file.
        anyway: write the robot file although the recordings do not fit it.
        results: directory.

    Raises:
        UserError: the robot or a recording cannot be used, or the results cannot be written.
    """
    console = Console()
    compile_kernels(console)
    from softcr_tools.identified_robot import run  # brings kernels with it

    run(load_robot(robot), recordings, results / "identification", None, console, anyway)
    return 0
