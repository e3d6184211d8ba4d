"""`softcr experiment all`: every experiment, then the pages; `... report`: the pages alone.

Experiments on recordings that a person has to bring are run one by one. The one page holds what the
newest run of each experiment wrote, and says which have not been run.
"""

import argparse
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from rich.console import Console

from softcr_models.errors import UserError
from softcr_runtime.console import say

_HEADER = (
    "| case | method | quantity | paper | ours | sd | unit | seeds | must | goal | |",
    "|---|---|---|---:|---:|---:|---|---:|---:|---:|---|",
)


def main(arguments: Sequence[str]) -> int:
    """Run the command line after `softcr experiment`, "all" or "report" first.

    Raises:
        UserError: an experiment refuses, a table cannot be read, or the page cannot be written.
    """
    from softcr_tools.experiments.command import EXPERIMENTS, run_experiment

    given = _parser(arguments[0]).parse_args(arguments)
    console = Console()
    root = given.results / "experiments"
    names = [name for name, entry in EXPERIMENTS.items() if entry.module != "collected"]
    if given.name == "all":
        for name in (name for name in names if not EXPERIMENTS[name].needs_data):
            say(console, f"experiment {name}")
            run_experiment(name, ["--seeds", str(given.seeds), "--results", str(given.results)])
    for path in write_pages(root, names):
        say(console, f"report: {path}")
    return 0


def write_pages(root: Path, names: Sequence[str]) -> list[Path]:
    """Writes `report.md` below the experiments' results; returns its path.

    Raises:
        UserError: a table is not what an experiment writes, or nothing was run.
    """
    tables = {name: _table(root / name / "latest" / "table.json") for name in names}
    if not any(tables.values()):
        raise UserError(f"{root}: no experiment has been run; allowed are {', '.join(names)}")
    sections = [_section(name, table) for name, table in tables.items() if table]
    missing = [name for name, table in tables.items() if not table]
    if missing:
        sections.append(f"Not run: {', '.join(missing)}.\n")
    pages = {root / "report.md": "# Experiments\n\n" + "\n".join(sections)}
    for path, text in pages.items():
        path.write_text(text, encoding="utf-8")
    return list(pages)


def _table(path: Path) -> dict[str, Any]:
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
        rows = content["rows"]
    except FileNotFoundError:
        return {}
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise UserError(f"{path}: not an experiment's table: {error}") from None
    return content if isinstance(rows, list) else {}


def _section(name: str, table: dict[str, Any]) -> str:
    about = {key: value for key, value in table.items() if key not in ("rows", "experiment")}
    told = ", ".join(f"{key} {value}" for key, value in about.items() if not _is_nested(value))
    lines = [f"## {name}", "", f"`softcr experiment {name}`{_when(table)}: {told}", "", *_HEADER]
    return "\n".join(lines + [_row(row) for row in table["rows"]]) + "\n"


def _when(table: dict[str, Any]) -> str:
    """Day and load of the run: computing times are worth little without."""
    machine = table.get("machine")
    if not isinstance(machine, dict) or "time" not in machine:
        return ""
    load = machine.get("load_average_at_start", ["?"])[0]
    return f", {machine['time'][:10]}, {machine.get('cores')} cores at load {load}"


def _is_nested(value: object) -> bool:
    return isinstance(value, dict | list)


def _row(row: dict[str, Any]) -> str:
    numbers = {key: _number(row.get(key)) for key in ("paper", "mean", "sd", "limit", "goal")}
    cells = (
        row["case"], row["method"], row["quantity"], numbers["paper"], numbers["mean"],
        numbers["sd"], row["unit"], str(row["seeds"]), numbers["limit"], numbers["goal"],
        row["mark"],
    )  # fmt: skip
    return "| " + " | ".join(cells) + " |"


def _number(value: float | None) -> str:
    return "" if value is None else f"{value:.3g}"


def _parser(name: str) -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="softcr experiment",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    parser.add_argument("name", choices=("all", "report"), help=argparse.SUPPRESS)
    parser.usage = f"softcr experiment {name} [--seeds N] [--results DIRECTORY]"
    parser.add_argument("--seeds", type=int, choices=range(1, 101), default=5, metavar="N",
                        help="of every experiment (default: 5)")  # fmt: skip
    parser.add_argument(
        "--results", type=Path, default=Path("results"), help="directory (default: results)"
    )
    return parser
