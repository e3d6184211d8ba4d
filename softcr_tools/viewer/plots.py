"""The page's plots: errors, the model's numbers and actuators over the last seconds.

A plot is made when the first of what it shows arrives.
"""

from collections.abc import Sequence

import numpy as np
import viser
from viser import uplot

from softcr_runtime.bags.signals import unit_of
from softcr_runtime.console.figure_style import ESTIMATE, MEASURED
from softcr_tools.viewer.picture import WINDOW, Picture
from softcr_tools.viewer.words import input_colour, input_units

PANEL_WIDTH = 370  # pixels
_PLOT_HEIGHT = 215  # pixels
_BAND = "#a8c7fa"  # colour of the limits of an uncertainty

Curve = tuple[uplot.Series, np.ndarray]  # how it looks, and its (k,) values


class Plots:
    """The plots in a panel of their own."""

    def __init__(self, server: viser.ViserServer):
        self._server, self._plots = server, dict[str, Plot]()
        panel = server.gui.add_panel()
        self._tab = panel.add_tab("Plots")
        panel.dock_left()
        panel.set_width(PANEL_WIDTH)

    def draw(self, picture: Picture, now: float) -> None:
        """Replace the curves, and add the plots of what was not heard before; `now` on the clock of
        `Picture.received` [s]. What nobody tells any more moves away to the left."""
        table = picture.table(picture.silent_for(now))
        if not len(table["time"]):
            return
        for order, (title, curves) in enumerate(_curves(picture, table).items()):
            series, values = zip(*curves, strict=True)
            if title not in self._plots:
                if not np.isfinite(values).any():
                    continue
                with self._tab:
                    self._plots[title] = Plot(self._server, title, series, order)
            self._plots[title].draw(table["time"], values)


def _curves(picture: Picture, table: dict[str, np.ndarray]) -> dict[str, list[Curve]]:
    """What there is to draw, by the title of its plot, from above."""
    plots = {
        "tip to reference [mm]": [
            (_series("estimated", ESTIMATE), 1e3 * table["estimate_error"]),
            (_series("measured", MEASURED), 1e3 * table["measured_error"]),
        ]
    }
    shown = picture.parameters_shown
    if len(shown) > 1:
        family, unit = shown[0].rstrip("_0123456789").replace("_", " "), unit_of(shown[0])
        plots[f"{family}{f' [{unit}]' if unit not in ('', '-') else ''}"] = [
            (_series(name.replace("_", " "), input_colour(number)), table[name])
            for number, name in enumerate(shown)
        ]
    for name in shown if len(shown) == 1 else ():
        value, band = table[name], 2.0 * table[f"{name}_std"]
        unit = f" [{unit_of(name)}]" if unit_of(name) not in ("", "-") else ""
        plots[f"{name.replace('_', ' ')}{unit}"] = [
            (_series("estimate", ESTIMATE), value),
            (_series("+ 2 sd", _BAND), value + band),
            (_series("- 2 sd", _BAND), value - band),
        ]
    what, scales, units = input_units(picture)
    rows = list(zip(picture.actuators, scales.tolist(), units, strict=True))
    for unit in dict.fromkeys(units):
        plots[f"{what[unit]} [{unit}], dashed: commanded"] = [
            (
                _series(f"{name}{ending}", input_colour(number), ending != ""),
                scale * table[f"{word}_{name}"],
            )
            for word, ending in (("measured", ""), ("commanded", ", commanded"))
            for number, (name, scale, own) in enumerate(rows)
            if own == unit
        ]
    return plots


def _series(label: str, colour: str, dashed: bool = False) -> uplot.Series:
    if dashed:
        return uplot.Series(label=label, stroke=colour, dash=(4.0, 4.0))
    return uplot.Series(label=label, stroke=colour, width=2)


class Plot:
    """Curves over the last seconds: those whose newest value is known, from where all are."""

    def __init__(
        self, server: viser.ViserServer, title: str, curves: Sequence[uplot.Series], order: float
    ):
        """An empty plot."""
        self._curves, self._shown = curves, tuple(range(len(curves)))
        self._plot = server.gui.add_uplot(
            data=(np.array([-WINDOW, 0.0]), *np.full((len(curves), 2), np.nan)),
            series=self._series(),
            scales={"x": uplot.Scale(time=False, range=(-WINDOW, 0.0))},
            axes=(uplot.Axis(label="time [s]", labelSize=18, size=28), uplot.Axis(size=48)),
            legend=uplot.Legend(show=False),
            title=title, height=_PLOT_HEIGHT, padding=(10, 20, 0, 0), order=order,
        )  # fmt: skip

    def draw(self, time: np.ndarray, values: Sequence[np.ndarray]) -> None:
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
    """What can be drawn of curves (k,) each, without any NaN: one would spoil uPlot's choice of the
    span. Times are (k,), k >= 1.

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
