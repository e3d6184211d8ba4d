"""The page's plots of a rod: errors, compliance and pressures over the last seconds."""

from collections.abc import Sequence

import numpy as np
import viser
from viser import uplot

from softcr_models.robot import Robot
from softcr_tools.report_axes import ESTIMATE, MEASURED
from softcr_tools.viewer.picture import WINDOW, LivePicture
from softcr_tools.viewer.words import chamber_colour

PANEL_WIDTH = 370  # pixels

_PLOT_HEIGHT = 215  # pixels
_BAND = "#a8c7fa"  # colour of the limits of an uncertainty


class Plots:
    """Three plots of a rod in a panel of their own."""

    def __init__(self, server: viser.ViserServer, robot: Robot):
        self._chambers = robot.chamber_names
        colours = [chamber_colour(index) for index in range(len(self._chambers))]
        panel = server.gui.add_panel()
        with panel.add_tab("Plots"):
            self._error = Plot(
                server,
                "tip to reference [mm]",
                uplot.Series(label="estimated", stroke=ESTIMATE, width=2),
                uplot.Series(label="measured", stroke=MEASURED, width=2),
            )
            self._compliance = Plot(
                server,
                "bending compliance [rad/(N m m)]",
                uplot.Series(label="estimate", stroke=ESTIMATE, width=2),
                uplot.Series(label="+ 2 sd", stroke=_BAND, width=2),
                uplot.Series(label="- 2 sd", stroke=_BAND, width=2),
            )
            self._pressures = Plot(
                server,
                "gauge pressures [kPa], dashed: commanded",
                *solid_and_dashed(self._chambers, colours, "commanded"),
            )
        panel.dock_left()
        panel.set_width(PANEL_WIDTH)

    def draw(self, picture: LivePicture) -> None:
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


def solid_and_dashed(
    names: Sequence[str], colours: Sequence[str], dashed: str
) -> list[uplot.Series]:
    """A solid curve for each name, then a dashed one of its colour, called so."""
    pairs = list(zip(names, colours, strict=True))
    return [
        *(uplot.Series(label=name, stroke=colour, width=2) for name, colour in pairs),
        *(
            uplot.Series(label=f"{name}, {dashed}", stroke=colour, dash=(4.0, 4.0))
            for name, colour in pairs
        ),
    ]


class Plot:
    """Curves over the last seconds: those whose newest value is known, from where all are."""

    def __init__(self, server: viser.ViserServer, title: str, *curves: uplot.Series):
        """An empty plot."""
        self._curves = curves
        self._shown: tuple[int, ...] = tuple(range(len(curves)))
        self._plot = server.gui.add_uplot(
            data=(np.array([-WINDOW, 0.0]), *(np.full(2, np.nan) for _ in curves)),
            series=self._series(),
            scales={"x": uplot.Scale(time=False, range=(-WINDOW, 0.0))},
            axes=(uplot.Axis(label="time [s]", labelSize=18, size=28), uplot.Axis(size=48)),
            title=title,
            legend=uplot.Legend(show=False),
            height=_PLOT_HEIGHT,
            padding=(10, 20, 0, 0),
        )

    def draw(self, time: np.ndarray, *values: np.ndarray) -> None:
        """Replace the curves: (k,) times [s] and values."""
        shown, data = known_curves(time, values)
        if not shown:
            return
        # the browser must never have less data than curves
        if len(shown) >= len(self._shown):
            self._plot.data = data
        if shown != self._shown:  # seldom: it builds the plot again
            self._shown = shown
            self._plot.series = self._series()
        self._plot.data = data

    def _series(self) -> tuple[uplot.Series, ...]:
        return uplot.Series(label="time [s]"), *(self._curves[index] for index in self._shown)


def known_curves(
    time: np.ndarray, values: Sequence[np.ndarray]
) -> tuple[tuple[int, ...], tuple[np.ndarray, ...]]:
    """What can be drawn, without any NaN: one would spoil uPlot's choice of the span.

    Args:
        time: (k,), k >= 1.
        values: curves, (k,) each.

    Returns:
        Indices of the curves whose last value is known; times and those curves, from where all of
        them are known on, holes bridged by straight lines.
    """
    shown = tuple(index for index, curve in enumerate(values) if np.isfinite(curve[-1]))
    if not shown:
        return (), ()
    known = [np.isfinite(values[index]) for index in shown]
    rows = slice(max(int(np.argmax(here)) for here in known), None)
    bridged = [
        np.interp(time[rows], time[here], values[index][here])
        for index, here in zip(shown, known, strict=True)
    ]
    return shown, (time[rows], *bridged)
