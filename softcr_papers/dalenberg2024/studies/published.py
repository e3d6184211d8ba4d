"""Results of Dalenberg's thesis, fixed against adaptive lengths, and ours beside them.

R1 to R32 are our labels. R1, R9, R10, R22, R26 to R28, R31 and R32 are words or ranges there.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from softcr_studies.frame.study import Result, Row
from softcr_studies.frame.table import Kind


class Printed(NamedTuple):
    """One printed result; None: a figure is not printed."""

    fixed: float | None = None
    adaptive: float | None = None
    change: float | None = None  # of the adaptive one against the fixed one, as printed [%]


PRINTED = {
    # Robot I, run I: position feedback. E_shape in mm; the mean of Psi in cm^2, its bounds in mm
    "R2": Printed(1.82, 1.31, -28.0), "R3": Printed(0.19, 0.17, -7.0),
    "R4": Printed(3.32, 2.60, -21.7), "R5": Printed(4.61, 1.94, -57.9),
    "R6": Printed(2.71, 0.24, -91.2), "R7": Printed(8.45, 6.11, -27.6),
    # Robot I, run II: pose feedback; R8 and R11 are one run, R11 "more than 4", "less than 0.5 cm"
    "R8": Printed(12.33, 6.68, -45.8), "R11": Printed(4.0, 0.5, -87.5),
    "R12": Printed(6.82, 4.87, -28.6), "R13": Printed(1.03, 1.10, 6.32),
    "R14": Printed(12.9, 8.17, -36.7), "R15": Printed(change=-51.9),
    "R15 upper": Printed(change=-38.1), "R15 lower": Printed(change=-92.1),
    # Robot II; R16 is a copy of R12: the mean lies above the appendix's own upper bounds
    "R16": Printed(6.82, 4.87, -28.6), "R17": Printed(0.55, 0.58, 5.82),
    "R18": Printed(5.16, 4.15, -19.4), "R19": Printed(change=-25.8),
    "R19 upper": Printed(change=-17.8), "R19 lower": Printed(change=-36.1),
    # Experiment II: Psi in cm^2, E_mapping in cm (R25: at the end), time to 1 mm in s
    "R20": Printed(2.02, 0.62, -69.4), "R21": Printed(6.15, 2.55, -58.6),
    "R22": Printed(),  # approximately the same
    "R23": Printed(6.01, 2.76), "R24": Printed(1.97, 0.66, -66.4),
    "R25": Printed(8.5, 3.2, -57.42),
    "R27": Printed(),  # the adaptive one about 1 s later, with a lower gain
    "R28": Printed(),  # the fixed one does not arrive in 11.24 s
    "R29": Printed(change=-68.3), "R30": Printed(change=-27.3),
}  # fmt: skip
"""By number. Where the printed change is not that of the printed figures: R3 (-10.5 %), R13, R17,
R25, which is perhaps the change of a mean."""

DIFFERENCES = {
    # how far the adaptive one's distances [cm] and angles [crad] lie above the fixed one's
    "R9": (-4.5, -2.5),  # by 62 to 86 %
    "R10": (-0.85, -0.35),  # by 84 to 90 %
    "R26": (-0.5, -0.25),  # its angles are "comparable"
    "R31": (-1.0, -0.5),
    "R32": (-0.5, -0.3),
    "R32 tip": (0.15, 0.15),
}

_SENSOR_ERRORS = {"distance": ("cm", "linear"), "angle": ("crad", "angular")}


@dataclass
class Comparison:
    """The rows of one controller, each beside what is printed."""

    case: str
    method: str
    kind: Kind  # of what is printed
    fixed: bool  # whether this is the baseline, the controller with fixed lengths
    printed: bool = True  # whether the thesis has figures of it
    seeds: int = 1
    rows: list[Row] = field(default_factory=list)
    # for every printed change so far, whether ours has the same sign
    signs: list[bool] = field(default_factory=list)

    def add(
        self, quantity: str, value: float, unit: str, printed: float | None = None,
        sd: float = 0.0, note: str = "",
    ) -> None:  # fmt: skip
        """One row."""
        published: dict[Kind, float] = {} if printed is None else {self.kind: printed}
        key = self.case, self.method, quantity
        self.rows.append(Row(*key, float(value), sd, unit, self.seeds, published, note=note))

    def figure(self, number: str) -> float | None:
        """What is printed of this controller."""
        told = self._told(number)
        return told.fixed if self.fixed else told.adaptive

    def add_numbered(
        self, quantity: str, number: str, values: Sequence[float], unit: str, sd: float = 0.0
    ) -> None:
        """A figure, numbered among PRINTED, and its change against the baseline's.

        `values` are of this controller and, if it is compared, of fixed lengths.
        """
        name = f"{quantity} ({number.partition(' ')[0]})"
        self.add(name, values[0], unit, self.figure(number), sd)
        if len(values) > 1 and not self.fixed:
            change, printed = 100.0 * (values[0] / values[1] - 1.0), self._told(number).change
            self.add(f"{name}, change", change, "%", printed)
            if printed is not None:
                self.signs.append(change * printed >= 0.0)

    def add_ratio(self, quantity: str, number: str, ratios: Sequence[float]) -> None:
        """Figures over the baseline's, one per seed: what the thesis claims is that they are below
        one, by the change that it prints."""
        told = self._told(number).change
        goal = None if told is None or told >= 0.0 else 1.0 + told / 100.0
        name = f"{quantity} over that of fixed lengths"
        self.rows.append(
            Row.of(self.case, self.method, name, ratios, "-", must=1.0, goal=goal, of_worst=True)
        )

    def add_sensors(
        self, runs: Sequence[Result], numbers: Mapping[str, str], start: str = ""
    ) -> None:
        """What Algorithm 2 leaves of each sensor's errors: mean of a run, and above the baseline's.

        Args:
            runs: see `add_numbered`.
            numbers: "distance" or "angle", with " tip" for the last sensor's -> among DIFFERENCES.
            start: of the quantities' names.
        """
        for kind, (unit, series) in _SENSOR_ERRORS.items():
            values, *others = (1e2 * run[series].mean(axis=0) for run in runs)
            for sensor, value in enumerate(values):
                last = f"{kind} tip" if sensor + 1 == len(values) else kind
                number = numbers.get(last, numbers.get(kind)) if self.printed else None
                span = DIFFERENCES[number] if number else ()
                name = f"{start}sensor {sensor + 1}'s {kind}"
                name += f" ({number.partition(' ')[0]})" if number else ""
                self.add(name, value, unit)
                if others and not self.fixed:
                    words = " to ".join(f"{end:+g}" for end in sorted(set(span)))
                    told = f", {self.kind} {words}" if words else ""
                    above = value - others[0][sensor]
                    self.add(f"{name}, difference{told}", above, unit)
                    self.signs += [above * end >= 0.0 for end in span[:1]]

    def closed(self) -> list[Row]:
        """All rows; the last one counts changes and differences whose sign is not the printed."""
        if self.signs:
            others = float(len(self.signs) - sum(self.signs))
            self.add("changes of the other sign than printed", others, f"of {len(self.signs)}")
        return self.rows

    def _told(self, number: str) -> Printed:
        return PRINTED[number] if self.printed else Printed()
