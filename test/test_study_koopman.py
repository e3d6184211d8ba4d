"""Study `recordings/koopman` on small files of the recorded form."""

import numpy as np
import pytest
from kit.refusals import one_line
from kit.studies import run_of

from softcr_models.errors import UserError
from softcr_studies.frame.runner import TABLE
from softcr_studies.frame.table import read_table
from softcr_studies.koopman.selection import grid
from softcr_studies.recordings import koopman
from softcr_studies.recordings.koopman import HOLD, STUDY, Settings, load_recordings, recordings_of

PERIOD = 0.125  # exact in binary
SMALL = {
    "koopman": grid((1, 2), (2,), (1e-9, 1e-3)),
    "linear ARX": grid((1, 2), (1,), (1e-9, 1e-3)),
}


def arm(trials, length=200, seed=0):
    """x+ = 0.9 x + what the square of the previous u pushes; the tip is x [cm]."""
    random = np.random.default_rng(seed)
    arrays = {}
    for number in range(trials):
        inputs = np.repeat(random.uniform(0.0, 7.0, (length // 5, 3)), 5, axis=0)
        state, rows = np.zeros(2), []
        for row in np.roll(inputs, 1, axis=0):
            rows.append(state)
            state = 0.9 * state + 0.01 * np.array([row[0] ** 2 - row[1] ** 2, row[2] ** 2])
        arrays[f"t{number}"] = PERIOD * np.arange(length)
        arrays[f"u{number}"] = inputs
        arrays[f"y{number}"] = np.array(rows)
    return arrays


def saved(path, arrays):
    np.savez(path, **arrays)
    return path


def test_recordings_become_millimetres_on_a_grid(tmp_path):
    arrays = arm(1)
    arrays["t0"] = np.cumsum(np.full(200, PERIOD)) + 5.0
    arrays["y0"] = np.stack([arrays["t0"], -arrays["t0"]], axis=1)
    [recording] = load_recordings(saved(tmp_path / "arm.npz", arrays), PERIOD / 2)
    times = arrays["t0"][0] + PERIOD / 2 * np.arange(len(recording.trial.outputs))
    np.testing.assert_allclose(recording.trial.outputs[:, 0], 10 * times)
    assert recording.name == "arm 0"
    assert recording.extent == pytest.approx(10 * np.sqrt(2) * (times[-1] - times[0]))
    np.testing.assert_array_equal(recording.trial.inputs[20:30], arrays["u0"][10:15].repeat(2, 0))


def test_every_fourth_trial_is_held_out(tmp_path):
    saved(tmp_path / "arm.npz", arm(13, 60))
    settings = Settings(data=str(tmp_path), train="arm.npz", period=PERIOD, horizon=1.0)
    train, held_out = recordings_of(settings)
    assert [one.name for one in held_out] == ["arm 4", "arm 8", "arm 12"]
    assert [one.name for one in train] == [f"arm {i}" for i in range(13) if i % 4 or not i]
    saved(tmp_path / "arm.npz", arm(4, 60))
    with pytest.raises(UserError, match="4 trials: at least 5"):
        recordings_of(settings)


def test_the_lift_pays_where_the_push_is_quadratic_and_both_beat_holding_still(
    tmp_path, monkeypatch
):
    monkeypatch.setattr(koopman, "CANDIDATES", SMALL)
    saved(tmp_path / "train.npz", arm(5))
    saved(tmp_path / "score.npz", arm(1, seed=1))
    settings = Settings(
        data=str(tmp_path), train=" train.npz", score="score.npz,", period=PERIOD, horizon=1.0
    )
    directory, _ = run_of(STUDY.name, tmp_path / "results", settings)
    about, rows = read_table(directory / TABLE)
    found = {(r.case, r.method, r.quantity): r.mean for r in rows}
    methods = ("koopman", "linear ARX", HOLD)
    lifted, arx, hold = (found["score 0", each, "to 1 s ahead, mean"] for each in methods)
    assert lifted < 0.9 * arx  # not 0: squares of inputs yet to come are linear to the model
    assert arx < 0.5 * hold
    percent = found["score 0", "koopman", "to 1 s ahead, mean of motion"]
    [recording] = load_recordings(tmp_path / "score.npz", PERIOD)
    assert percent == pytest.approx(100 * lifted / recording.extent)
    largest, mean = (found["score 0", "koopman", f"whole trial, {s}"] for s in ("largest", "mean"))
    assert largest >= mean > 0.0
    assert found["training trials", "koopman", "chosen degree"] == 2
    assert found["training trials", "linear ARX", "chosen degree"] == 1
    assert {row.case for row in rows} == {"training trials", "score 0"}
    assert about["train"] == " train.npz"
    assert (directory / "koopman.png").stat().st_size > 10_000


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        ({"u1": None}, "trial 1: u1 is missing"),
        ({"t0": None}, "arrays t0, u0, y0"),
        ({"y1": np.zeros((7, 2))}, r"y \(7, 2\): allowed are"),
        ({"t1": np.zeros(40)}, "time of row 1 is not above"),
        ({"y0": np.full((40, 2), np.nan)}, "not finite"),
        ({"y0": np.array(["a"] * 40)}, "cannot be read as recordings"),
    ],
)
def test_a_file_that_is_not_of_the_form_is_refused(tmp_path, change, complaint):
    arrays = {**arm(2, 40), **change}
    kept = {name: values for name, values in arrays.items() if values is not None}
    with pytest.raises(UserError, match=complaint):
        load_recordings(saved(tmp_path / "arm.npz", kept), PERIOD)


def test_absent_foreign_short_or_other_files_are_refused_in_one_line(tmp_path):
    (tmp_path / "notes.npz").write_text("no zip")
    saved(tmp_path / "short.npz", arm(6, 30))
    saved(tmp_path / "train.npz", arm(5))
    planar = arm(1)
    planar["y0"] = planar["y0"][:, :1]
    saved(tmp_path / "thin.npz", planar)
    for given, complaint in (
        ({}, "bruder2020_train.npz: no such file"),
        ({"train": "notes.npz"}, "cannot be read as recordings"),
        ({"train": "short.npz"}, r"short 0: \d+ samples of"),
        ({"train": "train.npz", "score": "thin.npz"}, "thin 0: 1 outputs and 3 inputs"),
        ({"train": " , "}, "0 trials: at least 5"),
    ):
        with one_line(complaint):
            recordings_of(Settings(data=str(tmp_path), **given))
    with pytest.raises(ValueError, match="horizon"):
        Settings(horizon=0.0)
