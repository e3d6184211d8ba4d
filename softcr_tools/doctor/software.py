"""Checks of what is installed, compiled and calibrated. Pure functions of facts."""

from dataclasses import dataclass

from softcr_tools.doctor.finding import FAIL, WARN, Finding, Level, judged


@dataclass(frozen=True)
class PackageFacts:
    """Python packages."""

    missing: tuple[str, ...]  # what softcr requires and is not installed, or not as required
    ros_missing: tuple[str, ...]  # modules of ROS 2 that cannot be found
    extra_missing: dict[str, tuple[str, ...]]  # by extra, what it requires and is not installed


@dataclass(frozen=True)
class CacheFacts:
    """Compiled kernels: whether they are there, where, and whether that may be written."""

    complete: bool
    directory: str
    writable: bool


@dataclass(frozen=True)
class CalibrationFacts:
    """A file that describes the bench."""

    what: str  # it describes
    path: str  # of the file, or the name it was asked for by
    error: str  # why it cannot be used; empty if it can
    assumed: bool  # whether it has marks [D]: values that were not measured on this bench
    how: str  # to measure them


def check_packages(facts: PackageFacts) -> Finding:
    """Everything that softcr requires."""
    return judged("Python packages", "all there",
        (bool(facts.missing), FAIL, "missing: " + ", ".join(facts.missing), "make setup")
    )  # fmt: skip


def check_ros(facts: PackageFacts) -> Finding:
    """ROS 2, from wheels or from a workspace."""
    return judged("ROS 2", "all there",
        (bool(facts.ros_missing), FAIL, "modules missing: " + ", ".join(facts.ros_missing),
         "make setup, or source /opt/ros/jazzy/setup.bash")
    )  # fmt: skip


def check_extra(facts: PackageFacts, extra: str, use: str, level: Level) -> Finding:
    """An extra; `level` is how bad it is without it, `use` what it is for."""
    missing = facts.extra_missing.get(extra, (f"extra {extra} itself",))
    return judged(f"extra {extra}", f"installed: {use}",
        (bool(missing), level, f"missing: {', '.join(missing)}; needed for {use}",
         f"pip install 'softcr[{extra}]'")
    )  # fmt: skip


def check_cache(facts: CacheFacts) -> Finding:
    """The rod's compiled kernels."""
    return judged("compiled kernels", f"in {facts.directory}",
        (not facts.complete and not facts.writable, FAIL,
         f"{facts.directory}: may not be written, so every node compiles for a minute",
         f"sudo chown -R $USER {facts.directory}"),
        (not facts.complete, WARN, "not there yet: the first start compiles for a minute",
         "python -m softcr_models.warm_up")
    )  # fmt: skip


def check_calibration(facts: CalibrationFacts) -> Finding:
    """A file of the bench: can be used, and is measured."""
    return judged(facts.what, facts.path,
        (bool(facts.error), FAIL, facts.error, f"edit {facts.path}"),
        (facts.assumed, WARN,
         f"{facts.path}: what is marked [D] there was not measured on this bench", facts.how)
    )  # fmt: skip
