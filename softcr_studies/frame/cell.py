"""A cell: one case, one method, one seed of a study, and the random streams that belong to it."""

import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import numpy as np
from pydantic import BaseModel, ConfigDict, Field

Result = Mapping[str, Any]
"""What a cell gives: name -> number, text or array; other kinds of values cannot be kept."""
SECONDS = "seconds of the cell"
"""Name in a result of how long its cell took [s]."""


Seeds = Annotated[int, Field(ge=1, le=100, description="runs of each case and method")]


class StudySettings(BaseModel):
    """What a person may choose of a study; a study with more options derives from it."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)

    seeds: Seeds = 5


@dataclass(frozen=True)
class Cell:
    """One run of a study.

    Attributes:
        case: one of the study's: a text, or data with a `name`.
        method: who is measured: a controller, a filter, a solver.
        seed: from 0.
        settings: of the study.
        bag: where a bag is to be written; None: none is wanted.
        folder: shared by the cells of a run, and kept with its results.
    """

    case: Any
    method: str
    seed: int
    settings: Any
    bag: Path | None = None
    folder: Path = Path()

    @property
    def case_name(self) -> str:
        """As the table says it."""
        return name_of(self.case)

    def stream(self, user: str) -> int:
        """A seed for one user of random numbers.

        Args:
            user: who draws ("plant", "controller"). Streams of two users, or of two seeds, are
                independent; case and method do not matter, so that methods meet the same noise.

        Returns:
            A whole number of 31 bits.
        """
        return int(self._spawned(user).generate_state(1)[0] >> 1)

    def random(self, user: str) -> np.random.Generator:
        """A generator of random numbers for one user; see `stream`."""
        return np.random.default_rng(self._spawned(user))

    def _spawned(self, user: str) -> np.random.SeedSequence:
        return np.random.SeedSequence(self.seed, spawn_key=(zlib.crc32(user.encode()),))


def name_of(case: Any) -> str:
    """The name of a case: itself, if it is a text."""
    return case if isinstance(case, str) else str(case.name)
