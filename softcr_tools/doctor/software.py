"""What is installed, compiled and calibrated: pure checks, and what they are told of this place."""

import importlib.metadata
import importlib.util
import os
from collections.abc import Callable
from pathlib import Path

from packaging.requirements import InvalidRequirement, Requirement

from softcr_models.errors import UserError
from softcr_runtime.ros.rclpy_release import TESTED, missing_names, release
from softcr_runtime.wire.tf_types import NoWireType, tf_message_class
from softcr_tools.doctor.finding import FAIL, WARN, Finding, Level, judged
from softcr_tools.doctor.machine import existing

_ASSUMED = "[D]"  # mark of values in configuration files that nobody measured
_ROS_MODULES = (
    *("rclpy", "builtin_interfaces", "diagnostic_msgs", "geometry_msgs", "lifecycle_msgs"),
    *("nav_msgs", "rosgraph_msgs", "sensor_msgs", "std_msgs", "std_srvs", "visualization_msgs"),
)


def packages(hardware: bool) -> list[Finding]:
    """What is installed beside softcr, by its own metadata; of a bench its driver's, too."""
    needed: list[Requirement] = []
    extras: dict[str, list[Requirement]] = {}
    declared = importlib.metadata.metadata("softcr").get_all("Provides-Extra") or []
    for text in importlib.metadata.requires("softcr") or []:
        requirement = Requirement(text)
        if requirement.name.startswith("ros-"):
            continue  # wheels, or packages of a workspace: see _ROS_MODULES
        if requirement.marker is None or requirement.marker.evaluate({"extra": ""}):
            needed.append(requirement)
        for extra in declared:
            if requirement.marker is not None and requirement.marker.evaluate({"extra": extra}):
                extras.setdefault(extra, []).append(requirement)
    extra_missing = {extra: _missing(extras.get(extra, [])) for extra in declared}
    ros_missing = [name for name in _ROS_MODULES if importlib.util.find_spec(name) is None]
    found = [check_packages(_missing(needed)), check_ros(ros_missing)]
    if "rclpy" not in ros_missing:
        found.append(check_rclpy(release(), missing_names()))
    if hardware:
        found.append(check_extra(extra_missing.get("ethercat"), "ethercat", "the valves", FAIL))
    found.append(check_frames(_no_frames()))
    return [*found, check_extra(extra_missing.get("view"), "view", "softcr view", WARN)]


def check_packages(missing: list[str]) -> Finding:
    """Everything that softcr requires."""
    return judged("Python packages", "complete",
        (missing, FAIL, "missing: " + ", ".join(missing), "make setup")
    )  # fmt: skip


def check_ros(missing: list[str]) -> Finding:
    """ROS 2, from wheels or from a workspace."""
    return judged("ROS 2", "complete",
        (missing, FAIL, "modules missing: " + ", ".join(missing),
         "make setup, or source /opt/ros/jazzy/setup.bash")
    )  # fmt: skip


def check_rclpy(found: str, missing: list[str]) -> Finding:
    """The release of rclpy, of which softcr uses names that rclpy does not promise to keep."""
    tested = ", ".join(f"{number} ({name})" for number, name in TESTED.items())
    said = f"{found or 'a release without a number'}; tested with {tested}"
    return judged("rclpy", said,
        (missing, FAIL, f"{said}; without {', '.join(missing)}, which softcr needs",
         "install a tested release, in an environment of its own"),
        (found not in TESTED, WARN, f"{said}: softcr uses names that another release may change",
         "pytest test/test_rclpy_release.py test/test_mailbox.py test/test_node.py"),
    )  # fmt: skip


def check_frames(missing: str) -> Finding:
    """Whether /tf and /tf_static can be told; why not, in a line."""
    return judged("frames (/tf)", "available",
        (missing, WARN, f"not available: the package tf2_msgs is missing, and {missing}",
         "apt install ros-$ROS_DISTRO-tf2-msgs, in a ROS installation")
    )  # fmt: skip


def _no_frames() -> str:
    try:
        tf_message_class()
    except NoWireType as error:
        return str(error)
    except ImportError as error:  # without ROS, which is told beside
        return str(error)
    return ""


def check_extra(missing: list[str] | None, extra: str, use: str, level: Level) -> Finding:
    """An extra, None where it is not known: `level` is how bad it is without, `use` its use."""
    missing = [f"extra {extra} itself"] if missing is None else missing
    return judged(f"extra {extra}", f"installed: {use}",
        (missing, level, f"missing: {', '.join(missing)}; needed for {use}",
         f"pip install 'softcr[{extra}]'")
    )  # fmt: skip


def compiled_kernels() -> Finding:
    """The rod's."""
    from softcr_models.kernel_cache import cache_directory
    from softcr_models.warm_up import is_warm

    directory = cache_directory()
    return check_cache(is_warm(), str(directory), os.access(existing(directory), os.W_OK))


def check_cache(complete: bool, directory: str, writable: bool) -> Finding:
    """Compiled kernels: whether they are there, where, and whether that may be written."""
    return judged("compiled kernels", f"in {directory}",
        (not complete and not writable, FAIL,
         f"{directory}: not writable, so every node compiles for a minute",
         f"sudo chown -R $USER {directory}"),
        (not complete, WARN, "not there yet: the first start compiles for a minute",
         "python -m softcr_models.warm_up")
    )  # fmt: skip


def robot(name: str) -> Finding:
    """A robot's file; there the mark stands for data sheets."""
    from softcr_models.robots.robot import load_robot

    return _file("robot", name, "robots", lambda: load_robot(name), how="")


def station(name: str, robot: str) -> Finding:
    """The valves' station file."""
    from softcr_hardware.ethercat.terminals import load_station
    from softcr_models.robots.robot import load_robot

    return _file(
        "valve station",
        name,
        "ethercat",
        lambda: load_station(name, load_robot(robot).chamber_names),
        how="measure them; zeros with the chambers vented: softcr call valves/calibrate_zero",
    )


def cameras(calibration: str) -> Finding:
    """The file from the cameras' world to the base."""

    def load() -> object:
        from softcr_hardware.optitrack.calibration import load_calibration

        return load_calibration(calibration)

    return _file(
        "cameras to base",
        calibration,
        "optitrack",
        load,
        how="with the rod vented: softcr call optitrack/calibrate_base, into a file of your own",
    )


def mounting(name: str) -> Finding:
    """The file of the force-torque sensor."""

    def load() -> object:
        from softcr_hardware.force_torque.mounting import load_mounting

        return load_mounting(name)

    return _file(
        "force-torque mounting",
        name,
        "force_torque",
        load,
        how="measure the rotation; the bias with the rod vented: softcr call "
        "force_torque/bias, into a file of your own",
    )


def _file(what: str, name: str, folder: str, load: Callable[[], object], how: str) -> Finding:
    """A file in a folder of config/, or at a path.

    Args:
        what: it describes.
        name: of it, or its path.
        folder: of config/.
        load: raises what is wrong with it.
        how: its values are measured; empty where a mark does not say that they were not.
    """
    from softcr_models.files.config import config_directory

    path = Path(name)
    if path.suffix not in (".yaml", ".yml"):
        path = config_directory() / folder / f"{name}.yaml"
    try:
        load()
    except (UserError, ImportError) as error:
        return check_calibration(what, str(path), str(error), False, how)
    return check_calibration(what, str(path), "", bool(how) and _ASSUMED in path.read_text(), how)


def check_calibration(what: str, path: str, error: str, assumed: bool, how: str) -> Finding:
    """A file of the bench: can be used, and is measured, not assumed."""
    return judged(what, path,
        (error, FAIL, error, f"edit {path}"),
        (assumed, WARN, f"{path}: what is marked [D] there was not measured on this bench", how)
    )  # fmt: skip


def _missing(requirements: list[Requirement]) -> list[str]:
    return [str(needed).split(";")[0] for needed in requirements if not _is_there(needed)]


def _is_there(needed: Requirement) -> bool:
    try:
        installed = importlib.metadata.version(needed.name)
        return needed.specifier.contains(installed, prereleases=True)
    except (importlib.metadata.PackageNotFoundError, InvalidRequirement):
        return False
