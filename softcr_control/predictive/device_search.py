"""What a generation of the NEMPC does with its candidates, by kernels of their device.

What `Evolution`, `limit_knots` and `gauss_newton_proposals` do with arrays. Populations are sorted
by cost, the best first.
"""

import ctypes
from collections.abc import Sequence
from importlib import resources

import numpy as np
import torch

from softcr_control.predictive.bounded_minimum import CHANGES_PER_UNKNOWN, NOISE
from softcr_control.predictive.polish import (
    FIT_RIDGE,
    SAMPLES_PER_NUMBER,
    STEP_DAMPING,
    STEP_FRACTIONS,
    TINY,
)
from softcr_models.cuda import module
from softcr_models.cuda.source import text

_ROOM = 48 * 1024  # bytes of shared memory that every GPU gives to a block
_MOST_BLOCKS = 1024
_MOST_TERMS = 32  # that `search.cu` has room for


class _Limits(ctypes.Structure):
    _fields_ = tuple((name, ctypes.c_int) for name in ("knots", "channels", "first_knot_fixed"))


class _Breed(ctypes.Structure):
    _fields_ = (
        *((name, ctypes.c_int) for name in ("parents", "strangers", "children")),
        ("mutation_probability", ctypes.c_float),
        ("limits", _Limits),
    )


class _Residuals(ctypes.Structure):
    _fields_ = tuple((name, ctypes.c_int) for name in ("batch", "count"))


class _Kept(ctypes.Structure):
    _fields_ = (
        *((name, ctypes.c_int)
          for name in ("kept", "size", "fitted", "residuals", "ticks", "terms")),
        ("ends", ctypes.c_int * _MOST_TERMS),
    )  # fmt: skip


class _Winner(ctypes.Structure):
    _fields_ = tuple((name, ctypes.c_int) for name in ("parents", "size", "told"))


class _Polish(ctypes.Structure):
    _fields_ = (
        *((name, ctypes.c_int) for name in ("samples", "residuals", "fractions")),
        *((name, ctypes.c_double) for name in ("ridge", "damping", "tiny", "noise")),
        ("changes_per_unknown", ctypes.c_int),
        ("fraction", ctypes.c_double * len(STEP_FRACTIONS)),
        ("limits", _Limits),
    )


class DeviceSearch:
    """The kernels for candidates of K knots and m channels.

    Args:
        shares: numbers of parents, strangers and children of a generation.
        stranger_spread: (m,) standard deviation of strangers [unit of the inputs].
        mutation_probability: chance that one knot of one channel of a child is mutated.
        low, high: (m,) the box [unit of the inputs].
        max_steps: K largest changes (m,) from the knot before; None where no step is too large.
        first_knot_fixed: whether the first knot is the command that is active.
        generator: the only source of chance.
        device: of all tensors.

    Attributes:
        samples: candidates that the polish looks at.
        polishes: whether they are enough for it.

    Raises:
        UserError: the device has no compiler, or does not take what it made.
    """

    def __init__(
        self,
        shares: tuple[int, int, int],
        stranger_spread: np.ndarray,
        mutation_probability: float,
        low: np.ndarray,
        high: np.ndarray,
        max_steps: Sequence[np.ndarray | None],
        first_knot_fixed: bool,
        generator: torch.Generator,
        device: torch.device,
    ) -> None:
        self._generator, self.device = generator, device
        knots, channels = len(max_steps), len(low)
        self._shape, self._size = (knots, channels), knots * channels
        self._limits = _Limits(knots, channels, first_knot_fixed)
        self._parents, self._strangers, self._children = shares
        self._breed = _Breed(*shares, mutation_probability, self._limits)
        free = np.full(channels, np.inf)
        steps = np.array([free if step is None else step for step in max_steps])
        self._spread, self._low, self._high, self._steps = (
            torch.as_tensor(value, dtype=torch.float32, device=self.device)
            for value in (stranger_spread, low, high, steps)
        )
        self._module = module.Module(source(), self.device)
        self.samples = min(SAMPLES_PER_NUMBER * self._size, sum(shares))
        self.polishes = self.samples > self._size

    def bred(
        self,
        population: torch.Tensor,
        previous: torch.Tensor,
        mutation: torch.Tensor,
        to_later: torch.Tensor | None = None,
        begins: torch.Tensor | None = None,
    ) -> torch.Tensor:
        """Parents first, then strangers, then children, limited.

        Each channel of a child comes whole from one of two random parents, then knots mutate.

        Args:
            population: (parents or more, K, m) candidates [unit of the inputs], the best first.
            previous: (m,) the command that is active, the mean of strangers.
            mutation: (m,) standard deviation of a mutation.
            to_later: (K m, K m) what makes the population that of a later tick.
            begins: () 1 where all are strangers to be, but the first, which is `previous`.

        Returns:
            (B, K, m) candidates [unit of the inputs].
        """
        knots, channels = self._shape
        count, device, chance = self._children, self.device, self._generator
        batch = self._parents + self._strangers + count
        normal = torch.randn((batch, knots, channels), generator=chance, device=device)
        mates = torch.randint(self._parents, (2, count), generator=chance, device=device)
        uniform = torch.rand((count, 1 + knots, channels), generator=chance, device=device)
        out = torch.empty((batch, knots, channels), device=device)
        self._launch(
            "breed",
            (population, normal, mates, uniform, previous, mutation, self._spread, to_later, begins,
             self._low, self._high, self._steps, out),
            self._breed, batch * channels,
        )  # fmt: skip
        return out

    def costs(self, residuals: torch.Tensor) -> torch.Tensor:
        """(B,) sums of squares of residuals (B, R), inf where they are not finite."""
        batch, count = residuals.shape
        out = torch.empty(batch, device=self.device)
        self._launch("costs", (residuals, out), _Residuals(batch, count), 32 * batch)
        return out

    def gathered(
        self,
        order: torch.Tensor,
        knots: torch.Tensor,
        residuals: torch.Tensor,
        tip_poses: torch.Tensor,
        ends: Sequence[int],
        kept: int,
    ) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        """What is kept of candidates.

        Args:
            order: (B,) their indices, the best first.
            knots: (B, K, m).
            residuals: (B, R).
            tip_poses: (B, N, 3, 4).
            ends: of the residuals of each cost term.
            kept: candidates whose knots are kept.

        Returns:
            (kept, K, m) knots and (S, R) residuals, S the polish's samples if there are so many;
            (F,) of the first: costs of its terms, knots and tips.
        """
        count, fitted, ticks = residuals.shape[1], min(self.samples, kept), tip_poses.shape[1]
        told = _Kept(
            kept, self._size, fitted, count, ticks, len(ends), (ctypes.c_int * _MOST_TERMS)(*ends)
        )
        outs = (
            torch.empty((kept, *self._shape), device=self.device),
            torch.empty((fitted, count), device=self.device),
            torch.empty(len(ends) + self._size + 3 * ticks, device=self.device),
        )
        tensors = (order, knots, residuals, tip_poses, *outs)
        self._launch("gather", tensors, told, max(kept * self._size, fitted * count))
        return outs

    def proposals(
        self,
        knots: torch.Tensor,
        residuals: torch.Tensor,
        costs: torch.Tensor,
        previous: torch.Tensor,
    ) -> torch.Tensor:
        """(8, K, m) candidates [unit of the inputs] on the line from the best one, limited.

        Args:
            knots: (S, K, m) samples inside the box [unit of the inputs], the best first.
            residuals: (S, R) whose squares add up to the costs.
            costs: (S,) or more of them, ascending; those that are not finite do not count.
            previous: (m,) the command that is active.
        """
        size, (samples, count) = self._size, residuals.shape
        room = 8 * (3 * size * (size + 3) + (size + 1) * count + 2)  # as `polish` lays it out
        scratch = None
        if room > _ROOM or self.device.type != "cuda":
            scratch = torch.empty(room // 8, dtype=torch.float64, device=self.device)
        out = torch.empty((len(STEP_FRACTIONS), *self._shape), device=self.device)
        told = _Polish(
            samples, count, len(STEP_FRACTIONS), FIT_RIDGE, STEP_DAMPING, TINY, NOISE,
            CHANGES_PER_UNKNOWN, (ctypes.c_double * len(STEP_FRACTIONS))(*STEP_FRACTIONS),
            self._limits,
        )  # fmt: skip
        tensors = (knots, residuals, costs, previous, self._low, self._high, self._steps, scratch,
                   out)  # fmt: skip
        self._module.launch("polish", tensors, told, 1, 256, 0 if scratch is not None else room)
        return out

    def keep(
        self,
        found: tuple[torch.Tensor, torch.Tensor, torch.Tensor],
        polished: tuple[torch.Tensor, torch.Tensor, torch.Tensor] | None,
        population: torch.Tensor,
        out: torch.Tensor,
    ) -> None:
        """Writes the next tick's parents (parents, K, m), and what is told of the best (F,).

        Args:
            found: knots (S, K, m), costs, the best first, and what is told of the first (F,).
            polished: the same of proposals, of which the first enters if it costs less; or None.
            population: to write to.
            out: to write to.
        """
        told = _Winner(self._parents, self._size, len(out))
        tensors = (*found, *(polished or (None, None, None)), population, out)
        self._launch("keep", tensors, told, max(population.numel(), len(out)))

    def _launch(
        self,
        kernel: str,
        tensors: Sequence[torch.Tensor | None],
        told: ctypes.Structure,
        threads: int,
    ) -> None:
        blocks = min(-(-threads // module.THREADS), _MOST_BLOCKS)
        self._module.launch(kernel, tensors, told, blocks)


def source() -> str:
    """The kernels' whole text."""
    own = (resources.files(__package__) / "search.cu").read_text(encoding="utf-8")
    return text("grid.cu") + own
