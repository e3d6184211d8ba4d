"""The page's plots of an arm: errors, section lengths and tendons over the last seconds."""

import viser
from viser import uplot

from softcr_models.constant_curvature.arm import Arm
from softcr_tools.report_axes import ESTIMATE, MEASURED
from softcr_tools.viewer.picture import LivePicture
from softcr_tools.viewer.plots import PANEL_WIDTH, Plot, solid_and_dashed
from softcr_tools.viewer.words import chamber_colour


class ArmPlots:
    """Three plots of an arm in a panel of their own."""

    def __init__(self, server: viser.ViserServer, arm: Arm):
        """Empty plots."""
        self._sections = [f"{number + 1}" for number in range(len(arm.racks))]
        self._tendons = arm.tendon_names
        panel = server.gui.add_panel()
        with panel.add_tab("Plots"):
            self._error = Plot(
                server,
                "tip to setpoint [mm]",
                uplot.Series(label="model", stroke=ESTIMATE, width=2),
                uplot.Series(label="measured", stroke=MEASURED, width=2),
            )
            self._lengths = Plot(
                server,
                "rest lengths of the sections [mm]",
                *(
                    uplot.Series(label=f"section {name}", stroke=chamber_colour(index), width=2)
                    for index, name in enumerate(self._sections)
                ),
            )
            colours = [chamber_colour(tendon.rack - 1) for tendon in arm.actuators]
            self._tendon_lengths = Plot(
                server,
                "tendons [mm], a colour per rack, dashed: wanted",
                *solid_and_dashed(self._tendons, colours, "wanted"),
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
        self._lengths.draw(time, *(1e3 * table[f"length_{name}"] for name in self._sections))
        self._tendon_lengths.draw(
            time,
            *(1e3 * table[f"length_of_{tendon}"] for tendon in self._tendons),
            *(1e3 * table[f"wanted_{tendon}"] for tendon in self._tendons),
        )
