"""The rod's implicit state equation (19) in torch, for the physics loss (37).

The same equations as `softcr_models.rod.kernel`, all intervals at once instead of one after the
other: running that text on tensors takes thousands of small operations. A test holds both together
to 1e-10. Linear first, as there.
"""

from functools import partial

import torch
from torch.linalg import cross

from softcr_models.rod.cosserat_rod import CosseratRod


def ad(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    """ad(x) y of twists (..., 6)."""
    linear = cross(x[..., 3:], y[..., :3]) + cross(x[..., :3], y[..., 3:])
    return torch.cat((linear, cross(x[..., 3:], y[..., 3:])), dim=-1)


def ad_transposed(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    """ad(x)^T y of a twist x and a wrench y (..., 6)."""
    linear = -cross(x[..., 3:], y[..., :3])
    angular = -cross(x[..., :3], y[..., :3]) - cross(x[..., 3:], y[..., 3:])
    return torch.cat((linear, angular), dim=-1)


def rotate_back(v: torch.Tensor, u: torch.Tensor) -> torch.Tensor:
    """Exp(u)^T v of (..., 3); the kernel's series, exact to 1e-10 up to |u| = 1."""
    t = (u * u).sum(dim=-1, keepdim=True)
    sine = 1.0 - t * (1 / 6) * (1.0 - t * (1 / 20) * (1.0 - t * (1 / 42) * (1.0 - t * (1 / 72))))
    cosine = 0.5 * (1.0 - t * (1 / 12) * (1.0 - t * (1 / 30) * (1.0 - t * (1 / 56))))
    turned = cross(u, v)
    return v + cosine * cross(u, turned) - sine * turned


class RodResidual:
    """Right minus left sides of (19) for batches of states, rates, pressures and parameters."""

    def __init__(
        self,
        rod: CosseratRod,
        dtype: torch.dtype = torch.float32,
        device: torch.device | None = None,
    ) -> None:
        """Takes the constants of a rod to a device; the processor, if none is given."""
        self.device = device or torch.device("cpu")
        tensor = partial(torch.tensor, dtype=dtype, device=self.device)
        body, grid = rod.body, rod.grid
        self.intervals, self.subintervals = rod.total_intervals, grid.gravity_subintervals
        self.length = float(grid.interval_length[0])
        parts = torch.arange(self.subintervals, dtype=dtype, device=self.device)
        self._points = (parts + float(grid.strain_point)) / self.subintervals
        self._compliance, self._bending = tensor(body.compliance[0]), tensor(body.bending_share[0])
        self._relaxation = tensor(body.relaxation[0])
        self._line_density = float(body.line_density[0])
        self._tip_share = tensor(body.tip_share[:-1])
        self._actuation, self._gravity = tensor(body.actuation[0]), tensor(grid.gravity)
        bending, torsion = float(grid.bending_inertia[0]), float(grid.torsion_inertia[0])
        self._inertia = tensor([1.0, 1.0, 1.0, bending, bending, torsion])
        self._straight = tensor([0.0, 0.0, 1.0, 0.0, 0.0, 0.0])

    def __call__(
        self,
        states: torch.Tensor,
        rates: torch.Tensor,
        pressures: torch.Tensor,
        parameters: torch.Tensor,
    ) -> torch.Tensor:
        """(B, nx) residuals, rows in the order of `CosseratRod.residual`.

        Args:
            states, rates: (B, nx) and their time derivatives.
            pressures: (B, m) [Pa].
            parameters: (B, P) in the order of `softcr_models.rod.parameters.PARAMETERS`.
        """
        compliance = self._compliance + self._bending * parameters[:, :1]
        relaxation = self._relaxation * parameters[:, 2:3]
        density = (self._line_density + parameters[:, 1:2] * self._tip_share)[..., None]
        wrench = pressures @ self._actuation.T
        e, s, base = self._split(states)
        de, ds, base_rate = self._split(rates)
        c, d, w = compliance[:, None], relaxation[:, None], wrench[:, None]

        stress, velocity = _means(s), _means(e)
        stress_rate = _means(ds)
        strain = self._straight + c * stress
        compatibility = torch.diff(e, dim=1) / self.length - c * stress_rate + ad(strain, velocity)
        mass = density * self._inertia
        balance = torch.diff(s + d * ds, dim=1) / self.length - mass * _means(de)
        balance = balance - ad_transposed(strain, stress + d * stress_rate - w)
        balance = balance + ad_transposed(velocity, mass * velocity)
        up = self._mean_up(s, compliance)
        weight = torch.cat((density * up, torch.zeros_like(up)), dim=-1)
        intervals = torch.cat((compatibility, balance - weight), dim=-1)
        tip = wrench - s[:, -1] - relaxation * ds[:, -1]
        at_base = s[:, 0] + relaxation * ds[:, 0] - wrench - base - relaxation * base_rate
        return torch.cat((intervals.flatten(1), tip, at_base), dim=-1)

    def _split(self, states):
        """Velocities with the clamped node in front and wrenches (B, n + 1, 6), base (B, 6)."""
        n, batch = self.intervals, len(states)
        velocities = states[:, : 6 * n].reshape(batch, n, 6)
        velocities = torch.cat((states.new_zeros(batch, 1, 6), velocities), dim=1)
        return velocities, states[:, 6 * n : -6].reshape(batch, n + 1, 6), states[:, -6:]

    def _mean_up(self, s, compliance):
        """Algorithm 1: (B, n, 3) mean of g R^T e_z over each interval, trapezoidal as the kernel.

        Strains are linear in an interval, so the turns of all sub-intervals are known at once; only
        carrying the vector from one to the next is serial.
        """
        parts, moments = self.subintervals, s[..., 3:]
        at_points = moments[:, :-1, None] + (
            self._points[:, None] * torch.diff(moments, dim=1)[:, :, None]
        )
        turns = (self.length / parts) * compliance[:, None, None, 3:] * at_points
        up = self._gravity.expand(len(s), 3)
        means = []
        for i in range(self.intervals):
            total = 0.5 * up
            for j in range(parts):
                up = rotate_back(up, turns[:, i, j])
                total = total + (0.5 if j == parts - 1 else 1.0) * up
            means.append(total / parts)
        return torch.stack(means, dim=1)


def _means(y: torch.Tensor) -> torch.Tensor:
    """Of neighbouring nodes, (B, n, 6) from (B, n + 1, 6)."""
    return 0.5 * (y[:, 1:] + y[:, :-1])
