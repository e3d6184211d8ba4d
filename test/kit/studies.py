"""Studies in tests: the rows of a run, and results of cells that a test makes up."""

import io

from rich.console import Console

from softcr_runtime.settings.node_settings import build_settings
from softcr_studies.frame.catalogue import load_study
from softcr_studies.frame.results import Results, Store
from softcr_studies.frame.runner import TABLE, Runner
from softcr_studies.frame.table import read_table
from softcr_studies.frame.workers import LocalWorkers


def run_of(name, folder, settings=None, **given):
    """The directory of a run in this process, and what the terminal showed."""
    output = io.StringIO()
    settings = settings or build_settings(load_study(name).settings, given)
    runner = Runner(folder, LocalWorkers(1), console=Console(file=output, width=130))
    return runner.run(name, settings), output.getvalue()


def rows_of(name, folder, settings=None, **given):
    """Rows of a run by case, method and quantity, none of which stands twice; its directory."""
    directory, _ = run_of(name, folder, settings, **given)
    rows = read_table(directory / TABLE)[1]
    found = {row.key: row for row in rows}
    assert len(found) == len(rows)
    return found, directory


def results_of(study, folder, found, **given):
    """Results of a study whose cells, the later ones too, found (cell) -> result."""
    results = Results(study.settings(**given), Store(folder, study.name, "code"))
    for named in (study.cells, lambda _: study.later(results) if study.later else ()):
        cells = list(named(results.settings))
        results.cells += cells
        for cell in cells:
            results.store.add(cell, found(cell))
    return results
