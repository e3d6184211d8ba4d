"""Pictures of a network beside its rod."""

from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np

from softcr_learning.surrogate.verification import Verification
from softcr_models.rod.state import RodState

_AXES = ("x", "y", "z")


def draw_states(
    ours: np.ndarray, theirs: np.ndarray, verification: Verification, directory: Path
) -> None:
    """Fig. 8: states of the last node and of the base, network and rod, over one motion.

    Args:
        ours, theirs: (T, nx).
    """
    times = verification.network.period * np.arange(1, len(ours) + 1)
    network, rod = RodState(ours), RodState(theirs)
    rows = (
        ("tip velocity [m/s]", network.velocities[:, -1, :3], rod.velocities[:, -1, :3]),
        ("tip angular velocity [rad/s]", network.velocities[:, -1, 3:], rod.velocities[:, -1, 3:]),
        ("base force [N]", network.wrenches[:, 0, :3], rod.wrenches[:, 0, :3]),
        ("base moment [N m]", network.wrenches[:, 0, 3:], rod.wrenches[:, 0, 3:]),
    )
    figure, axes = plt.subplots(len(rows), 1, figsize=(9.0, 9.0), sharex=True)
    for axis, (label, a, b) in zip(axes, rows, strict=True):
        for k, name in enumerate(_AXES):
            axis.plot(times, a[:, k], f"C{k}", linewidth=1.0, label=name)
            axis.plot(times, b[:, k], "k--", linewidth=0.6)
        axis.set_ylabel(label)
    axes[0].legend(loc="upper right", ncols=3)
    axes[0].set_title("network (colours) and rod (dashed), free running")
    axes[-1].set_xlabel("time [s]")
    _save(figure, directory / "states.png")


def draw_horizons(steps: list[int], errors: dict[str, list[float]], directory: Path) -> None:
    """Tip error against the number of steps run freely."""
    figure, axis = plt.subplots(figsize=(7.0, 4.5))
    for name, values in errors.items():
        axis.loglog(steps, values, "o-", label=name)
    axis.set(xlabel="free-running steps [-]", ylabel="mean tip distance from the rod [mm]")
    axis.grid(True, which="both", alpha=0.3)
    axis.legend()
    _save(figure, directory / "horizons.png")


def draw_map(
    pressures: np.ndarray, compliances: np.ndarray, cells: np.ndarray, directory: Path
) -> None:
    """Tip error over highest pressure [Pa] and compliance factor."""
    figure, axis = plt.subplots(figsize=(6.5, 5.0))
    image = axis.imshow(cells, origin="lower", aspect="auto", cmap="viridis")
    axis.set_xticks(range(len(compliances)), [f"{100 * (c - 1):+.0f}" for c in compliances])
    axis.set_yticks(range(len(pressures)), [f"{1e-3 * p:.0f}" for p in pressures])
    axis.set(xlabel="bending compliance [% off nominal]", ylabel="pressures up to [kPa]")
    for row in range(len(pressures)):
        for column in range(len(compliances)):
            axis.text(column, row, f"{cells[row, column]:.2f}", ha="center", va="center", color="w")
    figure.colorbar(image, label="mean tip distance [mm]")
    _save(figure, directory / "map.png")


def _save(figure: plt.Figure, path: Path) -> None:
    figure.tight_layout()
    figure.savefig(path, dpi=120)
    plt.close(figure)
