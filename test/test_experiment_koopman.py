"""`softcr experiment koopman-real` on small files of the recorded form."""

import json

import numpy as np
import pytest
from rich.console import Console

from softcr_control.koopman_selection import grid
from softcr_models.errors import UserError
from softcr_tools.experiments.command import EXPERIMENTS
from softcr_tools.experiments.command import main as experiment
from softcr_tools.experiments.koopman_real import command
from softcr_tools.experiments.koopman_real.recordings import load_recordings, split
from softcr_tools.experiments.koopman_real.scores import HOLD

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
    assert recording.motion == pytest.approx(10 * np.sqrt(2) * (times[-1] - times[0]))
    np.testing.assert_array_equal(recording.trial.inputs[20:30], arrays["u0"][10:15].repeat(2, 0))


def test_every_fourth_trial_is_held_out(tmp_path):
    recordings = load_recordings(saved(tmp_path / "arm.npz", arm(13, 20)), PERIOD)
    train, held_out = split(recordings)
    assert [one.name for one in held_out] == ["arm 4", "arm 8", "arm 12"]
    assert len(train) == 10
    with pytest.raises(UserError, match="4 trials: at least 5"):
        split(recordings[:4])


def test_the_lift_pays_where_the_push_is_quadratic_and_both_beat_holding_still(tmp_path):
    recordings = load_recordings(saved(tmp_path / "arm.npz", arm(6)), PERIOD)
    train, held_out = recordings[:5], recordings[5:]
    console = Console(width=118, record=True)
    rows = command.run(
        command.Protocol(PERIOD, 1.0, 5), train, held_out, tmp_path, console, SMALL
    )  # fmt: skip
    found = {(r.method, r.quantity): r for r in rows}
    lifted, arx, hold = (
        found[method, "to 1 s ahead, mean"].mean for method in ("koopman", "linear ARX", HOLD)
    )
    assert lifted < 0.9 * arx  # not 0: squares of inputs yet to come are linear to the model
    assert arx < 0.5 * hold
    percent = found["koopman", "to 1 s ahead, mean of motion"].mean
    assert percent == pytest.approx(100 * lifted / held_out[0].motion)
    assert (
        found["koopman", "whole trial, largest"].mean >= found["koopman", "whole trial, mean"].mean
    )
    table = json.loads((tmp_path / "latest" / "table.json").read_text())
    assert table["scored_on"] == ["arm 5"]
    assert table["chosen_on_training_trials"]["koopman"]["lift"]["degree"] == 2
    assert len(table["rows"]) == len(rows)
    assert (tmp_path / "latest" / "koopman_real.png").stat().st_size > 10_000
    assert "chosen by cross-validation on the 5 training trials only" in console.export_text()


def test_the_command_takes_files_and_says_how_lift_and_ridge_were_chosen(
    tmp_path, capsys, monkeypatch
):
    monkeypatch.setattr(command, "CANDIDATES", SMALL)
    monkeypatch.setattr(command.run, "__defaults__", (SMALL,))
    train = saved(tmp_path / "train.npz", arm(4, 100))
    score = saved(tmp_path / "score.npz", arm(2, 100, seed=1))
    arguments = ["--train", str(train), "--score", str(score), "--period", "0.125"]
    assert experiment(["koopman-real", *arguments, "--results", str(tmp_path)]) == 0
    latest = tmp_path / "experiments" / "koopman-real" / "latest"
    table = json.loads((latest / "table.json").read_text())
    assert table["trained_on"] == [f"train {i}" for i in range(4)]
    assert table["scored_on"] == ["score 0", "score 1"]
    assert "on the 4 training trials only" in " ".join(capsys.readouterr().out.split())


def test_listed():
    assert "koopman-real" in EXPERIMENTS


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
    foreign = tmp_path / "notes.npz"
    foreign.write_text("no zip")
    short = saved(tmp_path / "short.npz", arm(6, 30))
    train = saved(tmp_path / "train.npz", arm(5))
    planar = arm(1)
    planar["y0"] = planar["y0"][:, :1]
    thin = saved(tmp_path / "thin.npz", planar)
    for arguments, complaint in (
        (["--data", str(tmp_path)], "bruder2020_train.npz: no such file"),
        (["--train", str(foreign)], "cannot be read as recordings"),
        (["--train", str(short)], r"short 0: \d+ samples of"),
        (["--train", str(train), "--score", str(thin)], "thin 0: 1 outputs and 3 inputs"),
    ):
        with pytest.raises(UserError, match=complaint) as raised:
            command.main([*arguments, "--results", str(tmp_path)])
        assert "\n" not in str(raised.value)
    with pytest.raises(SystemExit):
        command.main(["--horizon", "0"])
