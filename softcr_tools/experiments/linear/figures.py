"""Fig. 4 of Licher et al. 2025: errors of the linear model, and a motion of both."""

from collections.abc import Sequence
from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np

AXES = "xyz"


def draw_errors(path: Path, amplitudes: Sequence[float], errors: Sequence[np.ndarray]) -> None:
    """Fig. 4a: mean absolute errors over the amplitude.

    Args:
        path: of the picture.
        amplitudes: (A,) [Pa].
        errors: (A, 3) of each seed [mm].
    """
    figure, plot = plt.subplots(figsize=(6.0, 4.0))
    mean, spread = np.mean(errors, axis=0), np.std(errors, axis=0)
    for column, axis in enumerate(AXES):
        plot.errorbar(
            1e-3 * np.array(amplitudes), mean[:, column], spread[:, column],
            fmt="o-", capsize=3, label=axis,
        )  # fmt: skip
    plot.set_xlabel("amplitude of the steps [kPa]")
    plot.set_ylabel("mean absolute error of the linear model [mm]")
    plot.grid(alpha=0.3)
    plot.legend()
    _save(figure, path)


def draw_motion(
    path: Path, amplitude: float, times: np.ndarray, tips: np.ndarray, linear_tips: np.ndarray
) -> None:
    """Fig. 4b: tips (T, 3) [m] of both over times (T,) [s] at an amplitude [Pa]."""
    figure, plots = plt.subplots(3, 1, figsize=(8.0, 7.0), sharex=True)
    for column, (plot, axis) in enumerate(zip(plots, AXES, strict=True)):
        plot.plot(times, 1e3 * tips[:, column], "k", label="rod")
        plot.plot(times, 1e3 * linear_tips[:, column], "C3--", label="linear")
        plot.set_ylabel(f"{axis} of the tip [mm]")
        plot.grid(alpha=0.3)
    plots[0].set_title(f"steps of {1e-3 * amplitude:.0f} kPa")
    plots[0].legend(loc="upper right")
    plots[-1].set_xlabel("time [s]")
    _save(figure, path)


def _save(figure: plt.Figure, path: Path) -> None:
    figure.tight_layout()
    figure.savefig(path, dpi=120)
    plt.close(figure)
