"""The reference of robot files: the tables that are made of the classes."""

import sys

import pytest
from docs_blocks import DOCS

sys.path.insert(0, str(DOCS))

from generate import robot_schema

PAGES = {name: write() for name, write in robot_schema.pages().items()}


@pytest.mark.parametrize(
    ("page", "row"),
    [
        ("robots.md", "| `four_chambers` | `rod` | 200 mm | 4 pressures | invented "),
        ("robot_rod.md", "| `segments` |   | list of 1 to 8, each Segment | required |"),
        ("robot_rod.md",
         "| `bending_compliance` | rad/(N m m) | number above 0 or list of 2, each nu"),
        ("robot_rod.md", "list of at least 1, each Chamber or RodTendon or Motor | required |"),
        ("robot_arm.md", "| `rack` | - | whole number at least 1 | required |"),
    ],
)  # fmt: skip
def test_the_tables_tell_unit_range_and_meaning(page, row):
    assert row in PAGES[page]


def test_every_field_has_a_meaning():
    rows = [line.split("|")[1:-1] for text in PAGES.values() for line in text.splitlines()
            if line.startswith("| `")]  # fmt: skip
    without = [row[0].strip() for row in rows if not row[4].strip()]
    assert set(without) <= {"`type`", "`pressure_limits`"}
