"""Checks of what is installed, compiled and calibrated. Pure functions of facts."""

from dataclasses import dataclass

from softcr_tools.doctor.finding import Finding, Level, judged


@dataclass(frozen=True)
class PackageFacts:
    """Python packages.

    Attributes:
        missing: what softcr requires and is not installed, or not as required.
        ros_missing: modules of ROS 2 that cannot be found.
        extra_missing: by extra, what it requires and is not installed.
    """

    missing: tuple[str, ...]
    ros_missing: tuple[str, ...]
    extra_missing: dict[str, tuple[str, ...]]


@dataclass(frozen=True)
class CacheFacts:
    """Compiled kernels: whether they are there, where, and whether that may be written."""

    complete: bool
    directory: str
    writable: bool


@dataclass(frozen=True)
class CalibrationFacts:
    """A file that describes the bench.

    Attributes:
        what: it describes.
        path: of the file, or the name it was asked for by.
        error: why it cannot be used; empty if it can.
        assumed: whether it has marks [D]: values that were not measured on this bench.
        how: to measure them.
    """

    what: str
    path: str
    error: str
    assumed: bool
    how: str


def check_packages(facts: PackageFacts) -> Finding:
    """Everything that softcr requires."""
    return judged(
        "Python packages",
        "all there",
        (
            bool(facts.missing),
            Level.FAIL,
            "missing: " + ", ".join(facts.missing),
            "make setup",
        ),
    )


def check_ros(facts: PackageFacts) -> Finding:
    """ROS 2, from wheels or from a workspace."""
    return judged(
        "ROS 2",
        "all there",
        (
            bool(facts.ros_missing),
            Level.FAIL,
            "modules missing: " + ", ".join(facts.ros_missing),
            "make setup, or source /opt/ros/jazzy/setup.bash",
        ),
    )


def check_extra(facts: PackageFacts, extra: str, use: str, level: Level) -> Finding:
    """An extra; `level` is how bad it is without it, `use` what it is for."""
    missing = facts.extra_missing.get(extra, (f"extra {extra} itself",))
    return judged(
        f"extra {extra}",
        f"installed: {use}",
        (
            bool(missing),
            level,
            f"missing: {', '.join(missing)}; needed for {use}",
            f"pip install 'softcr[{extra}]'",
        ),
    )


def check_cache(facts: CacheFacts) -> Finding:
    """The rod's compiled kernels."""
    return judged(
        "compiled kernels",
        f"in {facts.directory}",
        (
            not facts.complete and not facts.writable,
            Level.FAIL,
            f"{facts.directory}: may not be written, so every node compiles for a minute",
            f"sudo chown -R $USER {facts.directory}",
        ),
        (
            not facts.complete,
            Level.WARN,
            "not there yet: the first start compiles for a minute",
            "python -m softcr_models.warm_up",
        ),
    )


def check_calibration(facts: CalibrationFacts) -> Finding:
    """A file of the bench: can be used, and is measured."""
    return judged(
        facts.what,
        facts.path,
        (bool(facts.error), Level.FAIL, facts.error, f"edit {facts.path}"),
        (
            facts.assumed,
            Level.WARN,
            f"{facts.path}: what is marked [D] there was not measured on this bench",
            facts.how,
        ),
    )
