"""Runs a study: cells, table, figures, page, in a directory that is there once all of it is."""

import hashlib
import os
import pickle
import time
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import matplotlib
from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TaskID,
    TextColumn,
    TimeRemainingColumn,
)
from threadpoolctl import threadpool_limits

from softcr_models.errors import UserError
from softcr_runtime.console.results import point_latest_to
from softcr_runtime.console.terminal import say
from softcr_studies.frame.catalogue import file_of, load_study
from softcr_studies.frame.cell import SECONDS, Cell, StudySettings
from softcr_studies.frame.code_version import code_version, run_version
from softcr_studies.frame.machine import describe_machine
from softcr_studies.frame.page import PAGE, study_section
from softcr_studies.frame.results import Results, Store, unfinished
from softcr_studies.frame.study import Study
from softcr_studies.frame.table import TABLE_WIDTH, print_table, write_table
from softcr_studies.frame.workers import Job, LocalWorkers, Workers

TABLE = "table.json"
Task = tuple[str, StudySettings]
"""Place of a study, and its settings."""
BUSY = 0.3
"""Above this load per core times say more about the neighbours than about the code."""


def terminal() -> Console:
    """The terminal as it is; a file or pipe as wide as a table."""
    console = Console()
    return console if console.is_terminal else Console(width=TABLE_WIDTH)


@dataclass(frozen=True)
class Runner:
    """Where and how studies are run.

    Attributes:
        results: directory; a study's runs lie below `studies/NAME` in it.
        workers: who runs the cells.
        bags: whether a bag of each case and method is kept, of the first seed.
        anew: whether what a stopped run left is thrown away.
        console: where progress and tables are shown.
    """

    results: Path = Path("results")
    workers: Workers = field(default_factory=lambda: LocalWorkers(1))
    bags: bool = False
    anew: bool = False
    console: Console = field(default_factory=terminal)

    def run(self, place: str, settings: StudySettings) -> Path:
        """Runs a study, or goes on with one that was stopped.

        Args:
            place: see `load_study`.
            settings: of it.

        Returns:
            The directory of the run: table.json, page.md, figures, the cells' results, bags.

        Raises:
            UserError: what a cell refuses, or results that cannot be written.
        """
        return self.run_all([(place, settings)])[0]

    def run_all(self, tasks: Sequence[Task]) -> list[Path]:
        """Runs studies one after the other, with one bar over the cells of all of them.

        Of several studies those that a stopped run of the same ones has finished are not run again.

        Returns:
            The directory of each run; see `run`.

        Raises:
            UserError: see `run`.
        """
        columns = TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn()
        several, found = len(tasks) > 1, []
        with Progress(*columns, TimeRemainingColumn(), console=self.console) as progress:
            counts = [len(load_study(place).cells(settings)) for place, settings in tasks]
            bar = _Bar(progress, progress.add_task("", total=sum(counts)), counts)
            for number, (place, settings) in enumerate(tasks):
                mark, key = self._finished(place), _key(place, settings)
                if several and not self.anew and mark.is_file() and mark.read_text() == key:
                    found.append((mark.parent / "latest").resolve())
                    say(self.console, f"results: {found[-1]} (of the run that was stopped)")
                else:
                    share = self._share(len(tasks) - number)
                    found.append(share._run(place, settings, bar))
                    mark.write_text(key)
                bar.number += 1
        for place, _ in tasks if several else ():
            self._finished(place).unlink(missing_ok=True)
        return found

    def _finished(self, place: str) -> Path:
        """Tells what a stopped run of several studies has finished."""
        return self.results / "studies" / load_study(place).name / ".finished"

    def _share(self, left: int) -> "Runner":
        """For one of the studies that are left: with its share of the time until the deadline."""
        if not isinstance(self.workers, LocalWorkers) or self.workers.deadline is None:
            return self
        now = time.monotonic()
        share = now + max(0.0, self.workers.deadline - now) / left
        return replace(self, workers=replace(self.workers, deadline=share))

    def _run(self, place: str, settings: StudySettings, bar: "_Bar") -> Path:
        study, file = load_study(place), file_of(place)
        about = self._about(study, settings, code_version(file))
        if study.serial and (load := os.getloadavg()[0]) > BUSY * (os.cpu_count() or 1):
            line = f"load average {load:.1f}: others are at work, times will be long"
            say(self.console, line, style="yellow")
        parent, version = self.results / "studies" / study.name, run_version(file)
        with unfinished(parent, study.name, version, self.anew) as store:
            results = Results(settings, store)
            left_out = self._run_cells(place, study, version, results, bar)
            if left_out:  # what needs all cells cannot be made
                study = replace(study, further_rows=None, draw=None)
                about["left_out"] = left_out
            with threadpool_limits(limits=1, user_api="blas"):
                rows = study.rows(results)
                if study.draw:
                    matplotlib.use("Agg")
                    study.draw(results, store.directory)
            about["seconds_of_cells"] = _seconds(results)
            about["load_average_at_end"] = [round(load, 2) for load in os.getloadavg()]
            write_table(store.directory / TABLE, about, rows)
            section = study_section(about, rows, store.directory)
            (store.directory / PAGE).write_text(section, encoding="utf-8")
            directory = store.finish(results.cells)
        point_latest_to(directory)
        print_table(self.console, f"softcr study run {study.name}", rows)
        if left_out:
            words = f"left out, for lack of time, with figures and rows of all: {left_out}"
            say(self.console, words, style="yellow")
        if study.exact:
            say(self.console, study.exact)
        say(self.console, f"results: {directory}")
        return directory

    def _run_cells(
        self, place: str, study: Study, version: str, results: Results, bar: "_Bar"
    ) -> str:
        """All cells, then those that follow from their results, until there are no more; returns
        names of those for which there was no time."""
        store, left_out = results.store, list[Cell]()
        workers = self.workers
        if study.serial:
            deadline = workers.deadline if isinstance(workers, LocalWorkers) else None
            workers = LocalWorkers(1, deadline)
        cells = study.cells(results.settings)
        while cells and not left_out:
            cells = [self._placed(cell, store) for cell in cells]
            missing = [cell for cell in cells if cell not in store]
            count = len(results.cells) + len(cells)
            done = count - len(missing)
            bar.show(study.name, done, count)
            threads = 0 if study.serial else 1
            jobs = [Job(place, version, pickle.dumps(cell), threads) for cell in missing]
            for job, result in workers.outcomes(jobs):
                store.add(job.cell, result)
                done += 1
                bar.show(study.name, done, count)
            left_out = [cell for cell in cells if cell not in store]
            results.cells += [cell for cell in cells if cell in store]
            known = {repr(cell) for cell in results.cells}
            named = study.later(results) if study.later and not left_out else ()
            cells = [cell for cell in named if repr(self._placed(cell, store)) not in known]
        return "; ".join(dict.fromkeys(f"{cell.case_name}, {cell.method}" for cell in left_out))

    def _placed(self, cell: Cell, store: Store) -> Cell:
        """A cell with its folder, and its bag where one is wanted."""
        cell = replace(cell, folder=store.folder.absolute())
        wanted = self.bags and cell.seed == 0
        return replace(cell, bag=store.bag_of(cell).absolute()) if wanted else cell

    def _about(self, study: Study, settings: StudySettings, version: str) -> dict[str, Any]:
        return {
            "experiment": study.name,
            "source": study.source,
            "summary": study.summary,
            "exact": study.exact,
            **settings.model_dump(mode="json"),
            **study.about,
            "workers": 1 if study.serial else self.workers.count,
            "code": version,
            "machine": describe_machine(),
        }


@dataclass
class _Bar:
    """The bar over the cells of all studies of a run.

    Attributes:
        progress, task: where it is shown.
        counts: cells of each study; some name more of them while they run.
        number: of the present study.
    """

    progress: Progress
    task: TaskID
    counts: list[int]
    number: int = 0

    def show(self, name: str, done: int, count: int) -> None:
        """So many cells of the present study, of so many, are done."""
        self.counts[self.number] = count
        before, total = sum(self.counts[: self.number]), sum(self.counts)
        self.progress.update(self.task, description=name, completed=before + done, total=total)


def _key(place: str, settings: StudySettings) -> str:
    """Tells runs with other settings or of other code apart."""
    told = f"{run_version(file_of(place))} {settings.model_dump_json()}"
    return hashlib.sha256(told.encode()).hexdigest()


def _seconds(results: Results) -> dict[str, float]:
    """ "case, method" -> mean time of a cell [s]."""
    return {
        f"{case}, {method}": round(sum(each.get(SECONDS, 0.0) for each in found) / len(found), 2)
        for (case, method), found in results.by_method().items()
    }


def latest_table(results: Path, name: str) -> Path:
    """Where the newest table of a study lies."""
    return results / "studies" / name / "latest" / TABLE


def check_needs(study: Study, settings: StudySettings) -> None:
    """Refuses settings that lack what only a person can give.

    Raises:
        UserError: names what is missing.
    """
    for name in study.needs:
        if not getattr(settings, name):
            raise UserError(f"study {study.name}: needs --{name.replace('_', '-')}")
