"""The page's plots: errors, compliance and pressures over the last seconds."""

import math

import numpy as np
import viser
from viser import uplot

from softcr_models.robot import Robot
from softcr_tools.report_axes import ESTIMATE, MEASURED
from softcr_tools.viewer.picture import WINDOW, Picture
from softcr_tools.viewer.words import chamber_colour

PANEL_WIDTH = 370  # pixels

_PLOT_HEIGHT = 215  # pixels
_BAND = "#a8c7fa"  # colour of the limits of an uncertainty


class Plots:
    """Three plots in a panel of their own."""

    def __init__(self, server: viser.ViserServer, robot: Robot):
        self._chambers = robot.chamber_names
        colours = [chamber_colour(index) for index in range(len(self._chambers))]
        panel = server.gui.add_panel()
        with panel.add_tab("Plots"):
            self._error = _Plot(
                server,
                "tip to reference [mm]",
                uplot.Series(label="estimated", stroke=ESTIMATE, width=2),
                uplot.Series(label="measured", stroke=MEASURED, width=2),
            )
            self._compliance = _Plot(
                server,
                "bending compliance [rad/(N m m)]",
                uplot.Series(label="estimate", stroke=ESTIMATE, width=2),
                uplot.Series(label="+ 2 sd", stroke=_BAND, width=2),
                uplot.Series(label="- 2 sd", stroke=_BAND, width=2),
            )
            self._pressures = _Plot(
                server,
                "gauge pressures [kPa], dashed: commanded",
                *(
                    uplot.Series(label=chamber, stroke=colour, width=2)
                    for chamber, colour in zip(self._chambers, colours, strict=True)
                ),
                *(
                    uplot.Series(label=f"{chamber}, commanded", stroke=colour, dash=(4.0, 4.0))
                    for chamber, colour in zip(self._chambers, colours, strict=True)
                ),
            )
        panel.dock_left()
        panel.set_width(PANEL_WIDTH)

    def draw(self, picture: Picture) -> None:
        """Replace the curves."""
        table = picture.table()
        time = table["time"]
        if not len(time):
            return
        self._error.draw(time, 1e3 * table["estimate_error"], 1e3 * table["measured_error"])
        value, band = table["compliance"], 2.0 * table["compliance_std"]
        self._compliance.draw(time, value, value + band, value - band)
        self._pressures.draw(
            time,
            *(1e-3 * table[f"measured_{chamber}"] for chamber in self._chambers),
            *(1e-3 * table[f"commanded_{chamber}"] for chamber in self._chambers),
        )


class _Plot:
    """Curves over the last seconds; what is NaN is left out."""

    def __init__(self, server: viser.ViserServer, title: str, *curves: uplot.Series):
        self._span = (0.0, 1.0)
        self._plot = server.gui.add_uplot(
            data=(np.array([-WINDOW, 0.0]), *(np.full(2, np.nan) for _ in curves)),
            series=(uplot.Series(label="time [s]"), *curves),
            scales=self._scales(),
            axes=(uplot.Axis(label="time [s]", labelSize=18, size=28), uplot.Axis(size=48)),
            title=title,
            legend=uplot.Legend(show=False),
            height=_PLOT_HEIGHT,
            padding=(10, 20, 0, 0),
        )

    def draw(self, time: np.ndarray, *values: np.ndarray) -> None:
        """Replace the curves: (k,) times [s] and values."""
        span = span_of(np.concatenate(values))
        if span != self._span:  # seldom: the browser builds the plot again
            self._span = span
            self._plot.scales = self._scales()
        self._plot.data = (time, *values)

    def _scales(self) -> dict[str, uplot.Scale]:
        """uPlot's own choice of the vertical span is spoilt by a single NaN."""
        return {
            "x": uplot.Scale(time=False, range=(-WINDOW, 0.0)),
            "y": uplot.Scale(range=self._span),
        }


def span_of(values: np.ndarray) -> tuple[float, float]:
    """A span around the finite ones of (k,) values whose ends are round; (0, 1) if there are none.

    Round is a multiple of 1, 2 or 5 times a power of ten, three to nine of which make the span.
    """
    finite = values[np.isfinite(values)]
    if not len(finite):
        return 0.0, 1.0
    low, high = float(finite.min()), float(finite.max())
    width = max(high - low, 1e-3 * max(abs(low), abs(high)), 1e-9)
    power = 10.0 ** math.floor(math.log10(width / 4))
    step = next(power * digit for digit in (1, 2, 5, 10) if power * digit >= width / 4 * 0.999)
    first, last = math.floor(low / step), math.ceil(high / step)
    return first * step, max(last, first + 1) * step
