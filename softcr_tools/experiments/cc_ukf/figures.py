"""What the constant-curvature filters saw, drawn as Mehl et al., Fig. 5."""

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
from matplotlib import rc_context
from matplotlib.figure import Figure

from softcr_tools.experiments.cc_ukf.plant import SensedRun
from softcr_tools.experiments.cc_ukf.scores import LOST, Seen
from softcr_tools.report_axes import STYLE

_SHOWN = 7.0  # seconds, as in Mehl et al.


def draw_part(run: SensedRun, seen: Seen, title: str, path: Path) -> None:
    """Coordinates, rates and stiffness of one part, true and estimated."""
    shown = run.times - run.times[0] < _SHOWN
    times = (run.times - run.times[0])[shown]
    panels = [
        (f"{name} / {unit}", 1e3 * true[shown, axis], 1e3 * found[shown, axis])
        for true, found, names, unit in (
            (run.coordinates, seen.coordinates, ("Δx", "Δy", "δL"), "mm"),
            (run.rates, seen.rates, ("Δx'", "Δy'", "δL'"), "mm/s"),
        )
        for axis, name in enumerate(names)
    ]
    with rc_context(STYLE):
        figure = Figure(figsize=(8.0, 9.5), layout="constrained")
        axes = figure.subplots(7, 1, sharex=True)
        for ax, (label, true, found) in zip(axes, panels, strict=False):
            ax.plot(times, true, color="black", label="truth")
            ax.plot(times, found, color="tab:orange", linestyle="--", label="estimate")
            ax.set_ylabel(label)
            # the filter's first ticks would otherwise make everything else flat
            margin = 0.3 * np.ptp(true)
            ax.set_ylim(true.min() - margin, true.max() + margin)
        axes[6].plot(times, seen.stiffness[shown], color="tab:orange", linestyle="--")
        axes[6].set_ylabel("k_θ / (N/m)")
        axes[6].set_xlabel("time since the filter's start / s")
        axes[0].set_title(title)
        axes[0].legend(loc="upper right", ncols=2)
        figure.savefig(path)


def draw_tip_errors(
    runs: Sequence[SensedRun], seen: Mapping[str, Sequence[Seen]], path: Path
) -> None:
    """The tip's error over time, a panel for each filter, a line for each part."""
    with rc_context(STYLE):
        figure = Figure(figsize=(8.0, 1.8 * len(seen) + 0.6), layout="constrained")
        axes = figure.subplots(len(seen), 1, sharex=True, sharey=True, squeeze=False)[:, 0]
        for ax, (name, parts) in zip(axes, seen.items(), strict=True):
            for run, part in zip(runs, parts, strict=True):
                errors = 1e3 * np.linalg.norm(part.tips - run.tips, axis=1)
                ax.plot(run.times - run.times[0], errors, linewidth=0.8)
            ax.axhline(1e3 * LOST, color="tab:red", linestyle=":", linewidth=1.0)
            ax.set_yscale("log")
            ax.set_ylim(0.05, 200.0)
            ax.set_ylabel("tip error / mm")
            ax.set_title(name, loc="left")
        axes[-1].set_xlabel("time since the filter's start / s")
        figure.savefig(path)
