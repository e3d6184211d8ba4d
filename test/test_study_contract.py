"""What every shipped study promises of its first cell, at small effort."""

import dataclasses
import math

import pytest
from pydantic import ValidationError

from softcr_models.errors import UserError
from softcr_studies.frame.catalogue import load_study, study_files
from softcr_studies.frame.results import Results, Store

EFFORT = [
    ("seeds", 1), ("seconds", 1.0), ("trials", 1), ("motions", 1), ("periods", 8), ("setpoints", 1),
    ("runs", 1), ("parts", 1), ("samples", 400), ("sequences", 3), ("intervals", 2), ("goals", 1),
    ("shapes", 5), ("duration", 2.2), ("duration", 1.2), ("repeats", 2), ("minutes", 0.2),
]  # fmt: skip
LONG = {
    "control/any-model", "control/repetition", "estimation/tip-force", "licher2025/compliance",
    "licher2025/identification", "licher2025/surrogate-recipes", "licher2025/surrogate-structure",
    "pawlowski2019/dynamics", "pawlowski2019/learned-robots", "pawlowski2019/learning",
    "pawlowski2019/learning-others",
    "pawlowski2019/mpc", "pawlowski2019/quasi-static", "pawlowski2019/statics",
    "pawlowski2019/workspace", "recordings/asl-trunk", "recordings/asu-two-segments",
    "recordings/tentacle", "robustness/chain-identification", "robustness/draws",
    "robustness/late-answers", "robustness/pressure-faults", "robustness/random-robots",
    "speed/pyelastica", "tuning/chain", "tuning/filter", "tuning/horizon", "tuning/nempc",
    "tuning/paper-nempc", "tuning/payload",
}  # fmt: skip
"""Studies whose first cell takes more than ten seconds."""


def smallest(study):
    """Its settings at the least effort that each of them allows."""
    given = {}
    for name, value in EFFORT:
        if name in study.settings.model_fields:
            try:
                study.settings(**given | {name: value})
            except (UserError, ValidationError):
                continue
            given[name] = value
    return study.settings(**given)


@pytest.mark.later
@pytest.mark.usefixtures("one_thread")
@pytest.mark.parametrize(
    "name", [pytest.param(n, marks=[pytest.mark.slow] * (n in LONG)) for n in sorted(study_files())]
)
def test_the_first_cell_gives_rows_that_are_well_formed(name, tmp_path):
    study = load_study(name)
    settings = smallest(study)
    if study.needs:
        pytest.skip("it needs what only a person has")
    cells = list(study.cells(settings))
    assert len({(cell.case_name, cell.method, cell.seed) for cell in cells}) == len(cells)
    cell = cells[0]
    shortened = hasattr(cell.case, "duration") and not hasattr(settings, "minutes")
    if shortened:
        cell = dataclasses.replace(cell, case=dataclasses.replace(cell.case, duration=2.2))
    results = Results(settings, Store(tmp_path / "kept", name, "code"))
    folder = tmp_path / name / "unfinished" / "shared"
    folder.mkdir(parents=True)
    found = study.run(dataclasses.replace(cell, folder=folder))
    results.cells = [cell]
    results.store.add(cell, found)
    assert results.store[cell].keys() == found.keys()
    rows = dataclasses.replace(study, further_rows=None).rows(results)
    assert rows or study.further_rows or not study.metrics
    assert len({row.key for row in rows}) == len(rows)
    for row in rows:
        assert (row.case, row.method) == (cell.case_name, cell.method)
        assert row.unit
        assert row.mark in ("", "goal", "pass", "MISS")
        assert not math.isnan(row.mean) or row.note or shortened  # it ends before its event
