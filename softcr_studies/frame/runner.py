"""Runs a study: cells, table, figures, page, in a directory that is there once all of it is."""

import os
import pickle
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import matplotlib
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from threadpoolctl import threadpool_limits

from softcr_models.errors import UserError
from softcr_runtime.console.results import point_latest_to
from softcr_runtime.console.terminal import say
from softcr_studies.frame.catalogue import file_of, load_study
from softcr_studies.frame.cell import Cell, StudySettings
from softcr_studies.frame.code_version import code_version
from softcr_studies.frame.machine import describe_machine
from softcr_studies.frame.page import PAGE, study_section
from softcr_studies.frame.results import Results, Store, unfinished
from softcr_studies.frame.study import Study
from softcr_studies.frame.table import TABLE_WIDTH, print_table, write_table
from softcr_studies.frame.workers import Job, LocalWorkers, Workers

TABLE = "table.json"
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
        study, version = load_study(place), code_version(file_of(place))
        about = self._about(study, settings, version)
        if study.serial and (load := os.getloadavg()[0]) > BUSY * (os.cpu_count() or 1):
            line = f"load average {load:.1f}: others are at work, times will be long"
            say(self.console, line, style="yellow")
        parent = self.results / "studies" / study.name
        with unfinished(parent, study.name, version, self.anew) as store:
            results = Results(settings, store)
            self._run_cells(place, study, version, results)
            with threadpool_limits(limits=1, user_api="blas"):
                rows = study.rows(results)
                if study.draw:
                    matplotlib.use("Agg")
                    study.draw(results, store.directory)
            about["load_average_at_end"] = [round(load, 2) for load in os.getloadavg()]
            write_table(store.directory / TABLE, about, rows)
            section = study_section(about, rows, store.directory)
            (store.directory / PAGE).write_text(section, encoding="utf-8")
            directory = store.finish(results.cells)
        point_latest_to(directory)
        print_table(self.console, f"softcr study run {study.name}", rows)
        if study.exact:
            say(self.console, study.exact)
        say(self.console, f"results: {directory}")
        return directory

    def _run_cells(self, place: str, study: Study, version: str, results: Results) -> None:
        """All cells, then those that follow from their results, until there are no more."""
        store = results.store
        columns = TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn()
        with Progress(*columns, TimeRemainingColumn(), console=self.console) as bar:
            task = bar.add_task(study.name, total=0)
            cells = study.cells(results.settings)
            while cells:
                cells = [self._placed(cell, store) for cell in cells]
                results.cells += cells
                missing = [cell for cell in cells if cell not in store]
                bar.update(
                    task, total=len(results.cells), completed=len(results.cells) - len(missing)
                )
                workers = LocalWorkers(1) if study.serial else self.workers
                threads = 0 if study.serial else 1
                jobs = [Job(place, version, pickle.dumps(cell), threads) for cell in missing]
                for job, result in workers.outcomes(jobs):
                    store.add(job.cell, result)
                    bar.advance(task)
                known = {repr(cell) for cell in results.cells}
                named = study.later(results) if study.later else ()
                cells = [cell for cell in named if repr(self._placed(cell, store)) not in known]

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
