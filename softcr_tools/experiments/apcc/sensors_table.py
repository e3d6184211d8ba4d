"""What Algorithm 2 leaves of each sensor's errors in one run: R9, R10, R26, R31 and R32.

The thesis prints by how much the adaptive controller's are below the fixed one's.
"""

from collections.abc import Callable, Mapping

import numpy as np

from softcr_tools.experiments.apcc.published import DIFFERENCES, difference_label
from softcr_tools.experiments.apcc.robot_run import RobotTrace
from softcr_tools.experiments.results import Row

Numbers = Mapping[str, str]
"""Kind of error, with " tip" for that of the last sensor -> number among DIFFERENCES."""

_KINDS: dict[str, tuple[float, str, Callable[[RobotTrace], np.ndarray]]] = {
    "distance": (1e2, "cm", lambda trace: trace.linear),
    "angle": (1e2, "crad", lambda trace: trace.angular),
}


def sensor_rows(
    row: Callable[[str, float, str], Row],
    own: RobotTrace,
    rival: RobotTrace | None,
    numbers: Numbers,
) -> list[Row]:
    """Each sensor's mean distance and angle over a run, and what they are above the rival's.

    Args:
        row: makes a row of quantity, value and unit.
        own: the run.
        rival: of the fixed controller; None: `own` is that one.
        numbers: which figures of the thesis these are.
    """
    rows = []
    for kind, (scale, unit, errors) in _KINDS.items():
        values = scale * errors(own).mean(axis=0)
        for sensor, value in enumerate(values, 1):
            last = f"{kind} tip" if sensor == len(values) else kind
            number = numbers.get(last, numbers.get(kind))
            name = f"sensor {sensor}'s {kind}" + (f" ({number.split()[0]})" if number else "")
            rows.append(row(name, float(value), unit))
            if rival is not None:
                above = float(value - scale * errors(rival)[:, sensor - 1].mean())
                label = difference_label(above, DIFFERENCES[number] if number else None)
                rows.append(row(label, above, unit))
    return rows
