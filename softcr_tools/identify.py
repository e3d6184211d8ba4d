"""`softcr identify`: the command."""

from pathlib import Path

from rich.console import Console

from softcr_models.errors import UserError
from softcr_models.robots.robot import load_robot
from softcr_runtime.console.terminal import compile_kernels
from softcr_runtime.settings.command_line import RobotName, command


@command
def identify(
    recordings: list[Path],
    /,
    *,
    robot: RobotName | None = None,
    map: Path | None = None,
    explain: bool = False,
    find: str = "",
    motion: bool = False,
    hold_out: list[str] | None = None,
    anyway: bool = False,
    results: Path = Path("results"),
) -> int:
    """Find a robot's parameters in recordings and write its YAML file.

    The results go to results/identification/latest: a robot file with 95 % confidence intervals, a
    figure, and a report that names the parameters that the recordings do not excite.

    Record each actuator, each pair and all of them at six levels (42 configurations of three), each
    held until the tip has been at rest for a second; then, from rest, 10 s of motion at 0.1, 0.5
    and 1 Hz and a step to the lowest inputs. One recording may hold all of this, or several may
    share it.

    If the robot has a pressure_chain, its values are identified as well, from the longest motion
    that begins at rest without pressure. For an arm of several segments, lengths, compliances and
    relaxation times are identified in each segment (bending_compliance_1, bending_compliance_2,
    ...).

    A bag must contain pressure/state and at least one of mocap/tip/pose, mocap/body/poses (the
    sensors of type pose in the robot file) and force_torque/wrench; for the pressure lag also
    pressure/sent or pressure/command. Runs of `make sim`, of a bench and of tracking studies
    contain them.

    A file that ends in .csv, .tsv or .txt has a line of column names and a line per sample, in SI
    units and in any order: pressure_1 ... pressure_m (gauge pressures in the order of the robot
    file's actuators; tension_1 ... tension_m for tendons), and what was measured of tip_x, tip_y,
    tip_z (base frame), NAME_x, NAME_y, NAME_z (of a sensor of type pose), force_x, force_y,
    force_z, moment_x, moment_y, moment_z (of the sensor below the base), and tip_qx, tip_qy,
    tip_qz, tip_qw or tip_roll, tip_pitch, tip_yaw (compared, not fitted). Without a column time
    every line is a configuration at rest. The lag needs command_1 ... command_m (requested inputs).
    Other columns are ignored. Cells may be separated by commas, semicolons or tabs, and decimals
    may have a comma.

    The residual of every group is printed beside the noise of its sensor. Recordings that no robot
    like the first guess can have produced are refused, and the error names the mistake that would
    explain them: other units, swapped axes, a rotated frame, inputs in another order.

    With --find the recording itself is unknown, too: what of the inputs acts, where the cameras
    have the base, where the markers sit. Each of these has a prior, so that a dozen configurations
    at rest suffice and what they do not tell stays at the first guess; --find all looks for
    everything, and --find best for what lowers the error of rests, or trials, that are left out of
    a fit (some dozens of fits). Judge the result by what is held out. With --motion, whole motions
    are fitted in windows of some seconds, and these can be found as well: scale of the positions,
    curves of the inputs (how much more the highest acts than in proportion), their delay, lag of
    the actuators, relaxation of the material, hysteresis of chambers or by the friction of tendons,
    slow venting and creep of chambers.

    With --map, files of any columns are read: CSV, arrays (.npz, trial K as K_y or y0), bags of any
    topics. The map says which column is what, in which unit and frame, which rows are a trial, and
    which payload was carried. `softcr identify --explain FILE` proposes one.

    Args:
        recordings: bags and CSV files; with --map also arrays.
        robot: first guess, by name or YAML file; licher2025 when absent.
        map: YAML file that says what the columns are.
        explain: print a map for the first recording, as its columns suggest it, and end.
        find: what is looked for with priors, separated by commas: stiffness, segments, taper,
            stiffening, neo_hookean, density, tip_mass, connectors, lever_arms, directions, tendons,
            gains, offsets, registration, gravity, markers; with --motion also scale, curves, delay,
            lag, venting, relaxation, hysteresis, creep; or all, or best.
        motion: fit to motions instead of rests.
        hold_out: recordings, or names of trials, that the result is judged by and not fitted to,
            with --find.
        anyway: write the robot file even if the recordings do not fit it.
        results: directory of the results.

    Raises:
        UserError: the robot or a recording cannot be used, or the results cannot be written.
    """
    console = Console()
    if explain:
        from softcr_estimation.identification.proposed_map import proposed_map

        print(proposed_map(recordings[0], load_robot(robot) if robot else None), end="")
        return 0
    wanted = {"--map": map is not None, "--motion": motion, "--hold-out": bool(hold_out)}
    if not find and any(wanted.values()):
        given = ", ".join(name for name, used in wanted.items() if used)
        raise UserError(f"{given}: only with --find; --find all looks for everything")
    guess = load_robot(robot or "licher2025")
    if find:
        # they bring kernels with them
        from softcr_estimation.identification.column_map import load_map
        from softcr_estimation.identification.trials import read_parts
        from softcr_models.identification.actuation import FAMILIES_IN_MOTION
        from softcr_models.identification.unknowns import FAMILIES
        from softcr_tools import moving_arm, recorded_arm

        # a wrong name is told before kernels are compiled
        recorded_arm.families_of(find, FAMILIES_IN_MOTION if motion else FAMILIES)
        known = load_map(map) if map is not None else None
        parts = read_parts(recordings, hold_out or (), known, guess)
        tool = moving_arm if motion else recorded_arm
        compile_kernels(console)
        tool.run(guess, *parts, find, results / "identification", console, anyway)
        return 0
    from softcr_tools.identified_robot import run  # brings kernels with it

    compile_kernels(console)
    run(guess, recordings, results / "identification", None, console, anyway)
    return 0
