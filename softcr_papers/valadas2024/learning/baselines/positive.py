"""Symmetric positive definite matrices whose entries are learned."""

import math
from functools import cache

import torch
from torch import Tensor, nn
from torch.nn.functional import softplus

_LEAST = 2e-6  # on the diagonal of the Cholesky factor


def entry_count(size: int) -> int:
    """How many entries a lower triangle has."""
    return size * (size + 1) // 2


def cholesky_factor(entries: Tensor, size: int, shift: float = 0.0) -> Tensor:
    """(..., size, size) lower triangle with a positive diagonal.

    Args:
        entries: (..., size (size + 1) / 2): the diagonal, which passes through softplus, then what
            is below it.
        size: of the matrix.
        shift: added to the diagonal.
    """
    return _triangle(softplus(entries[..., :size]) + (shift + _LEAST), entries[..., size:], size)


def cholesky_change(entries: Tensor, change: Tensor, size: int) -> Tensor:
    """(..., size, size) how `cholesky_factor` changes with its entries, along `change`."""
    slope = torch.sigmoid(entries[..., :size]) * change[..., :size]
    return _triangle(slope, change[..., size:], size)


def _triangle(diagonal: Tensor, below: Tensor, size: int) -> Tensor:
    given = torch.cat([diagonal, below, torch.zeros_like(diagonal[..., :1])], dim=-1)
    return given[..., _places(size)].unflatten(-1, (size, size))


@cache
def _places(size: int) -> Tensor:
    """(size^2,) of each element of the square among diagonal, elements below it, and a zero."""
    place = torch.full((size, size), entry_count(size))
    place.diagonal().copy_(torch.arange(size))
    row, column = torch.tril_indices(size, size, -1)
    place[row, column] = torch.arange(size, entry_count(size))
    return place.ravel()


class PositiveMatrix(nn.Module):
    """A constant matrix L L^T."""

    def __init__(self, size: int, scale: float = 1.0) -> None:
        """
        Args:
            size: of the matrix.
            scale: it is this multiple of the unit matrix at first.
        """
        super().__init__()
        self._size = size
        entries = torch.zeros(entry_count(size))
        entries[:size] = math.log(math.expm1(math.sqrt(scale)))
        self.entries = nn.Parameter(entries)

    def forward(self) -> Tensor:
        """(size, size)."""
        factor = cholesky_factor(self.entries, self._size)
        return factor @ factor.mT
