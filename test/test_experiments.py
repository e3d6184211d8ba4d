"""The page of all experiments."""

import json

import pytest

from softcr_models.errors import UserError
from softcr_tools.experiments import collected
from softcr_tools.experiments.results import Row, write_table

NAMES = ("first", "second", "third")


def results_of(root, name, rows):
    directory = root / name / "latest"
    directory.mkdir(parents=True)
    machine = {"cores": 2, "time": "2026-11-21T18:22:37", "load_average_at_start": [7.5, 6.0, 5.0]}
    write_table(directory, {"experiment": name, "seeds": 3, "machine": machine}, rows)
    return directory / "table.json"


def test_the_page_holds_every_row_and_says_what_was_not_run(tmp_path):
    results_of(tmp_path, "first", [Row("a case", "us", "error", 2.0, 0.5, 0.1, "mm", 3, 1.0, 0.2)])
    results_of(tmp_path, "third", [Row("b", "us", "time", None, float("nan"), 0.0, "s", 1)])
    page = collected.write_pages(tmp_path, NAMES)[0].read_text()
    assert "| a case | us | error | 2 | 0.5 | 0.1 | mm | 3 | 1 | 0.2 | pass |" in page
    assert "| b | us | time |  |  | 0 | s | 1 |  |  |  |" in page
    assert page.index("## first") < page.index("## third")
    assert "`softcr experiment first`, 2026-11-21, 2 cores at load 7.5: seeds 3" in page
    assert "Not run: second." in page


def test_nothing_run_or_a_broken_table_is_one_line(tmp_path):
    with pytest.raises(UserError, match="no experiment has been run; allowed are first, second"):
        collected.write_pages(tmp_path, NAMES)
    path = results_of(tmp_path, "first", [])
    path.write_text(json.dumps({"rowz": []}))
    with pytest.raises(UserError, match=r"table\.json: not an experiment's table: 'rows'"):
        collected.write_pages(tmp_path, NAMES)
