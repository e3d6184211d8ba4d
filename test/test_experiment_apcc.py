"""`softcr experiment apcc-...` in short forms."""

import json

import numpy as np
import pytest

from softcr_tools import cli
from softcr_tools.experiments.apcc.kinematic import READINGS, REQUIRED
from softcr_tools.experiments.apcc.kinematic_run import (
    CENTRE,
    CHAIN,
    FIRST_LENGTHS,
    TRUE_LENGTHS,
    bent_start,
    law,
    simulate,
    straight_start,
)
from softcr_tools.experiments.apcc.metrics import shape_error


def rows_of(directory, name):
    """(case, method, quantity) -> row of what a run has written."""
    path = directory / "experiments" / name / "latest" / "table.json"
    rows = json.loads(path.read_text())["rows"]
    return {(row["case"], row["method"], row["quantity"]): row for row in rows}


def test_shape_error_is_the_mean_distance():
    straight, longer = np.zeros(9), np.array([0, 0, 0.1, 0, 0, 0.1, 0, 0, 0.1])
    found = shape_error(CHAIN, straight, TRUE_LENGTHS, CHAIN, longer, TRUE_LENGTHS)
    # point k of N is k / (N - 1) of the whole up; sections are stretched by different parts
    places = np.linspace(0.0, 0.6, 500)
    ends = np.array([0.0, 0.105, 0.36, 0.60])
    expected = np.interp(places, ends, [0.0, 0.1, 0.2, 0.3]).mean()
    assert found == pytest.approx(expected, rel=1e-9)


def test_runs_start_where_the_trajectory_does():
    for start in (straight_start(), bent_start(0), bent_start(1)):
        tip = CHAIN.position(start, TRUE_LENGTHS)
        np.testing.assert_allclose(tip, CENTRE, atol=1e-9)
    assert np.abs(bent_start(0) - bent_start(1)).max() > 0.1


def test_a_run_begins_with_what_is_told():
    trace = simulate(law(), straight_start(), 0.01, 0.2)
    np.testing.assert_allclose(trace.lengths[0], FIRST_LENGTHS)
    assert trace.errors[0] == pytest.approx(0.0, abs=1e-12)
    assert len(trace.times) == 21


def test_the_kinematic_experiment_shows_every_reading(tmp_path, capsys):
    arguments = ["--seeds", "1", "--seconds", "8", "--step-ms", "10", "--results", str(tmp_path)]
    assert cli.main(["experiment", "apcc-kinematic", *arguments]) == 0
    rows = rows_of(tmp_path, "apcc-kinematic")
    required = READINGS[REQUIRED]
    share = rows[required.case, required.method, "... of the fixed one's"]
    assert share["limit"] == 5.0
    assert share["mean"] < 25.0  # in 8 coarse seconds instead of 20 fine ones
    for reading in READINGS:
        ends = (reading.case, reading.method, "diverges after")
        assert (ends in rows) == (reading.method == "inferred q")
    drifting = "straight, 10 ms, 3 T", "inferred q, Γ / 50"
    assert all((*drifting, f"length error, {end} s") in rows for end in (8, 16, 24))
    latest = tmp_path / "experiments" / "apcc-kinematic" / "latest"
    figures = {"convergence.png", "readings.png"}
    assert {path.name for path in latest.iterdir()} == {"table.json"} | figures
    assert "commanded q" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (["apcc-kinematic", "--seeds", "0"], "'0' is not allowed: a whole number from 1 on"),
        (["apcc-kinematic", "--step-ms", "nan"], "'nan' is not allowed: 0.1 to 10"),
    ],
)
def test_mistakes_get_one_line_and_code_2(arguments, complaint, capsys):
    with pytest.raises(SystemExit) as end:
        cli.main(["experiment", *arguments])
    assert end.value.code == 2
    assert complaint in capsys.readouterr().err
