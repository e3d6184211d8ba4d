"""`softcr train`, `verify-surrogate`, `search-surrogate` on the small network."""

import json
import re

import numba
import optuna
import pytest
import torch
from rich.console import Console
from surrogate_models import SMALL, small_network

from softcr_learning.surrogate import search, timing
from softcr_learning.surrogate.recipes import Recipe, recipes
from softcr_learning.surrogate.training_settings import TrainingSettings
from softcr_models import load_robot
from softcr_models.errors import UserError
from softcr_models.surrogate import files
from softcr_tools.cli import main as softcr
from softcr_tools.surrogate import compare, search_report, train, verify

FEW = SMALL.model_copy(update={"iterations": 30, "trajectories": 24, "noisy_samples": 500})


@pytest.fixture(autouse=True)
def one_thread():
    threads = numba.get_num_threads(), torch.get_num_threads()
    yield
    numba.set_num_threads(threads[0])
    torch.set_num_threads(threads[1])


def test_train_writes_weights_card_and_log(tmp_path, monkeypatch, capsys):
    monkeypatch.setitem(train.PRESETS, "softcr", lambda: FEW)
    output = tmp_path / "made"
    assert softcr(["train", "--output", str(output), "--neurons", "16", "--seed", "3"]) == 0
    network, card = files.load(output)
    assert network.architecture.neurons == 16
    assert card.training["seed"] == 3
    assert card.hardware["torch"] == torch.__version__
    log = (tmp_path / "made.csv").read_text().splitlines()
    assert log[0].startswith("iteration,seconds,learning_rate,loss one step")
    assert not (tmp_path / "made.checkpoint").exists()
    assert "mm mean over 4 s of free running" in capsys.readouterr().out

    again = ["train", "--output", str(tmp_path / "next"), "--neurons", "16"]
    assert softcr([*again, "--start", str(output)]) == 0
    assert files.load(tmp_path / "next")[1].start == card
    other = ["train", "--output", str(tmp_path / "x"), "--neurons", "24", "--start", str(output)]
    assert softcr(other) == 2
    assert "has other architecture" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("options", "match"),
    [
        (["--neurons", "2"], "option neurons: 2 is not allowed: .* greater than or equal to 4"),
        (["--neurons", "x"], "option neurons = 'x': must be a whole number from 4 to 4096"),
        (["--learning-rate", "0"], "option learning_rate: 0.0 is not allowed: "),
        (["--terms", "4"], "with shared shapes it must be 3"),
        (["--robot", "nobody"], "robot 'nobody': unknown"),
    ],
)
def test_wrong_options_are_one_line(options, match, capsys):
    assert softcr(["train", *options]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert re.search(match, line)


def test_compare_trains_and_judges_every_recipe(tmp_path, monkeypatch):
    monkeypatch.setattr(compare, "TICKS", 30)
    monkeypatch.setattr(compare, "LONG", (3, 40))
    few = [
        Recipe("ours", FEW),
        Recipe(
            "published: alone",
            recipes(1.0)[-1].settings.model_copy(
                update={"iterations": 2, "trajectories": 16, "box_samples": 64, "physics_points": 4}
            ),
        ),
    ]
    monkeypatch.setattr(compare, "recipes", lambda part: few)
    assert softcr(["compare-surrogates", "--motions", "2", "--results", str(tmp_path)]) == 0
    rows = json.loads((tmp_path / "latest" / "table.json").read_text())["rows"]
    assert {row["method"] for row in rows} == {"ours", "published: alone"}
    bounded = [row["mean"] for row in rows if row["quantity"] == "bounded"]
    assert bounded[0] == 100.0
    assert len([row for row in rows if row["quantity"] == "tip position"]) == 8


def test_recipes_differ_from_ours_in_what_they_leave_out():
    ours, *others = recipes(1.0)
    assert ours.settings.physics > 0.0
    assert [recipe.settings.physics > 0.0 for recipe in others] == [True, False, False, False, True]
    assert not others[-1].settings.supervised


@pytest.fixture
def _few_repeats(monkeypatch):
    monkeypatch.setattr(timing, "REPEATS", 2)
    monkeypatch.setattr(timing, "TICK_REPEATS", 1)
    monkeypatch.setattr(timing, "TICK", timing.TICK.model_copy(update={"population": 40}))


@pytest.mark.usefixtures("_few_repeats")
def test_times_alone_name_every_way_and_tick(capsys):
    assert softcr(["verify-surrogate", "--only-times", "--network", str(small_network()[2])]) == 0
    said = " ".join(capsys.readouterr().out.split())
    for way in ("exact rod, float32, batch 147", "network, folded, batch 1000"):
        assert f"{way}: median" in said
    for way in ("exact rod", "network, arrays", "network, tensors"):
        assert f"NEMPC tick x 8: {way}, batch 40: median" in said


@pytest.mark.usefixtures("_few_repeats")
def test_verify_writes_table_figures_and_numbers(tmp_path, monkeypatch):
    monkeypatch.setattr(verify, "HORIZONS", [1, 8])
    monkeypatch.setattr(verify, "COMPLIANCES", verify.COMPLIANCES[::4])
    monkeypatch.setattr(verify, "PRESSURE_PARTS", verify.PRESSURE_PARTS[::4])
    monkeypatch.setattr(verify, "STABILITY", {"lagged_steps": 8})
    monkeypatch.setattr(verify, "LONG", (4, 200))
    monkeypatch.setattr(verify, "TICKS", 60)
    _, _, path = small_network()
    arguments = ["--network", str(path), "--motions", "2", "--results", str(tmp_path)]
    assert softcr(["verify-surrogate", *arguments]) == 0
    latest = tmp_path / "latest"
    for name in ("states.png", "horizons.png", "map.png"):
        assert (latest / name).stat().st_size > 1000
    rows = json.loads((latest / "table.json").read_text())["rows"]
    assert {row["case"] for row in rows} >= {"smooth 70 %", "one step, noisy state", "batch 147"}
    found = json.loads((latest / "verification.json").read_text())
    assert found["bounded"]["lagged_steps, 1000 steps"][:2] == [8, 8]
    assert found["spectral radius of the linear part"] < 1.0


def test_search_stops_what_falls_behind_and_goes_on_later(tmp_path, monkeypatch, capsys):
    def tiny(trial, fixed):
        made = original(trial, fixed)
        architecture = made.architecture.model_copy(update={"neurons": 16, "layers": 1})
        return made.model_copy(update={"architecture": architecture})

    original = search.settings_of
    few = FEW.model_copy(update={"validate_every": 0.2})
    monkeypatch.setattr(search, "settings_of", tiny)
    robot = load_robot("licher2025")
    study = search.open_study(str(tmp_path / "search.journal"), 0)
    search.work(study, robot, few, 3, tmp_path)
    again = search.open_study(str(tmp_path / "search.journal"), 0)
    assert len(again.get_trials()) == 3
    states = {trial.state for trial in again.get_trials()}
    assert states <= {optuna.trial.TrialState.COMPLETE, optuna.trial.TrialState.PRUNED}
    assert {"neurons", "layers", "learning_rate", "shapes"} <= set(again.get_trials()[0].params)
    search.work(again, robot, few, 3, tmp_path)  # nothing is left to do
    assert len(again.get_trials()) == 3
    search_report.report(
        again.get_trials(), tmp_path, "softcr search-surrogate --trials 3", Console()
    )
    assert (tmp_path / "search.png").stat().st_size > 1000
    page = (tmp_path / "search.md").read_text()
    best = min(t.value for t in again.get_trials() if t.state == optuna.trial.TrialState.COMPLETE)
    assert f"| {best:.3g} |" in page
    assert "`softcr search-surrogate --trials 3`" in page
    assert "networks trained to the end" in capsys.readouterr().out


def test_a_search_begins_with_what_is_shipped():
    trial = optuna.trial.FixedTrial(search.shipped_choice())
    assert search.settings_of(trial, TrainingSettings()) == TrainingSettings()


def test_a_stopped_network_is_ranked_by_its_last_validation():
    def objective(trial):
        trial.report(5.0, 1)
        trial.report(trial.suggest_float("learning_rate", 2.0, 2.0), 2)
        raise optuna.TrialPruned

    study = optuna.create_study()
    study.optimize(objective, n_trials=1)
    assert search_report._score(study.trials[0]) == 2.0


def test_unusable_storage_is_one_line(tmp_path):
    with pytest.raises(UserError, match="cannot be opened"):
        search.open_study("nosuchdatabase://here", 0)
