"""The pages of results: made from the tables in `docs/results/tables` by every build."""

from pathlib import Path

from softcr_studies.frame.page import write_pages

FOLDER = Path(__file__).resolve().parents[1] / "results"


def write_results(folder: Path = FOLDER) -> list[str]:
    """Write the index and a page for each group of studies; returns their names.

    A page of a group that has no table any more is removed.
    """
    made = {path.name for path in write_pages([], folder)}
    for old in folder.glob("*.md"):
        if old.name not in made:
            old.unlink()
    return sorted(made)
