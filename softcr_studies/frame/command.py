"""`softcr study`: list studies, run them, write their pages, compare two runs."""

import time
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict
from rich.table import Table

from softcr_models.errors import UserError
from softcr_runtime.console.terminal import FAILED, say, warn
from softcr_runtime.settings.command_line import command, completed, new_app
from softcr_runtime.settings.node_settings import Setting, build_settings, declared_settings
from softcr_studies.frame.catalogue import in_order, load_study, named_studies, study_files
from softcr_studies.frame.cell import StudySettings
from softcr_studies.frame.study import Study

QUICK = 600.0
"""How long a quick run may take [s]."""

app = new_app("study", "Run published experiments, tunings and benchmarks, and show their tables.")


def _names() -> str:
    """The names by group, for the help."""
    groups: dict[str, list[str]] = {}
    for name in study_files():
        group, _, own = name.partition("/")
        groups.setdefault(group, []).append(own)
    return "Studies: " + "; ".join(f"{group}/ {', '.join(own)}" for group, own in groups.items())


# What runs a study is imported where it is needed, so that --help answers at once.


class Chosen(BaseModel):
    """Settings of the studies that are named, as options of `run`.

    Attributes:
        values: name -> value, of what was given.
    """

    model_config = ConfigDict(frozen=True)

    @classmethod
    def more_options(cls, given: Mapping[str, Any]) -> dict[str, dict[str, Setting]]:
        """The options that every named study has."""
        named = given.get("names")
        declared = (
            [declared_settings(study.settings) for _, study in _studies(named)] if named else []
        )
        if not declared:
            return {"Studies": declared_settings(StudySettings)}
        common = set.intersection(*map(set, declared))
        title = "Study" if len(declared) == 1 else "Studies"
        return {title: {name: each for name, each in declared[0].items() if name in common}}

    @classmethod
    def of_options(cls, values: Mapping[str, Any]) -> Mapping[str, Any]:
        """The values as they are: each study checks them with its own type."""
        return values


@app.command(name="list")
@command
def list_studies(words: list[str] | None = None, /) -> int:
    """List the studies with their names, sources and summaries.

    Args:
        words: list only studies whose name or source contains one of these words.
    """
    from softcr_studies.frame.runner import terminal

    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
    for column in ("study", "seeds", "summary", "source"):
        table.add_column(column, no_wrap=column == "study")
    for name in study_files():
        study = load_study(name)
        if not words or any(word.lower() in f"{name} {study.source}".lower() for word in words):
            seeds = study.settings.model_fields["seeds"].default if study.seeded else "-"
            needs = "".join(f" (needs --{each})" for each in study.needs)
            table.add_row(name, str(seeds), study.summary + needs, study.source)
    terminal().print(table)
    return 0


@app.command(help_epilogue=_names())
@command
def run(
    names: Annotated[list[str], completed(study_files)],
    /,
    chosen: Chosen,
    *,
    workers: int = 0,
    cluster: str = "",
    insecure: bool = False,
    bags: bool = False,
    anew: bool = False,
    quick: bool = False,
    results: Path = Path("results"),
) -> int:
    """Run studies, or continue stopped ones; print and write their tables.

    The name of a group means all its studies, in the order in which they read each other's tables.

    The results are in results/studies/NAME/latest: table.json, page.md and figures.

    Args:
        names: studies, groups of studies, "all", or files ending in .py.
        workers: number of processes; 0: one for each core.
        cluster: address of a Dask scheduler (tls://host:8786) whose workers run the cells
            instead.
        insecure: allow a scheduler on another machine without TLS (tcp://host:8786): anybody
            who reaches its port, or that of a worker, can run code there.
        bags: keep a bag of the first seed of each case and method.
        anew: discard the results of a stopped run.
        quick: run one seed with the studies' quick settings, for ten minutes at most, into `quick`
            below the directory of the results; cells without time are left out and named.
        results: directory of the results.
    """
    from softcr_runtime.blocks.virtual import CORES
    from softcr_studies.frame.runner import Runner, check_needs
    from softcr_studies.frame.workers import ClusterWorkers, LocalWorkers

    if workers < 0:
        raise UserError(f"option --workers: {workers} is not allowed: a whole number from 0")
    values: Mapping[str, Any] = chosen  # type: ignore[assignment]
    if quick and cluster:
        raise UserError("option --quick: is for this machine; leave out --cluster")
    tasks = [
        (place, build_settings(study.settings, {**_quick(study, quick), **values}, "option"))
        for place, study in _studies(names)
    ]
    for (_, study), (_, settings) in zip(_studies(names), tasks, strict=True):
        check_needs(study, settings)
    deadline = time.monotonic() + QUICK if quick else None
    runner = Runner(
        results / "quick" if quick else results,
        ClusterWorkers(cluster, insecure) if cluster else LocalWorkers(workers or CORES, deadline),
        bags,
        anew,
    )
    try:
        runner.run_all(tasks)
    except KeyboardInterrupt:
        warn("interrupted; the same command continues where this one stopped")
        raise
    return 0


@app.command
@command
def page(
    names: list[str] | None = None, /, *, results: Path = Path("results"),
    output: Path = Path("results/studies/pages"),
) -> int:  # fmt: skip
    """Write a page of results for each group of studies, from their newest tables.

    For a study that has not been run, the table in the output directory is kept.

    Args:
        names: studies or groups; none: all that have been run.
        results: directory of the runs.
        output: directory of the pages.
    """
    from softcr_studies.frame.page import write_pages
    from softcr_studies.frame.runner import latest_table, terminal

    chosen = [study.name for _, study in _studies(names)] if names else list(study_files())
    tables = [latest_table(results, name) for name in chosen]
    for written in write_pages([table for table in tables if table.is_file()], output):
        say(terminal(), f"page: {written}")
    return 0


@app.command
@command
def compare(before: str, after: str, /, *, results: Path = Path("results")) -> int:
    """Show two runs of a study side by side; the exit code is 1 if a figure now misses its bound.

    Args:
        before: directory of a run, its table.json, or the name of a study for its newest run.
        after: directory, table.json or name of the other run.
        results: directory of the runs.
    """
    from softcr_studies.frame.compare import print_comparison, table_of
    from softcr_studies.frame.runner import terminal

    runs = table_of(before, results), table_of(after, results)
    return FAILED if print_comparison(terminal(), runs) else 0


def _studies(names: Any) -> list[tuple[str, Study]]:
    """Place and study of every name that was given."""
    places = in_order(named_studies(list(names or ())))
    return [(place, load_study(place)) for place in places]


def _quick(study: Study, quick: bool) -> dict[str, Any]:
    """What differs from the defaults of its settings."""
    limits = study.settings.model_fields["seeds"].metadata
    fewest: list[Any] = [each.ge for each in limits if hasattr(each, "ge")]
    return {"seeds": max(fewest, default=1), **study.quick} if quick else {}
