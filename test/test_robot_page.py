"""docs/robots.md: its generated parts are those of the files and models of today."""

import re

import pytest
import yaml

from softcr_models import load_robot
from softcr_tools import robot_page
from softcr_tools.robot_page import PAGE, page

TEXT = PAGE.read_text(encoding="utf-8")


def test_the_page_is_as_it_would_be_written_now():
    assert page(TEXT) == TEXT, "make it anew with `python -m softcr_tools.robot_page`"


def test_a_page_without_its_parts_gets_them_back():
    emptied = re.sub(r"(<!-- (\w+): begin -->).*?(<!-- \2: end -->)", r"\1\n\3", TEXT, flags=re.S)
    assert len(emptied) < len(TEXT) / 2
    assert page(emptied) == TEXT


@pytest.mark.parametrize(
    "row",
    [
        "| `length` | m | number above 0 | required | reference length of the rod |",
        "| `tip_mass_fraction` | - | number above 0 and at most 1 | required |",
        "| `maximum_rate` | Pa/s | number above 0 | required |",
        "| `rack` | - | whole number at least 1 | required |",
    ],
)
def test_the_tables_tell_unit_range_and_meaning(row):
    assert row in TEXT


def test_the_example_is_a_robot(tmp_path):
    example = re.search(r"```yaml\n(.*?)```", TEXT, flags=re.S)[1]
    path = tmp_path / "example.yaml"
    path.write_text(example)
    assert load_robot(path) == load_robot("four_chambers")
    assert yaml.safe_load(example)["type"] == "rod"


def test_writing_leaves_a_page_of_today_as_it_is(monkeypatch, tmp_path):
    copy = tmp_path / "robots.md"
    copy.write_text(TEXT, encoding="utf-8")
    monkeypatch.setattr(robot_page, "PAGE", copy)
    assert robot_page.main() == 0
    assert copy.read_text(encoding="utf-8") == TEXT
