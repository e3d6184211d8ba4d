"""The list of the pages of results: whatever `softcr study page` has written to docs/results."""

from pathlib import Path

_RESULTS = Path(__file__).resolve().parents[1] / "results"


def pages() -> dict[str, str]:
    """A table of contents; a sentence where there are no pages yet."""
    names = sorted(path.stem for path in _RESULTS.glob("*.md") if path.stem != "index")
    if not names:
        return {"results.md": "No page has been made yet.\n"}
    entries = "\n".join(names)
    return {"results.md": f"```{{toctree}}\n:maxdepth: 2\n\n{entries}\n```\n"}
