"""The experiments' figures, after those of the thesis."""

from collections.abc import Mapping
from pathlib import Path

import numpy as np
from matplotlib import rc_context
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from softcr_tools.experiments.apcc.kinematic_run import TRUE_LENGTHS, KinematicTrace
from softcr_tools.experiments.apcc.robot_run import RobotTrace
from softcr_tools.report_axes import STYLE

_COLOURS = ("tab:blue", "tab:orange", "tab:green")


def draw_kinematic(adaptive: KinematicTrace, fixed: KinematicTrace, path: Path) -> None:
    """Figs. 7 to 9: tip error, shape error, total length, lengths, the sensors' errors."""
    with rc_context(STYLE):
        figure = Figure(figsize=(8.0, 9.0), layout="constrained")
        axes = figure.subplots(5, 1, sharex=True)
        for trace, label, style in ((adaptive, "adaptive", "-"), (fixed, "fixed", ":")):
            axes[0].plot(trace.times, 1e3 * trace.errors, style, label=label)
            axes[1].plot(trace.shape_times, 1e3 * trace.shapes, style, label=label)
            axes[4].plot(trace.times, 1e3 * trace.linear.max(axis=1), style, label=label)
        axes[2].plot(adaptive.times, adaptive.lengths.sum(axis=1), label="adaptive")
        axes[2].axhline(TRUE_LENGTHS.sum(), color="black", linestyle="--", label="true")
        _draw_lengths(axes[3], adaptive)
        labels = ("tip error / mm", "E_shape / mm", "whole length / m", "lengths / m",
                  "sensors' distance / mm")  # fmt: skip
        for ax, label in zip(axes, labels, strict=True):
            ax.set_ylabel(label)
        for ax in axes[[0, 1, 4]]:
            ax.set_yscale("log")
            ax.set_ylim(bottom=1e-2)
        for ax in axes[[0, 2]]:
            ax.legend(loc="upper right", ncols=2)
        axes[-1].set_xlabel("time / s")
        figure.savefig(path)


def draw_readings(traces: Mapping[str, KinematicTrace], path: Path) -> None:
    """Fig. 8 for every reading of the law: the lengths' estimates, beside the tip's error."""
    with rc_context(STYLE):
        figure = Figure(figsize=(10.0, 1.7 * len(traces) + 0.6), layout="constrained")
        axes = figure.subplots(len(traces), 2, squeeze=False)
        for (left, right), (name, trace) in zip(axes, traces.items(), strict=True):
            left.plot(trace.times, 1e3 * trace.errors)
            left.set_yscale("log")
            left.set_ylabel("tip error / mm")
            left.set_title(name + (", diverges" if trace.diverged else ""), loc="left")
            _draw_lengths(right, trace)
            right.set_ylim(0.0, 0.5)
            right.set_ylabel("lengths / m")
        for ax in axes[-1]:
            ax.set_xlabel("time / s")
        figure.savefig(path)


def draw_robot(traces: Mapping[str, RobotTrace], path: Path) -> None:
    """Figs. 11 to 16 of one run: tip error, E_shape, Psi, sum of lengths of each controller."""
    with rc_context(STYLE):
        figure = Figure(figsize=(8.0, 8.0), layout="constrained")
        axes = figure.subplots(4, 1, sharex=True)
        for name, trace in traces.items():
            shape_times = np.linspace(trace.times[0], trace.times[-1], len(trace.shapes))
            label = name + (", lost" if trace.lost else "")
            axes[0].plot(trace.times, 1e3 * trace.errors, label=label)
            axes[1].plot(shape_times, 1e3 * trace.shapes)
            axes[2].plot(trace.times, 1e3 * trace.costs)
            axes[3].plot(trace.times, trace.lengths.sum(axis=1))
        labels = ("tip error / mm", "E_shape / mm", "Psi / mm", "sum of lengths / m")
        for ax, label in zip(axes, labels, strict=True):
            ax.set_ylabel(label)
        for ax in axes[:3]:
            ax.set_yscale("log")
        axes[0].legend(loc="upper right", ncols=2)
        axes[-1].set_xlabel("time / s")
        figure.savefig(path)


def _draw_lengths(ax: Axes, trace: KinematicTrace) -> None:
    for section, colour in enumerate(_COLOURS):
        ax.plot(trace.times, trace.lengths[:, section], color=colour)
        ax.axhline(TRUE_LENGTHS[section], color=colour, linestyle="--", linewidth=0.8)
