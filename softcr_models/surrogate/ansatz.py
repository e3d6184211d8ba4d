"""The ansatz of the DD-PINN: damped sines that begin at zero, Licher et al. 2025, (34).

    a(alpha, t) = sum_i alpha_1i (sin(alpha_2i t + alpha_3i) exp(-alpha_4i t) - sin(alpha_3i))

alpha_2 (frequency), alpha_3 (phase) and alpha_4 (damping) are the shapes, alpha_1 the amplitudes.
Frequency and damping are bounded and never negative: exp(-alpha_4 t) with a negative alpha_4 grows.
"""

import numpy as np
import torch

# [rad/s], [1/s]: half of what 70 Hz can tell apart, and a fall to 1/e within a quarter of a step
HIGHEST_FREQUENCY = 220.0
HIGHEST_DAMPING = 300.0

# Equal parts of a step, at whose ends a training keeps the rod's state; a network with shared
# shapes answers the change of state at each of them.
PIECES = 3

# Shapes shared by all coordinates and samples: frequency [rad/s], phase [rad], damping [1/s] of
# each term. Found by `fit_shapes` for licher2025, and where it begins for another robot.
SHARED_SHAPES = np.array([[5.32, 0.197, 12.5], [3.36, 0.043, 80.0], [138.1, -1.064, 299.5]])


def bounded_shapes(raw: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Frequency, phase and damping from what a network says, (..., 3, nx) each (..., nx)."""
    frequency = HIGHEST_FREQUENCY * torch.sigmoid(raw[..., 0, :])
    damping = HIGHEST_DAMPING * torch.sigmoid(raw[..., 2, :])
    return frequency, raw[..., 1, :], damping


def basis(frequency, phase, damping, time):
    """What an amplitude of one is after `time` [s], (34); tensors that broadcast together."""
    return torch.sin(frequency * time + phase) * torch.exp(-damping * time) - torch.sin(phase)


def basis_rate(frequency, phase, damping, time):
    """Time derivative of `basis` [1/s]."""
    angle = frequency * time + phase
    rate = frequency * torch.cos(angle) - damping * torch.sin(angle)
    return rate * torch.exp(-damping * time)


def amplitudes_per_mark(shapes: torch.Tensor, period: float) -> torch.Tensor:
    """(I, I) amplitudes of the shared shapes that pass through one at one mark, zero at the others.

    The marks are the ends of I equal parts of the period: row j belongs to time (j + 1) period / I.
    With it a network may say where a coordinate is at the marks, which is well-conditioned to
    learn, and the ansatz is what goes through these points.

    Args:
        shapes: (I, 3) frequency, phase, damping of each term.
        period: of a step [s].
    """
    terms = len(shapes)
    marks = period * torch.arange(1, terms + 1, dtype=shapes.dtype, device=shapes.device) / terms
    at_marks = basis(shapes[:, 0], shapes[:, 1], shapes[:, 2], marks[:, None])  # mark, term
    return torch.linalg.inv(at_marks).T.contiguous()
