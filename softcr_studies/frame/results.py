"""The results of a study's cells, kept as files: a run that was stopped finds them again."""

import fcntl
import hashlib
import json
import os
import re
import shutil
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from typing import Any

import numpy as np

from softcr_models.errors import UserError
from softcr_studies.frame.cell import Cell, Result


class Results:
    """The results of cells, in the order in which the study names them.

    Attributes:
        settings: of the study.
        cells: those that were named so far.
        store: where they lie.
    """

    def __init__(self, settings: Any, store: "Store") -> None:
        """No cell yet."""
        self.settings = settings
        self.cells: list[Cell] = []
        self.store = store

    def __getitem__(self, cell: Cell) -> Result:
        return self.store[cell]

    def of(self, case: str, method: str) -> list[Result]:
        """Results of every seed."""
        return [
            self[cell] for cell in self.cells if (cell.case_name, cell.method) == (case, method)
        ]

    def first(self, case: str, method: str) -> Result:
        """The result of the first seed."""
        return self.of(case, method)[0]

    def by_method(self) -> dict[tuple[str, str], list[Result]]:
        """(name of the case, method) -> a result per seed, case by case."""
        owners = dict.fromkeys((cell.case_name, cell.method) for cell in self.cells)
        cases = list(dict.fromkeys(case for case, _ in owners))
        return {owner: self.of(*owner) for owner in sorted(owners, key=lambda o: cases.index(o[0]))}


class Store:
    """The directory of a run that is not finished yet.

    A result is known by its cell, whether a bag was wanted, the study's settings and the version of
    the code; what another version computed is not used.

    Attributes:
        directory: that holds everything.
        folder: see Cell.
    """

    def __init__(self, directory: Path, study: str, version: str) -> None:
        """`directory` is made if need be.

        Raises:
            OSError: it cannot be made.
        """
        self.directory, self._study, self._version = directory, study, version
        self._cells = directory / "cells"
        self.folder = directory / "shared"
        for path in (self._cells, self.folder):
            path.mkdir(parents=True, exist_ok=True)

    def __contains__(self, cell: Cell) -> bool:
        return self._path(cell).is_file()

    def __getitem__(self, cell: Cell) -> Result:
        with np.load(self._path(cell), allow_pickle=False) as arrays:
            return {name: value.item() if value.ndim == 0 else value
                    for name, value in arrays.items()}  # fmt: skip

    def add(self, cell: Cell, result: Result) -> None:
        """Keeps a result; it is there whole or not at all.

        Raises:
            TypeError: it holds something that is neither number, text nor array of those.
            OSError: it cannot be written.
        """
        arrays = {name: np.asarray(value) for name, value in result.items()}
        if odd := [name for name, value in arrays.items() if value.dtype == object]:
            raise TypeError(f"result {odd[0]!r} is {type(result[odd[0]]).__name__}: must be a "
                            "number, a text or an array of them")  # fmt: skip
        draft = self._path(cell).with_suffix(f".{os.getpid()}.draft")
        with draft.open("wb") as file:
            np.savez_compressed(file, allow_pickle=False, **arrays)
        os.replace(draft, self._path(cell))

    def bag_of(self, cell: Cell) -> Path:
        """Where the bag of a cell lies."""
        name = re.sub(r"\W+", "_", f"{cell.case_name}-{cell.method}-{cell.seed}").strip("_")
        return self.directory / "bags" / name

    def finish(self, cells: Iterable[Cell]) -> Path:
        """Makes the run's directory of what is here; results of other cells are removed.

        Returns:
            The directory, beside this one, named by the time.

        Raises:
            OSError: it cannot be renamed.
        """
        mine = {self._path(cell) for cell in cells}
        for path in set(self._cells.iterdir()) - mine:
            path.unlink()
        if not any(self.folder.iterdir()):
            self.folder.rmdir()
        stamp = datetime.now().strftime("%Y%m%d-%H%M%S")
        finished = self.directory.with_name(stamp)
        while finished.exists():
            finished = finished.with_name(finished.name + "+")
        self.directory.rename(finished)
        return finished

    def _path(self, cell: Cell) -> Path:
        settings = cell.settings.model_dump_json(exclude={"seeds"})
        told = [self._study, self._version, repr(cell.case), cell.method, cell.seed, settings,
                cell.bag is not None]  # fmt: skip
        if " at 0x" in told[2]:
            raise TypeError(f"case {cell.case_name!r} holds {told[2]!r:.80}, which has no value")
        digest = hashlib.sha256(json.dumps(told).encode()).hexdigest()[:24]
        return self._cells / f"{digest}.npz"


@contextmanager
def unfinished(parent: Path, study: str, version: str, anew: bool) -> Iterator[Store]:
    """The store of a study's unfinished run, for this process alone.

    Args:
        parent: where the study's runs lie.
        study: its name.
        version: of the code.
        anew: whether what an earlier run left is removed.

    Raises:
        UserError: somebody else runs the study there, or nothing can be written.
    """
    directory = parent / "unfinished"
    try:
        parent.mkdir(parents=True, exist_ok=True)
        with (parent / ".lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if anew:
                shutil.rmtree(directory, ignore_errors=True)
            yield Store(directory, study, version)
    except BlockingIOError:
        raise UserError(
            f"{parent}: another process runs this study; wait, or give --results"
        ) from None
    except PermissionError as error:
        raise UserError(
            f"results directory {error.filename}: cannot be written: {error.strerror}"
        ) from None
