"""What a check says."""

from dataclasses import dataclass
from enum import IntEnum


class Level(IntEnum):
    """How bad it is; only FAIL keeps a system from running."""

    OK = 0
    WARN = 1
    FAIL = 2


OK, WARN, FAIL = Level


@dataclass(frozen=True)
class Finding:
    """One row of the doctor's table."""

    subject: str  # what was looked at
    level: Level  # how bad it is
    found: str  # what is there, in a line
    mend: str = ""  # the one command or edit that mends it; empty when all is well

    def __post_init__(self) -> None:
        if (self.level is Level.OK) == bool(self.mend):
            raise ValueError(f"{self.subject}: what is not OK, and only that, has a mend")


def judged(subject: str, found: str, *problems: tuple[object, Level, str, str]) -> Finding:
    """The first of the problems that there is, or all is well.

    Args:
        subject: what was looked at.
        found: what to say when all is well.
        problems: whether there is one, how bad it is, what to say, what mends it.
    """
    for there_is_one, level, said, mend in problems:
        if there_is_one:
            return Finding(subject, level, said, mend)
    return Finding(subject, Level.OK, found)
