"""Results of Dalenberg's thesis, fixed against adaptive lengths, as printed; our labels R1 to R32.

R1, R9, R10, R22, R26 to R28, R31 and R32 are words or ranges there.
"""

from dataclasses import dataclass


@dataclass(frozen=True)
class Published:
    """One printed result.

    Attributes:
        fixed, adaptive: the figures; None: not printed.
        change: of the adaptive one against the fixed one, as printed [%]; None: not printed.
        note: what is wrong with it.
    """

    fixed: float | None
    adaptive: float | None
    change: float | None
    note: str = ""


@dataclass(frozen=True)
class PublishedDifference:
    """How much a figure of the adaptive controller lies above the fixed one's, as printed.

    Attributes:
        low, high: of the sensors it is printed for.
    """

    low: float
    high: float


COPIED = "copy of R12: the mean lies above the appendix's own upper bounds"

PUBLISHED = {
    # Robot I, run I: position feedback. E_shape in mm; the mean of Psi in cm^2, its bounds in mm
    "R2": Published(1.82, 1.31, -28.0),
    "R3": Published(0.19, 0.17, -7.0, "the figures give -10.5 %"),
    "R4": Published(3.32, 2.60, -21.7),
    "R5": Published(4.61, 1.94, -57.9),
    "R6": Published(2.71, 0.24, -91.2),
    "R7": Published(8.45, 6.11, -27.6),
    # Robot I, run II: pose feedback; R8 is one run
    "R8": Published(12.33, 6.68, -45.8),
    "R11": Published(4.0, 0.5, None, "more than 4 cm, less than 0.5 cm"),
    "R12": Published(6.82, 4.87, -28.6),
    "R13": Published(1.03, 1.10, 6.32, "the figures give +6.8 %"),
    "R14": Published(12.9, 8.17, -36.7),
    "R15": Published(None, None, -51.9),
    "R15 upper": Published(None, None, -38.1),
    "R15 lower": Published(None, None, -92.1),
    # Robot II
    "R16": Published(6.82, 4.87, -28.6, COPIED),
    "R17": Published(0.55, 0.58, 5.82, "the figures give +5.5 %"),
    "R18": Published(5.16, 4.15, -19.4),
    "R19": Published(None, None, -25.8),
    "R19 upper": Published(None, None, -17.8),
    "R19 lower": Published(None, None, -36.1),
    # Experiment II: Psi in cm^2, E_mapping in cm, time to 1 mm in s
    "R20": Published(2.02, 0.62, -69.4),
    "R21": Published(6.15, 2.55, -58.6),
    "R22": Published(None, None, 0.0, "approximately the same"),
    "R23": Published(6.01, 2.76, None),
    "R24": Published(1.97, 0.66, -66.4),
    "R25": Published(8.5, 3.2, -57.42, "figures at the end, perhaps a mean change"),
    "R27": Published(None, None, None, "the adaptive one about 1 s later, with a lower gain"),
    "R29": Published(None, None, -68.3),
    "R30": Published(None, None, -27.3),
}
"""By number."""

DIFFERENCES = {
    # sensors' distance in cm, angle in crad
    "R9": PublishedDifference(-4.5, -2.5),  # by 62 to 86 %
    "R10": PublishedDifference(-0.85, -0.35),  # by 84 to 90 %
    "R26": PublishedDifference(-0.5, -0.25),
    "R31": PublishedDifference(-1.0, -0.5),
    "R32": PublishedDifference(-0.5, -0.3),
    "R32 tip": PublishedDifference(0.15, 0.15),
}
"""By number; R26 calls the angles comparable. R28: the fixed one does not arrive in 11.24 s."""


def change_label(change: float, printed: float | None) -> str:
    """What the table calls a change [%], which says when its sign is not the printed one's."""
    return "... change" if printed is None or change * printed >= 0.0 else "... change, OTHER SIGN"


def difference_label(difference: float, printed: PublishedDifference | None) -> str:
    """What the table calls a difference, with the printed ones."""
    if printed is None:
        return "... difference"
    span = " to ".join(f"{end:+g}" for end in sorted({printed.low, printed.high}))
    other = "" if difference * printed.low >= 0.0 else ", OTHER SIGN"
    return f"... difference ({span}){other}"
